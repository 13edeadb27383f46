"""The parts of OpenTelemetry's SDK, put together: who sends what where, and how that goes."""

from __future__ import annotations

import io
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import requests
import structlog
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    MetricExporter,
    MetricExportResult,
    MetricReader,
    MetricsData,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from requests.adapters import HTTPAdapter

from config.schema import Telemetry as Settings

SCOPE = "dragoman"
_QUIET = ("opentelemetry.exporter", "opentelemetry.sdk.metrics._internal.export", "urllib3.connectionpool")
"""Loggers of libraries that tell of every failed export; `telemetry_down` does so once."""

MOST_ANSWER_BYTES = 4096
"""Of what a receiver says besides its status, which nobody reads; it is taken for the connection's sake."""
ANSWER_S = 10.0
"""For all of it; the library's own time is one for each read."""
_SIGNER = "OTEL_PYTHON_EXPORTER_OTLP_HTTP{}_CREDENTIAL_PROVIDER"
"""Names the session that the library is to use."""

_log = structlog.get_logger("dragoman.telemetry")


class _Brief(HTTPAdapter):
    """Takes little of an answer: the library would read a receiver that sends without end into memory."""

    def send(
        self, request: requests.PreparedRequest, stream: bool = False, *rest: Any, **more: Any
    ) -> requests.Response:
        answer = super().send(request, True, *rest, **more)
        until = time.monotonic() + ANSWER_S
        for _ in range(MOST_ANSWER_BYTES):
            if not answer.raw.read(1):
                break  # its connection may be used again
            if time.monotonic() >= until:
                answer.raw.close()
        else:
            answer.raw.close()
        answer.raw = io.BytesIO()
        return answer


class Receiver:
    """Whether one signal reaches its receiver; told by the threads that send."""

    def __init__(self, signal: str) -> None:
        self.signal = signal
        self.down = False

    def told(self, arrived: bool) -> None:
        if arrived == (not self.down):
            return
        self.down = not arrived
        if self.down:
            _log.warning("telemetry_down", signal=self.signal)
        else:
            _log.info("telemetry_up", signal=self.signal)


class _Spans(SpanExporter):
    def __init__(self, exporter: SpanExporter, receiver: Receiver) -> None:
        self._exporter, self._told = exporter, receiver.told

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        self._told(result is SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class _Metrics(MetricExporter):
    def __init__(self, exporter: OTLPMetricExporter, receiver: Receiver) -> None:
        super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)
        self._exporter, self._told = exporter, receiver.told

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object
    ) -> MetricExportResult:
        result = self._exporter.export(metrics_data, timeout_millis)
        self._told(result is MetricExportResult.SUCCESS)
        return result

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        self._exporter.shutdown(timeout_millis)


class Sdk:
    """A tracer and a meter of one process; nothing of it is global."""

    def __init__(
        self,
        resource: Resource,
        spans: SpanProcessor | None,
        metrics: MetricReader | None,
        receivers: Sequence[Receiver] = (),
    ) -> None:
        self._receivers = receivers
        tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
        if spans is not None:
            tracing.add_span_processor(spans)
        metering = MeterProvider([] if metrics is None else [metrics], resource, shutdown_on_exit=False)
        self.tracer = tracing.get_tracer(SCOPE, version(SCOPE))
        self.meter = metering.get_meter(SCOPE, version(SCOPE))
        self._ends: Sequence[Callable[[], None]] = (tracing.shutdown, metering.shutdown)

    @classmethod
    def over_otlp(cls, settings: Settings, environ: Mapping[str, str]) -> Sdk:
        """Its threads run from now on: make it in the process that uses it."""
        for name in _QUIET:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        _warn_of_protocol(environ)
        headers = {name: value.get_secret_value() for name, value in settings.headers.items()} or None
        base = settings.endpoint and settings.endpoint.rstrip("/")
        spans: SpanProcessor | None = None
        metrics: MetricReader | None = None
        receivers = traces, metering = Receiver("traces"), Receiver("metrics")
        if _sends("TRACES", settings, environ):
            session = _session("TRACES", environ)
            exporter = OTLPSpanExporter(base and f"{base}/v1/traces", headers=headers, session=session)
            spans = BatchSpanProcessor(_Spans(exporter, traces))
        if _sends("METRICS", settings, environ):
            session = _session("METRICS", environ)
            sender = OTLPMetricExporter(base and f"{base}/v1/metrics", headers=headers, session=session)
            metrics = PeriodicExportingMetricReader(_Metrics(sender, metering))
        return cls(resource(settings, environ), spans, metrics, receivers)

    @property
    def trouble(self) -> str | None:
        down = [each.signal for each in self._receivers if each.down]
        return f"the receiver takes no {' and no '.join(down)}" if down else None

    def close(self) -> None:
        """Send what is left; waits for that."""
        for end in self._ends:
            end()


def resource(settings: Settings, environ: Mapping[str, str]) -> Resource:
    """Who we are; `OTEL_RESOURCE_ATTRIBUTES` adds to it."""
    told = {"service.version": version(SCOPE), "service.instance.id": os.urandom(8).hex()}
    named = environ.get("OTEL_SERVICE_NAME") or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if settings.service_name is not None or not named:
        told["service.name"] = settings.service_name or SCOPE
    return Resource.create(told)


def _sends(signal: str, settings: Settings, environ: Mapping[str, str]) -> bool:
    """Whether this signal has somewhere to go, and is not switched off (`OTEL_TRACES_EXPORTER=none`)."""
    if environ.get(f"OTEL_{signal}_EXPORTER", "").strip().lower() == "none":
        return False
    own = f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"
    return settings.endpoint is not None or bool(
        environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or environ.get(own)
    )


def _session(signal: str, environ: Mapping[str, str]) -> requests.Session | None:
    """What a signal is sent by; None: what the environment names for it, however much that reads."""
    if any(environ.get(_SIGNER.format(of)) for of in ("", f"_{signal}")):
        return None
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Brief())
    return session


def _warn_of_protocol(environ: Mapping[str, str]) -> None:
    asked = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    if asked != "http/protobuf":
        reason = "only http/protobuf is spoken, usually on port 4318"
        _log.warning("telemetry_protocol", asked=asked, reason=reason)
