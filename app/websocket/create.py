"""What a client says over a WebSocket: `response.create`, and `response.steer`, which no backend here has."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from translators.errors import bad_request
from translators.ir import Json

from ..request import read_object

MAX_STREAM_ID = 128
_OF_TRANSPORT = ("type", "stream_id", "generate", "background")
"""Fields of the frame that are none of the request; a response over a WebSocket is never a background one."""


@dataclass(frozen=True, slots=True)
class Create:
    """A response is wanted. `body`: what a POST would hold."""

    body: bytes
    stream_id: str | None
    generate: bool
    """False: it only prepares what a later one continues."""


@dataclass(frozen=True, slots=True)
class Steer:
    """A running response is to be told something."""

    event: Json

    def refused(self) -> bytes:
        """The frame that gives the input back."""
        kept = {key: self.event.get(key) for key in ("previous_response_id", "input")}
        error = {
            "type": "invalid_request_error",
            "code": "steering_not_supported",
            "message": "steering is not supported here: send the input in the next response.create",
        }
        told = {"type": "response.steer.failed", "sequence_number": 0, "error": error, "steer": kept}
        return orjson.dumps(told)


def read_message(text: str | None) -> Create | Steer:
    """`text` None: the message was binary. Raises `ProxyError` (400)."""
    if text is None:
        raise bad_request("send text frames; this one was binary", code="invalid_message")
    _, event = read_object(text.encode())
    kind = event.get("type")
    if kind == "response.steer":
        return Steer(event)
    if kind != "response.create":
        raise bad_request("`type` must be response.create", "type", "unknown_event")
    stream_id, generate = event.get("stream_id"), event.get("generate")
    if stream_id is not None and not _is_name(stream_id):
        message = f"`stream_id` must be a text of 1 to {MAX_STREAM_ID} characters"
        raise bad_request(message, "stream_id")
    if generate is not None and not isinstance(generate, bool):
        raise bad_request("`generate` must be true or false", "generate")
    body = {key: value for key, value in event.items() if key not in _OF_TRANSPORT}
    return Create(orjson.dumps({**body, "stream": True}), stream_id, generate is not False)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_STREAM_ID
