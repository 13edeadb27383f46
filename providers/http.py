"""The HTTP client of the data path: one pool per provider, one exception table.

aiohttp, because at 64 connections it relays 6,500 requests/s where httpx's own transport
stays at 430, at a seventh of the CPU per request (docs/adr). What is decided here:

- Pool without a limit: agents open many long streams, a queue would stall them.
- No read timeout but an idle limit: a model may think for minutes. One timer for all (`deadlines.py`)
  looks since when a read has waited; nothing is armed per chunk.
- Redirects are answers, cookies are not kept, and only the headers given are sent: what a session of
  aiohttp adds to a request costs a tenth of the whole exchange, so requests are put together here.
- A pooled connection that the backend closed while it lay idle is replaced once, when not
  one byte of an answer had come.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from functools import partial
from typing import cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest, ClientResponse
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from translators.errors import Kind, ProxyError

from .base import Upstream
from .deadlines import Deadlines, TimeLimit
from .outgoing import NO_TIMER, Outgoing, Ways

POOL_IDLE_S = 30.0
DNS_TTL_S = 300
HEADER_BYTES = 65536
"""Longest header line taken: content security policies outgrow aiohttp's 8190."""
OUTGOING: ContextVar[Mapping[str, str] | None] = ContextVar("OUTGOING", default=None)
"""Headers that requests of this task carry besides: a trace's context, where one is kept."""

FAILURES: tuple[tuple[type[BaseException], Kind, str], ...] = (
    (aiohttp.ConnectionTimeoutError, "unavailable", "no connection within the connect timeout"),
    (aiohttp.ClientConnectorCertificateError, "unavailable", "its TLS certificate is not accepted"),
    (aiohttp.ClientSSLError, "unavailable", "the TLS handshake failed"),
    (aiohttp.ClientConnectorDNSError, "unavailable", "its host name is not known"),
    (aiohttp.ClientConnectorError, "unavailable", "the connection was refused"),
    (aiohttp.ClientHttpProxyError, "unavailable", "the HTTP proxy refused the connection"),
    (aiohttp.ServerDisconnectedError, "upstream", "it closed the connection without an answer"),
    (aiohttp.ClientPayloadError, "upstream", "the connection broke in the middle of the answer"),
    (aiohttp.ClientResponseError, "upstream", "its answer is not valid HTTP"),
    (aiohttp.InvalidURL, "unavailable", "its base_url is not valid"),
    (aiohttp.ClientError, "upstream", "the connection was lost"),
    (TimeoutError, "timeout", "it was silent for longer than the idle limit"),
    (ssl.SSLError, "upstream", "the TLS connection broke"),
    (OSError, "upstream", "the connection was lost"),
)
"""First match wins, so the more specific come first. The words never name an address."""
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


def as_proxy_error(error: BaseException, who: str) -> ProxyError:
    """What a client is told of a transport failure towards provider `who`."""
    if isinstance(error, OSError) and error.errno in _NO_DESCRIPTORS:
        message = "too many connections are open from this gateway; send the request again in a moment"
        return ProxyError("overloaded", message, code="too_many_connections", retry_after=1)
    kind, words = next(
        ((kind, words) for known, kind, words in FAILURES if isinstance(error, known)),
        ("upstream", "the exchange failed"),
    )
    return ProxyError(kind, f"provider {who}: {words}")


def forget_stacks(error: BaseException | None) -> None:
    """Let go of where a failure came from, and what came before it.

    Those calls know the request's body, and the failure itself: together they would wait for the collector.
    """
    for _ in range(10):
        if error is None:
            return
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def environment_proxy(url: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for `url`.

    Asked once per provider: aiohttp's `trust_env` looks it up in a thread on each request.
    """
    parsed = URL(url)
    if not parsed.host or urllib.request.proxy_bypass(parsed.host):
        return None
    return urllib.request.getproxies().get(parsed.scheme)


class HttpClient:
    """Sends requests of the data path; the pool opens with the first one."""

    def __init__(self, *, connect_timeout_s: float = 10.0, idle_timeout_s: float = 300.0) -> None:
        self._timeout = aiohttp.ClientTimeout(total=None, connect=connect_timeout_s)
        self._idle_s = idle_timeout_s
        self._deadlines = Deadlines(idle_timeout_s)
        self._ways = Ways()
        self._connector: _Connector | None = None

    async def post(
        self, who: str, url: URL, headers: Mapping[str, str], body: bytes, proxy: str | None = None
    ) -> Upstream:
        """POST `body`; returns when the status and headers are there.

        Raises `ProxyError`: unavailable (no connection), timeout (idle limit), upstream.
        Cancelling this call closes the connection.
        """
        loop, more = asyncio.get_running_loop(), OUTGOING.get()
        if more is not None:
            headers = {**headers, **more}
        try:
            with TimeLimit(self._deadlines, loop):
                response = await self._ask(self._ways.request(url, headers, body, proxy, loop))
        except (aiohttp.ClientError, OSError) as error:
            forget_stacks(error)
            raise as_proxy_error(error, who) from error
        reading = _Reading(response, who, self._idle_s, self._deadlines, loop)
        return Upstream(response.status, _plain_headers(response), reading, reading.close)

    async def _ask(self, request: Outgoing) -> ClientResponse:
        """Send once more when a pooled connection turns out closed and nothing was received."""
        try:
            return await self._send(request)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            partial = isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(
                error.message, str
            )
            if partial or request.fresh:
                raise
        return await self._send(request, anew=True)  # the next of the pool may be closed just as well

    async def _send(self, request: Outgoing, anew: bool = False) -> ClientResponse:
        """Once, on a connection of the pool or a new one; `anew`: on a new one."""
        if self._connector is None:
            self._connector = _Connector()
        try:
            connection = await self._connector.reach(request, self._timeout)
            while not request.fresh and (anew or _is_spoilt(connection)):
                connection.close()
                connection = await self._connector.reach(request, self._timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError from error
        response = None
        try:
            protocol = connection.protocol
            assert protocol is not None  # noqa: S101 - it has just been connected
            protocol.set_response_params(
                timer=NO_TIMER, read_until_eof=True, max_line_size=HEADER_BYTES, max_field_size=HEADER_BYTES
            )
            response = await request.send(connection)
            return await response.start(connection)
        except BaseException:
            if response is not None:
                response.close()
            connection.close()
            raise

    async def aclose(self) -> None:
        self._deadlines.close()
        if self._connector is not None:
            await self._connector.close()
            self._connector = None


class _Handler(ResponseHandler):
    def resume_reading(self, resume_parser: bool = True) -> None:
        """Only what was paused: aiohttp runs its parser over nothing for every chunk that is taken out."""
        if self._reading_paused or self._buffer_paused:
            super().resume_reading(resume_parser)

    @property
    def is_spoilt(self) -> bool:
        """Whether something came that nobody had asked for: a next request would take it for its answer."""
        return bool(self._buffer or self._tail or self.should_close)

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """Tell the reader of a body that what follows of it is no HTTP; aiohttp would let it wait."""
        payload = self._payload
        if payload is not None and not payload.is_eof() and payload.exception() is None:
            payload.set_exception(aiohttp.ClientPayloadError("not valid HTTP"))
        super().set_exception(exc, *cause)


def _is_spoilt(connection: Connection) -> bool:
    kept = connection.protocol
    return isinstance(kept, _Handler) and kept.is_spoilt


class _Connector(aiohttp.TCPConnector):
    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=POOL_IDLE_S, ttl_dns_cache=DNS_TTL_S)
        self._factory = partial(_Handler, loop=self._loop)  # type: ignore[assignment]

    async def reach(self, request: Outgoing, limit: aiohttp.ClientTimeout) -> Connection:
        """A connection of the pool, or a new one."""
        return await self.connect(cast("ClientRequest", request), traces=[], timeout=limit)

    async def _create_connection(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own signature
    ) -> ResponseHandler:
        outgoing = cast("Outgoing", req)
        outgoing.fresh = True
        return await super()._create_connection(outgoing.opener, traces, timeout)


class _Reading:
    """The body of one answer, as it arrives; see `Upstream`."""

    __slots__ = (
        *("_clock", "_content", "_deadlines", "_failure", "_idle_s", "_loop", "_response", "_since"),
        *("_timer", "_waiting", "_who"),
    )

    def __init__(
        self,
        response: ClientResponse,
        who: str,
        idle_s: float,
        deadlines: Deadlines,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._response, self._content, self._who = response, response.content, who
        self._failure: ProxyError | None = None
        self._idle_s, self._clock, self._loop = idle_s, loop.time, loop
        self._since = loop.time()
        self._waiting = True
        """For the backend; else for a client that has not taken what was read (`app/stream.py` looks after
        that one).
        """
        self._timer: asyncio.TimerHandle | None = None
        """A timer of its own, once it has lasted for longer than the limit."""
        self._deadlines = deadlines
        deadlines.begin(self, loop)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        self._waiting, self._since = True, self._clock()
        try:
            chunk = await self._content.readany()
        except (aiohttp.ClientError, OSError) as error:
            self.close()
            forget_stacks(error)
            raise self._failure or as_proxy_error(error, self._who) from error
        if not chunk:
            self._disarm()
            raise StopAsyncIteration
        self._waiting = False
        return chunk

    def close(self) -> None:
        """End the exchange now; after a whole answer the connection is already back in the pool."""
        self._disarm()
        connection: Connection | None = self._response.connection
        if connection is not None and connection.transport is not None:
            # Not close(): that waits for TLS to say goodbye, and a paid generation runs on.
            connection.transport.abort()
        self._response.close()

    def late(self) -> None:
        """Wait for what is left, or end a silent exchange."""
        left = self._since + self._idle_s - self._clock() if self._waiting else self._idle_s
        if left > 0:
            self._timer = self._loop.call_later(left, self.late)
            return
        self._failure = as_proxy_error(TimeoutError(), self._who)
        self.close()

    def _disarm(self) -> None:
        self._deadlines.end(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _latin(value: str) -> str:
    """Undo what aiohttp does, which reads values as UTF-8: what is none could be written nowhere."""
    return value.encode("utf-8", "surrogateescape").decode("latin-1")


def _plain_headers(response: ClientResponse) -> dict[str, str]:
    """Lower-case names, values as Latin-1; what described the body's coding, which is undone, is left out."""
    headers = {
        name.lower(): value if value.isascii() else _latin(value) for name, value in response.headers.items()
    }
    if "content-encoding" in headers:
        headers.pop("content-encoding")
        headers.pop("content-length", None)
    return headers
