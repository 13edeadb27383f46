"""Traces and metrics for OpenTelemetry, sent by threads of its SDK over OTLP/HTTP.

A span for each exchange (SERVER) and below it one for each request to a backend (CLIENT), so that retries and
fallbacks can be seen. W3C trace context comes in with the client's headers and goes out with ours. The event
loop only notes: what is noted waits in a queue with a bound, and is lost when its receiver is gone for long.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, format_trace_id, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from config.schema import Telemetry as Settings
from providers.http import OUTGOING

from . import otel_names as names
from .otel_metrics import Instruments
from .otel_sdk import Sdk
from .watch import Outcome

if TYPE_CHECKING:
    from ..plan import Plan
    from .trace import Trace

FLUSH_S = 3.0
"""How long the end of the process waits for what was not sent yet."""
UNTRACED = ("/metrics", "/events")
"""Paths whose requests belong to no work: a scrape each quarter of a minute would be most of the spans."""
BACKGROUND = "background"
"""Where runs that outlive their request are counted."""
_PROPAGATOR = TraceContextTextMapPropagator()


class OpenTelemetry:
    """What looks at exchanges for OpenTelemetry."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], sdk: Sdk | None = None) -> None:
        self._sdk = Sdk.over_otlp(settings, environ) if sdk is None else sdk
        self._latest = "gen_ai_latest_experimental" in environ.get("OTEL_SEMCONV_STABILITY_OPT_IN", "")
        self._tracer = self._sdk.tracer
        self._instruments = Instruments(self._sdk.meter, self._latest)

    @property
    def trouble(self) -> str | None:
        return self._sdk.trouble

    def begin(self, trace: Trace, name: str) -> _Exchange:
        if name in UNTRACED:
            return _Exchange(None, name, self._tracer, self._instruments, self._latest)
        came = trace.arrival
        context = Context()
        attributes: names.Attributes = {"http.route": name, "dragoman.request_id": trace.id.decode()}
        if came is not None:
            carrier = {"traceparent": came.traceparent, "tracestate": came.tracestate}
            context = _PROPAGATOR.extract(carrier, context)
            if came.user_agent:
                attributes["user_agent.original"] = came.user_agent
            if came.method:
                attributes |= {
                    "http.request.method": came.method,
                    "url.path": came.path,
                    "url.scheme": came.scheme,
                    "network.protocol.version": came.version,
                }
        called = f"{trace.route.partition(' ')[0]} {name}"
        kind = SpanKind.INTERNAL if name == BACKGROUND else SpanKind.SERVER
        span = self._tracer.start_span(called, context, kind, attributes)
        return _Exchange(span, name, self._tracer, self._instruments, self._latest)

    async def aclose(self) -> None:
        """In a thread that nobody waits for: a receiver that hangs must not hold up the end."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def close() -> None:
            self._sdk.close()
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=close, daemon=True, name="telemetry-end").start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_S):
                await done.wait()


class _Exchange:
    """One exchange; without a span it is only measured."""

    def __init__(
        self, span: Span | None, name: str, tracer: Any, instruments: Instruments, latest: bool
    ) -> None:
        self._span, self._name, self._tracer = span, name, tracer
        self._instruments, self._latest = instruments, latest
        self._operation: names.Attributes = {}
        self.trace_id = "" if span is None else format_trace_id(span.get_span_context().trace_id)
        self.traceparent = "" if span is None else _carrier(span).get("traceparent", "")

    @contextmanager
    def attempt(self, plan: Plan, outcome: Outcome) -> Iterator[None]:
        trace, began = plan.request.trace, time.perf_counter()
        attributes = names.asked(plan, trace.attempts + 1, trace.retries)
        self._operation = {key: attributes[key] for key in ("gen_ai.operation.name", "gen_ai.provider.name")}
        kind = SpanKind.CLIENT if plan.target.provider.origin else SpanKind.INTERNAL
        parent = Context() if self._span is None else set_span_in_context(self._span, Context())
        called = f"{attributes['gen_ai.operation.name']} {plan.target.model}"
        span = self._tracer.start_span(called, parent, kind, attributes)
        token, before = OUTGOING.set(_carrier(span)), trace.usage
        try:
            yield
        finally:
            OUTGOING.reset(token)
            usage = trace.usage if trace.usage is not before else None
            first = trace.first_byte
            chunk_s = first - began if plan.request.stream and first is not None and first > began else None
            self._ended(span, outcome, usage, chunk_s)
            self._instruments.attempt(attributes, outcome, usage, time.perf_counter() - began, chunk_s)

    def _ended(self, span: Span, outcome: Outcome, usage: Any, chunk_s: float | None) -> None:
        found = names.answered(outcome, usage, self._latest)
        if chunk_s is not None:
            found["gen_ai.response.time_to_first_chunk"] = chunk_s
        span.set_attributes(found)
        if "error.type" in found:  # no description: a backend's words may quote the conversation
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def received(self, raw: bytes, headers: Mapping[bytes, bytes]) -> None:
        """A trace holds nothing of what is said."""

    def sent(self, message: MutableMapping[str, Any]) -> None: ...

    def read(self, data: bytes) -> None: ...

    def end(self, trace: Trace) -> None:
        span = self._span
        if span is not None:
            span.set_attributes(_exchange(trace))
            if trace.status >= 500 or (trace.error is not None and trace.error.http_status >= 500):
                span.set_status(Status(StatusCode.ERROR))
            span.end()
        self._instruments.exchange(self._name, trace, self._operation)


def _carrier(span: Span) -> dict[str, str]:
    """W3C trace context of what a span causes: `traceparent`, and `tracestate` if there is any."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier, set_span_in_context(span, Context()))
    return carrier


def _exchange(trace: Trace) -> names.Attributes:
    found: names.Attributes = {"http.response.status_code": trace.status, "dragoman.attempts": trace.attempts}
    if trace.model:
        found |= {"gen_ai.request.model": trace.model[:256], "gen_ai.request.stream": trace.stream}
    told = {"target": trace.target, "lane": trace.lane, "source": trace.route_source, "key": trace.key}
    found |= {f"dragoman.{name}": value for name, value in told.items() if value}
    counts = {"dragoman.dropped": len(trace.losses), "dragoman.repairs": len(trace.repairs)}
    found |= {name: value for name, value in counts.items() if value}
    if trace.cost is not None:
        found["dragoman.cost_usd"] = trace.cost
    if trace.error is not None:
        found["error.type"] = trace.error.kind
    return found
