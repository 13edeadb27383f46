"""Server-sent events: network reads in, data payloads out. No I/O.

Lines end with LF, CRLF or CR, mixed as they come, and may be cut anywhere (also between CR
and LF, also inside a UTF-8 character). Only those three end a line: U+2028, U+2029 and
U+0085 are ordinary text inside JSON, which is why no text splitter of a library is used.
"""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"


class SseFramer:
    """Feed network reads; get the data payload of every event they complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """Payloads of the events completed by this read; several `data:` lines join with LF."""
        text = self._rest + data
        if not self._begun:
            if len(text) < len(_BOM) and _BOM.startswith(text):
                self._rest = text
                return []
            text, self._begun = text.removeprefix(_BOM), True
        if b"\r" in text:
            held = text.endswith(b"\r")  # its LF may be in the next read
            text = _unix(text[:-1]) + b"\r" if held else _unix(text)
        *blocks, self._rest = text.split(b"\n\n")
        return [payload for block in blocks if (payload := _payload(block)) is not None]

    def close(self) -> list[bytes]:
        """The last event, which its sender may have left without the blank line."""
        rest, self._rest = _unix(self._rest), b""
        payload = _payload(rest.rstrip(b"\n"))
        return [] if payload is None else [payload]


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
