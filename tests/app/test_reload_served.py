"""A configuration that changes under a gateway that serves: real processes, files and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.backends.gateway import Gateway, config_text
from tests.backends.loopback import Reply
from tests.backends.replies import chat_completion, chat_stream, frame_bytes, json_reply
from tests.backends.scripted import ScriptedBackend

ASK = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
SSE = {"content-type": "text/event-stream"}

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def text_of(backend: ScriptedBackend, server: dict[str, Any] | None = None, **more: Any) -> str:
    """A configuration with one provider."""
    provider = {"name": "p", "kind": "openai", "base_url": f"{backend.origin}/v1", "wire": "chat"}
    return config_text([{**provider, "models": ["m"], **more}], server=server)


class Follower:
    """A gateway that follows its file."""

    def __init__(self, gateway: Gateway, workers: int) -> None:
        self.gateway, self.workers = gateway, workers
        self.path = gateway._folder / "gateway.toml"

    def write(self, text: str) -> None:
        """As editors do: whole, under another name, then renamed."""
        new = self.path.with_name("new")
        new.write_text(text)
        new.replace(self.path)

    def hang_up(self) -> None:
        self.gateway.process.send_signal(signal.SIGHUP)

    def said(self, event: str) -> list[dict[str, Any]]:
        lines = self.gateway.log().splitlines()
        said = [orjson.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return [line for line in said if line["event"] == event]

    def wait(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """Until every worker has said so, so often."""
        deadline = time.monotonic() + 15
        while len(said := self.said(event)) < count * self.workers and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(said) == count * self.workers, self.gateway.log()[-4000:]
        return said

    def answers(self, times: int = 8, **headers: str) -> set[Any]:
        """What new connections get: the text of the answer, or the status."""
        got = set()
        for _ in range(times):
            url = f"{self.gateway.base}/v1/chat/completions"
            reply = httpx.post(url, json=ASK, headers=headers, trust_env=False, timeout=10)
            ok = reply.status_code == 200
            got.add(reply.json()["choices"][0]["message"]["content"] if ok else reply.status_code)
        return got


Follow = Callable[..., Follower]


@pytest.fixture
def backends() -> Iterator[tuple[ScriptedBackend, ScriptedBackend]]:
    with ScriptedBackend() as old, ScriptedBackend() as new:
        old.play(json_reply(chat_completion("old")))
        new.play(json_reply(chat_completion("new")))
        yield old, new


@pytest.fixture
def follow(tmp_path: Path) -> Iterator[Follow]:
    with ExitStack() as stack:

        def start(text: str, workers: int = 1, **more: Any) -> Follower:
            arguments = ["--workers", str(workers)]
            gateway = stack.enter_context(Gateway(tmp_path, text, arguments=arguments, **more))
            return Follower(gateway, workers)

        yield start


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("signalled", [True, False])
def test_new_requests_go_by_the_new_file(
    follow: Follow, backends: tuple[ScriptedBackend, ScriptedBackend], workers: int, signalled: bool
) -> None:
    old, new = backends
    follower = follow(text_of(old), workers)
    assert follower.answers() == {"old"}
    follower.write(text_of(new))
    if signalled:
        follower.hang_up()
    follower.wait("config_reloaded")
    assert follower.answers() == {"new"}
    time.sleep(2.3 if signalled else 0)  # what a signal made it read is no change later
    follower.wait("config_reloaded")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_file_changes_nothing_and_every_error_is_told(
    follow: Follow, backends: tuple[ScriptedBackend, ScriptedBackend], workers: int
) -> None:
    old, new = backends
    follower = follow(text_of(old), workers)
    follower.write(text_of(new, {"keepalive_s": "x"}, modells=1, api_key="${NOT_SET_HERE}"))
    follower.hang_up()
    for line in follower.wait("config_not_reloaded"):
        assert line["level"] == "error"
        for words in ("server.keepalive_s", "NOT_SET_HERE", "modells"):
            assert any(words in error for error in line["errors"])
    assert follower.answers() == {"old"}
    follower.path.unlink()
    follower.hang_up()
    assert "no such file" in follower.wait("config_not_reloaded", 2)[-1]["errors"][0]
    assert follower.answers() == {"old"}
    follower.write(text_of(new))
    follower.wait("config_reloaded")
    assert follower.answers() == {"new"}


def test_requests_under_way_end_where_they_began(
    follow: Follow, backends: tuple[ScriptedBackend, ScriptedBackend]
) -> None:
    old, new = backends
    frames = [frame_bytes(frame) for frame in chat_stream("a long answer")]
    old.play(Reply(200, SSE, [frames[0], 1.5, *frames[1:]]))
    follower = follow(text_of(old))
    with follower.gateway.client() as client:
        with client.stream("POST", "/v1/chat/completions", json={**ASK, "stream": True}) as reply:
            lines = reply.iter_lines()
            first = next(lines)
            follower.write(text_of(new))
            follower.hang_up()
            follower.wait("config_reloaded")
            assert follower.answers() == {"new"}
            assert open_sockets(follower.gateway.process.pid, old) == 1
            rest = "\n".join(lines)
        assert "a long answer" in "".join(delta_texts(first + "\n" + rest))
        assert "[DONE]" in rest
        # With its last request the former configuration's connections are closed.
        until(lambda: open_sockets(follower.gateway.process.pid, old) == 0)
    assert follower.said("fault") == follower.said("library") == []


def delta_texts(stream: str) -> Iterator[str]:
    for line in stream.splitlines():
        if line.startswith("data: {"):
            for choice in orjson.loads(line[6:])["choices"]:
                yield choice["delta"].get("content") or ""


def open_sockets(process: int, backend: ScriptedBackend) -> int:
    """Connections that a process has to a backend, pooled ones too."""
    if sys.platform != "linux":
        pytest.skip("looks into /proc")
    port = f":{int(backend.origin.rpartition(':')[2]):04X}"
    links = {os.readlink(each) for each in Path(f"/proc/{process}/fd").iterdir() if each.is_symlink()}
    lines = [line.split() for line in Path(f"/proc/{process}/net/tcp").read_text().splitlines()[1:]]
    return sum(each[2].endswith(port) and f"socket:[{each[9]}]" in links for each in lines)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert true()


@linux
def test_connections_of_a_provider_that_is_gone_are_closed(
    follow: Follow, backends: tuple[ScriptedBackend, ScriptedBackend]
) -> None:
    old, new = backends
    follower = follow(text_of(old))
    follower.answers()
    pid = follower.gateway.process.pid
    assert open_sockets(pid, old) > 0
    follower.write(text_of(new))
    follower.hang_up()
    follower.wait("config_reloaded")
    until(lambda: open_sockets(pid, old) == 0)


def test_keys_are_those_of_the_new_file_at_once_and_hidden_in_the_log(
    follow: Follow, backends: tuple[ScriptedBackend, ScriptedBackend]
) -> None:
    old, new = backends
    first, second, theirs = "client-key-first-1", "client-key-second-2", "backend-key-third-3"
    follower = follow(text_of(old, {"api_keys": [first]}))
    assert follower.answers(1, **{"x-api-key": first}) == {"old"}
    assert follower.answers(1, **{"x-api-key": second}) == {401}
    follower.write(text_of(new, {"api_keys": [second]}, api_key=theirs))
    follower.hang_up()
    follower.wait("config_reloaded")
    assert follower.answers(1, **{"x-api-key": first}) == {401}
    assert follower.answers(1, **{"x-api-key": second}) == {"new"}
    httpx.post(
        f"{follower.gateway.base}/v1/{theirs}/{second}", headers={"x-api-key": second}, trust_env=False
    )
    until(lambda: len(follower.said("request")) == 5)
    log = follower.gateway.log()
    assert second not in log
    assert theirs not in log


def test_settings_of_the_start_need_a_restart(
    follow: Follow, backends: tuple[ScriptedBackend, ScriptedBackend]
) -> None:
    old, new = backends
    follower = follow(text_of(old))
    server = {"host": "127.0.0.9", "port": 1, "workers": 7, "shutdown_grace_s": 2}
    follower.write(text_of(new, server))
    follower.wait("config_reloaded")
    told = follower.wait("config_needs_restart")[0]
    # The command line of the test says host, port and workers, and goes on winning.
    assert told["settings"] == ["server.shutdown_grace_s"]
    assert follower.answers() == {"new"}


@linux
def test_a_worker_that_is_replaced_serves_what_the_others_serve(
    follow: Follow, backends: tuple[ScriptedBackend, ScriptedBackend]
) -> None:
    old, new = backends
    follower = follow(text_of(old), 2)
    follower.write(text_of(new))
    follower.wait("config_reloaded")
    follower.write("not = toml = at all")
    follower.wait("config_not_reloaded")
    for worker in workers_of(follower.gateway.process):
        os.kill(worker, signal.SIGKILL)
        until(lambda gone=worker: gone not in (now := workers_of(follower.gateway.process)) and len(now) == 2)  # type: ignore[misc]
    until(lambda: follower.gateway.log().count("starting another") == 2)
    assert follower.answers(20) == {"new"}


def workers_of(process: subprocess.Popen[bytes]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children]


@pytest.mark.parametrize("workers", [1, 2])
def test_without_a_file_a_hang_up_is_answered_in_the_log(tmp_path: Path, workers: int) -> None:
    env = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    with Gateway(tmp_path, None, env=env, arguments=["--workers", str(workers)]) as gateway:
        follower = Follower(gateway, workers)
        gateway.process.send_signal(signal.SIGHUP)
        said = follower.wait("config_not_reloaded")
        assert "without a configuration file" in said[0]["errors"][0]
        assert httpx.get(f"{gateway.base}/health", trust_env=False).status_code == 200
        assert gateway.stop() == 0


@linux
def test_many_reloads_leave_nothing_behind(
    follow: Follow, backends: tuple[ScriptedBackend, ScriptedBackend]
) -> None:
    old, _ = backends
    follower = follow(text_of(old))
    pid = follower.gateway.process.pid

    def turn(at: int) -> int:
        follower.write(text_of(backends[at % 2], {"keepalive_s": 10 + at}))
        follower.hang_up()
        follower.wait("config_reloaded", at)
        assert follower.answers(2) == {"new" if at % 2 else "old"}
        until(lambda: open_sockets(pid, backends[(at + 1) % 2]) == 0)
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))

    # Threads of a pool are made as they are needed, and stay.
    handles = [turn(at) for at in range(1, 21)]
    assert max(handles[-5:]) <= max(handles[:5])


def test_a_file_is_followed_that_a_link_leads_to(
    tmp_path: Path, backends: tuple[ScriptedBackend, ScriptedBackend]
) -> None:
    """As Kubernetes mounts a ConfigMap."""
    for name, backend in zip(("..1", "..2"), backends, strict=True):
        (tmp_path / name).mkdir()
        (tmp_path / name / "dragoman.toml").write_text(text_of(backend))
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "dragoman.toml").symlink_to("..data/dragoman.toml")
    with Gateway(tmp_path) as gateway:
        follower = Follower(gateway, 1)
        assert follower.answers(1) == {"old"}
        (tmp_path / "..data_tmp").symlink_to("..2")
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")
        follower.wait("config_reloaded")
        assert follower.answers(1) == {"new"}


def test_what_was_learned_of_backends_stays_known(
    follow: Follow, backends: tuple[ScriptedBackend, ScriptedBackend]
) -> None:
    old, _ = backends
    fault = {
        "error": {"message": "Unknown parameter: 'seed'.", "param": "seed", "type": "invalid_request_error"}
    }
    old.play(
        lambda request: json_reply(fault, 400) if "seed" in request.json else None,
        json_reply(chat_completion("old")),
    )
    follower = follow(text_of(old), env={"XDG_STATE_HOME": "/proc/nowhere"})  # no file to keep it in
    ask = {**ASK, "seed": 3}
    url = f"{follower.gateway.base}/v1/chat/completions"

    def asked() -> int:
        before = len(old.requests)
        reply = httpx.post(url, json=ask, trust_env=False)
        assert (reply.status_code, reply.headers["x-dragoman-dropped"]) == (200, "/seed")
        return len(old.requests) - before

    assert [asked(), asked()] == [2, 1]
    follower.write(text_of(old, {"keepalive_s": 3}))
    follower.hang_up()
    follower.wait("config_reloaded")
    assert asked() == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_no_request_fails_while_the_file_changes(
    follow: Follow, backends: tuple[ScriptedBackend, ScriptedBackend], workers: int
) -> None:
    follower = follow(text_of(backends[0]), workers)
    got: list[Any] = []
    ending = threading.Event()

    def ask() -> None:
        with follower.gateway.client() as client:
            while not ending.is_set():
                reply = client.post("/v1/chat/completions", json=ASK)
                got.append((reply.status_code, reply.json()["choices"][0]["message"]["content"]))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for at in range(1, 5):
        follower.write(text_of(backends[at % 2], {"keepalive_s": 10 + at}))
        follower.hang_up()
        follower.wait("config_reloaded", at)
    ending.set()
    for thread in threads:
        thread.join(10)
    assert set(got) == {(200, "old"), (200, "new")}
    assert follower.said("fault") == follower.said("library") == []
