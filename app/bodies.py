"""Request bodies: read within a limit, content-encodings undone within the same limit.

gzip, deflate and zstd, also several on top of each other. Decoding goes in bounded steps, so a
small body that unpacks to gigabytes costs the limit and no more.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from typing import Any

import zstandard

from translators.errors import ProxyError, bad_request

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

_STEP = 16384
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_RAW_DEFLATE = -zlib.MAX_WBITS
_MOST_MEMBERS = 10_000
"""Of a gzip body; tools that work in parallel write one for each 64 KiB or more."""
_MOST_CODINGS = 3
"""Each may blow the body up to the limit once more; one is what clients use."""
_ZSTD_WINDOW = 8 << 20
"""RFC 9659: the `zstd` content coding needs no window above 8 MiB."""


class ClientGone(Exception):
    """The client closed the connection before its request was whole."""


async def read_body(receive: Receive, headers: Mapping[bytes, bytes], limit: int) -> bytes:
    """The decoded request body.

    Raises `ProxyError`: 413 above `limit` bytes, as sent or decoded; 415 for an encoding that is
    not known; 400 when the encoded bytes are broken.
    """
    length = headers.get(b"content-length", b"")
    if length.isdigit() and int(length) > limit:
        raise _too_large(limit)
    body = await _read(receive, limit)
    encodings = headers.get(b"content-encoding")
    return body if encodings is None else decode(body, encodings.decode("latin-1"), limit)


def decode(body: bytes, encodings: str, limit: int) -> bytes:
    """Undo a `content-encoding` list, the last applied first."""
    told = [name.strip().lower() for name in encodings.split(",")]
    names = [name for name in told if name not in ("", "identity")]
    if len(names) > _MOST_CODINGS:
        message = f"more than {_MOST_CODINGS} content-encodings on top of each other are not supported"
        raise ProxyError("media_type", message, code="unsupported_content_encoding")
    for name in reversed(names):
        decoder = _DECODERS.get(name)
        if decoder is None:
            raise ProxyError(
                "media_type",
                f"content-encoding {name[:40]!r} is not supported; send identity, gzip, deflate or zstd",
                code="unsupported_content_encoding",
            )
        try:
            body = _within(decoder(body), limit)
        except (zlib.error, zstandard.ZstdError, EOFError) as error:
            raise bad_request(f"the request body is not valid {name}", code="invalid_encoding") from error
    return body


async def _read(receive: Receive, limit: int) -> bytes:
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        return _checked(message.get("body", b""), limit)
    parts, size = [], 0
    while message["type"] == "http.request":
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()
    raise ClientGone


def _checked(body: bytes, limit: int) -> bytes:
    if len(body) > limit:
        raise _too_large(limit)
    return body


def _within(pieces: Iterator[bytes], limit: int) -> bytes:
    out = bytearray()
    for piece in pieces:
        out += piece
        if len(out) > limit:
            raise _too_large(limit)
    return bytes(out)


def _inflate(body: bytes) -> Iterator[bytes]:
    """Of gzip (several members too) and zlib."""
    return _inflated(body, _GZIP_OR_ZLIB, _MOST_MEMBERS)


def _deflate(body: bytes) -> Iterator[bytes]:
    """HTTP's deflate is zlib, but some clients send the bare stream (as browsers tolerate)."""
    bare = len(body) < 2 or body[0] & 0x0F != 8 or int.from_bytes(body[:2], "big") % 31 != 0
    return _inflated(body, _RAW_DEFLATE if bare else zlib.MAX_WBITS, 1)


def _inflated(body: bytes, wbits: int, members: int) -> Iterator[bytes]:
    """The inflated body, at most `members` one after another.

    A decoder copies what it leaves over of its input, so it is given little at a time.
    """
    source, rest = io.BytesIO(body), b""
    inflater = zlib.decompressobj(wbits)
    while rest := rest or source.read(_STEP):
        if inflater.eof:
            members -= 1
            if not members:
                raise zlib.error("too many members")
            inflater = zlib.decompressobj(wbits)
        yield inflater.decompress(rest, _STEP)
        rest = inflater.unconsumed_tail or inflater.unused_data
    while not inflater.eof:
        piece = inflater.decompress(b"", _STEP)
        if not piece:
            raise EOFError
        yield piece


def _zstd(body: bytes) -> Iterator[bytes]:
    reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).stream_reader(
        io.BytesIO(body), read_across_frames=True
    )
    while piece := reader.read(_STEP):
        yield piece


_DECODERS: Mapping[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _inflate,
    "x-gzip": _inflate,
    "deflate": _deflate,
    "zstd": _zstd,
}


def _too_large(limit: int) -> ProxyError:
    return ProxyError(
        "too_large", f"the request body is larger than the limit of {limit} bytes, sent or decoded"
    )
