"""A gateway whose traces and measurements stay in memory."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from app.telemetry.otel import OpenTelemetry
from app.telemetry.otel_sdk import Sdk
from app.telemetry.watch import Watch
from config.schema import Telemetry
from tests.app.conftest import Served


class Seen:
    """What a gateway told OpenTelemetry."""

    def __init__(self, served: Served, environ: dict[str, str] | None = None) -> None:
        self._memory, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        sdk = Sdk(Resource.create({}), SimpleSpanProcessor(self._memory), self._reader)
        served.gateway.watch = Watch([OpenTelemetry(Telemetry(), environ or {}, sdk)])
        self.served = served

    def spans(self, kind: SpanKind = SpanKind.CLIENT) -> list[ReadableSpan]:
        self.served.again()
        found = [span for span in self._memory.get_finished_spans() if span.kind is kind]
        return sorted(found, key=lambda span: span.start_time or 0)

    def points(self, name: str) -> list[Any]:
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def names(self) -> set[str]:
        data = self._reader.get_metrics_data()
        assert data is not None
        return {m.name for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics}
