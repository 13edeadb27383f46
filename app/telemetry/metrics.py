"""What the service counts and measures, as Prometheus reads it: `GET /metrics`.

Every label has few values: routes, providers and statuses are ours or the configuration's, kinds are words
of the code. Models can be made up by clients: as labels they are bounded (`labels.py`).

Several workers share one folder (`PROMETHEUS_MULTIPROC_DIR`, which the parent sets before it forks), so that
whichever of them is asked tells the sum; what a worker counted that has died stays counted. The library
reads that variable when it is imported, so this module is imported by the process that counts, not before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from .labels import Bounded
from .trace import Trace

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
PREFIX = "dragoman_"

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second line for every counter, read by nobody


class Metric(NamedTuple):
    """One of them; `name` is without the prefix, and of a counter without `_total`."""

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    labels: Sequence[str]
    meaning: str


METRICS: Sequence[Metric] = (
    Metric("requests", "counter", ("route", "lane", "status"), "Requests answered."),
    Metric("requests_in_flight", "gauge", (), "Requests that are being answered."),
    Metric("request_seconds", "histogram", ("model",), "From a request to the end of its answer."),
    Metric("first_byte_seconds", "histogram", ("model",), "From a request to the first of its stream."),
    Metric("dropped", "counter", ("provider", "kind"), "Parts of requests that a backend did not get."),
    Metric("repairs", "counter", ("provider", "site", "kind"), "Parts of requests that were mended."),
    Metric("stream_violations", "counter", ("kind",), "Faults of our own streams that were mended."),
    Metric("rejections_learned", "counter", ("provider",), "Fields a backend was found not to take."),
    Metric("retries", "counter", ("provider",), "Requests sent to a backend again."),
    Metric("backend_failures", "counter", ("provider", "kind"), "Candidates that failed, retries included."),
    Metric("background_runs", "counter", ("status",), "Background responses that came to a status."),
    Metric("concurrency_waits", "counter", ("provider",), "Requests that found no place free at a provider."),
    Metric("continuations", "counter", ("provider",), "Replies cut off that were asked to go on."),
    Metric("chains_invalidated", "counter", ("provider",), "Conversations a backend could not go on from."),
    Metric("events", "counter", ("event",), "Events of the log, by name, as far as its level lets them."),
    Metric("input_tokens", "counter", ("provider",), "Tokens of requests, as backends count."),
    Metric("cached_tokens", "counter", ("provider",), "Those of them that came from a backend's cache."),
    Metric("output_tokens", "counter", ("provider",), "Tokens of replies, as backends count."),
    Metric("reasoning_tokens", "counter", ("provider",), "Those of them that were reasoning."),
    Metric("cost_usd", "counter", ("model",), "US dollars of requests whose price is known."),
    Metric("backend_seconds", "counter", ("provider", "phase"), "Time that local backends say a reply took."),
    Metric("build_info", "gauge", ("version",), "1, and the version as its label."),
)


class Metrics:
    """What one application counts."""

    content_type = CONTENT_TYPE_PLAIN_0_0_4.encode()

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        shared = os.environ.get(SHARED_FOLDER)
        if shared:
            MultiProcessCollector(self._registry, shared)  # type: ignore[no-untyped-call]
        kept = None if shared else self._registry
        counters = [each for each in METRICS if each.kind == "counter"]
        self._counts = {each.name: _Counts(each, kept) for each in counters}
        self._models = Bounded()
        self._seconds, self._first_byte = (_Times(each, kept) for each in METRICS if each.kind == "histogram")
        self._in_flight = Gauge(
            f"{PREFIX}requests_in_flight",
            _meaning("requests_in_flight"),
            registry=kept,
            multiprocess_mode="livesum",
        )
        info = Gauge(
            f"{PREFIX}build_info",
            _meaning("build_info"),
            ("version",),
            registry=kept,
            multiprocess_mode="max",
        )
        info.labels(version("dragoman")).set(1)

    def exchange(self, route: str, trace: Trace) -> None:
        """Count one exchange that has ended."""
        counts = self._counts
        counts["requests"].add(1, route, trace.lane, str(trace.status))
        if not trace.target:
            return
        provider = trace.provider
        self._times(trace)
        if trace.usage is not None:
            self._usage(trace, provider)
        for loss in trace.losses:
            counts["dropped"].add(1, provider, loss.kind)
        for repair in trace.repairs:
            counts["repairs"].add(1, provider, repair.site, repair.kind)
        for kind, times in trace.violations.items():
            counts["stream_violations"].add(times, kind)
        if trace.attempts > 1 or trace.error is not None or trace.waits:
            self._troubles(trace, provider)

    def event(self, name: str) -> None:
        """Count an event of the log; `name` is a word of the code."""
        self._counts["events"].add(1, name)

    def in_flight(self, count: int) -> None:
        """How many requests this process is answering."""
        self._in_flight.set(count)

    def run_status(self, status: str) -> None:
        """Count a background run that has come to `status`."""
        self._counts["background_runs"].add(1, status)

    def text(self) -> bytes:
        """All of it in Prometheus' text format, version 0.0.4."""
        return generate_latest(self._registry)

    def _times(self, trace: Trace) -> None:
        answered = trace.error is None and trace.status < 400
        model = self._models.name(trace.target, answered)
        self._seconds.add(time.perf_counter() - trace.began, model)
        if trace.cost is not None:
            self._counts["cost_usd"].add(trace.cost, model)
        first = trace.ttft_s
        if trace.stream and answered and first is not None:
            self._first_byte.add(first, model)

    def _usage(self, trace: Trace, provider: str) -> None:
        counts, usage = self._counts, trace.usage
        if usage is None:
            return
        counts["input_tokens"].add(usage.input, provider)
        counts["output_tokens"].add(usage.output, provider)
        if usage.cached:
            counts["cached_tokens"].add(usage.cached, provider)
        if usage.reasoning:
            counts["reasoning_tokens"].add(usage.reasoning, provider)
        for phase, seconds in (usage.seconds or {}).items():
            counts["backend_seconds"].add(seconds, provider, phase)

    def _troubles(self, trace: Trace, provider: str) -> None:
        """What most requests have none of."""
        counts = self._counts
        counts["retries"].add(trace.retries, provider)
        counts["rejections_learned"].add(trace.learned, provider)
        counts["concurrency_waits"].add(trace.waits, provider)
        counts["continuations"].add(trace.continuations, provider)
        counts["chains_invalidated"].add(trace.chain_invalidated, provider)
        for tried in trace.tries:
            if tried["outcome"] != "ok":
                counts["backend_failures"].add(1, tried["target"].partition("/")[0], tried["outcome"])


def _meaning(name: str) -> str:
    return next(each.meaning for each in METRICS if each.name == name)


class _Counts:
    """A counter and its children by their labels' values: finding one costs more than counting."""

    def __init__(self, metric: Metric, registry: CollectorRegistry | None) -> None:
        self._counter = Counter(PREFIX + metric.name, metric.meaning, metric.labels, registry=registry)
        self._children: dict[tuple[str, ...], Counter] = {}

    def add(self, amount: float, *labels: str) -> None:
        """Nothing for an amount that counts nothing: backends have told negative tokens."""
        if amount <= 0:
            return
        child = self._children.get(labels)
        if child is None:
            child = self._children[labels] = self._counter.labels(*labels)
        child.inc(amount)


class _Times:
    """The same for a histogram of seconds with one label."""

    def __init__(self, metric: Metric, registry: CollectorRegistry | None) -> None:
        self._histogram = Histogram(
            PREFIX + metric.name, metric.meaning, metric.labels, registry=registry, buckets=SECONDS
        )
        self._children: dict[str, Histogram] = {}

    def add(self, seconds: float, label: str) -> None:
        child = self._children.get(label)
        if child is None:
            child = self._children[label] = self._histogram.labels(label)
        child.observe(seconds)
