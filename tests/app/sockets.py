"""A client's side of a WebSocket, by hand and by a library."""

from __future__ import annotations

import base64
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Self

import orjson
from websockets.sync.client import ClientConnection, connect

from tests.app.conftest import Served

ENDS = ("response.completed", "response.failed", "response.incomplete", "error")


class Talk:
    """One connection; use it as a context manager."""

    def __init__(self, served: Served, path: str = "/v1/responses", **options: Any) -> None:
        self._url = served.base.replace("http", "ws", 1) + path
        self._options = options
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        opening = connect(self._url, proxy=None, max_size=None, **self._options)
        self.socket: ClientConnection = self._stack.enter_context(opening)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def send(self, **fields: Any) -> None:
        self.socket.send(orjson.dumps({"type": "response.create", "model": "p/m", **fields}).decode())

    def event(self, timeout_s: float = 5) -> dict[str, Any]:
        text = self.socket.recv(timeout=timeout_s)
        assert isinstance(text, str)  # always text frames
        event: dict[str, Any] = orjson.loads(text)
        return event

    def events(self) -> list[dict[str, Any]]:
        """Up to the end of one answer."""
        found = [self.event()]
        while found[-1]["type"] not in ENDS:
            found.append(self.event())
        return found

    def turn(self, **fields: Any) -> list[dict[str, Any]]:
        self.send(**fields)
        return self.events()

    def answer(self, **fields: Any) -> dict[str, Any]:
        """The response that a turn ended well with."""
        last = self.turn(**fields)[-1]
        assert last["type"] == "response.completed", last
        response: dict[str, Any] = last["response"]
        return response

    def error(self, **fields: Any) -> dict[str, Any]:
        """The error frame that a turn consists of."""
        (event,) = self.turn(**fields)
        assert event["type"] == "error"
        return event


@contextmanager
def upgraded(served: Served, head: str = "", receive_bytes: int | None = None) -> Iterator[socket.socket]:
    """A connection after its handshake, to send bytes over that no library would."""
    host, port = served.base.removeprefix("http://").split(":")
    with socket.socket() as raw:
        if receive_bytes is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        raw.connect((host, int(port)))
        raw.settimeout(10)
        raw.sendall(handshake(head))
        reply = b""
        while b"\r\n\r\n" not in reply:
            reply += raw.recv(4096)
        assert reply.startswith(b"HTTP/1.1 101 "), reply
        yield raw


def handshake(more: str = "", path: str = "/v1/responses") -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    head = f"GET {path} HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
    head += f"sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n{more}\r\n"
    return head.encode()


def frame(data: bytes, opcode: int = 1, final: bool = True, rsv: int = 0) -> bytes:
    """A client's frame, masked with zeros."""
    first = (0x80 if final else 0) | rsv | opcode
    if len(data) < 126:
        size = bytes([0x80 | len(data)])
    elif len(data) < 1 << 16:
        size = bytes([0x80 | 126]) + len(data).to_bytes(2, "big")
    else:
        size = bytes([0x80 | 127]) + len(data).to_bytes(8, "big")
    return bytes([first]) + size + bytes(4) + data


def create(**fields: Any) -> bytes:
    return frame(orjson.dumps({"type": "response.create", "model": "p/m", "input": "hi", **fields}))


def rest_of(raw: socket.socket) -> bytes:
    """What comes until the connection ends."""
    read = b""
    try:
        while more := raw.recv(1 << 20):
            read += more
    except ConnectionResetError:
        pass
    return read


def close_code(read: bytes) -> int | None:
    """Of a server's close frame, the last thing it says, without a reason longer than 125 bytes."""
    at = read.rfind(b"\x88")
    return int.from_bytes(read[at + 2 : at + 4], "big") if at >= 0 and len(read) > at + 3 else None


def logged(served: Served, count: int = 1) -> list[dict[str, Any]]:
    """The lines of so many exchanges, once they are there."""
    deadline = time.monotonic() + 5
    while len(lines := served.log()) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(lines) == count, lines
    return lines
