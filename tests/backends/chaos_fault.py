"""What a fault of the chaos backend is written with: the request that came, and the list of faults."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

import orjson

from .replies import (
    Framing,
    chat_completion,
    chat_stream,
    frame_bytes,
    response_items,
    response_object,
    response_stream,
)

Outcome = int | Literal["ok", "failed"]
"""A status of an error before anything else; `ok`: the whole text; `failed`: a stream that ends as failed."""

TEXT = "héllo, what a wörld 🌍"


@dataclass(slots=True)
class Asked:
    """A request that came, and the connection that it came on."""

    model: str
    is_chat: bool
    stream: bool
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def frames(self, text: str = TEXT) -> list[bytes]:
        """The right answer as a stream."""
        if self.is_chat:
            return [frame_bytes(frame) for frame in chat_stream(text, usage=False)]
        return [frame_bytes(frame, Framing(event_lines=True)) for frame in response_stream(text)]

    def answer(self, text: str = TEXT) -> bytes:
        """The right answer, as it was asked for."""
        if self.stream:
            return b"".join(self.frames(text))
        return orjson.dumps(chat_completion(text) if self.is_chat else response_object(response_items(text)))

    def head(self, *lines: str, status: str = "200 OK", protocol: str = "1.1") -> bytes:
        kind = "text/event-stream" if self.stream else "application/json"
        told = [f"HTTP/{protocol} {status}", f"content-type: {kind}", *lines]
        return "\r\n".join([*told, "", ""]).encode()

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def chunks(self, *pieces: bytes, end: bool = True) -> None:
        """A chunked answer, as far as these pieces go."""
        await self.send(self.head(CHUNKED), *map(chunk, pieces), *([chunk(b"")] if end else []))

    def reset(self) -> None:
        """End the connection with RST."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def linger(self) -> None:
        """Say nothing more until the other side goes."""
        while await self.reader.read(65536):
            pass


CHUNKED = "transfer-encoding: chunked"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def length(data: bytes, off: int = 0) -> str:
    return f"content-length: {len(data) + off}"


Play = Callable[[Asked], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """`streamed`, `whole`: what a client gets that asked for a stream, and one that did not."""

    name: str
    play: Play
    streamed: Outcome
    whole: Outcome
    slow: bool = False
    """It takes until the idle limit."""
    text: str = TEXT


FAULTS: dict[str, Fault] = {}


def fault(
    streamed: Outcome, whole: Outcome | None = None, *, slow: bool = False, text: str = TEXT
) -> Callable[[Play], Play]:
    """Add a fault by the name of its function."""

    def add(play: Play) -> Play:
        name = play.__name__.replace("_", "-")
        FAULTS[name] = Fault(name, play, streamed, streamed if whole is None else whole, slow, text)
        return play

    return add
