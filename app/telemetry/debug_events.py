"""Events at level debug: what backends are asked and answer, and the blocks of the streams that clients get.

Nothing of a message's text is in them: lengths, kinds and counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import structlog

from .blocks import Blocks
from .trace import Trace
from .watch import Outcome

if TYPE_CHECKING:
    from translators.ir import Usage

    from ..plan import Plan

_log = structlog.get_logger("dragoman")

MAX_MESSAGE = 180
"""Characters of a backend's words in one event."""


class DebugEvents:
    """Tells of every exchange; see the module's words."""

    def begin(self, trace: Trace, name: str) -> _Exchange:
        return _Exchange(trace)


class _Exchange:
    trace_id = traceparent = ""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._blocks: Blocks | None = None

    @contextmanager
    def attempt(self, plan: Plan, outcome: Outcome) -> Iterator[None]:
        began, trace = time.perf_counter(), self._trace
        about = {"request_id": trace.id.decode(), "target": plan.target.id}
        _log.debug("llm:request", **about, **_asked(plan), attempt=trace.attempts + 1)
        before = trace.usage
        try:
            yield
        finally:
            used = trace.usage if trace.usage is not before else None
            took = round((time.perf_counter() - began) * 1000, 2)
            _log.debug(
                "llm:response", **about, duration_ms=took, usage=_told(used), **_answered(trace, outcome)
            )

    def received(self, raw: bytes, headers: Mapping[bytes, bytes]) -> None:
        """Its body is told when a backend is asked."""

    def sent(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            kinds = dict(message.get("headers") or ())
            if kinds.get(b"content-type", b"").startswith(b"text/event-stream"):
                self._blocks = Blocks(self._say)
        elif self._blocks is not None:
            self._blocks.feed(message.get("body", b""))

    def read(self, data: bytes) -> None:
        """What comes of it is told in the client's shape."""

    def end(self, trace: Trace) -> None:
        if self._blocks is not None:
            self._blocks.close()

    def _say(self, event: str, fields: Mapping[str, Any]) -> None:
        _log.debug(f"llm:stream_block_{event}", request_id=self._trace.id.decode(), **fields)


def _asked(plan: Plan) -> dict[str, Any]:
    body = plan.encoded.body
    given = body.get("messages") or body.get("input")
    tools = body.get("tools")
    return {
        "provider": plan.target.provider.name,
        "model": plan.target.model,
        "surface": plan.surface,
        "lane": plan.lane,
        "stream": plan.stream,
        "bytes": len(plan.payload),
        "messages": len(given) if isinstance(given, list) else int(given is not None),
        "tools": len(tools) if isinstance(tools, list) else 0,
    }


def _answered(trace: Trace, outcome: Outcome) -> dict[str, Any]:
    error = outcome.error
    return {
        "status": outcome.status or None,
        "continuation_count": trace.continuations,
        "rate_limits": trace.rate_limits() if outcome.status else {},
        "gone": outcome.gone,
        "error_type": None if error is None else error.kind,
        "error_message": None if error is None else str(error)[:MAX_MESSAGE],
    }


def _told(usage: Usage | None) -> dict[str, int] | None:
    if usage is None:
        return None
    names = ("input", "output", "cached", "cache_write", "reasoning")
    return {f"{name}_tokens": getattr(usage, name) for name in names}
