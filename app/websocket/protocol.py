"""WebSockets as uvicorn speaks them, within bounds. Imported with the first of them.

Besides what uvicorn does, a read is unpacked a slice at a time (compressed messages grow a thousandfold), a
peer that takes nothing of the last words is cut off, pings of one that takes nothing are not answered one by
one, and a server that stops lets running answers end.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from ..lent import CONNECTION, Lent

if TYPE_CHECKING:
    from websockets.frames import Frame

DRAIN = "dragoman.drain"
"""What `receive` gives when the server stops: nothing new is begun, and what runs may end."""

SLICE_BYTES = 16 << 10
"""Taken of a read before the application has taken the message in it: at most 16 MiB when unpacked."""
MAX_FRAGMENTS = 1 << 16
"""Frames of one message; empty ones count for nothing in its size."""

_HANDSHAKE = (b"host", b"connection", b"upgrade", b"origin")
_HANDSHAKE_PREFIX = b"sec-websocket-"


class WebSocket(WebSocketsSansIOProtocol):
    """One connection, from its handshake on."""

    _cut: asyncio.TimerHandle | None = None
    """Cuts off a peer that takes nothing of the last words."""
    _held = b""
    """Bytes that were read and wait until the application has taken the message before them."""
    _owed = b""
    """The answer to the last ping of a peer that took nothing by then."""

    def begin(self, scope: dict[str, Any], target: bytes, max_bytes: int) -> None:
        """Answer the handshake that `scope` is, as HTTP read it; `target`: path and query as they came.

        `max_bytes`: of a message, unpacked. The library's own parser takes no header above 8 KiB, and Codex
        sends long ones.
        """
        self.conn.max_message_size = max_bytes
        head = [b"GET ", target, b" HTTP/1.1\r\n"]
        for name, value in scope["headers"]:
            if name in _HANDSHAKE or name.startswith(_HANDSHAKE_PREFIX):
                head += [name, b": ", value, b"\r\n"]
        super().data_received(b"".join([*head, b"\r\n"]))
        if not self.close_sent:
            lent: dict[str, Any] = {CONNECTION: Lent(self.transport)}
            self.scope["headers"] = scope["headers"]
            self.scope["extensions"] = {**(self.scope["extensions"] or {}), **lent}

    def data_received(self, data: bytes) -> None:
        self._held = self._held + data if self._held else data
        self._take_held()

    async def receive(self) -> Any:
        message = await super().receive()
        if self._held and not self.read_paused:
            self._take_held()
        return message

    def _take_held(self) -> None:
        while self._held and not self.read_paused and self.conn.parser_exc is None:
            slice, self._held = self._held[:SLICE_BYTES], self._held[SLICE_BYTES:]
            super().data_received(slice)

    def handle_text(self, event: Frame) -> None:
        super().handle_text(event)
        event.data = b""  # the library keeps the last frame for as long as no other comes

    def handle_bytes(self, event: Frame) -> None:
        super().handle_bytes(event)
        event.data = b""

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= MAX_FRAGMENTS:
            self.conn.fail(1009, f"a message of more than {MAX_FRAGMENTS} frames")
            self.handle_parser_exception()
        else:
            super().handle_cont(event)
            event.data = b""

    def handle_ping(self) -> None:
        """RFC 6455 (5.5.3) asks for an answer to the last ping only: all of them would wait here unsent."""
        answer = b"".join(self.conn.data_to_send())
        if self.writable.is_set():
            self.transport.write(answer)
        elif answer:
            self._owed = answer

    def resume_writing(self) -> None:
        super().resume_writing()
        answer, self._owed = self._owed, b""
        if answer and not self.transport.is_closing():
            self.transport.write(answer)

    async def run_asgi(self) -> None:
        await super().run_asgi()
        if not self.disconnected:  # closing waits for what is unsent, for good where the peer takes nothing
            self._cut = self.loop.call_later(self.close_timeout, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._held = b""
        if self._cut is not None:
            self._cut.cancel()

    def shutdown(self) -> None:
        """The server stops: its `end_open_answers` ends what takes too long."""
        if self.close_sent or not self.handshake_complete:
            super().shutdown()
        else:
            self.queue.put_nowait(cast(Any, {"type": DRAIN}))
