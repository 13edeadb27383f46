"""Request bodies: limits and content-encodings."""

from __future__ import annotations

import gzip
import os
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import zstandard

from app.bodies import ClientGone, decode, read_body
from translators.errors import ProxyError

TEXT = b'{"model": "m", "input": "caf\xc3\xa9 ' + b"x" * 300_000 + b'"}'
LIMIT = 1 << 20


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


ENCODED = {
    "identity": TEXT,
    "gzip": gzip.compress(TEXT),
    "x-gzip": gzip.compress(TEXT),
    "GZIP ": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "zstd": zstd(TEXT),
    "gzip, zstd": zstd(gzip.compress(TEXT)),
    "deflate,identity,gzip": gzip.compress(zlib.compress(TEXT)),
    "": TEXT,
}


@pytest.mark.parametrize("encodings", ENCODED)
def test_decodes(encodings: str) -> None:
    assert decode(ENCODED[encodings], encodings, LIMIT) == TEXT


def test_decodes_a_bare_deflate_stream() -> None:
    assert decode(raw_deflate(TEXT), "deflate", LIMIT) == TEXT
    assert decode(raw_deflate(b"{}"), "deflate", LIMIT) == b"{}"


def test_decodes_members_and_frames_one_after_another() -> None:
    assert decode(gzip.compress(b'{"a":') + gzip.compress(b"1}"), "gzip", LIMIT) == b'{"a":1}'
    assert decode(zstd(b'{"a":') + zstd(b"1}"), "zstd", LIMIT) == b'{"a":1}'


BOMBS = {
    "gzip": gzip.compress(bytes(50 * LIMIT)),
    "deflate": zlib.compress(bytes(50 * LIMIT)),
    "zstd": zstd(bytes(50 * LIMIT)),
    "gzip, gzip": gzip.compress(gzip.compress(bytes(50 * LIMIT))),
}


@pytest.mark.parametrize("encoding", BOMBS)
def test_a_bomb_is_413_naming_the_limit(encoding: str) -> None:
    assert len(BOMBS[encoding]) < LIMIT
    with pytest.raises(ProxyError) as caught:
        decode(BOMBS[encoding], encoding, LIMIT)
    assert caught.value.http_status == 413
    assert str(LIMIT) in caught.value.message
    assert caught.value.body()["code"] == "request_too_large"


@pytest.mark.parametrize("encoding", ["br", "gzip, br", "compress", "x" * 200])
def test_an_unknown_encoding_is_415(encoding: str) -> None:
    with pytest.raises(ProxyError) as caught:
        decode(gzip.compress(TEXT), encoding, LIMIT)
    assert caught.value.http_status == 415
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", b"not gzip"),
        ("gzip", gzip.compress(TEXT)[:-20]),
        ("deflate", b"\xff\xff\xff\xff"),
        ("zstd", b"not zstd at all"),
    ],
)
def test_broken_bytes_are_400(encoding: str, data: bytes) -> None:
    with pytest.raises(ProxyError) as caught:
        decode(data, encoding, LIMIT)
    assert caught.value.http_status == 400
    assert encoding in caught.value.message


class Sent:
    """An ASGI `receive` that gives these messages."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self._messages: Iterator[dict[str, Any]] = iter(messages)

    async def __call__(self) -> dict[str, Any]:
        return next(self._messages)


def part(body: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_reads_a_body_in_one_and_in_many_parts() -> None:
    assert await read_body(Sent(part(b"{}", False)), {}, 10) == b"{}"
    assert await read_body(Sent({"type": "http.request"}), {}, 10) == b""
    pieces = Sent(part(b"{", True), part(b"", True), part(b"}", False))
    assert await read_body(pieces, {}, 10) == b"{}"


async def test_reads_and_decodes() -> None:
    packed = gzip.compress(b'{"a":1}')
    receive = Sent(part(packed[:5], True), part(packed[5:], False))
    assert await read_body(receive, {b"content-encoding": b"gzip"}, LIMIT) == b'{"a":1}'


@pytest.mark.parametrize(
    ("headers", "messages"),
    [
        ({b"content-length": b"11"}, []),
        ({}, [part(b"x" * 11, False)]),
        ({}, [part(b"x" * 6, True), part(b"x" * 6, True)]),
    ],
)
async def test_a_body_over_the_limit_is_413(headers: dict[bytes, bytes], messages: list[Any]) -> None:
    with pytest.raises(ProxyError) as caught:
        await read_body(Sent(*messages), headers, 10)
    assert caught.value.http_status == 413


async def test_a_client_that_leaves_while_sending() -> None:
    with pytest.raises(ClientGone):
        await read_body(Sent(part(b"{", True), {"type": "http.disconnect"}), {}, 10)
    with pytest.raises(ClientGone):
        await read_body(Sent({"type": "http.disconnect"}), {}, 10)


@pytest.mark.parametrize("data", [os.urandom(8 << 20), bytes(8 << 20), b"ab" * (4 << 20)])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_large_bodies_are_decoded_in_time(data: bytes, encoding: str) -> None:
    packed = {"gzip": gzip.compress(data, 1), "deflate": raw_deflate(data), "zstd": zstd(data)}[encoding]
    began = time.monotonic()
    assert decode(packed, encoding, len(data)) == data
    assert time.monotonic() - began < 2


def test_a_body_of_countless_members_is_400_in_time() -> None:
    began = time.monotonic()
    with pytest.raises(ProxyError) as caught:
        decode(gzip.compress(b"") * 400_000, "gzip", LIMIT)
    assert caught.value.http_status == 400
    assert time.monotonic() - began < 2


def test_what_follows_a_deflate_stream_is_400() -> None:
    with pytest.raises(ProxyError) as caught:
        decode(zlib.compress(TEXT) + b"x", "deflate", LIMIT)
    assert caught.value.http_status == 400


def test_encodings_are_not_stacked_without_end() -> None:
    stacked = TEXT
    for _ in range(4):
        stacked = gzip.compress(stacked)
    with pytest.raises(ProxyError) as caught:
        decode(stacked, ", ".join(["gzip"] * 4), LIMIT)
    assert caught.value.http_status == 415
    assert decode(gzip.compress(stacked[:0] + TEXT), ", ".join(["identity"] * 9 + ["gzip"]), LIMIT) == TEXT
