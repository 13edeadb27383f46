"""A backend that does everything wrong, one way a model: `chaos/reset`, `chaos/end-in-a-frame`, ...

    with ChaosBackend() as backend:      # backend.origin is http; ChaosBackend(context) speaks TLS
        post(..., model="chaos/reset")

Each `Fault` says what a gateway must make of it, for a client that streams and for one that does not. The
server runs in a thread with an event loop of its own.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator
from typing import Any, Self

import orjson

from . import chaos_faults
from .chaos_fault import FAULTS, Asked

__all__ = ["FAULTS", "ChaosBackend", "chaos_faults"]


class ChaosBackend:
    """Answers by the model's name; use it as a context manager."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._port = 0
        self.asked: list[str] = []
        """Models, in the order in which they were asked."""
        self.open = 0
        """Connections."""

    @property
    def origin(self) -> str:
        return f"http{'s' if self._tls else ''}://localhost:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the chaos backend did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        self._stopping = asyncio.Event()
        self._loop.set_exception_handler(lambda _loop, _context: None)  # broken handshakes are meant
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**24, ssl=self._tls)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stopping.wait()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            async for model, asked in _requests(reader, writer):
                self.asked.append(model)
                await FAULTS[model].play(asked)
                if writer.is_closing():
                    return
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            self.open -= 1
            writer.close()


async def _requests(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> AsyncIterator[tuple[str, Asked]]:
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        lines = dict(line.split(": ", 1) for line in head.strip().split("\r\n")[1:])
        path = head.split(" ", 2)[1]
        if head.startswith("get"):
            data = b'{"object":"list","data":[]}'
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(data), data))
            continue
        if "content-length" in lines:
            size = int(lines["content-length"])
            body: Any = orjson.loads(await reader.readexactly(size))
        else:
            body = orjson.loads(b"".join([piece async for piece in _pieces(reader)]))
        asked = Asked(body["model"], path.endswith("completions"), bool(body.get("stream")), reader, writer)
        yield asked.model, asked


async def _pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readline()
    await reader.readline()
