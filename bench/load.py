"""The client: as many connections as asked, each sending its next request when the last is answered.

    python -m bench.load URL CONNECTIONS SECONDS BODY

Prints `{"replies": n, "deltas": n, "bad": n}`. No HTTP library and no JSON: its own cost must not
slow the servers that are measured.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import cast
from urllib.parse import urlsplit

import orjson
import uvloop

from .backend import TOKEN

MARK = f'"{TOKEN}"'.encode()
"""A delta as a whole JSON string; the full text in closing events does not match it."""


class Connection(asyncio.Protocol):
    def __init__(self, request: bytes) -> None:
        self._request = request
        self._done: asyncio.Future[bytes] | None = None
        self._parts: list[bytes] = []
        self._left: int | None = None
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish(b"")

    def ask(self) -> asyncio.Future[bytes]:
        """Send the request; the future gives the reply's bytes, empty when the connection went."""
        self._parts, self._left, self._tail = [], None, b""
        self._done = asyncio.get_running_loop().create_future()
        self.transport.write(self._request)
        return self._done

    def data_received(self, data: bytes) -> None:
        if not self._parts:
            self._left = _body_length(data)
        self._parts.append(data)
        if self._left is None:
            self._tail = (self._tail + data)[-5:]
            if self._tail == b"0\r\n\r\n":
                self._finish(b"".join(self._parts))
            return
        reply = b"".join(self._parts)
        if len(reply) - reply.index(b"\r\n\r\n") - 4 >= self._left:
            self._finish(reply)

    def _finish(self, reply: bytes) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(reply)


def _body_length(head: bytes) -> int | None:
    lines = head.partition(b"\r\n\r\n")[0].lower().split(b"\r\n")
    return next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), None)


async def drive(url: str, connections: int, seconds: float, body: bytes) -> dict[str, int]:
    place = urlsplit(url)
    host, port = place.hostname or "", place.port or 80
    head = f"POST {place.path} HTTP/1.1\r\nhost: {place.netloc}\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    counts = {"replies": 0, "deltas": 0, "bad": 0}
    until = time.monotonic() + seconds

    async def keep_asking() -> None:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: Connection(request), host, port)
        while time.monotonic() < until:
            reply = await connection.ask()
            if not reply.startswith(b"HTTP/1.1 200"):
                counts["bad"] += 1
                break
            counts["replies"] += 1
            counts["deltas"] += reply.count(MARK)
        connection.transport.abort()

    await asyncio.gather(*(keep_asking() for _ in range(connections)))
    return counts


if __name__ == "__main__":
    given = sys.argv
    print(
        orjson.dumps(uvloop.run(drive(given[1], int(given[2]), float(given[3]), given[4].encode()))).decode()
    )
