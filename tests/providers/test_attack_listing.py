"""A model list without an end, and one that unpacks to far more than was sent."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
from collections.abc import Awaitable, Callable

import pytest
from yarl import URL

from providers import listing
from translators.errors import ProxyError

from .raw_server import raw_server

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PIECE = b'{"id":"m"},' * 1000


async def _list_without_an_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(HEAD + b'\r\n{"data":[')
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(PIECE)
            await writer.drain()


async def _packed_list(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    body = gzip.compress(b'{"data":[' + PIECE * 400 + b'{"id":"n"}]}')
    writer.write(HEAD + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(body) + body)


@pytest.mark.parametrize("script", [_list_without_an_end, _packed_list])
async def test_a_list_is_read_within_a_limit(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MAX_BYTES", 1 << 20)
    async with raw_server(script) as origin:
        with pytest.raises(ProxyError, match="longer than 1 MiB"):
            async with asyncio.timeout(5):
                await listing.list_models("up", "openai", URL(origin + "/list"), {})
