"""Images that a request names by URL, fetched for backends that take none by address.

A client chooses the URL, so nothing about it is trusted (server-side request forgery):

- Where a connection may go is decided when its socket is opened, on the very address that it
  then connects to. Names that resolve differently the second time, addresses written as
  numbers, and every redirect come through that one door.
- http and https on their own ports; no credentials, cookies or headers of anyone are sent.
- No proxy is used, whatever the environment says: it would do the resolving.
- Size, time and number are limited, and what comes must be an image by its first bytes.

Each request has connections of its own; nothing is kept.
"""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

import aiohttp
from aiohttp.connector import AddrInfoType
from yarl import URL

from .addresses import Address, is_public
from .outgoing import USER_AGENT

MIB = 1 << 20
MAX_IMAGES = 20
AT_ONCE = 4
MAX_REDIRECTS = 3

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_UNTYPED = frozenset({"application/octet-stream", "binary/octet-stream"})
"""What object stores call everything; aiohttp says the first when there is no type."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class ImageError(Exception):
    """The image at `url` cannot be had; `reason` says why in words for the client."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(reason)
        self.url, self.reason = url, reason


class _Refused(Exception):
    """A rule of ours is broken; the text says which."""


class _NotPublic(OSError):
    """The address is one that clients may not reach through us."""


_NOWHERE = "its host has no public address"
"""One text for an unknown name and a private one: which names exist inside is nobody's business."""


@dataclass(frozen=True, slots=True)
class Images:
    """Fetches images under these limits. `allows` and `ports` say where a connection may go."""

    allows: Callable[[Address], bool] = is_public
    ports: frozenset[int] = frozenset({80, 443})
    connect_s: float = 5.0
    total_s: float = 10.0
    """For all images of a request together: clients get no sign of life meanwhile."""
    image_bytes: int = 10 * MIB
    all_bytes: int = 20 * MIB
    """For all images of a request together: as base64 they still fit into Databricks' 32 MiB."""

    async def fetch(self, urls: Sequence[str]) -> dict[str, str]:
        """The images as `data:` URLs, each under its own URL.

        Raises `ImageError` for the first that cannot be had. Cancelling ends every connection.
        """
        if len(urls) > MAX_IMAGES:
            raise ImageError(urls[MAX_IMAGES], f"a request may name {MAX_IMAGES} images by URL")
        async with self._session() as session:
            fetching = _Fetching(self, session)
            try:
                async with asyncio.TaskGroup() as group:
                    tasks = {url: group.create_task(fetching.image(url)) for url in urls}
            except ExceptionGroup as failures:
                raise failures.exceptions[0] from None
        return {url: task.result() for url, task in tasks.items()}

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                force_close=True, use_dns_cache=False, socket_factory=self._open_socket
            ),
            timeout=aiohttp.ClientTimeout(total=None, connect=self.connect_s),
            headers={"User-Agent": USER_AGENT, "Accept": "image/*", "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # a small answer must not become a large one
        )

    def _open_socket(self, info: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, place = info
        if not self.allows(ip_address(place[0])):
            raise _NotPublic(_NOWHERE)
        return socket.socket(family, kind, protocol)


class _Fetching:
    """The images of one request on their way."""

    def __init__(self, limits: Images, session: aiohttp.ClientSession) -> None:
        self._limits, self._session = limits, session
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._deadline = asyncio.get_running_loop().time() + limits.total_s
        self._left = limits.all_bytes

    async def image(self, url: str) -> str:
        try:
            async with asyncio.timeout_at(self._deadline), self._gate:
                data = await self._get(url)
            return f"data:{_media_type(data)};base64,{base64.b64encode(data).decode()}"
        except (_Refused, aiohttp.ClientError, OSError, ValueError) as error:
            raise ImageError(url, self._words(error)) from error

    def _words(self, error: Exception) -> str:
        match error:
            case _Refused():
                return str(error)
            case aiohttp.ClientConnectorDNSError() | aiohttp.ClientConnectorError(os_error=_NotPublic()):
                return _NOWHERE
            case aiohttp.ClientSSLError():
                return "no TLS connection that can be trusted"
            case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
                return "its server cannot be reached"
            case TimeoutError():
                return f"it did not come within {self._limits.total_s:g} s"
            case ValueError():  # yarl, and the codec of host names
                return "its URL is not valid"
            case _:
                return "its server did not answer properly"

    async def _get(self, url: str) -> bytes:
        """The bytes at `url`, redirects followed and checked like the first address."""
        place = URL(url.strip())
        for _ in range(MAX_REDIRECTS + 1):
            self._check(place)
            async with self._session.get(place, allow_redirects=False) as response:
                if response.status not in _REDIRECTS:
                    return await self._read(response)
                place = place.join(URL(response.headers.get("location", "")))
        raise _Refused(f"it is redirected more than {MAX_REDIRECTS} times")

    def _check(self, place: URL) -> None:
        if place.scheme not in ("http", "https"):
            raise _Refused("it is redirected to something other than http and https")
        if not place.host:
            raise _Refused("its URL is not valid")
        if place.user is not None or place.password is not None:
            raise _Refused("its URL holds credentials")
        if place.port not in self._limits.ports:
            raise _Refused("its URL names an unusual port")

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        if response.status != 200:
            raise _Refused(f"its server answered {response.status}")
        if not response.content_type.startswith("image/") and response.content_type not in _UNTYPED:
            raise _Refused("what is there is no image")
        data = bytearray()
        async for chunk in response.content.iter_any():
            data += chunk
            self._left -= len(chunk)
            if len(data) > self._limits.image_bytes:
                raise _Refused(f"it is larger than {self._limits.image_bytes // MIB} MiB")
            if self._left < 0:
                limit = self._limits.all_bytes // MIB
                raise _Refused(f"the images of this request are larger than {limit} MiB together")
        return bytes(data)


def _media_type(data: bytes) -> str:
    """By the first bytes: servers mislabel images, and backends compare."""
    for signature, media_type in _SIGNATURES:
        if data.startswith(signature):
            return media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    raise _Refused("what is there is no PNG, JPEG, GIF or WebP image")
