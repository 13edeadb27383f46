"""What is counted and told of repairs and losses, over a real gateway."""

from __future__ import annotations

from typing import Any

from tests.app.conftest import Serve
from tests.app.test_pipeline import provider
from tests.backends.loopback import Reply, Request
from tests.backends.replies import chat_stream, json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend

BROKEN: list[dict[str, Any]] = [
    {"role": "user", "content": "hi"},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    {"role": "user", "content": "and?"},
]


def test_a_repair_and_a_loss_are_told_and_counted_once(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(fresh=True, providers=[provider(scripted)])
    with served.client() as client:
        ask = {"model": "p/m", "input": BROKEN, "metadata": {"a": "b"}}
        assert client.post("/v1/responses", json=ask).headers["x-dragoman-repairs"] == "1"
        shown = client.get("/metrics")
    assert shown.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = shown.text.splitlines()
    assert 'dragoman_requests_total{lane="translate",route="/responses",status="200"} 1.0' in lines
    assert 'dragoman_dropped_total{kind="bookkeeping",provider="p"} 1.0' in lines
    wanted = 'dragoman_repairs_total{kind="missing_result",provider="p",site="message_level"} 1.0'
    assert wanted in lines
    (event,) = served.log("provider:tool_sequence_repaired")
    assert event["repairs"] == [{"tool_call_id": "c1", "tool_name": "f"}]
    assert (event["provider"], event["repair_count"], event["repair_site"]) == ("p", 1, "message_level")
    assert event["synthetic_assistant_count"] == 1
    (told,) = served.log()[0]["losses"]
    assert (told["pointer"], told["kind"]) == ("/metadata", "bookkeeping")


CHAT: dict[str, Any] = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}


def test_tries_rejections_and_statuses_are_counted(serve: Serve, scripted: ScriptedBackend) -> None:
    busy = [json_reply({"error": {"message": "busy"}}, 503, {"retry-after": "0"})]
    refusal = {"error": {"message": "temperature: Extra inputs are not permitted"}}

    def answer(request: Request) -> Reply | None:
        if "temperature" in request.json:
            return json_reply(refusal, 400)
        return busy.pop() if busy else None

    scripted.play(answer)
    served = serve(fresh=True, providers=[provider(scripted)])
    with served.client() as client:
        for _ in range(2):
            body = {**CHAT, "temperature": 0}
            assert client.post("/v1/chat/completions", json=body).status_code == 200
        assert client.post("/v1/chat/completions", json={**CHAT, "model": "no-such/x"}).status_code == 404
        lines = client.get("/metrics").text.splitlines()
    assert 'dragoman_requests_total{lane="pass",route="/chat/completions",status="200"} 2.0' in lines
    assert 'dragoman_requests_total{lane="",route="/chat/completions",status="404"} 1.0' in lines
    assert 'dragoman_retries_total{provider="p"} 1.0' in lines
    assert 'dragoman_rejections_learned_total{provider="p"} 1.0' in lines
    assert 'dragoman_dropped_total{kind="tuning",provider="p"} 2.0' in lines


def test_faults_of_a_stream_are_counted(serve: Serve, scripted: ScriptedBackend) -> None:
    opening, *rest = chat_stream("hello")
    scripted.play(sse_reply([opening, "{not json", "{nor this", *rest]))
    served = serve(fresh=True, providers=[provider(scripted)])
    with served.client() as client:
        assert "[DONE]" in client.post("/v1/chat/completions", json={**CHAT, "stream": True}).text
        lines = client.get("/metrics").text.splitlines()
    assert 'dragoman_stream_violations_total{kind="not_json"} 2.0' in lines


def test_metrics_ask_for_the_key(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(fresh=True, providers=[provider(scripted)], server={"api_keys": ["secret-key"]})
    with served.client() as client:
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers={"x-api-key": "secret-key"}).status_code == 200
