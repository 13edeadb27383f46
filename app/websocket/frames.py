"""Frames of a WebSocket: what HTTP's clients get as events or as an error's body.

Every event is one text frame, its JSON as it was written. An error that no event tells is a frame of its own:
{"type": "error", "status", "error": {"type", "code", "message", "param", "headers"}, "headers"}; the SDK's
types have its headers within `error`, Codex reads them beside it.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import orjson

from translators.errors import ProxyError
from translators.framing import SseFramer
from translators.ir import Json

from ..errors import error_body, error_headers
from ..stream import Send
from ..telemetry.trace import Headers

_OF_HTTP = frozenset({b"content-type", b"content-length", b"connection", b"allow"})


class Frames:
    """The `send` of one answer, in ASGI's form for HTTP; `stream_id` is repeated in every frame."""

    def __init__(self, send: Send, stream_id: str | None) -> None:
        self._send = send
        self._framer: SseFramer | None = None
        self._status, self._headers, self._body = 0, list[tuple[bytes, bytes]](), b""
        self._lane = b"" if stream_id is None else b',"stream_id":%b}' % orjson.dumps(stream_id)

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers, self._body = message["status"], message["headers"], b""
            kind = dict(self._headers).get(b"content-type", b"")
            self._framer = SseFramer() if kind.startswith(b"text/event-stream") else None
            return
        more = message.get("more_body", False)
        if self._framer is not None:
            await self._events(self._framer, message["body"], more)
            return
        self._body += message["body"]
        if not more:
            await self._text(_failed(self._status, orjson.loads(self._body)["error"], self._headers))

    async def _events(self, framer: SseFramer, data: bytes, more: bool) -> None:
        payloads = framer.feed(data)
        if not more:
            payloads += framer.close()
        for payload in payloads:
            if payload != b"[DONE]":
                await self._text(payload)

    async def _text(self, event: bytes) -> None:
        if self._lane:
            fields = event.strip()[:-1].rstrip()
            event = fields + (self._lane if fields != b"{" else self._lane[1:])
        await self._send({"type": "websocket.send", "text": event.decode("utf-8", "replace")})


def failure(error: ProxyError) -> bytes:
    """The frame that tells an error no answer has told."""
    return _failed(error.http_status, orjson.loads(error_body(error))["error"], error_headers(error))


def _failed(status: int, error: Json, headers: Headers) -> bytes:
    told = {
        name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name not in _OF_HTTP
    }
    event: Json = {"type": "error", "status": status, "error": error}
    if told:
        event |= {"error": {**error, "headers": told}, "headers": told}
    return orjson.dumps(event)
