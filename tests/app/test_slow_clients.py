"""Clients that read slowly, and clients that read nothing: over real sockets, and by the clock."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest

from app.lent import Lent
from app.protocol import Http
from app.stream import STALLED, Client, Patience
from app.telemetry.trace import GONE, Trace
from tests.app.conftest import Serve, Served, provider
from tests.app.test_client_side import Reply as Machine
from tests.backends.loopback import Reply
from tests.backends.replies import chat_chunk, chat_completion, frame_bytes, json_reply
from tests.backends.scripted import ScriptedBackend

SSE = {"content-type": "text/event-stream"}
IDLE_S = 0.6
CHAT = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
ASK = {"model": "p/m", "input": "hi", "stream": True}
FLOOD = frame_bytes(chat_chunk({"role": "assistant", "content": "x" * 60_000}))
END = [frame_bytes(chat_chunk({}, "stop")), b"data: [DONE]\n\n"]


def served_by(serve: Serve, scripted: ScriptedBackend, fresh: bool = False, **server: Any) -> Served:
    limits = {"idle_timeout_s": IDLE_S, **server}
    return serve(fresh, providers=[provider(scripted)], server=limits)


@contextmanager
def asked(served: Served, path: str, body: Any, connection: str = "keep-alive") -> Iterator[socket.socket]:
    """A request by hand, on a connection whose kernel takes little by itself."""
    host, port = served.base.removeprefix("http://").split(":")
    data = orjson.dumps(body)
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: {connection}\r\n"
    head += f"content-length: {len(data)}\r\n\r\n"
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        raw.connect((host, int(port)))
        raw.settimeout(10)
        raw.sendall(head.encode() + data)
        yield raw


def logged(served: Served) -> dict[str, Any]:
    deadline = time.monotonic() + 5
    while not (lines := served.log()) and time.monotonic() < deadline:
        time.sleep(0.01)
    (line,) = lines
    return line


@pytest.mark.parametrize(("path", "body"), [("/v1/responses", ASK), ("/v1/chat/completions", CHAT)])
def test_a_client_that_reads_nothing_is_dropped(
    serve: Serve, scripted: ScriptedBackend, path: str, body: Any
) -> None:
    served = served_by(serve, scripted)
    scripted.play(Reply(200, SSE, [FLOOD] * 400, "hang"))
    with asked(served, path, body) as raw:
        line = logged(served)
        assert (line["status"], line["error"], line["error_code"]) == (GONE, STALLED, "client_stalled")
        assert scripted.requests[0].gone.wait(2)
        assert not served.gateway.serving
        read = b""
        while more := raw.recv(1 << 20):  # what the kernels held, and then the end of the connection
            read = read[-100:] + more
        assert b"[DONE]" not in read
        assert b"response.failed" not in read
    assert served.log("fault") == served.log("library") == []


def test_a_client_that_reads_slowly_gets_everything(serve: Serve, scripted: ScriptedBackend) -> None:
    served = served_by(serve, scripted)
    scripted.play(Reply(200, SSE, [FLOOD] * 120 + END))
    with asked(served, "/v1/chat/completions", CHAT) as raw:
        read, began = b"", time.monotonic()
        while b"[DONE]" not in read[-100:]:
            more = raw.recv(1 << 20)
            assert more
            read += more
            time.sleep(0.02 if time.monotonic() - began < 3 else 0)
    assert read.count(b"x" * 60_000) == 120
    assert logged(served)["error"] is None


def test_a_backend_that_is_silent_is_still_blamed(serve: Serve, scripted: ScriptedBackend) -> None:
    served = served_by(serve, scripted, retry_budget_s=0)
    first = frame_bytes(chat_chunk({"role": "assistant", "content": "a"}))
    scripted.play(Reply(200, SSE, [first], "hang"))
    with served.client() as client:
        text = client.post("/v1/responses", json=ASK).text
    assert "silent" in text
    assert "silent" in logged(served)["error"]


@pytest.mark.parametrize("connection", ["keep-alive", "close"])
def test_a_whole_answer_that_nobody_reads_is_dropped(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch, connection: str
) -> None:
    """Its task has long ended; the answer itself waits in the connection."""
    monkeypatch.setattr("app.server.IDLE_CONNECTION_S", 1)
    served = served_by(serve, scripted, max_body_bytes=64 << 20, fresh=True)
    scripted.play(json_reply(chat_completion("x" * (24 << 20))))
    with asked(served, "/v1/chat/completions", {**CHAT, "stream": False}, connection) as raw:
        assert logged(served)["status"] == 200
        connections = served._server.server_state.connections
        assert connections
        deadline = time.monotonic() + 6
        while connections and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not connections
        assert raw.recv(12) == b"HTTP/1.1 200"


# --- by the clock ----------------------------------------------------------------------------


class Connection:
    """A transport that holds what is written to it."""

    def __init__(self, unsent: int = 0) -> None:
        self.unsent, self.aborted = unsent, False

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.aborted = True


async def stuck(_: Any) -> None:
    await asyncio.sleep(10)


async def never() -> Any:
    await asyncio.sleep(10)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.stream.WATCH_AFTER_S", 0)


def waiting(idle_s: float, connection: Any, keepalive_s: float = 10) -> Client:
    client = Client(
        stuck, Trace(b"id", "POST /v1/responses"), Patience(keepalive_s, idle_s), Lent(connection)
    )
    client.watch(never)
    return client


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("connection", [Connection(9), None])
async def test_a_stuck_write_ends_the_exchange(connection: Connection | None) -> None:
    client = waiting(0.08, connection)
    began = asyncio.get_running_loop().time()
    with pytest.raises(asyncio.CancelledError):
        await client.write(b"data")
    assert 0.08 <= asyncio.get_running_loop().time() - began < 0.5
    assert client.cause == "stalled"
    assert client.interrupted() is None
    assert client.ended
    assert connection is None or connection.aborted


@pytest.mark.usefixtures("at_once")
async def test_a_connection_that_empties_is_waited_for() -> None:
    connection = Connection(1000)
    client = waiting(0.08, connection)
    writing = asyncio.ensure_future(client.write(b"data"))
    for _ in range(10):
        await asyncio.sleep(0.03)
        connection.unsent -= 1
    assert client.cause is None
    writing.cancel()
    client.release()


@pytest.mark.usefixtures("at_once")
async def test_a_stuck_keepalive_ends_the_exchange_and_is_the_only_one() -> None:
    client = waiting(0.2, Connection(9), keepalive_s=0.02)
    machine = Machine()
    client.expect(machine)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(5)
    assert client.cause == "stalled"
    assert client.interrupted() is None
    assert machine.beats == 0  # the first one waits in the opening of the stream


@pytest.mark.usefixtures("at_once")
async def test_a_stuck_whole_answer_ends_the_exchange() -> None:
    """An earlier answer on the same connection has filled it."""
    client = waiting(0.08, Connection(9))
    with pytest.raises(asyncio.CancelledError):
        await client.whole(200, [], b"{}")
    assert client.cause == "stalled"
    assert client.interrupted() is None


async def test_a_connection_that_holds_nothing_is_left_alone() -> None:
    class Lone:
        transport, loop, timeout_keep_alive = Connection(0), None, 1

    Http._drop_unread(Lone())  # type: ignore[arg-type]
    assert not Lone.transport.aborted


@pytest.mark.usefixtures("at_once")
async def test_an_end_that_cannot_be_told_is_given_up() -> None:
    """The process shuts down, and the client does not take that either."""
    connection = Connection(9)
    client = waiting(0.08, connection)
    client.interrupt("shutdown")
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(1)
    error = client.interrupted()
    assert error is not None
    with pytest.raises(asyncio.CancelledError):
        await client.fail(error)
    assert (client.cause, connection.aborted) == ("shutdown", True)
    client.release()
