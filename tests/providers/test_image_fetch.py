"""Fetching images from a server whose every byte is the test's: what comes, limits, failures."""

from __future__ import annotations

import asyncio
import base64
import gzip
import ssl
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from providers.images import AT_ONCE, MAX_IMAGES, ImageError, Images
from tests.providers.pictures import GIF, JPEG, NO_IMAGE, PNG, WEBP, Pictures, image, serving

from .raw_server import raw_server, read_request, reply

# --- what comes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "said", "media_type"),
    [
        (PNG, "image/png", "image/png"),
        (JPEG, "image/jpg", "image/jpeg"),
        (GIF, "image/gif", "image/gif"),
        (b"GIF87a" + GIF, "image/gif", "image/gif"),
        (WEBP, "image/webp", "image/webp"),
        (WEBP, "image/png", "image/webp"),
        (PNG, "application/octet-stream", "image/png"),
        (PNG, "binary/octet-stream", "image/png"),
        (PNG, None, "image/png"),
    ],
)
async def test_an_image_is_called_what_it_is(data: bytes, said: str | None, media_type: str) -> None:
    async with serving(image(data, said)) as pictures:
        assert await pictures.fetch() == f"data:{media_type};base64,{base64.b64encode(data).decode()}"


async def test_nothing_of_anyone_is_sent(
    names: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No cookie that a redirect set, no Referer, no proxy, no compressed answers."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    names["pictures.test"] = [["127.0.0.1"]]
    move = reply(b"", "302 Found", location="/b?x=1", set_cookie="a=b; Path=/")
    async with serving(lambda path: move if path == "/a" else image()) as pictures:
        await pictures.fetch(f"http://pictures.test:{pictures.port}/a#part")
    assert [path for path, _ in pictures.requests] == ["/a", "/b?x=1"]
    for _, headers in pictures.requests:
        assert headers.keys() == {"Host", "User-Agent", "Accept", "Accept-Encoding", "Connection"}
        assert (headers["Accept"], headers["Accept-Encoding"]) == ("image/*", "identity")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (image(b"<html>", "text/html"), "what is there is no image"),
        (image(PNG, "application/json"), "what is there is no image"),
        (image(b"<svg/>", "image/svg+xml"), NO_IMAGE),
        (image(b"root:x:0:0", None), NO_IMAGE),
        (image(b"RIFF\x20\x00\x00\x00WAVEfmt "), NO_IMAGE),
        (image(b""), NO_IMAGE),
        # Not unpacked: a small answer must not become a large one.
        (image(gzip.compress(PNG), content_encoding="gzip"), NO_IMAGE),
        (reply(PNG, "404 Not Found", content_type="image/png"), "its server answered 404"),
        (reply(PNG, "206 Partial", content_type="image/png"), "its server answered 206"),
        (reply(b"", "304 Not Modified"), "its server answered 304"),
        (b"", "its server did not answer properly"),
        (b"SSH-2.0-OpenSSH_9\r\n", "its server did not answer properly"),
        (image()[:-5], "its server did not answer properly"),
    ],
)
async def test_anything_else_is_refused(answer: bytes, reason: str) -> None:
    async with serving(answer) as pictures:
        assert await pictures.refusal() == reason


# --- limits ----------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
async def test_a_large_image_is_cut_off(known: bool) -> None:
    """Whether its size is told before or not."""
    size = 3 << 20
    head = b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n"
    head += b"content-length: %d\r\n\r\n" % size if known else b"\r\n"
    async with serving(head + PNG.ljust(size, b"p")) as pictures:
        assert await pictures.refusal(image_bytes=1 << 20) == "it is larger than 1 MiB"
        assert len(await pictures.fetch(image_bytes=size)) > size


async def test_images_are_limited_together() -> None:
    data = PNG.ljust(600_000, b"p")
    async with serving(image(data)) as pictures:
        urls = [f"{pictures.origin}/{i}" for i in range(2)]
        with pytest.raises(ImageError, match="larger than 1 MiB together"):
            await pictures.images(all_bytes=1 << 20).fetch(urls)
        assert len(await pictures.images(all_bytes=1_200_000).fetch(urls)) == 2


async def test_images_are_counted() -> None:
    async with serving(image()) as pictures:
        urls = [f"{pictures.origin}/{i}" for i in range(MAX_IMAGES + 1)]
        with pytest.raises(ImageError, match="20 images") as caught:
            await pictures.images().fetch(urls)
        assert caught.value.url == urls[-1]
        assert pictures.requests == []
        assert list(await pictures.images().fetch(urls[:-1])) == urls[:-1]


async def test_a_few_are_fetched_at_once() -> None:
    open_now, most = 0, 0

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now, most
        await read_request(reader)
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.02)
        writer.write(image())
        open_now -= 1

    async with raw_server(script) as origin:
        await Pictures(origin).images().fetch([f"{origin}/{i}" for i in range(9)])
    assert most == AT_ONCE


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n\r\n" + PNG])
async def test_a_slow_server_is_not_waited_for(sent: bytes) -> None:
    gone = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(sent)
        await reader.read()
        gone.set()

    async with raw_server(script) as origin:
        pictures = Pictures(origin)
        assert await pictures.refusal(total_s=0.2) == "it did not come within 0.2 s"
        await asyncio.wait_for(gone.wait(), 1)


async def test_cancelling_ends_the_connections() -> None:
    came, gone = asyncio.Event(), asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        came.set()
        await reader.read()
        gone.set()

    async with raw_server(script) as origin:
        fetching = asyncio.ensure_future(Pictures(origin).fetch())
        await asyncio.wait_for(came.wait(), 1)
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching
        await asyncio.wait_for(gone.wait(), 1)


async def test_one_that_fails_ends_the_others() -> None:
    gone = asyncio.Event()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, _, _ = await read_request(reader)
        if "bad" in line:
            writer.write(reply(b"", "500 Oops"))
            return
        await reader.read()
        gone.set()

    async with raw_server(script) as origin:
        with pytest.raises(ImageError) as caught:
            await Pictures(origin).images().fetch([f"{origin}/slow", f"{origin}/bad"])
        assert (caught.value.url, caught.value.reason) == (f"{origin}/bad", "its server answered 500")
        await asyncio.wait_for(gone.wait(), 1)


# --- failures to connect ---------------------------------------------------------------


async def test_a_closed_port() -> None:
    async with serving(image()) as pictures:
        pass
    assert await pictures.refusal() == "its server cannot be reached"


async def test_blanks_around_a_url_do_not_matter() -> None:
    async with serving(image()) as pictures:
        assert await pictures.fetch(f" {pictures.origin}/a.png\n")


_KEY: Any = type("Key", (), {"host": "h", "port": 1, "ssl": True, "is_ssl": True})()
FAILURES: Mapping[str, tuple[Exception, str]] = {
    "certificate": (
        aiohttp.ClientConnectorCertificateError(_KEY, ssl.CertificateError("c")),
        "no TLS connection that can be trusted",
    ),
    "connect": (aiohttp.ConnectionTimeoutError("t"), "its server cannot be reached"),
    "lost": (aiohttp.ClientOSError(104, "reset"), "its server did not answer properly"),
}


@pytest.mark.parametrize(("error", "reason"), FAILURES.values(), ids=FAILURES.keys())
async def test_failures_that_are_hard_to_bring_about(
    error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(aiohttp.ClientSession, "get", fail)
    with pytest.raises(ImageError) as caught:
        await Images().fetch(["http://x.test/a.png"])
    assert caught.value.reason == reason
