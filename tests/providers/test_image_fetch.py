"""Fetching images from a server whose every byte is the test's, and from where nobody may."""

from __future__ import annotations

import asyncio
import base64
import gzip
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from yarl import URL

from providers.addresses import Address
from providers.images import AT_ONCE, MAX_IMAGES, ImageError, Images

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


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """Host name -> the addresses of each look-up in turn, the last of them again and again."""
    known: dict[str, list[list[str]]] = {}

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        answers = known.get(host)
        if answers is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [_info(address, port) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


def _info(address: str, port: int) -> Any:
    if ":" in address:
        return (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
    return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))


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


# --- where a connection may go ---------------------------------------------------------

HOSTS = (
    "127.0.0.2",
    "0.0.0.0",
    "10.0.0.1",
    "169.254.169.254",
    "100.100.100.200",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "localhost",
    "LOCALHOST.",
    "metadata.google.internal",
)


@pytest.mark.parametrize("host", HOSTS)
async def test_closed_addresses_are_not_connected_to(
    host: str, names: dict[str, list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names["localhost"] = names["localhost."] = [["127.0.0.1", "::1"]]
    names["metadata.google.internal"] = [["169.254.169.254"]]
    monkeypatch.setattr(socket, "socket", lambda *_, **__: pytest.fail("a socket was opened"))
    with pytest.raises(ImageError) as caught:
        await Images().fetch([f"http://{host}/latest/meta-data/"])
    assert caught.value.reason == NOWHERE


SPELLINGS = (
    *("127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "0"),
    *("2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "0xa9.0376.169.254"),
    # Full-width and ideographic: IDNA makes plain dots and digits of them.
    *("169\uff0e254\uff0e169\uff0e254", "169\u3002254\u3002169\u3002254", "\uff11\uff12\uff17.0.0.1"),
    *("[fe80::1%251]", "[fe80::1%25eth0]", "[fe80::a9fe:a9fe%lo]"),
)


@pytest.mark.parametrize("host", SPELLINGS)
async def test_spellings_of_addresses_lead_nowhere(host: str) -> None:
    """aiohttp refuses some; the rest goes to the resolver and then through the same door."""
    with pytest.raises(ImageError) as caught:
        await Images().fetch([f"http://{host}/"])
    assert caught.value.reason in (NOWHERE, "its URL is not valid")


async def test_an_unknown_name_looks_like_a_private_one(names: dict[str, list[list[str]]]) -> None:
    names["inside.test"] = [["10.1.2.3"]]
    async with serving(image()) as pictures:
        reasons = {
            await pictures.refusal(f"http://{host}.test:{pictures.port}/") for host in ("inside", "no")
        }
    assert reasons == {NOWHERE}


async def test_the_open_one_of_several_addresses_is_used(names: dict[str, list[list[str]]]) -> None:
    names["pictures.test"] = [["127.0.0.2", "::1", "127.0.0.1"]]
    async with serving(image()) as pictures:
        assert await pictures.fetch(f"http://pictures.test:{pictures.port}/a.png")
        assert pictures.requests[0][1]["Host"] == f"pictures.test:{pictures.port}"


async def test_a_name_that_changes_its_address(names: dict[str, list[list[str]]]) -> None:
    """DNS rebinding: open when first asked for, closed when the redirect comes back to it."""
    names["pictures.test"] = [["127.0.0.1"], ["127.0.0.2"]]
    async with serving(lambda path: moved("/b") if path == "/a" else image()) as pictures:
        assert await pictures.refusal(f"http://pictures.test:{pictures.port}/a") == NOWHERE
        assert [path for path, _ in pictures.requests] == ["/a"]


async def test_what_is_checked_is_what_is_connected_to(names: dict[str, list[list[str]]]) -> None:
    """A name is resolved once for a connection: there is no second answer to slip in."""
    names["pictures.test"] = [["127.0.0.1"], ["127.0.0.2"]]
    async with serving(image()) as pictures:
        await pictures.fetch(f"http://pictures.test:{pictures.port}/a")
    assert names["pictures.test"] == [["127.0.0.2"]]


REDIRECTS = {
    "http://127.0.0.2:{port}/": NOWHERE,
    "http://169.254.169.254:{port}/latest/meta-data/": NOWHERE,
    "http://[64:ff9b::a9fe:a9fe]:{port}/": NOWHERE,
    "http://[::ffff:10.0.0.1]:{port}/": NOWHERE,
    "http://[::1]:{port}/": NOWHERE,
    "//127.0.0.2:{port}/": NOWHERE,
    "https://127.0.0.1/": "its URL names an unusual port",
    "http://u:p@127.0.0.1:{port}/": "its URL holds credentials",
    "file:///etc/passwd": "it is redirected to something other than http and https",
    "gopher://127.0.0.1:{port}/": "it is redirected to something other than http and https",
    "http://[": "its URL is not valid",
    "http:///x": "it is redirected more than 3 times",  # joined, that is a path here
    "/a.png": "it is redirected more than 3 times",
    "": "it is redirected more than 3 times",
}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(("to", "reason"), REDIRECTS.items())
async def test_redirects_are_checked_like_the_first_address(to: str, reason: str, status: int) -> None:
    async with serving(lambda _: moved(to.format(port=pictures.port), status)) as pictures:
        assert await pictures.refusal() == reason
        assert len(pictures.requests) == (4 if "more than" in reason else 1)


async def test_three_redirects_are_followed() -> None:
    hops = {"/a": "/b", "/b": "c?d", "/c?d": "{origin}/e"}

    def answer(path: str) -> bytes:
        return moved(hops[path].format(origin=pictures.origin)) if path in hops else image()

    async with serving(answer) as pictures:
        assert await pictures.fetch("/a")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://user@127.0.0.1:{port}/", "its URL holds credentials"),
        ("http://1.1.1.1@127.0.0.1:{port}/", "its URL holds credentials"),
        ("http://1.1.1.1:80@127.0.0.1:{port}/a.png", "its URL holds credentials"),
        ("http://:secret@127.0.0.1:{port}/", "its URL holds credentials"),
        ("http://127.0.0.1:22/", "its URL names an unusual port"),
        ("http://127.0.0.1/", "its URL names an unusual port"),
        ("http://127.0.0.1:99999/", "its URL is not valid"),
        ("http://[::1", "its URL is not valid"),
        ("http://", "its URL is not valid"),
        ("http:///x", "its URL is not valid"),
        ("http://{long}.test:{port}/", "its URL is not valid"),
        ("http://a b:{port}/", NOWHERE),
    ],
)
async def test_addresses_that_are_refused_as_they_are(url: str, reason: str) -> None:
    async with serving(image()) as pictures:
        assert await pictures.refusal(url.format(port=pictures.port, long="a" * 70)) == reason
        assert pictures.requests == []


def test_only_the_ports_of_http_are_open() -> None:
    assert Images().ports == {80, 443}


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
