"""The HTTP client of the data path: one pool per process, one exception table.

aiohttp, because at 64 connections it relays 6,500 requests/s where httpx's own transport
stays at 430, at a seventh of the CPU per request (docs/adr). What is decided here:

- Pool without a limit: agents open many long streams, a queue would stall them.
- No read timeout but an idle limit: a model may think for minutes. One timer per exchange
  looks at the time of the last read; nothing is armed per chunk.
- Redirects are answers, cookies are not kept, and only the headers given are sent.
- A pooled connection that the backend closed while it lay idle is replaced once, when not
  one byte of an answer had come.
"""

from __future__ import annotations

import asyncio
import io
import ssl
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from importlib.metadata import version

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest, ClientResponse
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from translators.errors import Kind, ProxyError

from .base import Upstream

USER_AGENT = f"dragoman/{version('dragoman')}"
POOL_IDLE_S = 30.0
DNS_TTL_S = 300
HEADER_BYTES = 65536
"""Longest header line taken: content security policies outgrow aiohttp's 8190."""
_WARN_BYTES = 2**20
"""aiohttp warns above this size when a body is bytes; as a stream it is sent in pieces."""

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


SLOW_CLIENT = (
    "the client did not read its answer for longer than the idle limit, so the backend's was given up"
)


def as_proxy_error(error: BaseException, who: str) -> ProxyError:
    """What a client is told of a transport failure towards provider `who`."""
    kind, words = next(
        ((kind, words) for known, kind, words in FAILURES if isinstance(error, known)),
        ("upstream", "the exchange failed"),
    )
    return ProxyError(kind, f"provider {who}: {words}")


def environment_proxy(url: str) -> str | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for `url`.

    Asked once per provider: aiohttp's `trust_env` looks it up in a thread on each request.
    """
    parsed = URL(url)
    if not parsed.host or urllib.request.proxy_bypass(parsed.host):
        return None
    return urllib.request.getproxies().get(parsed.scheme)


class HttpClient:
    """Sends requests of the data path; the session opens with the first one."""

    def __init__(self, *, connect_timeout_s: float = 10.0, idle_timeout_s: float = 300.0) -> None:
        self._timeout = aiohttp.ClientTimeout(total=None, connect=connect_timeout_s)
        self._idle_s = idle_timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self, who: str, url: URL, headers: Mapping[str, str], body: bytes, proxy: str | None = None
    ) -> Upstream:
        """POST `body`; returns when the status and headers are there.

        Raises `ProxyError`: unavailable (no connection), timeout (idle limit), upstream.
        Cancelling this call closes the connection.
        """
        data = body if len(body) <= _WARN_BYTES else io.BytesIO(body)
        try:
            async with asyncio.timeout(self._idle_s):
                response = await self._opened().post(
                    url, data=data, headers=headers, proxy=proxy, allow_redirects=False
                )
        except (aiohttp.ClientError, OSError) as error:
            raise as_proxy_error(error, who) from error
        reading = _Reading(response, who, self._idle_s)
        return Upstream(response.status, _plain_headers(response), reading, reading.close)

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=_Connector(),
                timeout=self._timeout,
                headers={"User-Agent": USER_AGENT, "Accept": "*/*", "Accept-Encoding": "identity"},
                cookie_jar=aiohttp.DummyCookieJar(),
                request_class=_Request,
                middlewares=(_replace_stale,),
                max_line_size=HEADER_BYTES,
                max_field_size=HEADER_BYTES,
            )
        return self._session


class _Request(ClientRequest):
    fresh = False
    """Whether its connection was made for it, rather than taken from the pool."""


class _Handler(ResponseHandler):
    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """Tell the reader of a body that what follows of it is no HTTP; aiohttp would let it wait."""
        payload = self._payload
        if payload is not None and not payload.is_eof() and payload.exception() is None:
            payload.set_exception(aiohttp.ClientPayloadError("not valid HTTP"))
        super().set_exception(exc, *cause)


class _Connector(aiohttp.TCPConnector):
    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=POOL_IDLE_S, ttl_dns_cache=DNS_TTL_S)
        self._factory = partial(_Handler, loop=self._loop)  # type: ignore[assignment]

    async def _create_connection(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own signature
    ) -> ResponseHandler:
        if isinstance(req, _Request):
            req.fresh = True
        return await super()._create_connection(req, traces, timeout)


async def _replace_stale(
    request: ClientRequest, handler: Callable[[ClientRequest], Awaitable[ClientResponse]]
) -> ClientResponse:
    """Send once more when a pooled connection turns out closed and nothing was received."""
    try:
        return await handler(request)
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
        partial = isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(error.message, str)
        if partial or (isinstance(request, _Request) and request.fresh):
            raise
    return await handler(request)


class _Reading:
    """The body of one answer, as it arrives; see `Upstream`."""

    __slots__ = (
        *("_clock", "_content", "_failure", "_idle_s", "_response", "_seen", "_timer", "_waiting", "_who"),
    )

    def __init__(self, response: ClientResponse, who: str, idle_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._response, self._content, self._who = response, response.content, who
        self._failure: ProxyError | None = None
        self._idle_s, self._clock = idle_s, loop.time
        self._seen = loop.time()
        self._waiting = True
        """For the backend; else for a client that has not taken what was read."""
        self._timer: asyncio.TimerHandle | None = loop.call_later(idle_s, self._look)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        self._waiting = True
        try:
            chunk = await self._content.readany()
        except (aiohttp.ClientError, OSError) as error:
            self.close()
            raise self._failure or as_proxy_error(error, self._who) from error
        if not chunk:
            self._disarm()
            raise StopAsyncIteration
        self._seen = self._clock()
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

    def _look(self) -> None:
        """The idle timer: wait for what is left, or end a silent exchange."""
        left = self._seen + self._idle_s - self._clock()
        if left > 0:
            self._timer = asyncio.get_running_loop().call_later(left, self._look)
            return
        if self._waiting:
            self._failure = as_proxy_error(TimeoutError(), self._who)
        else:
            self._failure = ProxyError("timeout", SLOW_CLIENT)
        self.close()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _latin(value: str) -> str:
    """Undo what aiohttp does, which reads values as UTF-8: what is none could be written nowhere."""
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("latin-1")


def _plain_headers(response: ClientResponse) -> dict[str, str]:
    """Lower-case names, values as Latin-1; what described the body's coding, which is undone, is left out."""
    headers = {name.lower(): _latin(value) for name, value in response.headers.items()}
    if "content-encoding" in headers:
        headers.pop("content-encoding")
        headers.pop("content-length", None)
    return headers
