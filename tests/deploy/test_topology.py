"""The compose file's replicas as plain processes: two gateways that share their state, behind a real nginx
with the configuration of deploy/."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.app.test_reasoning_turns import ASKED, CALL, TOOL, VENDORS
from tests.app.test_sealed_turns import reply_of
from tests.backends.gateway import Gateway, config_text
from tests.backends.loopback import Reply
from tests.backends.replies import chat_stream, frame_bytes
from tests.backends.scripted import ScriptedBackend
from tests.deploy.dockerfile import ROOT

CHAT = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
WAIT_S = 15.0
NAMES = ["one", "two"]


@dataclass(slots=True)
class Topology:
    url: str
    gateways: list[Gateway]

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, trust_env=False, timeout=20)

    def served(self) -> list[int]:
        """How many calls each gateway has answered, by its log."""
        return [each.log().count('"event":"request"') for each in self.gateways]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def nginx_configuration(folder: Path, port: int, gateways: list[Gateway]) -> Path:
    """That of deploy/, with the addresses of processes for the containers, and the test's folder for /tmp."""
    text = (ROOT / "deploy" / "nginx.conf").read_text()
    for name, each in zip(("replica-1:4000", "replica-2:4000"), gateways, strict=True):
        assert f"server {name} " in text
        text = text.replace(f"server {name} ", f"server {each.base.removeprefix('http://')} ")
    assert "listen 8080;" in text
    text = text.replace("listen 8080;", f"listen 127.0.0.1:{port};").replace("/tmp/", f"{folder}/")
    file = folder / "nginx.conf"
    file.write_text(f"daemon off;\n{text}")
    return file


def provider(backend: ScriptedBackend, key: str) -> dict[str, Any]:
    """By its key the backend can tell which gateway asks."""
    told = {
        "name": "p",
        "kind": "openai",
        "base_url": f"{backend.origin}/v1",
        "models": ["m"],
        "api_key": key,
    }
    return {**told, "wire": "chat", "profile": VENDORS["databricks-claude"][0]}


@pytest.fixture
def topology(tmp_path: Path, scripted: ScriptedBackend) -> Iterator[Topology]:
    if shutil.which("nginx") is None:
        pytest.skip("needs nginx")
    state = tmp_path / "state"
    with ExitStack() as stack:
        gateways = []
        for name in NAMES:
            (tmp_path / name).mkdir()
            text = config_text([provider(scripted, name)])
            own = Gateway(tmp_path / name, text, env={"XDG_STATE_HOME": str(state)})
            gateways.append(stack.enter_context(own))
        port = free_port()
        file = nginx_configuration(tmp_path, port, gateways)
        nginx = subprocess.Popen(["nginx", "-c", str(file), "-p", str(tmp_path)], stderr=subprocess.DEVNULL)
        stack.callback(_quit, nginx)
        _wait_for(port)
        yield Topology(f"http://127.0.0.1:{port}", gateways)


def _quit(nginx: subprocess.Popen[bytes]) -> None:
    nginx.send_signal(signal.SIGTERM)
    nginx.wait(10)


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("nginx does not listen")


def test_both_gateways_answer(topology: Topology) -> None:
    with topology.client() as client:
        assert client.get("/ready").status_code == 200
        assert all(client.post("/v1/chat/completions", json=CHAT).status_code == 200 for _ in range(8))
    assert all(count >= 2 for count in topology.served()), topology.served()


def test_what_one_gateway_sealed_the_other_opens(topology: Topology, scripted: ScriptedBackend) -> None:
    """The backend gets its thoughts back whichever gateway the next turn comes to."""
    scripted.play(reply_of("databricks-claude"))
    body = {"model": "p/m", "instructions": "brief", "input": [ASKED], "tools": [TOOL], "store": False}
    with httpx.Client(base_url=topology.gateways[0].base, trust_env=False) as client:
        output = client.post("/v1/responses", json=body).json()["output"]
    result = {"type": "function_call_output", "call_id": CALL["id"], "output": "r"}
    with httpx.Client(base_url=topology.gateways[1].base, trust_env=False) as client:
        reply = client.post("/v1/responses", json={**body, "input": [ASKED, *output, result]})
    assert reply.status_code == 200, reply.text
    assert "x-dragoman-dropped" not in reply.headers
    (again,) = (each for each in scripted.bodies()[-1]["messages"] if each["role"] == "assistant")
    assert again["content"] == VENDORS["databricks-claude"][1]["content"]


def slow_stream(release: threading.Event) -> Reply:
    """A first frame at once, the rest when `release` is set."""
    first, *rest = (frame_bytes(frame) for frame in chat_stream("one two"))

    def pieces() -> Iterator[bytes | float]:
        yield first
        while not release.is_set():
            yield 0.02
        yield from rest

    return Reply(200, {"content-type": "text/event-stream"}, pieces())


def test_an_open_stream_outlives_the_stop_of_its_gateway(
    topology: Topology, scripted: ScriptedBackend
) -> None:
    """It comes event by event, ends whole, and meanwhile the other gateway takes what is new."""
    release = threading.Event()
    scripted.play(slow_stream(release))
    ask = {**CHAT, "stream": True}
    with topology.client() as client, topology.client() as other:  # noqa: SIM117 - the stream is the client's
        with client.stream("POST", "/v1/chat/completions", json=ask) as reply:
            lines = reply.iter_lines()
            assert next(lines).startswith("data: "), "nothing is held back until the end"
            asked = scripted.requests[-1].headers["authorization"].removeprefix("Bearer ")
            stopping = _stop(topology.gateways[NAMES.index(asked)])
            scripted.play(reply_of("databricks-claude"))
            for _ in range(6):
                assert other.post("/v1/chat/completions", json=CHAT).status_code == 200
            release.set()
            rest = [line for line in lines if line]
    assert rest[-1] == "data: [DONE]"
    assert stopping.process.wait(10) == 0
    with topology.client() as client:
        assert client.get("/health").status_code == 200


def _stop(gateway: Gateway) -> Gateway:
    """Asked to end; returns when it takes no more connections."""
    gateway.process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{gateway.base}/health", trust_env=False, timeout=5)
        except httpx.HTTPError:
            return gateway
        time.sleep(0.02)
    raise AssertionError("it still takes connections")


def test_a_configmap_that_is_changed_is_followed(tmp_path: Path, scripted: ScriptedBackend) -> None:
    """The manifest's own text, laid as kubelet lays it: a link through `..data`, and that one is replaced."""
    manifest = next(yaml.safe_load_all((ROOT / "deploy/kubernetes/deployment.yaml").read_text()))
    text = manifest["data"]["dragoman.toml"].replace("https://api.openai.com/v1", f"{scripted.origin}/v1")
    lay(tmp_path, "..1", text)
    (tmp_path / "dragoman.toml").symlink_to("..data/dragoman.toml")
    env = {"DRAGOMAN_API_KEY": "k", "DRAGOMAN_SEAL_KEY": "s", "OPENAI_API_KEY": "o"}
    config = tmp_path / "dragoman.toml"
    with Gateway(tmp_path, None, env=env, arguments=["--config", str(config)]) as gateway:
        assert 'name = "openai"' in text
        lay(tmp_path, "..2", text.replace('name = "openai"', 'name = "renamed"'))
        listed = _until(gateway, "renamed/m")
        assert "openai/m" not in listed


def lay(folder: Path, version: str, text: str) -> None:
    (folder / version).mkdir()
    (folder / version / "dragoman.toml").write_text(text)
    (folder / "..data_tmp").symlink_to(version)
    os.replace(folder / "..data_tmp", folder / "..data")


def _until(gateway: Gateway, model: str) -> list[Any]:
    deadline = time.monotonic() + WAIT_S
    ids: list[Any] = []
    while model not in ids and time.monotonic() < deadline:
        listed = httpx.get(
            f"{gateway.base}/v1/models", headers={"authorization": "Bearer k"}, trust_env=False
        )
        ids = [each["id"] for each in listed.json()["data"]]
        time.sleep(0.1)
    assert model in ids, gateway.log()[-3000:]
    return ids
