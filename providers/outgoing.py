"""Requests on their way out, as aiohttp's connector and connections take them.

What never changes between two requests to one place is written once: its head, and the object that tells the
connector where it is. aiohttp's own request object costs more than all that is decided about the request.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, Protocol

import aiohttp
from aiohttp import hdrs
from aiohttp.client_reqrep import ClientRequest, ClientResponse, ConnectionKey, RequestInfo
from aiohttp.connector import Connection
from aiohttp.helpers import TimerNoop
from aiohttp.http_writer import _serialize_headers
from multidict import CIMultiDict
from yarl import URL

USER_AGENT = f"dragoman/{version('dragoman')}"
NO_TIMER = TimerNoop()

_WARN_BYTES = 2**20
"""aiohttp warns above this size when a body is bytes; as a stream it is sent in pieces."""
_AT_ONCE = 2**15
"""A body of up to this size is handed to the connection with its head: together they stay below what the
event loop's transports take before they ask to wait (64 KiB). A task writes a larger one."""
_MOST_WAYS = 256
_SENT: Any = SimpleNamespace(output_size=0)
"""A writer that has nothing left to do; a response asks how much one has written."""


class Outgoing(Protocol):
    """A request that can be sent once more."""

    fresh: bool
    """Whether its connection was made for it, rather than taken from the pool."""

    @property
    def connection_key(self) -> ConnectionKey: ...

    @property
    def opener(self) -> ClientRequest:
        """What tells a connector how a connection for it is made."""
        ...

    async def send(self, connection: Connection) -> ClientResponse: ...


class Ways:
    """The places that one client sends to."""

    def __init__(self) -> None:
        self._known: dict[URL, _Way] = {}

    def request(
        self,
        url: URL,
        headers: Mapping[str, str],
        body: bytes,
        proxy: str | None,
        loop: asyncio.AbstractEventLoop,
    ) -> Outgoing:
        if proxy is not None or not 0 < len(body) <= _AT_ONCE:
            return _large(url, headers, body, proxy, loop)
        way = self._known.get(url)
        if way is None or way.headers is not headers:  # those that never change are one object
            if len(self._known) >= _MOST_WAYS:
                self._known.clear()
            way = self._known[url] = _Way(url, headers, loop)
        return _Small(way, body)


class _Way:
    """One place with one set of headers."""

    __slots__ = ("connection_key", "head", "headers", "info", "loop", "opener", "url")

    def __init__(self, url: URL, headers: Mapping[str, str], loop: asyncio.AbstractEventLoop) -> None:
        self.url, self.headers, self.loop = url, headers, loop
        self.opener = _Request("POST", url, headers=headers, loop=loop, response_class=ClientResponse)
        self.connection_key: ConnectionKey = self.opener.connection_key
        self.info: RequestInfo = self.opener.request_info
        lines: CIMultiDict[str] = CIMultiDict(self.opener.headers)
        lines.pop(hdrs.CONTENT_LENGTH, None)
        head = _serialize_headers(f"POST {url.raw_path_qs} HTTP/1.1", lines)
        self.head = head.removesuffix(b"\r\n") + b"Content-Length: "


class _Small:
    """A request whose head and body go out in one write."""

    __slots__ = ("_body", "_way", "connection_key", "fresh")

    proxy = None

    def __init__(self, way: _Way, body: bytes) -> None:
        self._way, self._body, self.fresh = way, body, False
        self.connection_key = way.connection_key

    @property
    def opener(self) -> ClientRequest:
        return self._way.opener

    async def send(self, connection: Connection) -> ClientResponse:
        way, transport = self._way, connection.transport
        if transport is None or transport.is_closing():
            raise aiohttp.ClientConnectionResetError("Cannot write to closing transport")
        transport.write(b"%b%d\r\n\r\n%b" % (way.head, len(self._body), self._body))
        return ClientResponse(
            "POST",
            way.url,
            writer=None,
            continue100=None,
            timer=NO_TIMER,
            request_info=way.info,
            traces=[],
            loop=way.loop,
            session=None,  # type: ignore[arg-type]  # only a cookie or an unknown charset would need one
            stream_writer=_SENT,
        )


class _Request(ClientRequest):
    """A request as aiohttp sends it, without what a session adds."""

    DEFAULT_HEADERS = {  # noqa: RUF012 - aiohttp's own name and type
        hdrs.USER_AGENT: USER_AGENT,
        hdrs.ACCEPT: "*/*",
        hdrs.ACCEPT_ENCODING: "identity",
    }
    fresh = False

    @property
    def opener(self) -> ClientRequest:
        return self


def _large(
    url: URL, headers: Mapping[str, str], body: bytes, proxy: str | None, loop: asyncio.AbstractEventLoop
) -> _Request:
    return _Request(
        "POST",
        url,
        headers=headers,
        data=body if len(body) <= _WARN_BYTES else io.BytesIO(body),
        proxy=URL(proxy) if proxy else None,
        loop=loop,
        response_class=ClientResponse,
    )
