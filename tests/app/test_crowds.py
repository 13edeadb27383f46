"""More connections than fit: clean refusals, and everything as before when they are gone."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import resource
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import orjson
import psutil
import pytest

from app import calls
from app.descriptors import EACH, FEWEST, MOST, RESERVED, WAITING, Crowd, connections_that_fit, raise_limit
from app.protocol import Http
from tests.app.conftest import Serve, Served, provider
from tests.backends.gateway import Gateway, config_text
from tests.backends.scripted import ScriptedBackend

BODY = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
CROWD = 10_000
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of a running process")


def gateway(folder: Path, scripted: ScriptedBackend, files: int) -> Gateway:
    provider = {"name": "p", "kind": "openai", "base_url": f"{scripted.origin}/v1", "models": ["m"]}
    return Gateway(folder, config_text([provider], server={"retry_budget_s": 0}), files=files)


def address(gateway: Gateway | Served) -> tuple[str, int]:
    host, port = gateway.base.removeprefix("http://").split(":")
    return host, int(port)


@contextlib.contextmanager
def idle_connections(gateway: Gateway, count: int) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(socket.create_connection(address(gateway), timeout=5))
        time.sleep(0.3)
        yield
    time.sleep(0.3)


def ask(client: httpx.Client) -> httpx.Response:
    return client.post("/v1/chat/completions", json=BODY)


def test_connections_beyond_the_limit_are_answered(tmp_path: Path, scripted: ScriptedBackend) -> None:
    with gateway(tmp_path, scripted, files=160) as served, served.client() as early:
        fit = (160 - RESERVED) // EACH
        assert ask(early).status_code == 200
        with idle_connections(served, fit), served.client() as late:
            refused = ask(late)
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "too_many_connections"
            assert (refused.headers["retry-after"], refused.headers["connection"]) == ("1", "close")
            assert ask(early).status_code == 200
        with served.client() as late:
            assert ask(late).status_code == 200
        assert served.log().count("connections:refused") == 1
        assert "Traceback" not in served.log()


def test_no_descriptors_at_all(tmp_path: Path, scripted: ScriptedBackend) -> None:
    with gateway(tmp_path, scripted, files=400) as served, served.client() as early:
        assert early.get("/health").status_code == 200  # its connection is open, none to the backend is
        process = psutil.Process(served.process.pid)
        process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds(), 400))
        refused = ask(early)
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "too_many_connections"
        assert refused.headers["retry-after"] == "1"
        with contextlib.suppress(httpx.TransportError), served.client() as late:  # not heard
            late.get("/health", timeout=1)
        assert early.get("/health").status_code == 200
        process.rlimit(psutil.RLIMIT_NOFILE, (400, 400))
        assert ask(early).status_code == 200
        with served.client() as late:
            assert ask(late).status_code == 200
        assert "Traceback" not in served.log()
        assert len(served.log().splitlines()) < 60


@pytest.fixture
def many_files() -> Iterator[int]:
    """How many connections this process may open; a small machine gets a smaller crowd."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CROWD + 500
    most = wanted if before[1] == resource.RLIM_INFINITY else min(before[1], wanted)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(most, before[0]), before[1]))
    yield min(CROWD, most - 500)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def one_of_many(host: str, port: int, request: bytes, go: asyncio.Event) -> str:
    """The status of its answer, or `closed`."""
    try:
        reader, writer = await asyncio.open_connection(host, port)
    except OSError:
        return "closed"
    try:
        await go.wait()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        return head.split(b" ", 2)[1].decode()
    except (OSError, asyncio.IncompleteReadError):
        return "closed"
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def crowd(host: str, port: int, count: int) -> Counter[str]:
    body = orjson.dumps(BODY)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
    go = asyncio.Event()
    asyncio.get_running_loop().call_later(2, go.set)
    asked = (one_of_many(host, port, head.encode() + body, go) for _ in range(count))
    return Counter(await asyncio.gather(*asked))


@pytest.mark.timeout(180)
def test_ten_thousand_at_once(tmp_path: Path, scripted: ScriptedBackend, many_files: int) -> None:
    with gateway(tmp_path, scripted, files=1024) as served:
        process = psutil.Process(served.process.pid)
        before = process.memory_info().rss
        began = time.monotonic()
        found = asyncio.run(crowd(*address(served), many_files))
        assert time.monotonic() - began < 90
        assert found.keys() <= {"200", "503", "closed"}
        assert found["200"] >= 400
        assert found.total() == many_files
        with served.client() as client:
            assert ask(client).status_code == 200
        assert process.memory_info().rss - before < 150 << 20
        assert process.num_fds() < 1024
        assert "Traceback" not in served.log()
        assert served.stop() == 0


@pytest.mark.parametrize(("number", "status"), [(errno.EMFILE, 503), (errno.ENOENT, 500)])
def test_a_file_that_cannot_be_opened_is_told(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch, number: int, status: int
) -> None:
    """It is no client that has gone."""

    def fail(*_: object) -> None:
        raise OSError(number, "no such luck")

    served = serve(providers=[provider(scripted)])
    monkeypatch.setattr(calls, "parse_request", fail)
    with served.client() as client:
        reply = ask(client)
    assert (reply.status_code, "error" in reply.json()) == (status, True)
    assert len(served.log("fault")) == (status == 500)


def test_the_crowd_within_this_process(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve(providers=[provider(scripted)])
    monkeypatch.setattr(Http, "crowd", Crowd())
    monkeypatch.setattr(Http, "most_connections", 0)
    with served.client() as client:
        for _ in range(2):
            assert ask(client).json()["error"]["code"] == "too_many_connections"
    monkeypatch.setattr(Http, "most_connections", -WAITING - 1)
    with socket.create_connection(address(served), timeout=5) as connection:
        told = connection.recv(65536)
    assert told.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"retry-after: 1\r\n" in told
    assert len(served.log("connections:refused")) == 1


def test_the_limit_is_raised_as_far_as_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"now": (256, 4096)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: limits.update(now=wanted))
    raise_limit()
    assert limits["now"] == (4096, 4096)
    assert connections_that_fit() == (4096 - RESERVED) // EACH
    limits["now"] = (256, resource.RLIM_INFINITY)
    raise_limit()
    assert limits["now"] == (MOST, resource.RLIM_INFINITY)
    limits["now"] = (20, 20)
    raise_limit()
    assert (limits["now"], connections_that_fit()) == ((20, 20), FEWEST)
    limits["now"] = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert connections_that_fit() == sys.maxsize


def test_a_limit_that_cannot_be_raised_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int, wanted: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    raise_limit()
