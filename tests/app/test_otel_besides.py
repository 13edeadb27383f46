"""Traces of what is no plain request: runs in the background, WebSockets, replies that are asked to go on."""

from __future__ import annotations

import time

from opentelemetry.trace import SpanKind

from tests.app.conftest import Serve, provider
from tests.app.sockets import Talk
from tests.app.traced import Seen
from tests.backends.replies import (
    chat_chunk,
    chat_stream,
    sse_reply,
    usage_chunk,
)
from tests.backends.scripted import ScriptedBackend


def test_a_background_run_belongs_to_its_requests_trace(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply(chat_stream("done")))
    seen = Seen(serve(fresh=True, providers=[provider(scripted)], store={"kind": "memory"}))
    ask = {"model": "p/m", "input": "hi", "background": True}
    with seen.served.client(headers={"traceparent": f"00-{7:032x}-{9:016x}-01"}) as client:
        id = client.post("/v1/responses", json=ask).json()["id"]
        while client.get(f"/v1/responses/{id}").json()["status"] in ("queued", "in_progress"):
            time.sleep(0.02)
    (call,), (run,) = seen.spans(), seen.spans(SpanKind.INTERNAL)
    asked = seen.spans(SpanKind.SERVER)[0]
    assert (run.name, asked.name) == ("RUN background", "POST /responses")
    assert run.parent is not None
    assert call.parent is not None
    assert asked.context is not None
    assert run.context is not None
    assert (run.parent.span_id, call.parent.span_id) == (asked.context.span_id, run.context.span_id)
    assert call.context is not None
    assert call.context.trace_id == 7


def test_a_response_over_a_websocket(serve: Serve, scripted: ScriptedBackend) -> None:
    seen = Seen(serve(fresh=True, providers=[provider(scripted)], store={"kind": "off"}))
    with Talk(seen.served) as talk:
        talk.turn(input="hi")
        talk.turn(input="and?")
    calls, asked = seen.spans(), seen.spans(SpanKind.SERVER)
    assert [span.name for span in asked] == ["WEBSOCKET /responses"] * 2
    parents = [call.parent.span_id for call in calls if call.parent is not None]
    assert parents == [span.context.span_id for span in asked if span.context is not None]
    assert not seen.points("http.server.request.duration")


def test_a_reply_that_is_asked_to_go_on_carries_the_trace(serve: Serve, scripted: ScriptedBackend) -> None:
    cut = [chat_chunk({"content": "one "}), chat_chunk({}, "length"), usage_chunk(), "[DONE]"]
    scripted.play(sse_reply(cut), sse_reply(chat_stream("two")))
    going_on = {"answer": {"continuations": 2}}
    seen = Seen(serve(fresh=True, providers=[provider(scripted, overrides=going_on)]))
    with seen.served.client() as client:
        client.post("/v1/responses", json={"model": "p/m", "input": "hi", "stream": True, "store": False})
    (call,) = seen.spans()
    assert call.context is not None
    sent = {request.headers["traceparent"].split("-")[2] for request in scripted.requests}
    assert (len(scripted.requests), sent) == (2, {f"{call.context.span_id:016x}"})
    assert call.attributes is not None
    assert call.attributes["gen_ai.response.finish_reasons"] == ("stop",)
