"""Bytes of the event stream. Every event has an `event:` line equal to its `type`."""

from __future__ import annotations

import orjson

from ..ir import Json

END = b"data: [DONE]\n\n"
"""Open Responses asks for it, OpenAI does not send it, every client tried accepts it."""


def frame(kind: str, sequence: int, fields: Json) -> bytes:
    """One event."""
    data = orjson.dumps({"type": kind, "sequence_number": sequence, **fields})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def lifecycle(kind: str, sequence: int, response: bytes) -> bytes:
    """An event around a snapshot that is serialised already."""
    name = kind.encode()
    return b'event: %b\ndata: {"type":"%b","sequence_number":%d,"response":%b}\n\n' % (
        name,
        name,
        sequence,
        response,
    )


def head(kind: str, fields: Json) -> bytes:
    """A delta event up to its sequence number: what stays the same for a whole part."""
    data = orjson.dumps({"type": kind, **fields})
    return b'event: %b\ndata: %b,"sequence_number":' % (kind.encode(), data[:-1])


def delta(head: bytes, sequence: int, text: str, tail: bytes) -> bytes:
    """One delta event. The hot path: no dict is built, about a microsecond per call."""
    return b'%b%d,"delta":%b%b' % (head, sequence, orjson.dumps(text), tail)
