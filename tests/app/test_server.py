"""The process: what it prints, how it ends, and its workers."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from app import server
from app.server import build_server, listen
from config.schema import Config
from tests.app.conftest import Serve, provider
from tests.backends.gateway import COMMAND, Gateway
from tests.backends.loopback import Reply
from tests.backends.replies import chat_chunk, chat_stream, frame_bytes, sse_reply
from tests.backends.scripted import ScriptedBackend

ASK = {"model": "p/m", "input": "hi", "stream": True}
SSE = {"content-type": "text/event-stream"}


# --- in this process -------------------------------------------------------------------


def test_a_stop_lets_open_streams_finish(serve: Serve, scripted: ScriptedBackend) -> None:
    frames = [frame_bytes(frame) for frame in chat_stream("long answer")]
    scripted.play(Reply(200, SSE, [frames[0], 0.8, *frames[1:]]))
    served = serve(providers=[provider(scripted)])
    with served.client() as client, client.stream("POST", "/v1/responses", json=ASK) as reply:
        lines = reply.iter_lines()
        next(lines)
        served.stop()
        time.sleep(0.3)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{served.base}/health", trust_env=False)
        text = "\n".join(lines)
    assert "event: response.completed" in text
    assert served.ended(5)


def test_nobody_waits_after_a_second_interrupt(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply([chat_chunk({"role": "assistant", "content": "a"})], end="hang"))
    served = serve(providers=[provider(scripted)])
    with served.client() as client, client.stream("POST", "/v1/responses", json=ASK) as reply:
        lines = reply.iter_lines()
        next(lines)
        served.stop(force=True)
        text = "\n".join(lines)
    assert "event: response.failed" in text
    assert served.ended(5)
    assert served.log("library") == served.log("fault") == []


def test_at_the_end_of_the_grace_they_fail_in_their_own_way(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply([chat_chunk({"role": "assistant", "content": "a"})], end="hang"))
    served = serve(providers=[provider(scripted)], server={"shutdown_grace_s": 0.3})
    with served.client() as client, client.stream("POST", "/v1/responses", json=ASK) as reply:
        lines = reply.iter_lines()
        next(lines)
        began = time.monotonic()
        served.stop()
        text = "\n".join(lines)
    assert "event: response.failed" in text
    assert "shutting down" in text
    assert 0.2 < time.monotonic() - began < 3
    assert served.ended(5)
    assert served.log("library") == served.log("fault") == []


def test_an_orphan_ends() -> None:
    orphan = build_server(Config(), lambda: None, parent=os.getppid() + 1)
    thread = threading.Thread(target=orphan.run, kwargs={"sockets": [listen("127.0.0.1", 0)]}, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_an_address_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as caught:
            listen("127.0.0.1", port)
    assert caught.value.code == 1
    said = capsys.readouterr().err
    assert (
        said
        == f"dragoman cannot listen on 127.0.0.1:{port}: Address already in use; --port chooses another\n"
    )


def test_an_address_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        listen("nowhere.invalid", 0)
    said = capsys.readouterr().err
    assert said.startswith("dragoman cannot listen on nowhere.invalid:0: ")
    assert "--port" not in said


def test_ipv6_is_listened_to() -> None:
    with listen("::1", 0) as listening:
        assert listening.family == socket.AF_INET6


@pytest.mark.usefixtures("log_as_before")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run_until_a_signal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    announce = server._Announcement.__call__

    def and_stop(announcement: Any) -> None:
        announce(announcement)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(server._Announcement, "__call__", and_stop)
    before = signal.getsignal(number)
    server.run(Config.model_validate({"server": {"port": 0, "host": "::1"}}))
    assert signal.getsignal(number) is before
    assert re.fullmatch(r"dragoman listening on http://\[::1\]:\d+\n", capsys.readouterr().err)


@pytest.mark.usefixtures("log_as_before")
def test_run_with_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Parent:
        def __init__(self, *arguments: Any) -> None:
            made.extend(arguments)

        def run(self) -> int:
            return 7

    monkeypatch.setattr(server, "Workers", Parent)
    with pytest.raises(SystemExit) as caught:
        server.run(Config.model_validate({"server": {"port": 0, "workers": 3}}))
    assert (caught.value.code, made[0]) == (7, 3)


# --- as a command ----------------------------------------------------------------------


def test_it_announces_itself_once_and_stops_with_success(tmp_path: Path) -> None:
    with Gateway(tmp_path, "") as gateway:
        assert gateway.start_seconds < 10
        assert httpx.get(f"{gateway.base}/health", trust_env=False).status_code == 200
        assert gateway.stop() == 0
        assert gateway.log().count("dragoman listening on http://127.0.0.1:") == 1
        assert "Traceback" not in gateway.log()


def test_an_interrupt_is_a_stop_too(tmp_path: Path) -> None:
    with Gateway(tmp_path, "") as gateway:
        gateway.process.send_signal(signal.SIGINT)
        assert gateway.process.wait(10) == 0
        assert "Traceback" not in gateway.log()


def test_no_key_appears_in_the_log(tmp_path: Path, scripted: ScriptedBackend) -> None:
    own, theirs = "sk-c04d9e72ab5f1836d7", "sk-7f3a9c1e5b2d4608e1"
    config = f"""
[server]
api_keys = ["{own}"]
[[providers]]
name = "p"
kind = "openai"
base_url = "{scripted.origin}/v1"
api_key = "{theirs}"
models = ["m"]
"""
    with Gateway(tmp_path, config) as gateway, gateway.client() as client:
        headers = {"authorization": f"Bearer {own}"}
        assert client.post("/v1/responses", json=ASK, headers=headers).status_code == 200
        client.post(f"/v1/{theirs}", headers={"x-api-key": own})
        client.post("/v1/responses", json={"model": own, "input": theirs}, headers=headers)
        gateway.stop()
        assert gateway.log().count('"event":"request"') == 3
        assert own not in gateway.log()
        assert theirs not in gateway.log()
    assert scripted.requests[0].headers["authorization"] == f"Bearer {theirs}"


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_workers_share_the_port_and_are_replaced(tmp_path: Path) -> None:
    with Gateway(tmp_path, "", arguments=["--workers", "2"]) as gateway:
        first = workers_of(gateway.process)
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        deadline = time.monotonic() + 10
        while len(set(workers_of(gateway.process)) - {first[0]}) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        second = workers_of(gateway.process)
        assert len(second) == 2
        assert first[0] not in second
        assert httpx.get(f"{gateway.base}/health", trust_env=False).status_code == 200
        assert gateway.stop() == 0
        assert gateway.log().count("dragoman listening on") == 1
        assert f"worker {first[0]} died" in gateway.log()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a closed listener may linger")
def test_a_stop_of_workers_refuses_connections_at_once(tmp_path: Path, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply([chat_chunk({"role": "assistant", "content": "a"})], end="hang"))
    config = f"""
[server]
shutdown_grace_s = 2
[[providers]]
name = "p"
kind = "openai"
base_url = "{scripted.origin}/v1"
models = ["m"]
"""
    with (
        Gateway(tmp_path, config, arguments=["--workers", "2"]) as gateway,
        gateway.client() as client,
        client.stream("POST", "/v1/responses", json=ASK) as reply,
    ):
        lines = reply.iter_lines()
        next(lines)
        gateway.process.send_signal(signal.SIGTERM)
        time.sleep(0.7)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{gateway.base}/health", trust_env=False, timeout=1)
        assert "event: response.failed" in "\n".join(lines)
        assert gateway.process.wait(10) == 0


def test_a_taken_port_is_a_plain_message(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = subprocess.run(
            [COMMAND, "serve", "--port", port], cwd=tmp_path, capture_output=True, timeout=20, check=False
        )
    assert ran.returncode == 1
    assert b"cannot listen" in ran.stderr
    assert b"Traceback" not in ran.stderr


def test_workers_tell_the_sum_of_their_counters(tmp_path: Path) -> None:
    with Gateway(tmp_path, "", arguments=["--workers", "2"]) as gateway:
        for _ in range(8):
            assert httpx.get(f"{gateway.base}/health", trust_env=False).status_code == 200
        shown = httpx.get(f"{gateway.base}/metrics", trust_env=False).text
    assert 'dragoman_requests_total{lane="",route="/health",status="200"} 8.0' in shown
