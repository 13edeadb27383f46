"""Traces and metrics of a real process at a real receiver."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.app.conftest import provider
from tests.backends.gateway import Gateway, config_text
from tests.backends.otlp import OtlpReceiver, attributes
from tests.backends.replies import chat_completion, chat_stream, json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
CONTEXT = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "vendor=abc"}
FAST = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_METRIC_EXPORT_INTERVAL": "100"}
CHAT: dict[str, Any] = {"model": "p/m", "messages": [{"role": "user", "content": "the secret plan"}]}


def config(backend: ScriptedBackend, telemetry: str = "") -> str:
    return config_text([provider(backend)]) + telemetry


def of_kind(receiver: OtlpReceiver, kind: int) -> list[Any]:
    return [span for span in receiver.spans() if span.kind == kind]


SERVER, CLIENT = 2, 3


def test_a_call_is_traced_from_the_client_to_the_backend(tmp_path: Path, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply(chat_stream("a private answer")))
    with OtlpReceiver() as receiver:
        told = f'\n[telemetry]\nendpoint = "{receiver.address}"\nheaders = {{x-key = "the-otlp-key"}}\n'
        with Gateway(tmp_path, config(scripted, told), env=FAST) as gateway, gateway.client() as client:
            reply = client.post("/v1/chat/completions", json={**CHAT, "stream": True}, headers=CONTEXT)
            assert reply.status_code == 200
            (server,) = receiver.wait_for(lambda: of_kind(receiver, SERVER))
            (call,) = of_kind(receiver, CLIENT)
            names = receiver.wait_for(lambda: {metric.name for metric in receiver.metrics()})
        line = next(line for line in gateway.log().splitlines() if '"event":"request"' in line)
    assert server.trace_id.hex() == call.trace_id.hex() == orjson.loads(line)["trace_id"] == TRACE
    assert (server.parent_span_id.hex(), call.parent_span_id) == (PARENT, server.span_id)
    sent = scripted.requests[0].headers
    assert sent["traceparent"] == f"00-{TRACE}-{call.span_id.hex()}-01"
    assert sent["tracestate"] == "vendor=abc"
    assert server.name == "POST /chat/completions"
    assert call.name == "chat m"
    found = attributes(call.attributes)
    assert found["gen_ai.response.finish_reasons"] == ["stop"]
    assert found["gen_ai.usage.output_tokens"] == 7
    assert receiver.resources()[0]["service.name"] == "dragoman"
    assert {"gen_ai.client.operation.duration", "gen_ai.client.token.usage"} <= names
    assert all(each["x-key"] == "the-otlp-key" for each in receiver.headers)
    everything = repr(receiver.spans())
    assert "secret plan" not in everything
    assert "private answer" not in everything
    assert "the-otlp-key" not in gateway.log()


def test_the_standard_variables_are_enough(tmp_path: Path, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply(chat_completion("hi")))
    with OtlpReceiver() as receiver:
        env = {
            **FAST,
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.address,
            "OTEL_SERVICE_NAME": "front door",
            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
            "OTEL_METRICS_EXPORTER": "none",
        }
        with Gateway(tmp_path, config(scripted), env=env) as gateway, gateway.client() as client:
            assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
            receiver.wait_for(lambda: of_kind(receiver, SERVER))
    (resource,) = receiver.resources()[:1]
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("front door", "test")
    assert not list(receiver.metrics())


def test_they_can_be_switched_off(tmp_path: Path, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply(chat_completion("hi")))
    with OtlpReceiver() as receiver:
        env = {**FAST, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.address, "OTEL_SDK_DISABLED": "true"}
        with Gateway(tmp_path, config(scripted), env=env) as gateway, gateway.client() as client:
            assert client.post("/v1/chat/completions", json=CHAT, headers=CONTEXT).status_code == 200
            time.sleep(0.3)
        assert receiver.headers == []
    assert "traceparent" not in scripted.requests[0].headers


def test_what_is_left_is_sent_at_the_end_by_every_worker(tmp_path: Path, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply(chat_completion("hi")))
    with OtlpReceiver() as receiver:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.address}  # every five seconds
        arguments = ("--workers", "2")
        with Gateway(tmp_path, config(scripted), env=env, arguments=arguments) as gateway:
            for _ in range(12):
                with gateway.client() as client:
                    assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
            assert gateway.stop() == 0
        assert len(of_kind(receiver, SERVER)) == 12
        instances = {each["service.instance.id"] for each in receiver.resources()}
    assert 1 <= len(instances) <= 2


@pytest.mark.parametrize("trouble", ["nobody listens", "it refuses", "it hangs"])
def test_a_receiver_in_trouble_hurts_nobody(trouble: str, tmp_path: Path, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply(chat_completion("hi")))
    with OtlpReceiver() as receiver:
        receiver.status = 400
        receiver.hang_s = 60 if trouble == "it hangs" else 0
        address = "http://127.0.0.1:9" if trouble == "nobody listens" else receiver.address
        env = {**FAST, "OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
        with Gateway(tmp_path, config(scripted), env=env) as gateway, gateway.client() as client:
            for _ in range(5):
                began = time.monotonic()
                assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
                assert time.monotonic() - began < 1
            receiver.wait_for(lambda: "telemetry_down" in gateway.log())
            ready = client.get("/ready")
            began = time.monotonic()
            assert gateway.stop() == 0
            assert time.monotonic() - began < 8
        assert gateway.log().count('"telemetry_down"') <= 2  # traces and metrics, each once
        assert ready.status_code == 200
        assert "receiver" in ready.json()["not_ready"]["telemetry"]
