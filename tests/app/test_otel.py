"""What is traced and measured of each exchange, as the SDK gets it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import orjson
import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes, openai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import http_attributes, server_attributes, url_attributes
from opentelemetry.trace import SpanKind, StatusCode

from tests.app.conftest import Serve, provider
from tests.app.traced import Seen
from tests.backends.replies import chat_completion, chat_stream, embeddings, json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend

CHAT: dict[str, Any] = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
DRAFT = {
    "gen_ai.request.reasoning.level",
    "gen_ai.request.previous_response.id",
    "gen_ai.usage.cache_write.input_tokens",
}
"""Attributes of the newer draft, which the package does not have yet."""


@pytest.fixture
def seen(serve: Serve, scripted: ScriptedBackend) -> Seen:
    return Seen(serve(fresh=True, providers=[provider(scripted), provider(scripted, name="q")]))


CALL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "m",
    "gen_ai.request.temperature": 0.5,
    "gen_ai.request.max_tokens": 9,
    "gen_ai.request.seed": 3,
    "gen_ai.request.reasoning.level": "low",
    "gen_ai.output.type": "json",
    "server.address": "127.0.0.1",
    "openai.api.type": "chat_completions",
    "http.response.status_code": 200,
    "gen_ai.usage.input_tokens": 11,
    "gen_ai.usage.output_tokens": 7,
    "gen_ai.usage.cache_read.input_tokens": 4,
    "gen_ai.response.id": "chatcmpl-7",
    "gen_ai.response.model": "m-2025",
    "gen_ai.response.finish_reasons": ("stop",),
    "dragoman.provider": "p",
    "dragoman.surface": "chat",
    "dragoman.lane": "pass",
    "dragoman.attempt": 1,
}
SERVED = {
    "http.request.method": "POST",
    "http.route": "/chat/completions",
    "url.path": "/v1/chat/completions",
    "http.response.status_code": 200,
    "gen_ai.request.model": "p/m",
    "dragoman.target": "p/m",
}


def test_a_call_has_every_attribute_that_is_known(seen: Seen, scripted: ScriptedBackend) -> None:
    body = {**chat_completion("hello", model="m-2025"), "id": "chatcmpl-7"}
    body["usage"] = {**body["usage"], "prompt_tokens_details": {"cached_tokens": 4}}
    scripted.play(json_reply(body))
    tuned = {"temperature": 0.5, "max_completion_tokens": 9, "seed": 3, "reasoning_effort": "low"}
    ask = {**CHAT, **tuned, "response_format": {"type": "json_object"}}
    with seen.served.client() as client:
        assert client.post("/v1/chat/completions", json=ask).status_code == 200
    (call,) = seen.spans()
    (server,) = seen.spans(SpanKind.SERVER)
    assert call.name == "chat m"
    assert call.parent is not None
    assert server.context is not None
    assert call.parent.span_id == server.context.span_id
    assert call.attributes is not None
    assert dict(call.attributes) == {**CALL, "server.port": int(scripted.origin.rpartition(":")[2])}
    assert server.attributes is not None
    assert SERVED.items() <= server.attributes.items()
    assert not server.status.description


def known_names() -> set[str]:
    modules = (gen_ai_attributes, openai_attributes, http_attributes, server_attributes, url_attributes)
    return {value for each in modules for value in vars(each).values() if isinstance(value, str)}


def test_names_are_those_of_the_conventions(seen: Seen, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply(chat_stream("hello")))
    body = {"model": "p/m", "input": "hi", "stream": True, "previous_response_id": None, "n": 2}
    body |= {"reasoning": {"effort": "low"}, "service_tier": "auto", "store": False}
    with seen.served.client() as client:
        client.post("/v1/responses", json=body)
        client.post("/v1/embeddings", json={"model": "p/m", "input": "hi", "dimensions": 4})
    used = {name for span in seen.spans() for name in span.attributes or ()}
    assert {name for name in used if not name.startswith("dragoman.")} <= known_names() | DRAFT | {
        "error.type"
    }
    metrics = {value for value in vars(gen_ai_metrics).values() if isinstance(value, str)}
    assert seen.names() <= metrics | {"http.server.request.duration"}
    assert {"gen_ai.client.operation.duration", "gen_ai.client.token.usage"} <= seen.names()
    assert {
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.server.time_to_first_token",
    } <= seen.names()


def test_a_retry_and_a_fallback_are_spans_of_their_own(serve: Serve, scripted: ScriptedBackend) -> None:
    busy = json_reply({"error": {"message": "the prompt 'hi' is busy"}}, 429, {"retry-after": "0"})
    scripted.play(
        busy, busy, json_reply({"error": {"message": "down"}}, 500), json_reply(chat_completion("x"))
    )
    providers = [provider(scripted), provider(scripted, name="q")]
    served = serve(fresh=True, providers=providers, fallbacks={"p/m": ["q/m"]})
    seen = Seen(served)
    with served.client() as client:
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
    calls = seen.spans()
    told = [
        (
            call.attributes["dragoman.provider"],
            call.attributes["http.response.status_code"],
            call.attributes.get("error.type"),
            call.status.status_code,
        )
        for call in calls
        if call.attributes is not None
    ]
    assert told[0] == ("p", 429, "429", StatusCode.ERROR)
    assert told[-1] == ("q", 200, None, StatusCode.UNSET)
    assert len(told) > 2
    assert len({call.parent.span_id for call in calls if call.parent is not None}) == 1
    contexts = [request.headers["traceparent"].split("-")[2] for request in scripted.requests]
    assert contexts == [f"{call.context.span_id:016x}" for call in calls if call.context is not None]
    assert "the prompt" not in repr([(call.attributes, call.status.description) for call in calls])


def test_a_span_of_a_stream_lasts_as_long_as_it(seen: Seen, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply(chat_stream("one two three"), pause=0.06))
    with seen.served.client() as client:
        client.post("/v1/chat/completions", json={**CHAT, "stream": True})
    (call,), (server,) = seen.spans(), seen.spans(SpanKind.SERVER)
    for span in (call, server):
        assert span.end_time is not None
        assert span.start_time is not None
        assert span.end_time - span.start_time > 0.15e9
    assert call.attributes is not None
    assert 0 < float(str(call.attributes["gen_ai.response.time_to_first_chunk"])) < 0.15
    assert call.attributes["gen_ai.request.stream"] is True


@pytest.mark.parametrize(
    ("end", "kind"), [("cut", "upstream"), ("reset", "upstream")], ids=lambda value: str(value)
)
def test_a_stream_that_breaks_is_an_error(end: Any, kind: str, seen: Seen, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply(chat_stream("one two three")[:3], end=end, pause=0.05))
    with seen.served.client() as client:
        client.post("/v1/chat/completions", json={**CHAT, "stream": True})
    (call,), (server,) = seen.spans(), seen.spans(SpanKind.SERVER)
    assert call.attributes is not None
    assert (call.status.status_code, call.attributes["error.type"]) == (StatusCode.ERROR, kind)
    assert server.status.status_code is StatusCode.ERROR


def test_a_client_that_leaves_is_no_fault_of_the_backend(seen: Seen, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply(chat_stream("a b c d e f g h"), pause=0.3))
    with (
        seen.served.client() as client,
        client.stream("POST", "/v1/chat/completions", json={**CHAT, "stream": True}) as reply,
    ):
        next(reply.iter_raw())
    (call,) = seen.spans()
    (server,) = seen.spans(SpanKind.SERVER)
    assert call.attributes is not None
    assert call.attributes["error.type"] == "cancelled"
    assert server.attributes is not None
    assert server.attributes["http.response.status_code"] == 499


@pytest.mark.parametrize(
    ("body", "status"),
    [({"model": "no-such/x", "messages": []}, StatusCode.UNSET), ({"messages": 3}, StatusCode.UNSET)],
)
def test_a_request_that_asks_nobody_has_one_span(
    body: Any, status: StatusCode, seen: Seen, scripted: ScriptedBackend
) -> None:
    with seen.served.client() as client:
        code = client.post("/v1/chat/completions", json=body).status_code
    (server,) = seen.spans(SpanKind.SERVER)
    assert seen.spans() == []
    assert server.status.status_code is status
    assert server.attributes is not None
    assert server.attributes["http.response.status_code"] == code
    assert "error.type" in server.attributes


def test_embeddings(seen: Seen, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply(embeddings("m", 1)))
    ask = {"model": "p/m", "input": "hi", "dimensions": 4, "encoding_format": "float"}
    with seen.served.client() as client:
        assert client.post("/v1/embeddings", json=ask).status_code == 200
    (call,) = seen.spans()
    assert call.name == "embeddings m"
    assert call.attributes is not None
    assert call.attributes["gen_ai.embeddings.dimension.count"] == 4
    assert call.attributes["gen_ai.request.encoding_formats"] == ("float",)


def test_probes_and_scrapes_are_not_traced(seen: Seen) -> None:
    with seen.served.client() as client:
        for path in ("/health", "/ready", "/metrics"):
            client.get(path)
        client.get("/v1/models")
    assert [span.name for span in seen.spans(SpanKind.SERVER)] == ["GET /models"]


def test_an_odd_trace_context_begins_a_new_trace(seen: Seen) -> None:
    with seen.served.client() as client:
        client.get("/v1/models", headers={"traceparent": "00-zz-1-1", "tracestate": "=,="})
    (server,) = seen.spans(SpanKind.SERVER)
    assert server.parent is None


def test_tokens_and_times_are_measured_with_the_buckets_of_the_conventions(
    seen: Seen, scripted: ScriptedBackend
) -> None:
    scripted.play(json_reply(chat_completion("hi")))
    with seen.served.client() as client:
        for _ in range(3):
            client.post("/v1/chat/completions", json=CHAT)
    seen.spans()
    tokens = {
        point.attributes["gen_ai.token.type"]: point for point in seen.points("gen_ai.client.token.usage")
    }
    assert (tokens["input"].sum, tokens["output"].sum, tokens["input"].count) == (33, 21, 3)
    assert tokens["input"].explicit_bounds[:3] == (1, 4, 16)
    (took,) = seen.points("gen_ai.client.operation.duration")
    assert took.explicit_bounds[0] == 0.01
    assert took.attributes["gen_ai.request.model"] == "m"
    assert "gen_ai.response.model" not in took.attributes


def test_models_that_never_answered_share_one_label(seen: Seen, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply({"error": {"message": "no", "code": "x"}}, 400))
    with seen.served.client() as client:
        for number in range(5):
            client.post("/v1/chat/completions", json={**CHAT, "model": f"p/made-up-{number}"})
    seen.spans()
    points = seen.points("gen_ai.client.operation.duration")
    assert {point.attributes["gen_ai.request.model"] for point in points} == {"_other"}


def test_the_newer_names_are_there_for_who_asks(serve: Serve, scripted: ScriptedBackend) -> None:
    body = chat_completion("hi")
    body["usage"] = {**body["usage"], "prompt_tokens_details": {"cache_write_tokens": 5}}
    scripted.play(json_reply(body))
    environ = {"OTEL_SEMCONV_STABILITY_OPT_IN": "http,gen_ai_latest_experimental"}
    seen = Seen(serve(fresh=True, providers=[provider(scripted)]), environ)
    with seen.served.client() as client:
        client.post("/v1/chat/completions", json=CHAT)
    (call,) = seen.spans()
    assert call.attributes is not None
    assert call.attributes["gen_ai.usage.cache_write.input_tokens"] == 5
    assert "gen_ai.client.inference.duration" in seen.names()
    assert "gen_ai.client.operation.duration" not in seen.names()
    (counted,) = seen.points("gen_ai.client.inference.usage.input_tokens")
    assert counted.value == 11


def test_the_log_line_names_the_trace(seen: Seen, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply(chat_completion("hi")))
    with seen.served.client() as client:
        client.post("/v1/chat/completions", json=CHAT)
    deadline = time.monotonic() + 5
    while not seen.served.log() and time.monotonic() < deadline:
        time.sleep(0.005)
    (line,) = seen.served.log()
    (server,) = seen.spans(SpanKind.SERVER)
    assert server.context is not None
    assert line["trace_id"] == f"{server.context.trace_id:032x}"


def test_two_at_a_time_keep_their_own_context(seen: Seen, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply(chat_stream("a b c"), pause=0.05))

    def ask(number: int) -> None:
        trace = f"00-{number:032x}-{number:016x}-01"
        with seen.served.client(headers={"traceparent": trace}) as client:
            client.post("/v1/chat/completions", json={**CHAT, "user": str(number), "stream": True})

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for request in scripted.requests:
        user = int(orjson.loads(request.body)["user"])
        assert request.headers["traceparent"].split("-")[1] == f"{user:032x}"


def test_a_wait_for_the_first_token_that_ends_is_a_timeout(serve: Serve, scripted: ScriptedBackend) -> None:
    reply = sse_reply(chat_stream("late"))
    scripted.play(replace(reply, pieces=[1.0, *reply.pieces]))
    slow = provider(scripted, first_token_timeout_s=0.1)
    seen = Seen(serve(fresh=True, providers=[slow]))
    with seen.served.client() as client:
        assert client.post("/v1/chat/completions", json={**CHAT, "stream": True}).status_code == 504
    (call,) = seen.spans()
    assert call.attributes is not None
    assert call.attributes["error.type"] == "timeout"
