"""Requests that do not come, hardly come, or have too many headers: nobody holds a connection for good."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from app.protocol import MAX_HEAD_BYTES, MAX_HEADERS
from tests.app.conftest import Serve, Served, provider
from tests.backends.loopback import Reply
from tests.backends.replies import chat_stream, sse_reply
from tests.backends.scripted import ScriptedBackend

PATIENCE_S = 0.4
LEAST = int(PATIENCE_S * 1024)
BODY = b'{"model": "p/m", "messages": [{"role": "user", "content": "%b"}]}'
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend) -> Served:
    return serve(providers=[provider(scripted)], server={"read_timeout_s": PATIENCE_S})


@contextmanager
def connected(served: Served) -> Iterator[socket.socket]:
    host, port = served.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        yield connection


def rest(connection: socket.socket) -> bytes:
    """All that comes until the gateway closes the connection."""
    told = b""
    try:
        while piece := connection.recv(65536):
            told += piece
    except ConnectionError:
        pass
    return told


def drip(connection: socket.socket, data: bytes, piece: int, pause_s: float) -> float:
    """Send `data` by and by, as far as that goes, and the seconds that it took."""
    began = time.monotonic()
    for at in range(0, len(data), piece):
        try:
            connection.sendall(data[at : at + piece])
        except ConnectionError:
            break
        time.sleep(pause_s)
    return time.monotonic() - began


def test_a_connection_that_says_nothing_is_closed(served: Served) -> None:
    began = time.monotonic()
    with connected(served) as connection:
        assert rest(connection) == b""
    assert PATIENCE_S * 0.8 <= time.monotonic() - began < 5


def test_headers_that_drip_are_refused(served: Served) -> None:
    with connected(served) as connection:
        took = drip(connection, HEAD + b"x-a: " + b"a" * 200, 2, 0.05)
        told = rest(connection)
    assert told.startswith(b"HTTP/1.1 408 Request Timeout\r\n") or took < 5
    assert took < 5


def test_the_refusal_says_why(served: Served, scripted: ScriptedBackend) -> None:
    with connected(served) as connection:
        connection.sendall(HEAD)
        told = rest(connection)
    assert told.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b'"code":"request_timeout"' in told
    assert b"connection: close" in told
    assert not scripted.requests


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_drips_is_refused(served: Served, scripted: ScriptedBackend, chunked: bool) -> None:
    with connected(served) as connection:
        if chunked:
            connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
            took = drip(connection, b"1\r\na\r\n" * 200, 6, 0.05)
        else:
            connection.sendall(HEAD + b"content-length: 100000\r\n\r\n")
            took = drip(connection, b"a" * 200, 1, 0.05)
        told = rest(connection)
    assert took < 5
    assert told.startswith(b"HTTP/1.1 408 ") or not told
    assert not scripted.requests
    line = next(line for line in until_logged(served))
    assert line["status"] == 499


def until_logged(served: Served) -> list[dict[str, object]]:
    deadline = time.monotonic() + 5
    while not (lines := served.log()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return lines


def test_a_body_that_flows_may_take_its_time(served: Served) -> None:
    body = BODY % (b"word " * 1000)
    with connected(served) as connection:
        connection.sendall(HEAD + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body))
        took = drip(connection, body, LEAST // 2, PATIENCE_S / 8)
        assert took > 2 * PATIENCE_S
        assert rest(connection).startswith(b"HTTP/1.1 200 ")


def test_a_request_has_its_time_from_its_beginning(served: Served) -> None:
    """And not from that of its connection."""
    body = BODY % b"hi"
    with connected(served) as connection:
        time.sleep(PATIENCE_S * 0.7)
        connection.sendall(HEAD + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body))
        time.sleep(PATIENCE_S * 0.7)
        connection.sendall(body)
        assert rest(connection).startswith(b"HTTP/1.1 200 ")


def test_what_drips_after_the_answer_is_cut_off(served: Served) -> None:
    with connected(served) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert drip(connection, b"a" * 200, 1, 0.05) < 5


def test_an_answer_may_take_its_time(served: Served, scripted: ScriptedBackend) -> None:
    """Also while the next request has begun behind it."""
    first, *others = sse_reply(chat_stream("hello")).pieces
    pause = 3 * PATIENCE_S
    scripted.play(Reply(200, {"content-type": "text/event-stream"}, [first, pause, *others]))
    body = (BODY % b"hi")[:-1] + b', "stream": true}'
    with connected(served) as connection:
        connection.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body)
        time.sleep(0.1)
        connection.sendall(b"GET /health HT")
        told = b""
        while b"data: [DONE]" not in told:
            told += connection.recv(65536)
        connection.sendall(b"TP/1.1\r\nhost: x\r\n\r\n")
        while b'{"status":"ok"}' not in told:
            told += connection.recv(65536)
    assert b"408" not in told


def test_a_connection_may_rest_between_requests(served: Served) -> None:
    with connected(served) as connection:
        for _ in range(2):
            connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
            time.sleep(2 * PATIENCE_S)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"x-a: b\r\n" * (MAX_HEADERS - 1), b"200"),
        (b"x-a: b\r\n" * MAX_HEADERS, b"431"),
        (b"a:\r\n" * 10_000, b"431"),
        (b"x-a: " + b"a" * (MAX_HEAD_BYTES - 100) + b"\r\n", b"200"),
        (b"x-a: " + b"a" * (MAX_HEAD_BYTES + 100) + b"\r\n", b"431"),
    ],
    ids=["as many", "one more", "thousands", "as long", "longer"],
)
def test_headers_are_counted_and_measured(served: Served, headers: bytes, status: bytes) -> None:
    """Also where all of them come in one read."""
    with connected(served) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n" + headers + b"\r\n")
        told = connection.recv(65536)
    assert told.startswith(b"HTTP/1.1 " + status)
    if status == b"431":
        assert b'"code":"headers_too_large"' in told


def test_a_body_that_is_too_large_is_refused_by_its_length(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], server={"max_body_bytes": 1000})
    with served.client() as client:
        for content in (b"a" * 1001, iter([b"a" * 600, b"a" * 600])):
            refused = client.post("/v1/chat/completions", content=content)
            assert (refused.status_code, refused.json()["error"]["code"]) == (413, "request_too_large")
