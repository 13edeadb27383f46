"""Streams over a real server: the peek, silence, hang-ups, odd forms, shutdown."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest

from tests.app.conftest import Serve, Served, provider
from tests.backends.loopback import Reply
from tests.backends.replies import (
    chat_chunk,
    chat_completion,
    chat_stream,
    frame_bytes,
    json_reply,
    response_items,
    response_object,
    response_stream,
    sse_reply,
)
from tests.backends.scripted import ScriptedBackend

ASK = {"model": "p/m", "input": "hi", "stream": True}
CHAT = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
SSE = {"content-type": "text/event-stream"}


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend) -> Served:
    return serve(providers=[provider(scripted)], server={"keepalive_s": 0.2})


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as client:
        yield client


def events(text: str) -> list[Any]:
    """The objects of an event stream; `[DONE]` and comments as text."""
    found = []
    for block in text.split("\n\n"):
        data = [line[6:] for line in block.split("\n") if line.startswith("data: ")]
        if data:
            found.append(data[0] if data[0] == "[DONE]" else orjson.loads(data[0]))
        elif block.startswith(":"):
            found.append(block)
    return found


def types(text: str) -> list[str]:
    return [event["type"] for event in events(text) if isinstance(event, dict)]


def whole_text(text: str) -> str:
    deltas = (event for event in events(text) if isinstance(event, dict))
    return "".join(event["delta"] for event in deltas if event["type"] == "response.output_text.delta")


def test_a_translated_stream(client: httpx.Client, scripted: ScriptedBackend, served: Served) -> None:
    reply = client.post("/v1/responses", json=ASK)
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    assert reply.headers["x-dragoman-model"] == "p/m"
    kinds = types(reply.text)
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert whole_text(reply.text) == "Hello from the backend."
    assert scripted.bodies()[-1]["stream_options"] == {"include_usage": True}
    (line,) = wait_for_log(served)
    assert (line["stream"], line["lane"], line["output_tokens"]) == (True, "translate", 7)
    assert line["ttft_ms"] <= line["total_ms"]


def test_a_passed_stream_keeps_the_backends_bytes(client: httpx.Client, scripted: ScriptedBackend) -> None:
    frames = chat_stream("Hello", usage=False)
    scripted.play(sse_reply(frames))
    reply = client.post("/v1/chat/completions", json=CHAT)
    assert reply.content == b"".join(frame_bytes(frame) for frame in frames)


def test_usage_is_asked_for_but_hidden_from_a_client_that_did_not_ask(
    client: httpx.Client, scripted: ScriptedBackend, served: Served
) -> None:
    reply = client.post("/v1/chat/completions", json=CHAT)
    assert scripted.bodies()[-1]["stream_options"] == {"include_usage": True}
    assert "prompt_tokens" not in reply.text
    assert wait_for_log(served)[-1]["output_tokens"] == 7
    asked = {**CHAT, "stream_options": {"include_usage": True}}
    assert "prompt_tokens" in client.post("/v1/chat/completions", json=asked).text


ERROR = {"error": {"message": "out of order", "type": "server_error", "code": None}}


@pytest.mark.parametrize(("path", "ask"), [("/v1/responses", ASK), ("/v1/chat/completions", CHAT)])
def test_an_error_in_the_first_frame_is_a_502(
    client: httpx.Client, scripted: ScriptedBackend, path: str, ask: Any
) -> None:
    scripted.play(sse_reply([ERROR]))
    reply = client.post(path, json=ask)
    error = reply.json()["error"]
    assert (reply.status_code, "out of order" in error["message"]) == (502, True)
    assert isinstance(error["code"], str)
    assert len(scripted.requests) == 1


def test_text_before_an_error_is_not_lost(client: httpx.Client, scripted: ScriptedBackend) -> None:
    frames = [chat_chunk({"role": "assistant", "content": "partial"}), ERROR]
    data = b"".join(frame_bytes(frame) for frame in frames)
    scripted.play(Reply(200, SSE, [data]))
    reply = client.post("/v1/responses", json=ASK)
    assert reply.status_code == 200
    assert whole_text(reply.text) == "partial"
    assert types(reply.text)[-1] == "response.failed"
    reply = client.post("/v1/chat/completions", json=CHAT)
    assert "partial" in reply.text
    assert "out of order" in reply.text


@pytest.mark.parametrize("end", ["whole", "cut"])
def test_a_stream_that_stops_early_is_no_success(
    client: httpx.Client, scripted: ScriptedBackend, end: Any
) -> None:
    scripted.play(sse_reply([chat_chunk({"role": "assistant", "content": "par"})], end=end, pause=0.05))
    reply = client.post("/v1/responses", json=ASK)
    assert types(reply.text)[-1] == "response.failed"
    reply = client.post("/v1/chat/completions", json=CHAT)
    assert [event for event in events(reply.text) if isinstance(event, dict) and "error" in event]


def test_an_empty_stream_is_a_502(client: httpx.Client, scripted: ScriptedBackend) -> None:
    scripted.play(Reply(200, SSE, []))
    assert client.post("/v1/responses", json=ASK).status_code == 502
    assert client.post("/v1/chat/completions", json=CHAT).status_code == 502


def test_silence_before_the_first_token_is_filled(client: httpx.Client, scripted: ScriptedBackend) -> None:
    frames = [frame_bytes(frame) for frame in chat_stream("late")]
    scripted.play(Reply(200, SSE, [0.7, *frames]))
    reply = client.post("/v1/responses", json=ASK)
    assert reply.status_code == 200
    kinds = types(reply.text)
    assert kinds[:4] == ["response.created", *["response.in_progress"] * 3]
    assert kinds.count("response.created") == 1
    numbers = [event["sequence_number"] for event in events(reply.text) if isinstance(event, dict)]
    assert numbers == list(range(len(numbers)))
    assert whole_text(reply.text) == "late"
    chat = client.post("/v1/chat/completions", json=CHAT).text
    assert chat.startswith(":")
    assert "late"[:1] in chat


def test_silence_before_the_headers_is_filled_too(client: httpx.Client, scripted: ScriptedBackend) -> None:
    def late(_: Any) -> Reply:
        time.sleep(0.5)
        return json_reply({"error": {"message": "no such thing", "code": "nope"}}, 400)

    scripted.play(late)
    reply = client.post("/v1/responses", json=ASK)
    assert reply.status_code == 200
    assert types(reply.text)[:2] == ["response.created", "response.in_progress"]
    assert types(reply.text)[-1] == "response.failed"
    assert len(scripted.requests) == 1


def test_silence_in_the_middle_is_filled(client: httpx.Client, scripted: ScriptedBackend) -> None:
    first, *rest = [frame_bytes(frame) for frame in chat_stream("ab")]
    scripted.play(Reply(200, SSE, [first, 0.7, *rest]))
    kinds = types(client.post("/v1/responses", json=ASK).text)
    assert kinds.count("response.in_progress") >= 3
    assert ": " in client.post("/v1/chat/completions", json=CHAT).text


def test_a_backend_that_stays_silent_is_given_up(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], server={"idle_timeout_s": 0.4, "retry_budget_s": 0})
    with served.client() as client:
        scripted.play(sse_reply([chat_chunk({"role": "assistant", "content": "a"})], end="hang"))
        assert types(client.post("/v1/responses", json=ASK).text)[-1] == "response.failed"
        scripted.play(Reply(200, SSE, [], "hang"))
        assert client.post("/v1/responses", json=ASK).status_code == 504


def test_a_whole_body_for_a_client_that_wants_a_stream(
    client: httpx.Client, scripted: ScriptedBackend
) -> None:
    scripted.play(json_reply(chat_completion("whole")))
    reply = client.post("/v1/responses", json=ASK)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert (whole_text(reply.text), types(reply.text)[-1]) == ("whole", "response.completed")
    chat = events(client.post("/v1/chat/completions", json=CHAT).text)
    assert chat[-1] == "[DONE]"
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chat[:-1]) == "whole"


def test_a_late_whole_body_after_keepalives(client: httpx.Client, scripted: ScriptedBackend) -> None:
    data = orjson.dumps(chat_completion("whole"))
    late = Reply(200, {"content-type": "application/json"}, [data[:40], 0.5, data[40:]])
    scripted.play(late)
    kinds = types(client.post("/v1/responses", json=ASK).text)
    assert kinds.count("response.created") == 1
    assert kinds[-1] == "response.completed"
    scripted.play(late)
    assert client.post("/v1/chat/completions", json=CHAT).text.rstrip().endswith("[DONE]")


@pytest.mark.parametrize("content_type", ["text/event-stream", "application/json", "text/plain"])
def test_the_form_is_told_by_the_bytes(
    client: httpx.Client, scripted: ScriptedBackend, content_type: str
) -> None:
    data = b"".join(frame_bytes(frame) for frame in chat_stream("hi"))
    scripted.play(Reply(200, {"content-type": content_type}, [data]))
    assert whole_text(client.post("/v1/responses", json=ASK).text) == "hi"
    body = {key: value for key, value in ASK.items() if key != "stream"}
    whole = client.post("/v1/responses", json=body).json()
    assert whole["output"][0]["content"][0]["text"] == "hi"


def test_an_event_stream_for_a_client_that_wants_one_body(
    client: httpx.Client, scripted: ScriptedBackend
) -> None:
    scripted.play(sse_reply(chat_stream("folded")))
    body = {key: value for key, value in CHAT.items() if key != "stream"}
    reply = client.post("/v1/chat/completions", json=body)
    assert reply.headers["content-type"] == "application/json"
    assert reply.json()["choices"][0]["message"]["content"] == "folded"
    scripted.play(sse_reply([chat_chunk({"content": "a"}), ERROR]))
    assert client.post("/v1/chat/completions", json=body).status_code == 502


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("body", [b"<html>sign in</html>", b"", b"[1, 2]", b'"text"'])
def test_an_answer_that_is_no_answer_is_a_502(
    client: httpx.Client, scripted: ScriptedBackend, body: bytes, stream: bool
) -> None:
    headers = {"content-type": "text/html", "content-length": str(len(body))}
    scripted.play(Reply(200, headers, [body]))
    for path, ask in (("/v1/responses", ASK), ("/v1/chat/completions", CHAT)):
        reply = client.post(path, json={**ask, "stream": stream})
        assert reply.status_code == 502
        assert reply.json()["error"]["code"] == "upstream_error"
    assert len(scripted.requests) == 2


def test_a_responses_backend_passes(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted, wire="responses")])
    with served.client() as client:
        reply = client.post("/v1/responses", json=ASK)
        assert whole_text(reply.text) == "Hello from the backend."
        whole = client.post("/v1/responses", json={**ASK, "stream": False})
        assert whole.json() == response_object(response_items("Hello from the backend."))
        chat = events(client.post("/v1/chat/completions", json=CHAT).text)
        assert chat[-1] == "[DONE]"
        scripted.play(json_reply(response_object(response_items("whole"))))
        assert whole_text(client.post("/v1/responses", json=ASK).text) == "whole"
        scripted.play(sse_reply(response_stream("folded")))
        folded = client.post("/v1/responses", json={**ASK, "stream": False}).json()
        assert folded["output"][0]["content"][0]["text"] == "folded"
    assert [line["lane"] for line in wait_for_log(served, 5)] == ["pass", "pass", "translate", "pass", "pass"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": None}, "input"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"background": True, "store": False}, "background"),
        ({"conversation": "c", "previous_response_id": "resp_1"}, "conversation"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tool_choice": {"type": "function", "name": "g"}}, "tool_choice"),
    ],
)
def test_a_passed_request_is_checked_too(
    serve: Serve, scripted: ScriptedBackend, body: Any, param: str
) -> None:
    with serve(providers=[provider(scripted, wire="responses")]).client() as client:
        reply = client.post("/v1/responses", json={**ASK, **body})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)
    assert scripted.requests == []


@pytest.mark.parametrize("when", ["before the headers", "before the first token", "in the middle"])
@pytest.mark.parametrize(("path", "ask"), [("/v1/responses", ASK), ("/v1/chat/completions", CHAT)])
def test_a_client_that_hangs_up_frees_the_backend(
    served: Served, scripted: ScriptedBackend, when: str, path: str, ask: Any
) -> None:
    first = frame_bytes(chat_chunk({"role": "assistant", "content": "a"}))
    waiting = threading.Event()

    def slow(_: Any) -> Reply:
        return Reply(200, SSE, [first] if when == "in the middle" else [], "hang")

    def never(_: Any) -> Reply:
        waiting.wait(0.4)
        return Reply(200, SSE, [], "hang")

    scripted.play(never if when == "before the headers" else slow)
    with served.client() as client, pytest.raises(httpx.ReadTimeout):
        client.post(path, json=ask, timeout=0.15)
    left = time.monotonic()
    (request,) = scripted.requests
    assert request.gone.wait(1.5)
    assert (request.gone_at or 0) - left < 1
    (line,) = wait_for_log(served)
    assert line["status"] in (200, 499)
    assert served.log("fault") == served.log("library") == []
    wait_until(lambda: not served.gateway.serving)


def test_a_client_that_hangs_up_on_a_whole_answer(served: Served, scripted: ScriptedBackend) -> None:
    scripted.play(Reply(200, {"content-type": "application/json"}, [b'{"id": '], "hang"))
    with served.client() as client, pytest.raises(httpx.ReadTimeout):
        client.post("/v1/responses", json={**ASK, "stream": False}, timeout=0.2)
    assert scripted.requests[0].gone.wait(1.5)
    assert wait_for_log(served)[0]["status"] == 499
    assert served.log("fault") == served.log("library") == []


def test_a_client_that_hangs_up_between_two_tries(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    scripted.play(json_reply({"error": {"message": "busy"}}, 503, {"retry-after": "2"}))
    with served.client() as client, pytest.raises(httpx.ReadTimeout):
        client.post("/v1/responses", json=ASK, timeout=0.3)
    assert wait_for_log(served)[0]["status"] == 499
    assert len(scripted.requests) == 1


def test_the_end_of_the_grace_fails_what_is_open(served: Served, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply([chat_chunk({"role": "assistant", "content": "a"})], end="hang"))
    threading.Timer(0.3, lambda: served.call_soon(served.gateway.end_open_answers)).start()
    with served.client() as client:
        reply = client.post("/v1/responses", json=ASK)
        assert types(reply.text)[-1] == "response.failed"
        assert whole_text(reply.text) == "a"
        threading.Timer(0.1, lambda: served.call_soon(served.gateway.end_open_answers)).start()
        scripted.play(Reply(200, SSE, [], "hang"))
        assert client.post("/v1/responses", json={**ASK, "stream": False}).status_code == 503
    assert scripted.requests[0].gone.wait(1)


def test_connections_are_used_again_after_a_stream(client: httpx.Client, scripted: ScriptedBackend) -> None:
    opened: set[int] = set()
    loop_serve = scripted.server._serve

    async def counting(reader: Any, writer: Any) -> None:
        opened.add(id(writer))
        await loop_serve(reader, writer)

    scripted.server._serve = counting  # type: ignore[method-assign]
    for _ in range(3):
        client.post("/v1/responses", json=ASK)
    assert len(scripted.requests) == 3
    assert len(opened) <= 1


def wait_until(condition: Any) -> None:
    for _ in range(300):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not come about")


def wait_for_log(served: Served, count: int = 1) -> list[dict[str, Any]]:
    wait_until(lambda: len(served.log()) >= count)
    return served.log()
