"""Bytes of the event stream. Every event has an `event:` line equal to its `type`."""

from __future__ import annotations

import orjson

from ..dialect import End
from ..errors import ProxyError, responses_error
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


def failed_end(end: End, error: ProxyError) -> bytes:
    """What a stream ends with instead of `end`, when that may not be told."""
    failed = {**end.response, "status": "failed", "completed_at": None, "error": responses_error(error)}
    return frame("response.failed", end.sequence, {"response": failed}) + END


def head(kind: str, fields: Json) -> bytes:
    """A delta event up to its sequence number: what stays the same for a whole part."""
    data = orjson.dumps({"type": kind, **fields})
    return b'event: %b\ndata: %b,"sequence_number":' % (kind.encode(), data[:-1])


def delta(head: bytes, sequence: int, text: str, tail: bytes) -> bytes:
    """One delta event. The hot path: no dict is built, about a microsecond per call."""
    return b'%b%d,"delta":%b%b' % (head, sequence, orjson.dumps(text), tail)


DELTA_HEADS = tuple(
    head
    for kind in (
        b"output_text",
        b"function_call_arguments",
        b"reasoning_text",
        b"reasoning_summary_text",
        b"custom_tool_call_input",
    )
    for head in (b"event: response.%b.delta\n" % kind, b'data: {"type":"response.%b.delta"' % kind)
)
"""How a frame begins that cannot matter: nearly all of them, so they are told by this alone."""
