"""HTTP/1.1 as uvicorn reads it, also from clients that would rather speak HTTP/2, or none at all.

Java's HttpClient asks every plain-http origin for it, with `Upgrade: h2c` on its first request.
A server may ignore that. llhttp takes the request to end with its head, and its body is lost:
the client is told that it sent none (Spring AI and LangChain4j users meet this with uvicorn).
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from translators.errors import ProxyError, bad_request

from .descriptors import WAITING, Crowd, full
from .errors import error_body, error_headers
from .flow import Flow
from .lent import CONNECTION, Lent

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

Opens = Callable[[str, bytes, Sequence[tuple[bytes, bytes]]], int]
"""What an application says to a WebSocket, by method, target and headers: a message's bytes at most, or 0."""

MAX_HEAD_BYTES = 64 << 10
"""Of a request line and headers, or of trailers, that come in several reads. Nothing else bounds them, and
the parser takes time that grows with their square: one client without a key would hold up all others."""

MAX_HEADERS = 200
"""Of a request; clients send twenty, and what stands between them and us adds a few."""

MOST_WAITING = 100
"""Requests that may wait; one read holds thousands of small ones, and each takes four kilobytes."""

READ_TIMEOUT_S = 30.0
"""`server.read_timeout_s` where an application has none."""
LEAST_BYTES_S = 1024
"""Bytes of a body that have to come in each second, looked at once in `server.read_timeout_s`."""

_HEAD_BYTES = 4096
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")
_UPGRADE = re.compile(rb"(?<=\r\n)upgrade:[ \t]*h2c[ \t]*\r\n", re.IGNORECASE)


class _Answer(Lent):
    """The transport of one answer: its head waits for what follows, and both go out in one system call.

    uvicorn writes them apart and uvloop sends each at once, which costs as much as reading a request.
    """

    __slots__ = ("_begun", "_cycle", "_head", "_transport", "is_closing")

    def __init__(self, cycle: RequestResponseCycle) -> None:
        super().__init__(cycle.transport)
        self._cycle: RequestResponseCycle | None = cycle
        self._transport = cycle.transport
        self.is_closing = self._transport.is_closing
        self._begun = False
        self._head = b""

    def end(self) -> None:
        """Its request has its answer, or never will."""
        if self._cycle is not None:
            self._cycle.transport = self._transport
        self._cycle = self.gone = None

    @property
    def tells(self) -> bool:
        return self._cycle is not None and not self.is_closing()

    def is_for(self, send: Callable[..., Any]) -> bool:
        return getattr(send, "__self__", None) is self._cycle

    def write(self, data: bytes) -> None:
        if not self._begun and self._cycle is not None and self._cycle.response_started:
            self._begun, self._head = True, data
        elif self._head:
            head, self._head = self._head, b""
            self._transport.writelines((head, data))
        else:
            self._transport.write(data)

    def piece(self, data: bytes) -> bool:
        """The same bytes as by way of `send`, without the message and the calls that it takes there: a sixth
        of what a passed chunk costs.
        """
        cycle = self._cycle
        if cycle is None or self._head or not cycle.chunked_encoding:
            return False
        if cycle.flow.write_paused or cycle.disconnected:
            return False
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        return True

    def whole(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
        """`headers` with the body's length; what is no header goes by way of `send`, which refuses it."""
        cycle = self._cycle
        if cycle is None or cycle.response_started or cycle.disconnected:
            return False
        if cycle.flow.write_paused or not cycle.keep_alive:
            return False
        told = [*cycle.default_headers, *headers]
        head = b"".join([STATUS_LINE[status], *[b"%b: %b\r\n" % each for each in told], b"\r\n"])
        if head.count(b"\n") != len(told) + 2 or _CONTROL.search(head) is not None or b"connection:" in head:
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = cycle.chunked_encoding = False
        self._transport.write(head + body)
        cycle.message_event.set()
        cycle.on_response()
        return True

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

    _reading = False
    """Whether a request has begun that is not whole."""
    _fresh = False
    """Whether it began in the last read."""
    _size = 0
    """Bytes of the last read."""
    _received = 0
    """Bytes read of an incomplete request since it was last looked at."""
    _patience: asyncio.TimerHandle | None = None
    """Looks whether the client sends anything; armed for what does not come in one read."""
    _refusal: tuple[bytes, ProxyError] | None = None

    _running: RequestResponseCycle | None = None
    """The request that is being answered; `cycle` is the last one read, which may wait for it."""

    most_connections = sys.maxsize
    """Of the process; the requests of further ones are refused."""
    crowd: ClassVar[Crowd] = Crowd()
    _too_many = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, cast("ASGI3Application", self.crowd) if self._too_many else app)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = Flow(transport, self.pipeline)
        surplus = len(self.connections) - self.most_connections
        self._too_many = surplus > 0
        if surplus > WAITING:  # they would take what the others' backends need
            self._refuse(b"503 Service Unavailable", full())
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """The base class tells only the last request: one before it would write to what is closed."""
        super().connection_lost(exc)
        self._waited()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
            self._part(self._running)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_size, self._reading, self._fresh = True, -1, True, True

    def on_headers_complete(self) -> None:
        self._check_headers()
        before = self.cycle
        self._in_head = False
        super().on_headers_complete()
        if self.cycle is before:
            return
        lent = Lent(self.transport)
        if self.scope["method"] != "HEAD":  # after whose head follows nothing
            lent = self.cycle.transport = _Answer(self.cycle)  # type: ignore[assignment]  # as a cycle uses one
        self.scope["extensions"] = {CONNECTION: cast("dict[object, object]", lent)}

    def on_chunk_header(self) -> None:
        self._in_head, self._head_size = True, -1

    def on_body(self, body: bytes) -> None:
        self._in_head = False
        super().on_body(body)

    def on_message_complete(self) -> None:
        """While nothing is read a hang-up is not noticed either, and nobody receives any more of this one."""
        self._in_head = self._reading = False
        super().on_message_complete()
        if self.flow.read_paused:
            self.flow.resume_reading()

    def _should_upgrade(self) -> bool:
        """Where the application takes one, and once all that was asked before it is answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return (cycle is None or cycle.response_complete) and self._message_bytes() > 0

    def _message_bytes(self) -> int:
        """The largest message of the WebSocket that is asked for, 0 where there is none."""
        opens: Opens | None = getattr(self.app, "opens_websocket", None)
        return 0 if opens is None else opens(self.scope["method"], self.url, self.headers)

    def _unsupported_upgrade_warning(self) -> None:
        """It is an ordinary request, which its route answers; there is nothing to warn of."""

    def handle_websocket_upgrade(self) -> None:
        from .websocket.protocol import WebSocket

        self.connections.discard(self)
        self._waited()
        opened = WebSocket(self.config, self.server_state, self.app_state)
        opened.connection_made(self.transport)
        opened.begin(cast(dict[str, Any], self.scope), self.url, self._message_bytes())
        self.transport.set_protocol(opened)

    def _part(self, cycle: RequestResponseCycle) -> None:
        """Nothing more is lent to the answer of a request; while it is not whole it is told so."""
        answer: object = cycle.transport
        if isinstance(answer, _Answer):
            gone = answer.gone
            answer.end()
            if gone is not None and not cycle.response_complete:
                gone()

    def on_response_complete(self) -> None:
        if self._running is not None:
            self._part(self._running)
        super().on_response_complete()
        if self.transport.is_closing():
            self._drop_unread()

    def shutdown(self) -> None:
        """The server stops: what waits behind an answer is not begun any more."""
        self.pipeline.clear()
        if self._running is not None:
            self._running.keep_alive = False
        super().shutdown()

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
        self._size = len(data)
        super().data_received(data)
        if self._in_head:
            self._count_head(len(data))
        if self._reading:
            if self._fresh:
                self._fresh = False
                self._waited()
                self._wait()
            self._received += len(data)
        elif begins and self.cycle is cycle:
            self._go_on_waiting()
        elif self._patience is not None:
            self._waited()

    # --- clients that take their time -------------------------------------------------------

    def _go_on_waiting(self) -> None:
        """What came was no request (line feeds, the rest of one with an answer); uvicorn waits no more."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or self.transport.is_closing() or self.transport.get_protocol() is not self:
            return  # the first is waited for, or none is
        self._waited()
        if self.timeout_keep_alive_task is None:
            close = self.timeout_keep_alive_handler
            self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, close)

    def _wait(self) -> None:
        self._patience = self.loop.call_later(self._patience_s(), self._look)

    def _waited(self) -> None:
        self._received = 0
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _patience_s(self) -> float:
        gateway = getattr(self.app, "gateway", None)
        return READ_TIMEOUT_S if gateway is None else float(gateway.server.read_timeout_s)

    def _look(self) -> None:
        """Drop a client whose request does not come, or hardly does: it would hold a connection for good."""
        received, self._received = self._received, 0
        if self.transport.is_closing():
            self._patience = None
        elif self._is_ours_to_wait() or (
            self._is_of_use() and received >= LEAST_BYTES_S * self._patience_s()
        ):
            self._wait()
        elif self._reading:
            self._patience = None
            message = "the request did not come within the time limit (server.read_timeout_s)"
            error = ProxyError("timeout", message, code="request_timeout", status=408)
            self._refuse(b"408 Request Timeout", error)
            self._drop_unread()
        else:
            self.transport.close()

    def _is_ours_to_wait(self) -> bool:
        """Whether nothing more is read because what came before is not answered yet."""
        cycle: RequestResponseCycle | None = self.cycle
        if self.flow.read_paused or self.pipeline:
            return True
        return self._in_head and cycle is not None and not cycle.response_complete

    def _is_of_use(self) -> bool:
        """Whether a body is being read that somebody waits for, and not that of a request with an answer."""
        cycle: RequestResponseCycle | None = self.cycle
        return not self._in_head and cycle is not None and not cycle.response_complete

    def _check_headers(self) -> None:
        """Raises for more than is taken, which the parser passes on as a fault."""
        if len(self.pipeline) >= MOST_WAITING:
            raise ValueError("too many requests at once")
        size = 0
        if self._size > MAX_HEAD_BYTES or self._head_size >= 0:  # they came in a large read, or in several
            size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if len(self.headers) > MAX_HEADERS or size > MAX_HEAD_BYTES:
            self._refusal = _headers_too_large()
            raise ValueError("too many headers")

    def _count_head(self, size: int) -> None:
        self._head_size += size if self._head_size >= 0 else 1
        if self._head_size > MAX_HEAD_BYTES and not self.transport.is_closing():
            self._refuse(*_headers_too_large())

    def send_400_response(self, msg: str) -> None:
        """What no request could be read from is answered in our clients' shape too."""
        invalid = bad_request("the request is not valid HTTP", code="invalid_http")
        self._refuse(*(self._refusal or (b"400 Bad Request", invalid)))

    def _refuse(self, status: bytes, error: ProxyError) -> None:
        if not self._is_answering():
            body = error_body(error)
            head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\nconnection: close\r\n" % status
            head += b"".join(b"%b: %b\r\n" % header for header in error_headers(error))
            self.transport.write(head + b"content-length: %d\r\n\r\n%b" % (len(body), body))
        self.transport.close()

    def _is_answering(self) -> bool:
        """Whether an answer has begun that is not whole, or whose request is not; others wait behind it."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or not cycle.response_started:
            return bool(self.pipeline)
        return cycle.more_body or not cycle.response_complete


def _headers_too_large() -> tuple[bytes, ProxyError]:
    message = (
        f"the request's headers or trailers are longer than {MAX_HEAD_BYTES >> 10} KiB, "
        f"or more than {MAX_HEADERS}"
    )
    return b"431 Request Header Fields Too Large", bad_request(message, code="headers_too_large")


def without_upgrade(data: bytes) -> bytes:
    """The beginning of a request without that header; its body is left alone."""
    head, blank, body = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"", head + blank) + body
