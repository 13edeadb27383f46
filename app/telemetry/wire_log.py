"""What goes over the wire, in the log: for a person who looks for a fault, behind two switches.

`telemetry.wire_log` in the configuration and `DRAGOMAN_WIRE_LOG=1` in the environment, and level debug. Texts
of conversations are in it. Secrets are not, as far as they can be known: configured keys, what looks like a
key, headers and fields that carry one. Long values are cut. What is split over several deltas of a stream is
whole in none of them, and so not known for what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from translators.framing import SseFramer
from translators.redaction import redact

from .trace import Trace
from .watch import Outcome

if TYPE_CHECKING:
    from ..plan import Plan

SWITCH = "DRAGOMAN_WIRE_LOG"
MAX_VALUE = 180
"""Characters of a text that are shown."""
MAX_LIST = 50
"""Entries of a list that are shown."""
MAX_BODY = 4 << 20
"""Bytes of a body that are read for it: a larger one is told by its size."""
_MASK = "[redacted]"
_SECRET = re.compile(
    r"authorization|cookie|(api|access|auth|secret|private)[-_]?key|token$|secret|password|credential|^key$",
    re.IGNORECASE,
)
"""Names of headers and fields whose value is nobody's business; `max_tokens` is none."""
_LOOKED_AT = 4000
"""Characters that are searched for secrets, before the value is cut."""

_log = structlog.get_logger("dragoman.wire")


def wanted(configured: bool, environ: Mapping[str, str]) -> bool:
    """Whether both switches are on."""
    return configured and environ.get(SWITCH, "").strip().lower() in ("1", "true", "yes", "on")


class WireLog:
    """Tells of every exchange; see the module's words."""

    def begin(self, trace: Trace, name: str) -> _Exchange:
        return _Exchange(trace)


class _Exchange:
    trace_id = traceparent = ""

    def __init__(self, trace: Trace) -> None:
        self._id = trace.id.decode()
        self._from_backend, self._to_client = SseFramer(), SseFramer()
        self._streams = {"backend": False, "client": False}

    @contextmanager
    def attempt(self, plan: Plan, outcome: Outcome) -> Iterator[None]:
        self._from_backend, self._streams["backend"] = SseFramer(), False
        where = {"target": plan.target.id, "surface": plan.surface, "upstream": plan.target.provider.origin}
        self._say("wire:to_backend", **where, body=shown(plan.payload))
        try:
            yield
        finally:
            self._say("wire:backend_ended", **where, status=outcome.status, gone=outcome.gone)

    def received(self, raw: bytes, headers: Mapping[bytes, bytes]) -> None:
        named = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
        self._say("wire:from_client", headers=_safe(named), body=shown(raw))

    def sent(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            named = {name.decode(): value.decode("latin-1") for name, value in message.get("headers") or ()}
            self._streams["client"] = named.get("content-type", "").startswith("text/event-stream")
            self._say("wire:to_client", status=message["status"], headers=_safe(named))
        elif message.get("body"):
            self._tell("wire:to_client", message["body"], self._to_client, "client")

    def read(self, data: bytes) -> None:
        if not self._streams["backend"]:
            self._streams["backend"] = data.lstrip().startswith((b"data:", b"event:", b":"))
        self._tell("wire:from_backend", data, self._from_backend, "backend")

    def end(self, trace: Trace) -> None:
        """The line of the request says how it ended."""

    def _tell(self, event: str, data: bytes, framer: SseFramer, side: str) -> None:
        """Of a stream each event that is whole by now, else the read as it is."""
        for body in framer.feed(data) if self._streams[side] else [data]:
            self._say(event, body=shown(body))

    def _say(self, event: str, **fields: Any) -> None:
        _log.debug(event, request_id=self._id, **fields)


def shown(body: bytes) -> Any:
    """A body for the log: JSON with its values cut and its secrets masked, else a piece of its text."""
    if len(body) > MAX_BODY:
        return f"[{len(body)} bytes]"
    try:
        return _safe(orjson.loads(body))
    except orjson.JSONDecodeError:
        return _text(body[:_LOOKED_AT].decode("utf-8", "replace"), len(body))


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value, len(value))
    if isinstance(value, dict):
        return {
            _text(name, len(name)): _MASK if _SECRET.search(name) and isinstance(each, str) else _safe(each)
            for name, each in value.items()
        }
    if isinstance(value, list):
        more = [f"[{len(value) - MAX_LIST} more]"] if len(value) > MAX_LIST else []
        return [_safe(each) for each in value[:MAX_LIST]] + more
    return value


def _text(text: str, size: int) -> str:
    if text.startswith("data:"):
        return f"{text[:80].partition(',')[0]},[{size} characters]"
    if text.isalnum() and len(text) < 20:  # most keys and words
        return text
    clean = redact(text[:_LOOKED_AT])
    return clean if len(clean) <= MAX_VALUE else f"{clean[:MAX_VALUE]}...[{size} characters]"
