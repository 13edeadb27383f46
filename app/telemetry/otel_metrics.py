"""What is measured for OpenTelemetry, with the buckets that its conventions name."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .labels import Bounded
from .otel_names import Attributes, error_type

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, Meter

    from translators.ir import Usage

    from .trace import Trace
    from .watch import Outcome

SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKENS = tuple(4**power for power in range(14))
FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
HTTP_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)

_KEPT = ("gen_ai.operation.name", "gen_ai.provider.name", "server.address", "server.port")
"""Attributes of an attempt that its metrics have too; the model's name among them is bounded."""

_COUNTED: Mapping[str, str] = {
    "gen_ai.client.inference.usage.input_tokens": "input",
    "gen_ai.client.inference.usage.output_tokens": "output",
    "gen_ai.client.inference.usage.cache_read.input_tokens": "cached",
    "gen_ai.client.inference.usage.cache_write.input_tokens": "cache_write",
    "gen_ai.client.inference.usage.reasoning.output_tokens": "reasoning",
}
"""Counters of the newer conventions, and the counts that they hold."""


class Instruments:
    """`latest`: by the newer conventions' names."""

    def __init__(self, meter: Meter, latest: bool) -> None:
        self._meter, self._models = meter, Bounded()
        kind = "inference" if latest else "operation"
        self._duration = self._histogram(f"gen_ai.client.{kind}.duration", "s", SECONDS)
        self._first_chunk = self._histogram(f"gen_ai.client.{kind}.time_to_first_chunk", "s", SECONDS)
        self._others = self._duration
        if latest:  # what is no inference keeps its name
            self._others = self._histogram("gen_ai.client.operation.duration", "s", SECONDS)
        self._tokens = self._token_instruments(latest)
        self._request = self._histogram("gen_ai.server.request.duration", "s", SECONDS)
        self._first_token = self._histogram("gen_ai.server.time_to_first_token", "s", FIRST_TOKEN)
        self._http = self._histogram("http.server.request.duration", "s", HTTP_SECONDS)

    def _token_instruments(self, latest: bool) -> Sequence[tuple[Any, str, Attributes]]:
        """How a count is recorded: the method, whose count, and the attributes it needs."""
        if not latest:
            usage = self._histogram("gen_ai.client.token.usage", "{token}", TOKENS)
            return [(usage.record, name, {"gen_ai.token.type": name}) for name in ("input", "output")]
        counters: list[tuple[Any, str, Attributes]] = [
            (self._meter.create_counter(name, "{token}").add, count, {"gen_ai.token.modality": "unknown"})
            for name, count in _COUNTED.items()
        ]
        histograms: list[tuple[Any, str, Attributes]] = []
        for count in ("input", "output"):
            name = f"gen_ai.client.inference.operation.{count}_tokens"
            histograms.append((self._histogram(name, "{token}", TOKENS).record, count, {}))
        return [*counters, *histograms]

    def _histogram(self, name: str, unit: str, bounds: Sequence[float]) -> Histogram:
        return self._meter.create_histogram(name, unit, explicit_bucket_boundaries_advisory=bounds)

    def attempt(
        self,
        attributes: Attributes,
        outcome: Outcome,
        usage: Usage | None,
        took_s: float,
        chunk_s: float | None,
    ) -> None:
        about = {key: attributes[key] for key in _KEPT if key in attributes}
        kind = error_type(outcome)
        model = str(attributes["gen_ai.request.model"])
        about["gen_ai.request.model"] = self._models.name(model, kind is None)
        duration = self._others if about["gen_ai.operation.name"] == "embeddings" else self._duration
        duration.record(took_s, about if kind is None else {**about, "error.type": kind})
        if chunk_s is not None:
            self._first_chunk.record(chunk_s, about)
        if usage is not None:
            for record, count, own in self._tokens:
                if (tokens := getattr(usage, count)) > 0:
                    record(tokens, {**about, **own})

    def exchange(self, route: str, trace: Trace, operation: Attributes) -> None:
        took_s = time.perf_counter() - trace.began
        kind = None if trace.error is None else trace.error.kind
        failed: Attributes = {} if kind is None else {"error.type": kind}
        came = trace.arrival
        if came is not None and came.method:
            about: Attributes = {
                "http.request.method": came.method,
                "http.route": route,
                "http.response.status_code": trace.status,
                "url.scheme": came.scheme,
            }
            self._http.record(took_s, {**about, **failed})
        if not operation:
            return
        model = trace.target.partition("/")[2]
        about = {**operation, "gen_ai.request.model": self._models.name(model, kind is None)}
        self._request.record(took_s, {**about, **failed})
        if trace.stream and trace.ttft_s is not None and kind is None:
            self._first_token.record(trace.ttft_s, about)
