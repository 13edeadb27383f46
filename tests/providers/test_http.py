"""The data path's client against a server whose every byte is the test's."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import ssl
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from yarl import URL

from providers.http import HttpClient, as_proxy_error, environment_proxy
from translators.errors import ProxyError

from .raw_server import raw_server, read_request, reply

HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer k"}
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    client = HttpClient(connect_timeout_s=2, idle_timeout_s=2)
    yield client
    await client.aclose()


async def post(client: HttpClient, origin: str, body: bytes = b"{}") -> Any:
    return await client.post("up", URL(origin + "/v1/x"), HEADERS, body)


async def test_only_the_given_headers_are_sent(client: HttpClient) -> None:
    seen = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(reply(b"hello", set_cookie="a=b", X_Up="1"))

    async with raw_server(script) as origin:
        upstream = await post(client, origin, b'{"a":1}')
        assert (upstream.status, await upstream.read()) == (200, b"hello")
    line, headers, body = seen[0]
    assert (line, body) == ("POST /v1/x HTTP/1.1", b'{"a":1}')
    assert headers.keys() == {
        "Host",
        "User-Agent",
        "Accept",
        "Accept-Encoding",
        "Content-Type",
        "Authorization",
        "Content-Length",
    }
    assert headers["Accept-Encoding"] == "identity"
    assert headers["User-Agent"].startswith("dragoman/")
    assert upstream.headers["x-up"] == "1"


async def test_a_whole_answer_leaves_its_connection_in_the_pool(client: HttpClient) -> None:
    connections = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        while True:
            _, headers, _ = await read_request(reader)
            assert "Cookie" not in headers
            writer.write(reply(b"ok", set_cookie="a=b"))

    async with raw_server(script) as origin:
        for _ in range(3):
            upstream = await post(client, origin)
            await upstream.read()
            upstream.close()
    assert len(connections) == 1


async def test_chunks_come_as_they_are_read(client: HttpClient) -> None:
    go = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(CHUNKED + b"5\r\nfirst\r\n")
        await go.wait()
        writer.write(b"6\r\nsecond\r\n0\r\n\r\n")

    async with raw_server(script) as origin:
        upstream = await post(client, origin)
        assert upstream.is_stream
        chunks = aiter(upstream.chunks)
        assert await anext(chunks) == b"first"
        go.set()
        assert [chunk async for chunk in chunks] == [b"second"]


async def test_a_body_is_decoded_although_identity_was_asked(client: HttpClient) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(reply(gzip.compress(b"plain"), content_encoding="gzip"))

    async with raw_server(script) as origin:
        upstream = await post(client, origin)
        assert await upstream.read() == b"plain"
        assert not {"content-encoding", "content-length"} & upstream.headers.keys()


async def test_a_redirect_is_an_answer(client: HttpClient) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(reply(b"", "307 Temporary Redirect", location="http://127.0.0.1:1/"))

    async with raw_server(script) as origin:
        assert (await post(client, origin)).status == 307


@pytest.mark.parametrize("size", [2**20, 3 * 2**20])
async def test_a_large_body_arrives_whole(client: HttpClient, size: int) -> None:
    got = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append((await read_request(reader))[2])
        writer.write(reply(b"ok"))

    async with raw_server(script) as origin:
        upstream = await post(client, origin, b"x" * size)
        await upstream.read()
    assert got == [b"x" * size]


# --- the connection goes ---------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3 * 2**20])
async def test_a_stale_connection_is_replaced_once(client: HttpClient, size: int) -> None:
    bodies: list[int] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bodies.append(len((await read_request(reader))[2]))
        writer.write(reply(b"one"))
        bodies.append(len((await read_request(reader))[2]))  # and then goes without a word

    async with raw_server(script) as origin:
        assert await (await post(client, origin)).read() == b"one"
        upstream = await post(client, origin, b"y" * size)
        assert await upstream.read() == b"one"
    assert bodies == [2, size, size]


async def test_when_several_are_stale_the_second_try_is_on_a_new_one(client: HttpClient) -> None:
    asked = list[bytes]()
    both = asyncio.Barrier(2)

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await read_request(reader))[2])
        if len(asked) <= 2:
            await both.wait()  # two connections at a time, so that the pool has both
        writer.write(reply(b"one"))
        await read_request(reader)  # and then goes without a word

    async with raw_server(script) as origin:
        one, two = await asyncio.gather(post(client, origin), post(client, origin))
        assert (await one.read(), await two.read()) == (b"one", b"one")
        assert await (await post(client, origin)).read() == b"one"


async def test_a_fresh_connection_is_not_replaced(client: HttpClient) -> None:
    count = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        await read_request(reader)

    async with raw_server(script) as origin:
        with pytest.raises(ProxyError, match="without an answer") as caught:
            await post(client, origin)
    assert (count, caught.value.kind) == (1, "upstream")


async def test_a_begun_answer_is_not_asked_for_again(client: HttpClient) -> None:
    count = 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        await read_request(reader)
        writer.write(reply(b"one"))
        await read_request(reader)
        count += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-le")
        await writer.drain()

    async with raw_server(script) as origin:
        await (await post(client, origin)).read()
        with pytest.raises(ProxyError):
            await post(client, origin)
    assert count == 1


async def test_a_cut_body_is_an_error_not_an_end(client: HttpClient) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(CHUNKED + b"5\r\nfirst\r\n")
        await writer.drain()

    async with raw_server(script) as origin:
        chunks = aiter((await post(client, origin)).chunks)
        assert await anext(chunks) == b"first"
        with pytest.raises(ProxyError, match="in the middle") as caught:
            await anext(chunks)
    assert caught.value.kind == "upstream"


async def _hold(reader: asyncio.StreamReader, gone: asyncio.Future[float]) -> None:
    """Note when the peer closes."""
    with contextlib.suppress(ConnectionError):
        await reader.read(1)
    gone.set_result(time.monotonic())


async def test_close_is_seen_at_once(client: HttpClient) -> None:
    gone = asyncio.get_running_loop().create_future()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(CHUNKED + b"5\r\nfirst\r\n")
        await _hold(reader, gone)

    async with raw_server(script) as origin:
        upstream = await post(client, origin)
        await anext(aiter(upstream.chunks))
        began = time.monotonic()
        upstream.close()
        upstream.close()
        assert await asyncio.wait_for(gone, 1) - began < 0.5


async def test_a_cancelled_wait_for_the_headers_closes_the_connection(client: HttpClient) -> None:
    gone = asyncio.get_running_loop().create_future()
    arrived = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        arrived.set()
        await _hold(reader, gone)

    async with raw_server(script) as origin:
        task = asyncio.ensure_future(post(client, origin))
        await arrived.wait()
        task.cancel()
        await asyncio.wait_for(gone, 1)
        with pytest.raises(asyncio.CancelledError):
            await task


# --- silence ---------------------------------------------------------------------------


@pytest.mark.parametrize("opening", [b"", CHUNKED], ids=["before the headers", "in the body"])
async def test_silence_beyond_the_limit_is_a_timeout(opening: bytes) -> None:
    client = HttpClient(idle_timeout_s=0.2)

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(opening)
        await reader.read(1)

    async with raw_server(script) as origin:
        with pytest.raises(ProxyError, match="idle limit") as caught:
            await (await post(client, origin)).read()
    assert caught.value.kind == "timeout"
    await client.aclose()


async def test_a_slow_stream_is_not_silent() -> None:
    client = HttpClient(idle_timeout_s=0.3)

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(CHUNKED)
        for _ in range(5):
            await asyncio.sleep(0.15)
            writer.write(b"1\r\n.\r\n")
        writer.write(b"0\r\n\r\n")

    async with raw_server(script) as origin:
        assert await (await post(client, origin)).read() == b"....."
    await client.aclose()


# --- nothing there ---------------------------------------------------------------------


async def test_a_refused_connection_names_the_provider_and_no_address(client: HttpClient) -> None:
    async with raw_server(lambda reader, writer: asyncio.sleep(0)) as origin:
        pass
    with pytest.raises(ProxyError) as caught:
        await post(client, origin)
    assert (caught.value.kind, caught.value.http_status) == ("unavailable", 503)
    assert str(caught.value) == "provider up: the connection was refused"


async def test_tls_to_a_plain_server_is_unavailable(client: HttpClient) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async with raw_server(script) as origin:
        with pytest.raises(ProxyError) as caught:
            await post(client, origin.replace("http:", "https:"))
    assert caught.value.kind == "unavailable"


async def test_closing_twice_is_fine() -> None:
    client = HttpClient()
    await client.aclose()
    await client.aclose()


_KEY: Any = type("Key", (), {"host": "h", "port": 1, "ssl": True, "is_ssl": True})()
FAILURES = [
    (aiohttp.ConnectionTimeoutError("t"), "unavailable"),
    (aiohttp.ClientConnectorCertificateError(_KEY, ssl.CertificateError("c")), "unavailable"),
    (aiohttp.ClientConnectorSSLError(_KEY, OSError(1, "s")), "unavailable"),
    (aiohttp.ClientConnectorDNSError(_KEY, OSError(1, "d")), "unavailable"),
    (aiohttp.ClientConnectorError(_KEY, OSError(1, "r")), "unavailable"),
    (aiohttp.InvalidURL("x"), "unavailable"),
    (aiohttp.ServerDisconnectedError(), "upstream"),
    (aiohttp.ClientPayloadError("p"), "upstream"),
    (aiohttp.ClientOSError(104, "reset"), "upstream"),
    (TimeoutError(), "timeout"),
    (ssl.SSLError("s"), "upstream"),
    (ConnectionResetError(), "upstream"),
    (ValueError("anything"), "upstream"),
]


@pytest.mark.parametrize(("error", "kind"), FAILURES, ids=lambda value: type(value).__name__)
def test_failures_have_kinds(error: BaseException, kind: str) -> None:
    told = as_proxy_error(error, "up")
    assert told.kind == kind
    assert told.message.startswith("provider up: ")


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://api.openai.com/v1", {}, None),
        ("https://api.openai.com/v1", {"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ("http://api.openai.com/v1", {"HTTPS_PROXY": "http://proxy:3128"}, None),
        ("http://127.0.0.1:1/v1", {"HTTP_PROXY": "http://proxy:3128", "NO_PROXY": "127.0.0.1"}, None),
        ("", {"HTTP_PROXY": "http://proxy:3128"}, None),
    ],
)
def test_the_environment_names_the_proxy(
    url: str, environment: dict[str, str], proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert environment_proxy(url) == proxy


async def test_what_is_no_http_ends_the_body_at_once(client: HttpClient) -> None:
    """aiohttp's own reader would wait for more until the idle limit."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(CHUNKED + b"5\r\nfirst\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.write(b"zz\r\nrest")
        await writer.drain()
        await asyncio.sleep(1.5)

    async with raw_server(script) as origin:
        upstream = await post(client, origin)
        chunks, began = aiter(upstream.chunks), time.monotonic()
        assert await anext(chunks) == b"first"
        with pytest.raises(ProxyError) as caught:
            await anext(chunks)
    assert caught.value.kind == "upstream"
    assert time.monotonic() - began < 1


async def test_header_values_are_latin(client: HttpClient) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nx-a: caf\xe9\r\nx-b: \xe2\x82\xac\r\ncontent-length: 0\r\n\r\n")

    async with raw_server(script) as origin:
        upstream = await post(client, origin)
        sent = [upstream.headers[name].encode("latin-1") for name in ("x-a", "x-b")]
    assert sent == [b"caf\xe9", b"\xe2\x82\xac"]
