"""A receiver of OTLP over HTTP: takes traces and metrics, and keeps them decoded."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class OtlpReceiver:
    """Use it as a context manager; `status` is what it answers."""

    def __init__(self) -> None:
        self.status = 200
        self.hang_s = 0.0
        self.headers: list[dict[str, str]] = []
        self._traces: list[ExportTraceServiceRequest] = []
        self._metrics: list[ExportMetricsServiceRequest] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
                time.sleep(receiver.hang_s)
                if receiver.status == 200:
                    receiver._take(self.path, body)
                self.send_response(receiver.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            self._traces.append(ExportTraceServiceRequest.FromString(body))
        elif path == "/v1/metrics":
            self._metrics.append(ExportMetricsServiceRequest.FromString(body))

    def spans(self) -> list[Span]:
        return [
            span
            for request in self._traces
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def resources(self) -> list[dict[str, Any]]:
        return [
            attributes(each.resource.attributes)
            for request in self._traces
            for each in request.resource_spans
        ]

    def metrics(self) -> Iterator[Metric]:
        for request in self._metrics:
            for resource in request.resource_metrics:
                for scope in resource.scope_metrics:
                    yield from scope.metrics

    def wait_for(self, found: Callable[[], Any], seconds: float = 15) -> Any:
        """What `found` gives, once it is something."""
        end = time.monotonic() + seconds
        while not (value := found()) and time.monotonic() < end:
            time.sleep(0.02)
        return value


def attributes(pairs: Any) -> dict[str, Any]:
    """OTLP's key-value pairs as a dict."""
    return {each.key: _value(each.value) for each in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)
