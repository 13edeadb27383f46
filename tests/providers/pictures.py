"""A server of images whose every byte is the test's, and how a test fetches from it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from yarl import URL

from providers.addresses import Address
from providers.images import ImageError, Images

from .raw_server import raw_server, read_request, reply

PNG = b"\x89PNG\r\n\x1a\n" + b"p" * 40
JPEG = b"\xff\xd8\xff\xe0" + b"j" * 40
GIF = b"GIF89a" + b"g" * 40
WEBP = b"RIFF\x20\x00\x00\x00WEBPVP8 " + b"w" * 40
NO_IMAGE = "what is there is no PNG, JPEG, GIF or WebP image"
NOWHERE = "its host has no public address"
Answer = Callable[[str], bytes]


def own(address: Address) -> bool:
    """One loopback address stands for the public internet; the others stay closed."""
    return str(address) == "127.0.0.1"


class Pictures:
    """A server of images, and how to fetch from it."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.port = URL(origin).port or 0
        self.requests: list[tuple[str, dict[str, str]]] = []

    def images(self, **limits: Any) -> Images:
        return Images(**{"allows": own, "ports": frozenset({self.port}), **limits})

    async def fetch(self, path: str = "/a.png", **limits: Any) -> str:
        url = path if "://" in path else self.origin + path
        return (await self.images(**limits).fetch([url]))[url]

    async def refusal(self, path: str = "/a.png", **limits: Any) -> str:
        """Why it is refused; the error names the URL it was asked for."""
        with pytest.raises(ImageError) as caught:
            await self.fetch(path, **limits)
        assert caught.value.url == (path if "://" in path else self.origin + path)
        return caught.value.reason


@asynccontextmanager
async def serving(answer: Answer | bytes) -> AsyncIterator[Pictures]:
    """`answer`: the reply, or what gives it for a path."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, headers, _ = await read_request(reader)
        path = line.split()[1]
        pictures.requests.append((path, headers))
        writer.write(answer if isinstance(answer, bytes) else answer(path))
        await writer.drain()

    async with raw_server(script) as origin:
        pictures = Pictures(origin)
        yield pictures


def image(data: bytes = PNG, content_type: str | None = "image/png", **headers: str) -> bytes:
    return reply(data, **({"content_type": content_type} if content_type else {}), **headers)


def moved(to: str, status: int = 302) -> bytes:
    return reply(b"", f"{status} Moved", location=to)
