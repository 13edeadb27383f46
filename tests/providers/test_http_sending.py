"""How a request of the data path is put on its connection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from yarl import URL

from providers.http import HttpClient, _Connector
from translators.errors import ProxyError

from .raw_server import raw_server, read_request, reply


@pytest.mark.parametrize("size", [0, 1, 2**15, 2**15 + 1, 2**18])
async def test_a_body_of_any_size_comes_whole_and_its_connection_is_used_again(size: int) -> None:
    client, got = HttpClient(idle_timeout_s=5), list[tuple[str, bytes]]()
    connections = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        for _ in range(2):
            _, headers, body = await read_request(reader)
            got.append((headers["Content-Length"], body))
            writer.write(reply(b"ok"))
        await reader.read(1)

    async with raw_server(script) as origin:
        for _ in range(2):
            upstream = await client.post("up", URL(origin + "/x?y=1"), {"X-Key": "k"}, b"z" * size)
            assert await upstream.read() == b"ok"
            upstream.close()
        await client.aclose()
    assert (got, connections) == ([(str(size), b"z" * size)] * 2, 1)


@pytest.mark.parametrize("size", [2, 2**20])
async def test_a_proxy_is_asked_with_the_whole_address(size: int) -> None:
    client, lines = HttpClient(idle_timeout_s=5), list[str]()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, headers, body = await read_request(reader)
        lines.append(line)
        assert (headers["Host"], len(body)) == ("backend.test", size)
        writer.write(reply(b"ok"))

    async with raw_server(script) as origin:
        upstream = await client.post("up", URL("http://backend.test/v1/x"), {}, b"z" * size, origin)
        assert await upstream.read() == b"ok"
        await client.aclose()
    assert lines == ["POST http://backend.test/v1/x HTTP/1.1"]


async def test_no_connection_in_time_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any, **__: Any) -> None:
        raise TimeoutError

    monkeypatch.setattr(_Connector, "connect", never)
    client = HttpClient(connect_timeout_s=0.1)
    with pytest.raises(ProxyError, match="connect timeout") as caught:
        await client.post("up", URL("http://127.0.0.1:1/x"), {}, b"{}")
    assert caught.value.kind == "unavailable"
    await client.aclose()


async def test_an_answer_that_is_no_http_is_upstreams_fault() -> None:
    client = HttpClient(idle_timeout_s=5)

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
        await writer.drain()

    async with raw_server(script) as origin:
        with pytest.raises(ProxyError, match="not valid HTTP") as caught:
            await client.post("up", URL(origin), {}, b"{}")
    assert caught.value.kind == "upstream"
    await client.aclose()
