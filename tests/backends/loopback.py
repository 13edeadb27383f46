"""A small HTTP/1.1 server on 127.0.0.1 whose every byte is the test's.

A framework tidies up what a test wants odd: a body that stops halfway, a stream cut inside a
character, a connection that just goes. Here a `Reply` says its status, its headers, the very
pieces that are written with the pauses between them, and how it ends.

The server runs in a thread with an event loop of its own, so a test may be a plain function.
Every request is kept, with the moment its client went away if it did so early.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import orjson

Ending = Literal["whole", "cut", "hang"]
"""`whole`: as HTTP wants it. `cut`: the connection is reset where the pieces end. `hang`: nothing more."""

_WATCH_S = 0.02


@dataclass(slots=True)
class Request:
    """One request as it came; header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    gone: threading.Event = field(default_factory=threading.Event)
    """Set when the client closed the connection before the reply was whole."""
    came_at: float = 0.0
    gone_at: float | None = None

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass(slots=True)
class Reply:
    """What to answer: a piece of bytes is one write, a number is a pause in seconds."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: Iterable[bytes | float] = ()
    end: Ending = "whole"


Answer = Callable[[Request], Reply]


class Loopback:
    """Serve `answer` on 127.0.0.1; use it as a context manager."""

    def __init__(self, answer: Answer, port: int = 0) -> None:
        self._answer, self._port = answer, port
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.requests: list[Request] = []

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the loopback server did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._open())
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _open(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=2**20)
        self._server = server
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()

    def _stop(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        ended = asyncio.gather(*tasks, return_exceptions=True)
        # Transports close in a later turn of the loop: stopped at once it would leave sockets open.
        ended.add_done_callback(lambda _: self._loop.call_later(0.02, self._loop.stop))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read_request(reader)) is not None:
                self.requests.append(request)
                if not await _Exchange(request, reader, writer).send(self._answer(request)):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


class OnLoopback:
    """A backend with a `server` of its own; use it as a context manager."""

    server: Loopback

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *args: object) -> None:
        self.server.__exit__(*args)

    @property
    def origin(self) -> str:
        return self.server.origin


class _Exchange:
    """The writing side of one request."""

    def __init__(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._request, self._reader, self._writer = request, reader, writer

    async def send(self, reply: Reply) -> bool:
        """Write `reply`; whether the connection may be used again."""
        chunked = "content-length" not in reply.headers
        self._writer.write(_head(reply, chunked))
        for piece in reply.pieces:
            if not await (self._write(piece, chunked) if isinstance(piece, bytes) else self._pause(piece)):
                return False
        if reply.end == "hang":
            while await self._pause(_WATCH_S):
                pass
        if reply.end == "cut":
            await self._writer.drain()
            self._writer.transport.abort()
        if reply.end != "whole":
            return False
        if chunked:
            self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()
        return True

    async def _write(self, piece: bytes, chunked: bool) -> bool:
        if self._reader.at_eof():
            return self._gone()
        try:
            self._writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            await self._writer.drain()
        except ConnectionError:
            return self._gone()
        await asyncio.sleep(0)
        return True

    async def _pause(self, seconds: float) -> bool:
        """Wait, but no longer than the client does."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._reader.at_eof():
                return self._gone()
            await asyncio.sleep(min(left, _WATCH_S))
        return True

    def _gone(self) -> bool:
        self._request.gone_at = time.monotonic()
        self._request.gone.set()
        return False


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection, None when the client closed it."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.split(":", 1) for line in lines)
    headers = {name.lower(): value.strip() for name, value in pairs}
    if headers.get("transfer-encoding") == "chunked":
        body = await _read_chunks(reader)
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body, came_at=time.monotonic())


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while size := int(await reader.readline(), 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(parts)


def _head(reply: Reply, chunked: bool) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} {'OK' if reply.status < 400 else 'Error'}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    if chunked:
        lines.append("transfer-encoding: chunked")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
