"""Signals at every moment of a gateway's life, also as the first process of a container."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from app import entry
from app.cli import main as cli
from tests.backends.gateway import COMMAND, Gateway, config_text
from tests.backends.loopback import Reply
from tests.backends.replies import chat_chunk, chat_stream, frame_bytes
from tests.backends.scripted import ScriptedBackend

ASK = {"model": "p/m", "input": "hi", "stream": True, "store": False}
SSE = {"content-type": "text/event-stream"}
MOMENTS = (0.0, 0.1, 0.3, 0.6, 1.2)
ALONE = ["unshare", "--pid", "--fork", "--kill-child"]
"""Makes its command the first process of its kind of container."""


def started(folder: Path, *before: str) -> subprocess.Popen[bytes]:
    folder.mkdir()
    (folder / "dragoman.toml").write_text("[store]\nkind = 'off'\n")
    argv = [*before, str(COMMAND), "serve", "--port", "0"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "DRAGOMAN_LOG_LEVEL": "error"}
    return subprocess.Popen(argv, cwd=folder, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_it_starts_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    def stopped(moment: float) -> bytes:
        process = started(tmp_path / str(moment))
        time.sleep(moment)
        process.send_signal(number)
        _, told = process.communicate(timeout=15)
        return told

    with ThreadPoolExecutor(2) as pool:
        for told in pool.map(stopped, MOMENTS):
            assert number == signal.SIGINT or b"Traceback" not in told


def test_the_command_hears_a_stop_before_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def command_line() -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(cli, "main", command_line)
    with pytest.raises(SystemExit) as ended:
        entry.main()
    signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 128 + signal.SIGTERM


def is_alone_possible() -> bool:
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0


def inner(process: subprocess.Popen[bytes]) -> psutil.Process:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for child in psutil.Process(process.pid).children():
            if "serve" in child.cmdline() and "unshare" not in child.cmdline()[0]:
                return child
        time.sleep(0.01)
    raise AssertionError("it did not start")


@pytest.mark.skipif("not is_alone_possible()", reason="needs namespaces of processes")
@pytest.mark.parametrize("moment", [0.6, 0.9, 3.0])
def test_the_first_process_of_a_container_hears_a_stop(tmp_path: Path, moment: float) -> None:
    """Such a one has no default action for SIGTERM."""
    process = started(tmp_path / "alone", *ALONE)
    gateway = inner(process)
    time.sleep(moment)
    gateway.terminate()
    _, told = process.communicate(timeout=10)
    assert b"Traceback" not in told


# --- while an answer goes on -----------------------------------------------------------


@pytest.fixture(params=[1, 2], ids=["one process", "workers"])
def gateway(tmp_path: Path, scripted: ScriptedBackend, request: pytest.FixtureRequest) -> Iterator[Gateway]:
    frames = [frame_bytes(frame) for frame in chat_stream("a long answer")]
    scripted.play(Reply(200, SSE, [frames[0], 1.2, *frames[1:]]))
    hanging = Reply(200, SSE, [frame_bytes(chat_chunk({"role": "assistant", "content": "a"}))], "hang")
    scripted.play(hanging, model="hang")
    provider = {"name": "p", "kind": "openai", "base_url": f"{scripted.origin}/v1", "models": ["m"]}
    config = config_text([provider], server={"shutdown_grace_s": 20})
    with Gateway(tmp_path, config, arguments=["--workers", str(request.param)]) as running:
        yield running


def streamed(gateway: Gateway, signals: list[signal.Signals], model: str = "m") -> str:
    """What a client gets of a stream during which these signals come."""
    body = {**ASK, "model": f"p/{model}"}
    with gateway.client() as client, client.stream("POST", "/v1/responses", json=body) as reply:
        lines = reply.iter_lines()
        next(lines)
        for number in signals:
            gateway.process.send_signal(number)
            time.sleep(0.2)
        return "\n".join(lines)


@pytest.mark.parametrize(
    "signals", [[signal.SIGTERM], [signal.SIGINT], [signal.SIGTERM, signal.SIGTERM]], ids=str
)
def test_an_open_stream_ends_well(gateway: Gateway, signals: list[signal.Signals]) -> None:
    text = streamed(gateway, signals)
    assert "event: response.completed" in text
    assert gateway.process.wait(10) == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{gateway.base}/health", trust_env=False, timeout=2)
    assert "Traceback" not in gateway.log()


def test_who_asks_twice_by_hand_does_not_wait(gateway: Gateway) -> None:
    began = time.monotonic()
    children = psutil.Process(gateway.process.pid).children()
    text = streamed(gateway, [signal.SIGINT, signal.SIGINT], "hang")
    assert "event: response.failed" in text
    assert gateway.process.wait(10) == 0
    assert time.monotonic() - began < 8
    assert not any(child.is_running() for child in children)
    assert "Traceback" not in gateway.log()
