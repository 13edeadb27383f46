"""How streams end, and what of them a client is told, over both wires and a real server."""

from __future__ import annotations

import time
from typing import Any

import httpx
import orjson
import pytest

from tests.app.conftest import Serve, Served, provider
from tests.backends.loopback import Reply
from tests.backends.replies import (
    Framing,
    ToolUse,
    chat_chunk,
    chat_stream,
    frame_bytes,
    item_stream,
    message_item,
    response_object,
    response_stream,
    sse_reply,
)
from tests.backends.scripted import ScriptedBackend
from translators.framing import SseFramer

Json = dict[str, Any]
ASK = {"model": "p/m", "input": "hi", "stream": True}
CHAT = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
CLIENTS = [("/v1/responses", ASK), ("/v1/chat/completions", CHAT)]
SSE = {"content-type": "text/event-stream"}


def objects(data: bytes) -> list[Any]:
    framer = SseFramer()
    payloads = framer.feed(data) + framer.close()
    return ["[DONE]" if payload == b"[DONE]" else orjson.loads(payload) for payload in payloads]


def asked(served: Served, path: str, body: Json) -> httpx.Response:
    with served.client() as client:
        return client.post(path, json=body)


def whole(body: Json) -> Json:
    return {**body, "stream": False}


def failed(found: list[Any]) -> str:
    """The words of a stream's failure, which comes last, once, and instead of a good end."""
    assert found[-1] == "[DONE]" or found[-1].get("type") == "response.failed"
    frames = [each for each in found if each != "[DONE]"]
    kinds = [each.get("type") for each in frames]
    assert "response.completed" not in kinds
    assert "response.incomplete" not in kinds
    choices = [choice for each in frames for choice in each.get("choices") or []]
    assert not any(choice["finish_reason"] for choice in choices)
    last = frames[-1]
    error = last["response"]["error"] if last.get("type") == "response.failed" else last["error"]
    return str(error["message"])


def text_of(found: list[Any]) -> str:
    frames = [each for each in found if each != "[DONE]"]
    deltas = [each["delta"] for each in frames if each.get("type") == "response.output_text.delta"]
    choices = [choice for each in frames for choice in each.get("choices") or []]
    return "".join(deltas + [choice["delta"].get("content") or "" for choice in choices])


# --- ends that are none, and failures in the stream -----------------------------------------

BEGUN_CHAT = [chat_chunk({"role": "assistant", "content": "partial"})]
BEGUN = response_stream("partial")[:-3]
ERROR = {"error": {"message": "out of order", "type": "server_error", "code": None}}
FAILED = {
    "type": "response.failed",
    "sequence_number": len(BEGUN),
    "response": {
        **response_object([], status="failed"),
        "error": {"code": "server_error", "message": "out of order"},
    },
}
EVENT = {
    "type": "error",
    "sequence_number": len(BEGUN),
    "code": "server_error",
    "message": "out of order",
    "param": None,
}
BROKEN: dict[str, tuple[str, list[Any], Any, str]] = {
    "chat: no finish": ("chat", BEGUN_CHAT, "whole", ""),
    "chat: reset": ("chat", BEGUN_CHAT, "cut", ""),
    "chat: silence": ("chat", BEGUN_CHAT, "hang", "silent"),
    "chat: an error": ("chat", [*BEGUN_CHAT, ERROR], "whole", "out of order"),
    "chat: an error, then the marker": ("chat", [*BEGUN_CHAT, ERROR, "[DONE]"], "whole", "out of order"),
    "chat: an error of Databricks": (
        "chat",
        [*BEGUN_CHAT, {"error_code": "INTERNAL_ERROR", "message": "out of order"}],
        "whole",
        "out of order",
    ),
    "responses: no last event": ("responses", BEGUN, "whole", ""),
    "responses: reset": ("responses", BEGUN, "cut", ""),
    "responses: silence": ("responses", BEGUN, "hang", "silent"),
    "responses: failed": ("responses", [*BEGUN, FAILED], "whole", "out of order"),
    "responses: an error event": ("responses", [*BEGUN, EVENT], "whole", "out of order"),
    "responses: a bare error": ("responses", [*BEGUN, ERROR], "whole", "out of order"),
}


@pytest.mark.parametrize(("path", "body"), CLIENTS)
@pytest.mark.parametrize(("wire", "frames", "end", "words"), BROKEN.values(), ids=BROKEN)
def test_a_broken_reply_is_never_a_success(
    serve: Serve,
    scripted: ScriptedBackend,
    path: str,
    body: Json,
    wire: str,
    frames: list[Any],
    end: Any,
    words: str,
) -> None:
    """What came is kept, the failure is told once and logged, and one body is an error status."""
    limits = {"idle_timeout_s": 0.4, "retry_budget_s": 0}
    served = serve(providers=[provider(scripted, wire)], server=limits)
    pieces = [frame_bytes(frame, Framing(event_lines="type" in frame)) for frame in frames]
    scripted.play(Reply(200, SSE, [*pieces, 0.05], end))
    found = objects(asked(served, path, body).content)
    assert text_of(found) == "partial"
    assert words in failed(found)
    assert logged(served)["error"]
    reply = asked(served, path, whole(body))
    assert reply.status_code in (502, 504)
    assert words in reply.json()["error"]["message"]


def logged(served: Served) -> Json:
    deadline = time.monotonic() + 5
    while not (lines := served.log()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return lines[0]


# --- items that nobody asked for ------------------------------------------------------------

SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
MCP = {"type": "mcp_call", "id": "mcp_1", "name": "n", "server_label": "s", "arguments": "{}", "output": "o"}
STRANGE = {"type": "dream_call", "id": "dr_1", "status": "completed"}


PROGRESS = {
    "ws_1": ["web_search_call.in_progress", "web_search_call.searching", "web_search_call.completed"],
    "mcp_1": ["mcp_call.in_progress", "mcp_call_arguments.delta", "mcp_call_arguments.done"],
    "dr_1": ["dream_call.deeper"],
}


def with_hosted_items() -> list[Any]:
    """A reply with three items of the backend's own tools before its text."""
    hosted = [SEARCH, MCP, STRANGE]
    created, working, *message, completed = item_stream([message_item("found it")])
    told: list[Json] = [created, working]
    for at, item in enumerate(hosted):
        place = {"output_index": at, "item_id": item["id"]}
        told.append({"type": "response.output_item.added", "output_index": at, "item": item})
        told += [{"type": f"response.{kind}", **place, "delta": "{"} for kind in PROGRESS[item["id"]]]
        told.append({"type": "response.output_item.done", "output_index": at, "item": item})
    told += [{**frame, "output_index": len(hosted)} for frame in message]
    output = [*hosted, *completed["response"]["output"]]
    told.append({**completed, "response": {**completed["response"], "output": output}})
    return [{**frame, "sequence_number": number} for number, frame in enumerate(told)]


def test_hosted_and_unknown_items_open_nothing(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted, "responses")])
    frames = with_hosted_items()
    scripted.play(sse_reply(frames, Framing(event_lines=True)))
    found = objects(asked(served, "/v1/chat/completions", CHAT).content)
    assert text_of(found) == "found it"
    deltas = [choice["delta"] for each in found[:-1] for choice in each["choices"]]
    assert not any("tool_calls" in delta for delta in deltas)
    assert found[-1] == "[DONE]"
    message = asked(served, "/v1/chat/completions", whole(CHAT)).json()["choices"][0]
    assert (message["message"]["content"], message["finish_reason"]) == ("found it", "stop")
    passed = objects(asked(served, "/v1/responses", ASK).content)
    assert [each for each in passed if each != "[DONE]"] == frames


# --- the backend's last word for a call -----------------------------------------------------


def called(done: str) -> list[Any]:
    """A call that streams `{"a": 1}` and is `done` as something else, in three places."""
    streamed = '{"a":1}'
    frames = response_stream("", [ToolUse("call_1", "f", streamed)])
    told = orjson.dumps(streamed)[1:-1]
    changed = []
    for frame in frames:
        data = orjson.dumps(frame)
        if not frame["type"].endswith("delta"):
            data = data.replace(told, orjson.dumps(done)[1:-1])
        changed.append(orjson.loads(data))
    return changed


@pytest.mark.parametrize(
    ("done", "told"),
    [('{"a":1}', '{"a":1}'), ('{"a": 1 }', '{"a":1}'), ('{"a":2}', None), ('{"a":1,"b":2}', None)],
)
def test_a_call_is_told_as_it_is_done_or_not_at_all(
    serve: Serve, scripted: ScriptedBackend, done: str, told: str | None
) -> None:
    served = serve(providers=[provider(scripted, "responses")])
    scripted.play(sse_reply(called(done), Framing(event_lines=True)))
    found = objects(asked(served, "/v1/chat/completions", CHAT).content)
    entries = [
        entry
        for each in found[:-1]
        for choice in each.get("choices", [])
        for entry in choice["delta"].get("tool_calls", [])
    ]
    arguments = "".join(entry["function"]["arguments"] for entry in entries)
    if told is None:
        assert "last word" in failed(found)
        assert logged(served)["stream_violations"] == 1
    else:
        assert (arguments, found[-2]["choices"][0]["finish_reason"]) == (told, "tool_calls")
    one = asked(served, "/v1/chat/completions", whole(CHAT)).json()["choices"][0]["message"]
    (call,) = one["tool_calls"]
    assert orjson.loads(call["function"]["arguments"]) == orjson.loads(done)


# --- as it comes, and no longer than it is wanted -------------------------------------------


@pytest.mark.parametrize(("path", "body"), CLIENTS)
@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_client_that_hangs_up_ends_the_backends_work(
    serve: Serve, scripted: ScriptedBackend, wire: str, path: str, body: Json
) -> None:
    served = serve(providers=[provider(scripted, wire)])
    frames: list[Any] = chat_stream("ab")[:1] if wire == "chat" else BEGUN
    pieces = [frame_bytes(frame, Framing(event_lines="type" in frame)) for frame in frames]
    scripted.play(Reply(200, SSE, pieces, "hang"))
    with served.client() as client, client.stream("POST", path, json=body) as reply:
        assert next(reply.iter_raw())
        time.sleep(0.3)
        left = time.monotonic()
    (request,) = scripted.requests
    assert request.gone.wait(2)
    assert (request.gone_at or 0) - left < 1
    assert logged(served)["status"] in (200, 499)


def test_a_passed_stream_is_byte_for_byte(serve: Serve, scripted: ScriptedBackend) -> None:
    for wire, path, body in [("chat", *CLIENTS[1]), ("responses", *CLIENTS[0])]:
        served = serve(providers=[provider(scripted, wire)])
        frames = chat_stream("é😀", usage=False) if wire == "chat" else response_stream("é😀")
        data = b"".join(frame_bytes(frame, Framing(event_lines="type" in frame)) for frame in frames)
        scripted.play(Reply(200, SSE, [data[at : at + 7] for at in range(0, len(data), 7)]))
        assert asked(served, path, body).content == data


# --- after the end --------------------------------------------------------------------------


@pytest.mark.parametrize("pause", [0.0, 0.1])
@pytest.mark.parametrize(("path", "body"), CLIENTS)
def test_what_comes_after_the_marker_is_logged_and_left_out(
    serve: Serve, scripted: ScriptedBackend, path: str, body: Json, pause: float
) -> None:
    served = serve(providers=[provider(scripted)])
    data = b"".join(map(frame_bytes, chat_stream("hello")))
    late = frame_bytes(chat_chunk({"content": "late"}))
    scripted.play(Reply(200, SSE, [data, pause, late] if pause else [data + late]))
    reply = asked(served, path, body)
    assert b"late" not in reply.content
    assert text_of(objects(reply.content)) == "hello"
    line = logged(served)
    assert (line["stream_violations"], line["error"]) == (1, None)
