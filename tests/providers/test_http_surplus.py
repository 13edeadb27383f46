"""What a backend sends that nobody asked for is nobody's answer."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator

import pytest
from yarl import URL

from providers.http import HttpClient, as_proxy_error
from tests.providers.raw_server import raw_server, read_request, reply

STRAY = {
    "an answer": reply(b"another's"),
    "an answer's beginning": b"HTTP/1.1 200 OK\r\ncontent-le",
    "no HTTP": b"\x00\x01\x02",
    "blank lines": b"\r\n\r\n",
}


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    client = HttpClient(connect_timeout_s=2, idle_timeout_s=2)
    yield client
    await client.aclose()


WAYS = [(name, pause) for name in STRAY for pause in (0.0, 0.05) if pause or name != "no HTTP"]
"""In one piece with what is no HTTP, the right answer is none either."""


@pytest.mark.parametrize(("name", "pause"), WAYS)
async def test_a_stray_answer_is_not_taken_for_the_next_one(
    client: HttpClient, name: str, pause: float
) -> None:
    strayed = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, _, body = await read_request(reader)
            writer.write(reply(body))
            await writer.drain()
            await asyncio.sleep(pause)
            writer.write(STRAY[name])
            strayed.set()

    async with raw_server(script) as origin:
        for body in (b"first", b"second", b"third"):
            upstream = await client.post("p", URL(origin), {}, body)
            assert b"".join([chunk async for chunk in upstream.chunks]) == body
            await strayed.wait()
            strayed.clear()
            await asyncio.sleep(0.05)  # until it has been read


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_no_descriptor_for_a_connection_is_no_fault_of_the_backend(number: int) -> None:
    error = as_proxy_error(OSError(number, "Too many open files"), "p")
    assert (error.kind, error.code, error.retry_after) == ("overloaded", "too_many_connections", 1)
