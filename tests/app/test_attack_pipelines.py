"""Requests by hand on one connection: one behind another, endings in between, and clients that only wait."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import orjson
import pytest

from app.protocol import MOST_WAITING, Http
from app.telemetry.trace import GONE
from tests.app.conftest import Serve, Served, provider
from tests.app.sockets import handshake, logged
from tests.backends.loopback import Reply
from tests.backends.replies import chat_chunk, frame_bytes
from tests.backends.scripted import ScriptedBackend

SSE = {"content-type": "text/event-stream"}
FIRST = frame_bytes(chat_chunk({"role": "assistant", "content": "a"}))
HANGING = Reply(200, SSE, [FIRST], "hang")
GET = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"


def post(characters: int = 1, stream: bool = True) -> bytes:
    body = {"model": "p/m", "messages": [{"role": "user", "content": "x" * characters}], "stream": stream}
    data = orjson.dumps(body)
    return b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(data) + data


@contextmanager
def connected(served: Served, receive_bytes: int | None = None) -> Iterator[socket.socket]:
    host, port = served.base.removeprefix("http://").split(":")
    with socket.socket() as raw:
        if receive_bytes is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        raw.connect((host, int(port)))
        raw.settimeout(8)
        yield raw


def asked(scripted: ScriptedBackend) -> None:
    deadline = time.monotonic() + 5
    while not scripted.requests and time.monotonic() < deadline:
        time.sleep(0.005)


def ended(raw: socket.socket) -> bytes:
    """What comes until the server closes; fails when it does not."""
    read = b""
    while more := raw.recv(1 << 16):
        read += more
    return read


# --- who leaves ------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("characters", [1, 100_000, 2_000_000])
@pytest.mark.parametrize("behind", [b"", GET, GET * 3, post(10)], ids=["", "one", "three", "a post"])
def test_a_client_that_leaves_is_noticed_at_once(
    serve: Serve, scripted: ScriptedBackend, characters: int, stream: bool, behind: bytes
) -> None:
    """Reading pauses for a large body and behind a request; a hang-up is something that is read."""
    scripted.play(HANGING if stream else Reply(200, {"content-type": "application/json"}, [], "hang"))
    served = serve(providers=[provider(scripted)], server={"keepalive_s": 60})
    with connected(served) as raw:
        raw.sendall(post(characters, stream))
        asked(scripted)
        raw.sendall(behind)
        time.sleep(0.3)
    assert scripted.requests[0].gone.wait(2)
    assert [line["status"] for line in logged(served)] == [GONE]


# --- who only waits --------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"\r\n\r\n", b"G", b"\r\nG"])
def test_what_is_no_request_gives_no_more_time(serve: Serve, scripted: ScriptedBackend, sent: bytes) -> None:
    served = serve(providers=[provider(scripted)], server={"read_timeout_s": 0.3})
    with connected(served) as raw:
        raw.sendall(sent)
        began = time.monotonic()
        ended(raw)
        assert time.monotonic() - began < 3


def shorten(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    """How long connections from now on may wait for their next request."""
    made = Http.connection_made

    def shorter(self: Http, transport: Any) -> None:
        self.timeout_keep_alive = seconds
        made(self, transport)

    monkeypatch.setattr(Http, "connection_made", shorter)


AFTERWARDS = {
    "nothing": (GET, b""),
    "line feeds": (GET, b"\r\n\r\n"),
    "the rest of a body": (b"POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab", b"cde"),
    "chunks": (
        b"POST /nowhere HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
        b"3\r\ncde\r\n0\r\n\r\n",
    ),
}


@pytest.mark.parametrize("what", AFTERWARDS)
def test_what_follows_an_answer_gives_no_more_time_either(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    served = serve(providers=[provider(scripted)], server={"read_timeout_s": 5})
    shorten(monkeypatch, 1)
    first, rest = AFTERWARDS[what]
    with connected(served) as raw:
        raw.sendall(first)
        assert raw.recv(1 << 16).startswith(b"HTTP/1.1 ")
        raw.sendall(rest)
        began = time.monotonic()
        assert ended(raw) == b""
        assert time.monotonic() - began < 4


def test_a_request_behind_the_rest_of_another_is_answered(serve: Serve, scripted: ScriptedBackend) -> None:
    first, rest = AFTERWARDS["the rest of a body"]
    with connected(serve(providers=[provider(scripted)])) as raw:
        raw.sendall(first)
        assert raw.recv(1 << 16).startswith(b"HTTP/1.1 404 ")
        raw.sendall(rest + b"\r\n")
        time.sleep(0.05)
        raw.sendall(GET)
        assert raw.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("before", [b"", GET], ids=["first", "second"])
def test_a_websocket_is_not_taken_for_a_connection_that_waits(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch, before: bytes
) -> None:
    shorten(monkeypatch, 1)
    served = serve(providers=[provider(scripted)], server={"read_timeout_s": 0.3})
    with connected(served) as raw:
        if before:
            raw.sendall(before)
            raw.recv(1 << 16)
        raw.sendall(handshake())
        assert raw.recv(1 << 16).startswith(b"HTTP/1.1 101 ")
        raw.settimeout(1.5)
        with pytest.raises(TimeoutError):
            raw.recv(1)


def test_a_refused_upload_does_not_go_on_for_good(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], server={"read_timeout_s": 0.3})
    with connected(served) as raw:
        raw.sendall(b"POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n")
        began = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - began < 5:
                raw.sendall(bytes(1 << 16))
                time.sleep(0.01)
        assert time.monotonic() - began < 4


# --- who reads nothing -----------------------------------------------------------------------


def test_a_client_that_asks_and_asks_and_reads_nothing_is_dropped(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    """One whole answer fits in; the next waits for a place."""
    served = serve(providers=[provider(scripted)], server={"idle_timeout_s": 0.5})
    with connected(served, 4096) as raw:
        raw.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * MOST_WAITING)
        deadline = time.monotonic() + 15
        while not (gone := [line for line in served.log() if line["status"] == GONE]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert [line["error_code"] for line in gone] == ["client_stalled"]


# --- who asks for too much ---------------------------------------------------------------------


def test_as_many_as_may_wait_are_answered(serve: Serve, scripted: ScriptedBackend) -> None:
    with connected(serve(providers=[provider(scripted)])) as raw:
        raw.sendall(GET * (MOST_WAITING + 1))
        read = b""
        while read.count(b"HTTP/1.1 200 ") <= MOST_WAITING:
            read += raw.recv(1 << 16)
        raw.sendall(GET)
        assert raw.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("sent", [GET, b"POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"])
def test_no_more_are_read_than_may_wait(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    """A connection that sends requests without end took a gigabyte in seconds."""
    waiting: list[int] = []
    begin = Http._start_asgi_task

    def counted(self: Http, cycle: Any, app: Any) -> None:
        waiting.append(len(self.pipeline))
        begin(self, cycle, app)

    monkeypatch.setattr(Http, "_start_asgi_task", counted)
    with connected(serve(providers=[provider(scripted)]), 4096) as raw, suppress(OSError):
        for _ in range(5000):
            raw.sendall(sent * 20)
    assert max(waiting) <= MOST_WAITING


def test_headers_in_two_reads_have_the_same_bound(serve: Serve, scripted: ScriptedBackend) -> None:
    with connected(serve(providers=[provider(scripted)])) as raw:
        raw.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 60_000)
        time.sleep(0.1)
        raw.sendall(b"a" * 6_000 + b"\r\n\r\n")
        assert ended(raw).startswith(b"HTTP/1.1 431 ")


def test_a_feed_begins_at_once(serve: Serve, scripted: ScriptedBackend) -> None:
    with connected(serve(providers=[provider(scripted)])) as raw:
        raw.sendall(b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n")
        raw.settimeout(3)
        assert raw.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


# --- a server that stops -----------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("behind", [1, 20])
def test_what_waits_is_not_begun_when_the_server_stops(
    serve: Serve, scripted: ScriptedBackend, stream: bool, behind: int
) -> None:
    scripted.play(HANGING if stream else Reply(200, {"content-type": "application/json"}, [], "hang"))
    served = serve(fresh=True, providers=[provider(scripted)], server={"shutdown_grace_s": 0.3})
    with connected(served) as raw:
        raw.sendall(post(stream=stream) * (1 + behind))
        asked(scripted)
        served.stop()
        assert served.ended(4)
        read = ended(raw)
    assert (len(scripted.requests), read.count(b"HTTP/1.1 ")) == (1, 1)
    assert b"provider_unavailable" in read
    assert not served.log("library")


def test_an_answer_that_ends_within_the_grace_is_the_last(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(Reply(200, SSE, [FIRST, 0.5, frame_bytes(chat_chunk({}, "stop")), b"data: [DONE]\n\n"]))
    served = serve(fresh=True, providers=[provider(scripted)], server={"shutdown_grace_s": 3})
    with connected(served) as raw:
        raw.sendall(post() * 3)
        asked(scripted)
        served.stop()
        read = ended(raw)
        assert served.ended(2)
    assert (len(scripted.requests), read.count(b"[DONE]"), read[-5:]) == (1, 1, b"0\r\n\r\n")
