"""The client: as many connections as asked, each sending its next request when the last is answered.

    python -m bench.load URL CONNECTIONS SECONDS < BODY
    python -m bench.load URL CONNECTIONS hold < BODY

Prints `{"replies": n, "deltas": n, "bad": n, "p50": ms, "p99": ms, "ttft": ms}`; with `hold` one stream on
each connection is begun, `held` is printed, and all stay open. No HTTP library and no JSON: its own cost must
not slow the servers that are measured.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from typing import Any, cast
from urllib.parse import urlsplit

import orjson
import uvloop

from .backend import TOKEN

HOLD_S = 45
"""How long all streams may take to begin."""
_AT_A_TIME = 20
MARK = f'"{TOKEN}"'.encode()
"""A delta as a whole JSON string; the full text in closing events does not match it."""


class Connection(asyncio.Protocol):
    def __init__(self, request: bytes) -> None:
        self._request = request
        self._done: asyncio.Future[bytes] | None = None
        self._parts: list[bytes] = []
        self._left: int | None = None
        self._tail = b""
        self._asked = 0.0
        self.first: float | None = None
        """Seconds from the request to the first delta of its stream."""
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish(b"")

    def ask(self) -> asyncio.Future[bytes]:
        """Send the request; the future gives the reply's bytes, empty when the connection went."""
        self._parts, self._left, self._tail, self.first = [], None, b"", None
        self._done = asyncio.get_running_loop().create_future()
        self._asked = time.perf_counter()
        self.transport.write(self._request)
        return self._done

    def data_received(self, data: bytes) -> None:
        if not self._parts:
            self._left = _body_length(data)
        self._parts.append(data)
        if self._left is None:
            if self.first is None and MARK in data:
                self._note_first()
            self._tail = (self._tail + data)[-5:]
            if self._tail == b"0\r\n\r\n":
                self._finish(b"".join(self._parts))
            return
        reply = b"".join(self._parts)
        if len(reply) - reply.index(b"\r\n\r\n") - 4 >= self._left:
            self._finish(reply)

    def _note_first(self) -> None:
        self.first = time.perf_counter() - self._asked
        if not self.begun.done():
            self.begun.set_result(None)

    def _finish(self, reply: bytes) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(reply)


def _body_length(head: bytes) -> int | None:
    lines = head.partition(b"\r\n\r\n")[0].lower().split(b"\r\n")
    return next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), None)


async def connect(url: str, body: bytes) -> Connection:
    place = urlsplit(url)
    host, port = place.hostname or "", place.port or 80
    head = f"POST {place.path} HTTP/1.1\r\nhost: {place.netloc}\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(request), host, port)
    return connection


async def drive(url: str, connections: int, seconds: float, body: bytes) -> dict[str, float]:
    counts = {"replies": 0, "deltas": 0, "bad": 0}
    took: list[float] = []
    firsts: list[float] = []
    until = time.monotonic() + seconds

    async def keep_asking() -> None:
        connection = await connect(url, body)
        while time.monotonic() < until:
            began = time.perf_counter()
            reply = await connection.ask()
            if not reply.startswith(b"HTTP/1.1 200"):
                counts["bad"] += 1
                break
            took.append(time.perf_counter() - began)
            counts["replies"] += 1
            counts["deltas"] += reply.count(MARK)
            if connection.first is not None:
                firsts.append(connection.first)
        connection.transport.abort()

    await asyncio.gather(*(keep_asking() for _ in range(connections)))
    return {**counts, "p50": at(took, 0.5), "p99": at(took, 0.99), "ttft": at(firsts, 0.5)}


def at(seconds: list[float], share: float) -> float:
    """The value below which `share` of them are, in milliseconds; 0 for none."""
    if len(seconds) < 2:
        return sum(seconds) * 1000
    return statistics.quantiles(seconds, n=100, method="inclusive")[round(share * 100) - 1] * 1000


async def hold(url: str, streams: int, body: bytes) -> None:
    opened: list[Connection] = []
    async with asyncio.timeout(HOLD_S):
        while len(opened) < streams:
            some = min(_AT_A_TIME, streams - len(opened))
            opened += await asyncio.gather(*(_begin(url, body) for _ in range(some)))
    print("held", flush=True)
    await asyncio.sleep(3600)


async def _begin(url: str, body: bytes) -> Connection:
    connection = await connect(url, body)
    ended = connection.ask()
    waited: set[asyncio.Future[Any]] = {connection.begun, ended}
    await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    if ended.done():
        raise RuntimeError(f"a stream ended that should stay open: {ended.result()[:300]!r}")
    return connection


if __name__ == "__main__":
    _, where, many, how = sys.argv
    asked = sys.stdin.buffer.read()
    if how == "hold":
        uvloop.run(hold(where, int(many), asked))
    else:
        print(orjson.dumps(uvloop.run(drive(where, int(many), float(how), asked))).decode())
