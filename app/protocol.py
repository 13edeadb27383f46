"""HTTP/1.1 as uvicorn reads it, also from clients that would rather speak HTTP/2, or none at all.

Java's HttpClient asks every plain-http origin for it, with `Upgrade: h2c` on its first request.
A server may ignore that. llhttp takes the request to end with its head, and its body is lost:
the client is told that it sent none (Spring AI and LangChain4j users meet this with uvicorn).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from translators.errors import ProxyError, bad_request

from .errors import error_body

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

CONNECTION = "dragoman.connection"
"""Extension in a request's scope: the transport, to be cut off under a client that takes nothing."""

MAX_HEAD_BYTES = 64 << 10
"""Of a request line and headers, or of trailers, that come in several reads. Nothing else bounds them, and
the parser takes time that grows with their square: one client without a key would hold up all others."""

_HEAD_BYTES = 4096
_UPGRADE = re.compile(rb"(?<=\r\n)upgrade:[ \t]*h2c[ \t]*\r\n", re.IGNORECASE)


class _Answer:
    """The transport of one answer: its head waits for what follows, and both go out in one system call.

    uvicorn writes them apart and uvloop sends each at once, which costs as much as reading a request.
    """

    __slots__ = ("_begun", "_cycle", "_head", "_transport", "is_closing")

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle, self._transport = cycle, cycle.transport
        self.is_closing = self._transport.is_closing
        self._begun = False
        self._head = b""

    def write(self, data: bytes) -> None:
        if self._cycle.response_started and not self._begun:
            self._begun, self._head = True, data
        elif self._head:
            head, self._head = self._head, b""
            self._transport.writelines((head, data))
        else:
            self._transport.write(data)

    def close(self) -> None:
        if self._head:
            self._transport.write(self._head)
        self._transport.close()


class Http(HttpToolsProtocol):
    """Passes over the wish for HTTP/2, lends requests their connection, and drops unread answers."""

    _in_head = False
    """Whether a request has begun whose headers are not complete, or a chunk of its body that is empty so
    far: after the last one come trailers."""
    _head_size = 0
    """Bytes read since the read that it began in, which may hold another's body; until then -1."""

    _running: RequestResponseCycle | None = None
    """The request that is being answered; `cycle` is the last one read, which may wait for it."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def connection_lost(self, exc: Exception | None) -> None:
        """The base class tells only the last request: one before it would write to what is closed."""
        super().connection_lost(exc)
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_size = True, -1
        self.scope["extensions"] = {CONNECTION: {"transport": self.transport}}

    def on_headers_complete(self) -> None:
        before = self.cycle
        self._in_head = False
        super().on_headers_complete()
        if self.cycle is not before and self.scope["method"] != "HEAD":  # after that head follows nothing
            self.cycle.transport = _Answer(self.cycle)  # type: ignore[assignment]  # what a cycle asks of one

    def on_chunk_header(self) -> None:
        self._in_head, self._head_size = True, -1

    def on_body(self, body: bytes) -> None:
        self._in_head = False
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._drop_unread()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._drop_unread()

    def _drop_unread(self, before: int = -1) -> None:
        """Cut off a client that takes nothing of an answer that is complete.

        Closing waits for what is unsent, for good: the answer would stay in memory, and a server that
        stops would wait for it. `before`: how many bytes were unsent when last looked.
        """
        unsent = self.transport.get_write_buffer_size()
        if unsent == before:
            self.transport.abort()
        elif unsent:
            self.loop.call_later(self.timeout_keep_alive, self._drop_unread, unsent)

    def data_received(self, data: bytes) -> None:
        cycle: RequestResponseCycle | None = self.cycle
        begins = cycle is None or cycle.response_complete
        if begins and data.find(b"h2c", 0, _HEAD_BYTES) >= 0:
            data = without_upgrade(data)
        super().data_received(data)
        if self._in_head:
            self._count_head(len(data))

    def _count_head(self, size: int) -> None:
        self._head_size += size if self._head_size >= 0 else 1
        if self._head_size > MAX_HEAD_BYTES and not self.transport.is_closing():
            message = f"the request's headers or trailers are longer than {MAX_HEAD_BYTES >> 10} KiB"
            error = bad_request(message, code="headers_too_large")
            self._refuse(b"431 Request Header Fields Too Large", error)

    def send_400_response(self, msg: str) -> None:
        """What no request could be read from is answered in our clients' shape too."""
        self._refuse(b"400 Bad Request", bad_request("the request is not valid HTTP", code="invalid_http"))

    def _refuse(self, status: bytes, error: ProxyError) -> None:
        if not self._is_answering():
            body = error_body(error)
            head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\nconnection: close\r\n" % status
            self.transport.write(head + b"content-length: %d\r\n\r\n%b" % (len(body), body))
        self.transport.close()

    def _is_answering(self) -> bool:
        """Whether an answer has begun that is not whole, or whose request is not; others wait behind it."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or not cycle.response_started:
            return bool(self.pipeline)
        return cycle.more_body or not cycle.response_complete


def without_upgrade(data: bytes) -> bytes:
    """The beginning of a request without that header; its body is left alone."""
    head, blank, body = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"", head + blank) + body
