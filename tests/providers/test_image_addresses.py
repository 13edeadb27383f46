"""Where images are fetched from, and from where nobody may."""

from __future__ import annotations

import socket

import pytest

from providers.images import ImageError, Images
from tests.providers.pictures import NOWHERE, image, moved, serving

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
