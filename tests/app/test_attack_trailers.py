"""Trailers without an end: refused like heads are, and never in the middle of another answer."""

from __future__ import annotations

import contextlib
import socket
import time

import orjson
import pytest

from app.protocol import MAX_HEAD_BYTES
from tests.app.conftest import Serve, Served, provider
from tests.app.test_routes import ASK
from tests.backends.scripted import ScriptedBackend

BODY = orjson.dumps(ASK["/chat/completions"])
CHUNK = b"%x\r\n%b\r\n" % (len(BODY), BODY)
POST = b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
ASKED = POST % b"/v1/chat/completions"
ENOUGH = 20 * MAX_HEAD_BYTES
TRAILERS = [b"0\r\nx: ", b"0\r\n", b"0\r\nx"]
PIECES = [b"y" * 1000, b"x: y\r\n" * 200, b"y" * 1000]


def connected(served: Served) -> socket.socket:
    host, port = served.base.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def pressed(connection: socket.socket, piece: bytes) -> int:
    """Bytes that were taken before the other side had enough, or `ENOUGH` were sent."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < ENOUGH:
            sent += connection.send(piece)
    return sent


def told(connection: socket.socket) -> bytes:
    """What comes until the other side closes the connection."""
    answer = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            answer += piece
    return answer


@pytest.mark.parametrize(("begin", "piece"), [*zip(TRAILERS, PIECES, strict=True)])
def test_trailers_without_an_end_are_refused(
    serve: Serve, scripted: ScriptedBackend, begin: bytes, piece: bytes
) -> None:
    served = serve(providers=[provider(scripted)])
    with connected(served) as connection:
        connection.sendall(ASKED + CHUNK + begin)
        sent = pressed(connection, piece)
        answer = told(connection)
    assert answer.startswith(b"HTTP/1.1 431 ") or sent < ENOUGH
    with served.client() as client:
        assert client.get("/health").status_code == 200


def test_the_refusal_says_why(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    with connected(served) as connection:
        connection.sendall(ASKED + CHUNK + b"0\r\nx: ")
        time.sleep(0.1)  # what comes in one read with the last chunk is not counted
        connection.sendall(b"y" * (MAX_HEAD_BYTES + 1))
        answer = told(connection)
    assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b'"code":"headers_too_large"' in answer
    assert answer.count(b"HTTP/1.1 ") == 1


def test_an_answer_that_was_given_before_is_not_followed_by_another(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    served = serve(providers=[provider(scripted)])
    with connected(served) as connection:
        connection.sendall(POST % b"/nothing" + b"0\r\nx: ")
        answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 404 ")
        pressed(connection, b"y" * 1000)
        assert b"HTTP/1.1" not in told(connection)


def test_a_request_behind_one_that_waits_is_cut_off_in_silence(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    """The answer under way is the first one's: a 431 would be taken for it."""
    served = serve(providers=[provider(scripted, models=["m"])])
    with connected(served) as connection:
        feed = b"GET /events HTTP/1.1\r\nhost: x\r\n\r\n"  # ends when the client goes
        connection.sendall(feed + ASKED + CHUNK + b"0\r\nx: ")
        pressed(connection, b"y" * 1000)
        assert b"HTTP/1.1 431" not in told(connection)
    deadline = time.monotonic() + 5
    while not (feeds := [line for line in served.log() if line["route"] == "GET /events"]):
        assert time.monotonic() < deadline, "the feed goes on without its client"
        time.sleep(0.02)
    assert feeds[0].get("error") is None


def test_long_trailers_within_the_limit_are_read(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    with connected(served) as connection:
        for _ in range(3):  # each request is counted for itself
            connection.sendall(ASKED + CHUNK + b"0\r\nx: ")
            connection.sendall(b"y" * (MAX_HEAD_BYTES // 2))
            connection.sendall(b"\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_a_chunked_body_may_be_longer_than_any_head(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    ask = {**ASK["/chat/completions"], "messages": [{"role": "user", "content": "z" * 4 * MAX_HEAD_BYTES}]}
    body = orjson.dumps(ask)
    with connected(served) as connection:
        connection.sendall(ASKED + b"%x\r\n" % len(body))
        time.sleep(0.05)  # the chunk's head alone in a read
        for at in range(0, len(body), 10_000):
            connection.sendall(body[at : at + 10_000])
        connection.sendall(b"\r\n0\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")
