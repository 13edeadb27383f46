"""Requests of clients that would rather speak HTTP/2."""

from __future__ import annotations

import http.client
import socket

import orjson
import pytest

from app.protocol import without_upgrade
from tests.app.conftest import Serve
from tests.app.test_routes import ASK, provider
from tests.backends.scripted import ScriptedBackend

BODY = orjson.dumps(ASK["/chat/completions"])
UPGRADE = {
    "Connection": "Upgrade, HTTP2-Settings",
    "Upgrade": "h2c",
    "HTTP2-Settings": "AAEAAEAAAAIAAAABAAMAAABk",
}


@pytest.mark.parametrize("split", [False, True])
def test_the_body_of_a_request_that_asks_for_http2_is_read(
    serve: Serve, scripted: ScriptedBackend, split: bool
) -> None:
    served = serve(providers=[provider(scripted)])
    connection = http.client.HTTPConnection(served.base.removeprefix("http://"), timeout=10)
    for headers in (UPGRADE, {}, UPGRADE):
        connection.putrequest("POST", "/v1/chat/completions")
        for name, value in {**headers, "Content-Length": str(len(BODY))}.items():
            connection.putheader(name, value)
        connection.endheaders(None if split else BODY)
        if split:
            connection.send(BODY)
        reply = connection.getresponse()
        assert (reply.status, orjson.loads(reply.read())["object"]) == (200, "chat.completion")
    connection.close()


HEAD = b"POST / HTTP/1.1\r\nhost: x\r\n%bcontent-length: 3\r\n\r\n"


@pytest.mark.parametrize("line", [b"Upgrade: h2c\r\n", b"upgrade:h2c\r\n", b"UPGRADE: \th2c \r\n"])
def test_only_the_wish_is_taken_out(line: bytes) -> None:
    assert without_upgrade(HEAD % line + b"h2c") == HEAD % b"" + b"h2c"


@pytest.mark.parametrize(
    "data",
    [
        HEAD % b"upgrade: websocket\r\nx: h2c\r\n" + b"abc",
        HEAD % b"" + b"\r\nupgrade: h2c\r\n",
        HEAD % b"x-upgrade: h2c\r\n",
        b"POST /h2c HTTP/1.1\r\nhost",
    ],
)
def test_everything_else_stays(data: bytes) -> None:
    assert without_upgrade(data) == data


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01 TLS\r\n\r\n",
        b"FOO /v1/models HTTP/1.1\r\nhost: x\r\n\r\n",
        b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
def test_what_is_no_http_gets_an_error_of_ours(serve: Serve, scripted: ScriptedBackend, sent: bytes) -> None:
    served = serve(providers=[provider(scripted)])
    host, port = served.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(sent)
        reply = http.client.HTTPResponse(connection)
        reply.begin()
        assert (reply.status, orjson.loads(reply.read())["error"]["code"]) == (400, "invalid_http")
        assert connection.recv(1) == b""


def test_the_head_goes_out_with_what_follows_it(serve: Serve, scripted: ScriptedBackend) -> None:
    """In one piece: a client gets both with one read. What is asked for before it is answered at once."""
    served = serve(providers=[provider(scripted)])
    host, port = served.base.removeprefix("http://").split(":")
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(BODY)}\r\n"
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        for _ in range(2):
            connection.sendall(f"{head}expect: 100-continue\r\n\r\n".encode())
            assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(BODY)
            told, _, body = connection.recv(65536).partition(b"\r\n\r\n")
            assert told.startswith(b"HTTP/1.1 200 OK\r\n")
            assert orjson.loads(body)["object"] == "chat.completion"
        connection.sendall(b"HEAD /health HTTP/1.1\r\nhost: x\r\n\r\n")
        told, _, body = connection.recv(65536).partition(b"\r\n\r\n")
        assert (told.partition(b"\r\n")[0], body) == (b"HTTP/1.1 200 OK", b"")
