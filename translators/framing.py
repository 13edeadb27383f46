"""Server-sent events: network reads in, data payloads out. No I/O.

Lines end with LF, CRLF or CR, mixed as they come, and may be cut anywhere (also between CR
and LF, also inside a UTF-8 character). Only those three end a line: U+2028, U+2029 and
U+0085 are ordinary text inside JSON, which is why no text splitter of a library is used.

A read costs its own length, however much of the event is there already: an event of megabytes
in reads of a few bytes would otherwise be searched and copied again with each of them.
"""

from __future__ import annotations

import re
from itertools import pairwise

from .errors import ProxyError

_BOM = b"\xef\xbb\xbf"
MAX_EVENT_BYTES = 256 << 20
"""Of one event: embeddings, pictures and sound stay far below; what is longer has no end."""

_BLANK_LINE = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")


def too_long() -> ProxyError:
    limit = f"{MAX_EVENT_BYTES >> 20} MiB"
    return ProxyError("upstream", f"An event of the backend's stream is longer than {limit}.")


class _Unended:
    """The beginning of an event whose blank line has not come."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def __bool__(self) -> bool:
        return bool(self._bytes)

    def join(self, data: bytes) -> bytes | None:
        """All that is there with `data`; None, and `data` is kept, while there is no blank line."""
        near = bytes(self._bytes[-3:]) + data
        if b"\n\n" in near or (b"\r" in near and _BLANK_LINE.search(near)):
            return self.take() + data
        self.keep(data)
        return None

    def take(self) -> bytes:
        held = bytes(self._bytes)
        self._bytes.clear()
        return held

    def keep(self, data: bytes) -> None:
        """Raises `ProxyError` when it gets longer than any event is."""
        self._bytes += data
        if len(self._bytes) > MAX_EVENT_BYTES:
            self._bytes.clear()
            raise too_long()


class SseFramer:
    """Feed network reads; get the data payload of every event they complete."""

    def __init__(self) -> None:
        self._rest = _Unended()
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Payloads of the events completed by this read; several `data:` lines join with LF."""
        if not self._begun:
            data = self._rest.take() + data
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._rest.keep(data)
                return []
            data, self._begun = data.removeprefix(_BOM), True
        text = self._rest.join(data) if self._rest else data
        if text is None:
            return []
        if b"\r" in text:
            held = text.endswith(b"\r")  # its LF may be in the next read
            text = _unix(text[:-1]) + b"\r" if held else _unix(text)
        *blocks, rest = text.split(b"\n\n")
        self._rest.keep(rest)
        return [payload for block in blocks if (payload := _payload(block)) is not None]

    def close(self) -> list[bytes]:
        """The last event, which its sender may have left without the blank line."""
        payload = _payload(_unix(self._rest.take()).rstrip(b"\n"))
        return [] if payload is None else [payload]


class NdjsonFramer:
    """Feed network reads; get every line that is not blank. For streams of one JSON value a line.

    Lines end with LF or CRLF, cut anywhere. JSON has neither inside a string, so nothing else ends one.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        if b"\n" not in data:
            self._rest += data
            if len(self._rest) > MAX_EVENT_BYTES:
                self._rest.clear()
                raise too_long()
            return []
        *lines, rest = (bytes(self._rest) + data).split(b"\n")
        self._rest = bytearray(rest)
        return self._whole(lines)

    def close(self) -> list[bytes]:
        """The last line, whose sender may have left without ending it."""
        last, self._rest = bytes(self._rest), bytearray()
        return self._whole([last])

    def _whole(self, lines: list[bytes]) -> list[bytes]:
        if not self._begun and lines:
            self._begun, lines[0] = True, lines[0].removeprefix(_BOM)
        return [line for line in map(bytes.strip, lines) if line]


class FrameCutter:
    """Feed network reads; get the events they complete whole and unchanged, blank line included.

    For whoever forwards bytes: joined, the frames and the rest are what was fed.
    """

    def __init__(self) -> None:
        self._rest = _Unended()

    @property
    def holding(self) -> bool:
        """Whether an event has begun and not ended."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        text = self._rest.join(data) if self._rest else data
        if text is None:
            return []
        if b"\r" in text:
            return self._cut(text)
        blocks = text.split(b"\n\n")
        rest = blocks.pop()
        if len(blocks) == 1 and not rest:
            return [text]
        self._rest.keep(rest)
        return [block + b"\n\n" for block in blocks]

    def close(self) -> bytes:
        """What was left without a blank line."""
        return self._rest.take()

    def _cut(self, text: bytes) -> list[bytes]:
        known = len(text) - text.endswith(b"\r")  # its LF may be in the next read
        ends = [0, *(blank.end() for blank in _BLANK_LINE.finditer(text, 0, known))]
        self._rest.keep(text[ends[-1] :])
        return [text[start:end] for start, end in pairwise(ends)]


def payload_of(frame: bytes) -> bytes | None:
    """The data of one whole frame, None when it has none (a comment)."""
    if (
        frame.startswith(b"data: ")
        and frame.endswith(b"\n\n")
        and frame.count(b"\n") == 2
        and b"\r" not in frame
    ):
        return frame[6:-2]
    return _payload(_unix(frame.removeprefix(_BOM)).rstrip(b"\n"))


def sse(data: bytes) -> bytes:
    """One unnamed event; `data` is a single line."""
    return b"data: %b\n\n" % data


def _unix(text: bytes) -> bytes:
    return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _payload(block: bytes) -> bytes | None:
    if block.startswith(b"data: ") and b"\n" not in block:
        return block[6:]
    lines = [line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None
