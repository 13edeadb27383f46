"""What is sent to a receiver and what becomes of it, in this process."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Iterator

import orjson
import pytest

from app.telemetry import log, otel
from app.telemetry.otel import OpenTelemetry
from app.telemetry.telemetry import open_telemetry, open_watch
from app.telemetry.trace import Trace
from config.schema import Telemetry
from tests.backends.otlp import OtlpReceiver


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtlpReceiver]:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "30")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with OtlpReceiver() as found:
        yield found


def opened(receiver: OtlpReceiver, **environ: str) -> OpenTelemetry:
    found = open_telemetry(Telemetry(endpoint=receiver.address + "/"), environ)
    assert isinstance(found, OpenTelemetry)
    return found


def note(telemetry: OpenTelemetry) -> None:
    trace = Trace(b"r1", "RUN it", target="p/m", status=200)
    telemetry.begin(trace, "run").end(trace)


@pytest.mark.usefixtures("log_as_before")
async def test_a_receiver_that_goes_and_comes_is_told_once_each(receiver: OtlpReceiver) -> None:
    file = io.BytesIO()
    log.configure(log.LEVELS["info"], [], file)

    def said(event: str) -> list[str]:
        lines = [orjson.loads(line) for line in file.getvalue().splitlines()]
        return [line["signal"] for line in lines if line["event"] == event]

    telemetry = opened(receiver, OTEL_METRICS_EXPORTER="none")
    assert telemetry.trouble is None
    receiver.status = 400
    for _ in range(3):
        note(telemetry)
        await asyncio.sleep(0.08)
    receiver.wait_for(lambda: said("telemetry_down"))
    assert said("telemetry_down") == ["traces"]
    assert telemetry.trouble == "the receiver takes no traces"
    receiver.status = 200
    note(telemetry)
    receiver.wait_for(lambda: said("telemetry_up"))
    assert (said("telemetry_up"), telemetry.trouble) == (["traces"], None)
    await telemetry.aclose()
    assert [span.name for span in receiver.spans()][-1] == "RUN run"


async def test_what_is_left_is_sent_at_the_end(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "60000")
    telemetry = opened(receiver)
    note(telemetry)
    await telemetry.aclose()
    assert len(receiver.spans()) == 1
    assert not list(receiver.metrics())  # an exchange that came from nowhere and asked nobody has no metric


async def test_a_receiver_that_hangs_does_not_hold_up_the_end(
    receiver: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel, "FLUSH_S", 0.1)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "30")
    receiver.hang_s = 1
    telemetry = opened(receiver, OTEL_METRICS_EXPORTER="none")
    note(telemetry)
    began = time.monotonic()
    await telemetry.aclose()
    assert time.monotonic() - began < 0.9
    receiver.wait_for(receiver.spans)


async def test_an_exchange_that_is_not_traced_is_measured_all_the_same(receiver: OtlpReceiver) -> None:
    telemetry = opened(receiver, OTEL_TRACES_EXPORTER="none")
    trace = Trace(b"r1", "GET /metrics", status=200)
    exchange = telemetry.begin(trace, "/metrics")
    assert exchange.trace_id == ""
    exchange.end(trace)
    assert open_watch(Telemetry(), telemetry, log.LEVELS["info"], {}) is not None
    await telemetry.aclose()
    assert receiver.spans() == []
