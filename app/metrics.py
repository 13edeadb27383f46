"""Counters of what the service does, as Prometheus reads them: `GET /metrics`.

Every label has few values: routes, providers and statuses are ours or the configuration's, kinds are words
of the code. A model's name is never one (a client can make up as many as it likes).

Several workers share one folder (`PROMETHEUS_MULTIPROC_DIR`, which the parent sets before it forks), so that
whichever of them is asked tells the sum; what a worker counted that has died stays counted. The library
reads that variable when it is imported, so this module is imported by the process that counts, not before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from .trace import Trace

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second line for every counter, read by nobody


class Metrics:
    """The counters of one application."""

    content_type = CONTENT_TYPE_PLAIN_0_0_4.encode()

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        shared = os.environ.get(SHARED_FOLDER)
        if shared:
            MultiProcessCollector(self._registry, shared)  # type: ignore[no-untyped-call]
        kept = None if shared else self._registry
        self._requests = _Counts("requests", "Requests answered.", ("route", "lane", "status"), kept)
        self._dropped = _Counts(
            "dropped", "Parts of requests that a backend did not get.", ("provider", "kind"), kept
        )
        self._repairs = _Counts(
            "repairs", "Parts of requests that were mended.", ("provider", "site", "kind"), kept
        )
        self._violations = _Counts(
            "stream_violations", "Faults of our own streams that were mended.", ("kind",), kept
        )
        self._learned = _Counts(
            "rejections_learned", "Fields a backend was found not to take.", ("provider",), kept
        )
        self._retries = _Counts("retries", "Requests sent to a backend again.", ("provider",), kept)
        self._input = _Counts("input_tokens", "Tokens of requests, as backends count.", ("provider",), kept)
        self._spent = _Counts(
            "backend_seconds", "Time that local backends say a reply took.", ("provider", "phase"), kept
        )
        self._output = _Counts("output_tokens", "Tokens of replies, as backends count.", ("provider",), kept)

    def exchange(self, route: str, trace: Trace) -> None:
        """Count one exchange that has ended."""
        self._requests.add(1, route, trace.lane, str(trace.status))
        if not trace.target:
            return
        provider = trace.target.partition("/")[0]
        usage = trace.usage
        if usage is not None:
            self._input.add(usage.input, provider)
            self._output.add(usage.output, provider)
            for phase, seconds in (usage.seconds or {}).items():
                self._spent.add(seconds, provider, phase)
        for loss in trace.losses:
            self._dropped.add(1, provider, loss.kind)
        for repair in trace.repairs:
            self._repairs.add(1, provider, repair.site, repair.kind)
        for kind, times in trace.violations.items():
            self._violations.add(times, kind)
        self._retries.add(trace.retries, provider)
        self._learned.add(trace.learned, provider)

    def text(self) -> bytes:
        """The counters in Prometheus' text format, version 0.0.4."""
        return generate_latest(self._registry)


class _Counts:
    """A counter and its children by their labels' values: finding one costs more than counting."""

    def __init__(
        self, name: str, meaning: str, labels: Sequence[str], registry: CollectorRegistry | None
    ) -> None:
        self._counter = Counter(f"dragoman_{name}", meaning, labels, registry=registry)
        self._children: dict[tuple[str, ...], Counter] = {}

    def add(self, amount: float, *labels: str) -> None:
        """Nothing for an amount that counts nothing: backends have told negative tokens."""
        if amount <= 0:
            return
        child = self._children.get(labels)
        if child is None:
            child = self._children[labels] = self._counter.labels(*labels)
        child.inc(amount)
