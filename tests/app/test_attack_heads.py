"""Request heads without an end: refused before they cost memory or anybody's time."""

from __future__ import annotations

import contextlib
import socket
import time

import pytest

from app.protocol import MAX_HEAD_BYTES
from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

BEGIN = b"GET /health HTTP/1.1\r\nhost: x\r\n"
HEADS = [
    (BEGIN + b"x: ", b"y" * 1000),
    (BEGIN, b"x: y\r\n" * 200),
    (b"GET /", b"y" * 1000),
]


def _answer(connection: socket.socket) -> bytes:
    told = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            told += piece
    return told


@pytest.mark.parametrize(("begin", "piece"), HEADS)
def test_a_head_without_an_end_is_refused(
    serve: Serve, scripted: ScriptedBackend, begin: bytes, piece: bytes
) -> None:
    served = serve(providers=[provider(scripted)])
    host, port = served.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(begin)
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 20 * MAX_HEAD_BYTES:
                sent += connection.send(piece)
        told = _answer(connection)
    assert told.startswith(b"HTTP/1.1 431 ") or sent < 20 * MAX_HEAD_BYTES
    with served.client() as client:
        assert client.get("/health").status_code == 200


def test_long_headers_within_the_limit_are_read(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    host, port = served.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        for _ in range(3):  # each request is counted for itself
            connection.sendall(BEGIN + b"x: ")
            connection.sendall(b"y" * (MAX_HEAD_BYTES // 2))
            connection.sendall(b"\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_the_refusal_says_why(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    host, port = served.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(BEGIN + b"x: ")
        time.sleep(0.1)  # what comes in one read with the beginning is not counted
        connection.sendall(b"y" * (MAX_HEAD_BYTES + 1))
        told = _answer(connection)
    assert told.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b'"code":"headers_too_large"' in told
