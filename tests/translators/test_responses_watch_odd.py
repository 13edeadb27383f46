"""Responses streams that no client can read, whole bodies, and last events with holes."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.translators.responses_streams import (
    ANY,
    COMPLETED,
    CREATED,
    ERROR,
    EXACT,
    HEAD,
    USAGE,
    ended,
    events,
    run,
    sizes,
    stream,
    watcher,
)
from translators.errors import ProxyError
from translators.ir import Usage
from translators.responses.watch import tidy_reply

# --- streams clients cannot read -------------------------------------------------------

AGENT = stream(
    {"type": "response.output_text.delta", "item_id": "a", "delta": "Hi"},
    {"type": "response.output_item.done", "item": {"type": "message", "id": "a", "content": "Hi"}},
    b"data: [DONE]\n\n",
    named=False,
)


def test_a_stream_without_numbers_is_translated() -> None:
    numbered = [
        {key: value for key, value in obj.items() if key != "sequence_number"} for obj in (CREATED, COMPLETED)
    ]
    told = events(run(watcher(), stream(*numbered)))
    assert [event["sequence_number"] for event in told] == [0, 1, 2]


@pytest.mark.parametrize("size", list(sizes()))
def test_a_stream_with_another_beginning_is_translated(size: int) -> None:
    watch = watcher()
    out = run(watch, b": ping\n\n" + AGENT, size)
    told = events(out)
    assert told[0]["type"] == "response.created"
    assert told[-1]["type"] == "response.completed"
    assert told[-1]["response"]["output"][0]["content"][0]["text"] == "Hi"
    assert (watch.ended, watch.error, watch.usage) == (True, None, None)
    assert watch.keepalive() == b""


def test_a_translated_stream_is_kept_alive_and_failed_in_its_own_way() -> None:
    watch = watcher()
    watch.feed(stream({"type": "response.output_text.delta", "delta": "Hi"}))
    assert watch.begun
    assert events(watch.keepalive())[0]["type"] == "response.in_progress"
    assert events(watch.fail(ERROR))[-1]["type"] == "response.failed"
    assert watch.error is ERROR


def test_an_error_before_anything_else_fails_the_reply() -> None:
    watch = watcher()
    out = events(watch.feed(stream({"error": {"message": "boom"}})))
    assert [event["type"] for event in out] == ["response.created", "response.in_progress", "response.failed"]
    assert watch.error is not None
    assert watch.error.message == "boom"


def test_a_last_frame_may_be_the_first() -> None:
    watch = watcher()
    told = events(run(watch, stream(COMPLETED)[:-2]))
    assert told[0]["type"] == "response.created"
    assert told[-1]["type"] == "response.completed"
    assert watch.usage == Usage(3, 2)


def test_an_exact_backend_begins_as_it_likes() -> None:
    sent = stream({"type": "response.queued", "response": {}}, CREATED, COMPLETED)
    assert run(watcher(EXACT), sent) == sent


def test_an_item_without_a_usable_id_is_told_once() -> None:
    odd = {"type": "web_search_call", "id": ["ws"], "call_id": {}, "status": "completed"}
    done = {"type": "response.output_item.done", "sequence_number": 1, "output_index": 0, "item": odd}
    told = events(run(watcher(), stream(CREATED, done, ended(odd))))
    assert [event["type"] for event in told][1:] == ["response.output_item.done", "response.completed"]


# --- whole bodies ----------------------------------------------------------------------


def test_a_body_passes_as_it_is() -> None:
    body = {**HEAD, "status": "completed", "output": [], "error": None, "usage": USAGE}
    tidy, usage = tidy_reply(body, ANY)
    assert tidy is body
    assert usage == Usage(3, 2)
    assert tidy_reply({"output": []}, ANY)[1] is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "boom"}}, "boom"),
        ({"status": "failed", "output": [], "error": {"message": "boom"}}, "boom"),
        ({"status": "completed", "output": [], "error": {"message": "boom"}}, "boom"),
        (
            {"status": "cancelled", "output": []},
            "The backend says that the reply was cancelled, and not why.",
        ),
        ({"error_code": "BAD", "message": "databricks"}, "databricks"),
        ({}, "The backend's answer is not a finished response object."),
        ({"output": "hi"}, "The backend's answer is not a finished response object."),
        (
            {"status": "in_progress", "output": []},
            "The backend's answer is not a finished response object.",
        ),
    ],
)
def test_a_body_that_carries_an_error_raises_it(body: dict[str, Any], message: str) -> None:
    with pytest.raises(ProxyError) as caught:
        tidy_reply(body, ANY)
    assert caught.value.message == message


# --- the last event, whole -------------------------------------------------------------

MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "ok", "annotations": []}],
}
CALL: dict[str, Any] = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "f",
    "arguments": "{}",
    "status": "completed",
}


def done(number: int, item: Any, **place: int) -> dict[str, Any]:
    return {"type": "response.output_item.done", "sequence_number": number, "item": item, **place}


@pytest.mark.parametrize("size", list(sizes()))
@pytest.mark.parametrize("output", [[], None, [{**MESSAGE, "id": "msg_new"}, CALL], [CALL, MESSAGE]])
def test_the_last_event_holds_the_items_that_were_done(output: Any, size: int) -> None:
    sent = [CREATED, done(1, MESSAGE, output_index=0), done(2, CALL, output_index=1)]
    last = {**ended(), "sequence_number": 3}
    last["response"] = {**last["response"], "output": output}
    got = events(run(watcher(), stream(*sent, last), size))
    assert got[:-1] == sent
    assert got[-1] == {**last, "response": {**last["response"], "output": [MESSAGE, CALL]}}


def test_items_without_a_place_keep_their_order() -> None:
    got = events(run(watcher(), stream(CREATED, done(1, MESSAGE), done(2, CALL), done(3, "junk"), ended())))
    assert got[-1]["response"]["output"] == [MESSAGE, CALL]


def test_an_exact_backends_last_event_is_its_own() -> None:
    sent = stream(CREATED, done(1, MESSAGE, output_index=0), ended(usage={"input_tokens": 1}))
    assert run(watcher(EXACT), sent) == sent


def test_usage_with_a_hole_is_told_whole() -> None:
    watch = watcher()
    got = events(run(watch, stream(CREATED, ended(usage={"input_tokens": 3, "output_tokens": 2}))))
    assert got[-1]["response"]["usage"] == {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 5,
    }
    assert (got[-1]["sequence_number"], watch.usage) == (2, Usage(3, 2))


@pytest.mark.parametrize("kind", ["response.completed", "response.incomplete"])
def test_items_that_only_the_last_event_tells_get_their_events(kind: str) -> None:
    other = {**MESSAGE, "id": "msg_2"}
    last = {**ended(MESSAGE, CALL, other), "type": kind, "sequence_number": 9}
    last["response"]["status"] = kind.removeprefix("response.")
    got = events(run(watcher(), stream(CREATED, done(1, MESSAGE, output_index=0), last)))
    assert [event["sequence_number"] for event in got] == list(range(len(got)))
    assert {event["output_index"] for event in got[2:-1]} == {1, 2}
    late = [event["item"] for event in got[2:-1] if event["type"] == "response.output_item.done"]
    assert [item["type"] for item in late] == ["function_call", "message"]
    assert got[-1]["response"]["output"] == [MESSAGE, *late]
    assert got[-1]["type"] == kind


def test_a_last_event_without_a_response_ends_the_reply_all_the_same() -> None:
    last = {"type": "response.completed", "sequence_number": "two"}
    got = events(run(watcher(), stream(CREATED, done(1, MESSAGE, output_index=0), last)))
    assert got[-1]["response"] == {**CREATED["response"], "status": "completed", "output": [MESSAGE]}
    assert got[-1]["sequence_number"] == 2


@pytest.mark.parametrize("key", ["id", "created_at", "model", "parallel_tool_calls", "tools", "tool_choice"])
def test_a_beginning_with_a_hole_is_translated(key: str) -> None:
    first = {**CREATED, "response": {k: v for k, v in CREATED["response"].items() if k != key}}
    got = events(run(watcher(), stream(first, done(1, MESSAGE, output_index=0), ended(MESSAGE))))
    assert got[0]["response"].keys() >= HEAD.keys()
    assert [event["sequence_number"] for event in got] == list(range(len(got)))
    assert got[-1]["response"]["output"][0]["content"][0]["text"] == "ok"


def test_events_in_a_list_are_told_one_by_one() -> None:
    listed = b"data: " + orjson.dumps([done(1, MESSAGE, output_index=0), ended(MESSAGE)]) + b"\n\n"
    got = events(run(watcher(), stream(CREATED) + listed))
    assert got == [CREATED, done(1, MESSAGE, output_index=0), ended(MESSAGE)]
