"""The client's side of one exchange: what was sent, when, and whether anyone still listens.

Three things end an exchange from outside, all in the same way: the task that serves it is
cancelled and `cause` says why. The client hung up (a task waits on `receive`), it takes nothing
of what it is sent (a timer looks), or the server shuts down. Cancelling reaches whatever is
awaited: the connect, the wait for headers, the read of a chunk, the pause before a retry. A
backend that falls silent is the business of `providers/http.py`.

A stream that has been silent towards the client for the keep-alive interval gets a frame from
a timer; when nothing was sent yet, the answer is opened with status 200 first. The timer is
re-armed when it fires, never per chunk: a chunk only notes the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any, Literal

from providers.deadlines import Deadlines
from translators.dialect import End, ReplyStream
from translators.errors import ProxyError

from .bodies import Receive
from .errors import JSON, error_body, error_headers
from .lent import Lent
from .telemetry.trace import GONE, Headers, Trace

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Cause = Literal["gone", "stalled", "shutdown"]

WATCH_AFTER_S = 0.2
"""A hang-up within that time is noticed after it: most whole answers are through by then, and
the task that waits for a hang-up costs as much as reading a request."""

LOOKS = 4
"""How often within the idle limit it is looked at whether the client takes what it is sent."""

STALLED = "the client took nothing of its answer for longer than the idle limit; its connection was closed"

STREAM_HEADERS: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]


class Patience:
    """How long clients are waited for, and may be kept waiting: one for all that go by one configuration."""

    __slots__ = ("idle_s", "keepalive_s", "looks")

    def __init__(self, keepalive_s: float, idle_s: float = 300.0) -> None:
        """`keepalive_s`: a stream's silence that is filled; `idle_s`: how long a client may take nothing."""
        self.keepalive_s, self.idle_s = keepalive_s, idle_s
        self.looks = Deadlines(idle_s / LOOKS)


class Client:
    """Where the answer goes. `committed`: a status has been sent; `ended`: nothing more will be."""

    __slots__ = (
        "_beat",
        "_busy",
        "_closing",
        "_head",
        "_lent",
        "_loop",
        "_moved",
        "_own",
        "_patience",
        "_reply",
        "_send",
        "_sent",
        "_start",
        "_task",
        "_timer",
        "_unsent",
        "_watcher",
        "cause",
        "committed",
        "ended",
        "on_end",
        "on_first",
        "trace",
    )

    def __init__(self, send: Send, trace: Trace, patience: Patience, lent: Lent | None = None) -> None:
        """What is `lent` is closed under a client that takes nothing."""
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task(self._loop)
        assert task is not None  # noqa: S101 - an ASGI application always runs in a task
        self._send, self.trace, self._task = send, trace, task
        self._own, self._lent, self._patience = send, lent or Lent(), patience
        self._reply: ReplyStream | None = None
        self._head: Headers = []
        self._busy = self._closing = self.committed = self.ended = False
        self._beat: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._start: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unsent: tuple[float, int] | None = None
        """When the last bytes were handed over and how many wait in the connection, at the last look."""
        self._moved = 0.0
        """When a look last saw that the client takes something."""
        self.cause: Cause | None = None
        self.on_first: Callable[[], None] | None = None
        """Told of the first bytes of a stream that are a backend's, once."""
        self.on_end: Callable[[End, bytes], Awaitable[bytes]] | None = None
        """Asked what to send of the bytes in which a stream's last event is, or of later ones."""
        self._sent = self._loop.time()
        """When the client last got something, or began to wait."""

    def wrap(self, wrapper: Callable[[Send], Send]) -> None:
        """Send through `wrapper` from now on, all of it; call it before anything is sent."""
        self._send = wrapper(self._send)

    # --- what ends it from outside ------------------------------------------------------

    def watch(self, receive: Receive) -> None:
        """Watch for a hang-up; call it when the request's body has been read.

        A connection that tells of its end itself takes no task that waits.
        """
        if self._lent.tells:
            self._lent.gone = self._gone
            self._patience.looks.begin(self, self._loop)
        else:
            self._start = self._loop.call_later(WATCH_AFTER_S, self._begin_to_watch, receive)

    def _gone(self) -> None:
        self.interrupt("gone")

    def interrupt(self, cause: Cause) -> None:
        """End the exchange by cancelling its task, unless it is being ended already."""
        if not self._closing and not self.ended and self.cause is None:
            self.cause = cause
            self._task.cancel()

    def interrupted(self) -> ProxyError | None:
        """Take the cancellation back: what to tell the client; None: nobody is there to be told."""
        self._task.uncancel()
        if self.cause == "shutdown":
            return ProxyError("unavailable", "the gateway is shutting down; send the request again")
        if self.cause == "stalled":
            self.trace.error = ProxyError("timeout", STALLED, code="client_stalled")
        self.trace.status = GONE
        self.release()
        return None

    def release(self) -> None:
        """Stop watching and timing; safe at any point."""
        self.ended, self._lent.gone = True, None
        self._patience.looks.end(self)
        for waiting in (self._start, self._timer, self._watcher, self._beat):
            if waiting is not None:
                waiting.cancel()

    def _begin_to_watch(self, receive: Receive) -> None:
        self._watcher = self._loop.create_task(self._wait_for_hangup(receive))
        self._patience.looks.begin(self, self._loop)

    def late(self) -> None:
        """Drop a client that takes nothing: its task would wait, and a paid generation with it.

        A large answer may go out slowly: what counts is whether the bytes that wait get fewer.
        """
        now, waiting = self._loop.time(), self._lent.transport
        unsent = (self._sent, waiting.get_write_buffer_size() if waiting is not None else 0)
        if not self._sending or unsent != self._unsent:
            self._unsent, self._moved = unsent, now
        elif now - self._moved >= self._patience.idle_s:
            self._drop()
            return
        self._patience.looks.begin(self, self._loop)

    @property
    def _sending(self) -> bool:
        return self._busy or (self._beat is not None and not self._beat.done())

    def _drop(self) -> None:
        """End the exchange, whatever it is at; there is no use in telling the client."""
        self.cause = self.cause or "stalled"
        if self._lent.transport is not None:
            self._lent.transport.abort()
        self._task.cancel()

    async def _wait_for_hangup(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.interrupt("gone")

    def head_with(self, edit: Callable[[Headers], Headers]) -> None:
        """Let `edit` look over the answer's headers before they go out, whatever the answer will be."""
        send = self._send

        async def first(message: MutableMapping[str, Any]) -> None:
            if self._send is first:  # else somebody looks at what is sent, and goes on looking
                self._send = send
            if message["type"] == "http.response.start":
                message["headers"] = edit(message["headers"])
            await send(message)

        self._send = first

    # --- silence ------------------------------------------------------------------------

    def expect(self, reply: ReplyStream, head: Headers | None = None) -> None:
        """A stream will answer: from now on silence is filled; `head` are headers for its opening."""
        self._reply = reply
        if head is not None:
            self._head = head
        if self._timer is None:
            self._timer = self._loop.call_at(self._sent + self._patience.keepalive_s, self._tick)

    async def hold(self) -> bool:
        """The reply that was expected will not come; whether the answer was opened with it all the same.

        If not, silence stays what it is until another is expected: opened with one, the answer can be no
        other's.
        """
        if self._beat is not None:
            await self._settle(self._beat)
        if not self.committed:
            self._reply = None
        return self.committed

    def _tick(self) -> None:
        if self.ended or self._reply is None:
            self._timer = None
            return
        now = self._loop.time()
        if self._sending:  # the client is slow, not left waiting
            self._timer = self._loop.call_at(now + self._patience.keepalive_s, self._tick)
            return
        if now - self._sent >= self._patience.keepalive_s:
            self._sent = now
            self._beat = self._loop.create_task(self._fill_silence(self._reply))
        self._timer = self._loop.call_at(self._sent + self._patience.keepalive_s, self._tick)

    async def _fill_silence(self, reply: ReplyStream) -> None:
        """A frame now, unless one is being sent."""
        if self._busy or self.ended:
            return
        frame = reply.keepalive() if self.committed else reply.start() or reply.keepalive()
        await self._open()
        await self._body(frame)

    # --- what is sent -------------------------------------------------------------------

    async def write(self, data: bytes, more: bool = True) -> None:
        """Bytes of the stream; the first of them opens it, and without `more` they end it."""
        self._busy = True
        if self.on_first is not None:
            self.on_first()
            self.on_first = None
        if self._beat is not None:
            await self._settle(self._beat)
        if self.on_end is not None and self._reply is not None and self._reply.end is not None:
            data = await self.on_end(self._reply.end, data)
        if not self.committed:
            await self._open()
        self.ended = not more
        if self.trace.first_byte is None:  # what fills a silence is none
            self.trace.first_byte = perf_counter()
        await self._body(data, more)
        self._sent = self._loop.time()
        self._busy = False

    def pass_on(self, data: bytes) -> bool:
        """What `write` does with a part in the middle of a stream, at once; False: `write` has to."""
        if self._send is not self._own or not self.committed:
            return False
        if self._beat is not None or self.on_first is not None:
            return False
        if self.on_end is not None and self._reply is not None and self._reply.end is not None:
            return False
        if not self._lent.piece(data):
            return False
        self._sent = self._loop.time()
        return True

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """A whole answer at once."""
        self.committed = self.ended = self._busy = True
        self.trace.status, self.trace.first_byte = status, self.trace.first_byte or perf_counter()
        headers.append((b"content-length", b"%d" % len(body)))
        is_own = self._send is self._own and self._lent.is_for(self._own)
        if is_own and self._lent.whole(status, headers, body):
            return
        self._patience.looks.end(self)
        self._patience.looks.begin(self, self._loop)  # it may take nothing of the answers before either
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._body(body, more=False)

    def lend(self) -> Send:
        """Somebody else sends the answer, status and all; `release` when that is over."""
        self.committed, self.trace.status = True, 200
        return self._send

    async def fail(self, error: ProxyError) -> None:
        """Tell of a failure as far as that is still possible: a status, or the stream's own way."""
        self._busy = self._closing = True
        if self._beat is not None:
            await self._settle(self._beat)
        if self.committed and self._reply is not None:
            await self.write(self._reply.fail(error), more=False)
            return
        headers = [JSON, *self.trace.headers(), *error_headers(error)]
        await self.whole(error.http_status, headers, error_body(error))

    async def _open(self) -> None:
        if not self.committed:
            self.committed, self.trace.status = True, 200
            headers = STREAM_HEADERS + self._head
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _body(self, data: bytes, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def _settle(self, beat: asyncio.Task[None]) -> None:
        self._beat = None
        await beat
