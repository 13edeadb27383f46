"""Items of a passing stream that Codex or typed clients could not read, and what they get instead."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import orjson
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.backends.replies import (
    ToolUse,
    frame_bytes,
    item_stream,
    message_item,
    response_items,
    response_object,
)
from tests.laws.pairs import context
from translators.framing import SseFramer
from translators.profile import AnswerRules, Profile
from translators.responses.tidy import tidy_response
from translators.responses.watch import ResponsesWatcher

Json = dict[str, Any]
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
EXACT = Profile(answer=AnswerRules(exact=True))
SAID, CALLED = message_item("ok"), response_items("", [ToolUse("call_1", "f", '{"a":1}')])[0]
FREE = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "call_1", "name": "k", "input": "x"}
THOUGHT = {"id": "rs_1", "type": "reasoning", "content": [{"type": "reasoning_text", "text": "why"}]}
PART = SAID["content"][0]
REFUSED = {**SAID, "content": [{"type": "refusal", "refusal": "no"}]}
SPOKEN = {**SAID, "content": [{**PART, "text": "no"}]}


def less(item: Json, *keys: str) -> Json:
    return {key: value for key, value in item.items() if key not in keys}


EMPTY: dict[str, Json] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}


def opened(item: Json) -> Json:
    return {**item, **EMPTY.get(str(item["type"]), {}), "status": "in_progress"}


def events(*items: Json, added: Json | None = None) -> list[Json]:
    """A stream that tells these items and nothing inside them."""
    told: list[Json] = [{"type": "response.created", "response": response_object([], status="in_progress")}]
    for place, item in enumerate(items):
        first = opened(item) if added is None else added
        told.append({"type": "response.output_item.added", "output_index": place, "item": first})
        told.append({"type": "response.output_item.done", "output_index": place, "item": item})
    told.append({"type": "response.completed", "response": response_object(items)})
    return [{**event, "sequence_number": number} for number, event in enumerate(told)]


def read(
    frames: list[Json], profile: Profile | None = None, codex: bool = False, step: int = 1
) -> tuple[ResponsesWatcher, list[Json]]:
    """What a client gets of the frames, `step` bytes to a read (0: all in one)."""
    watcher = ResponsesWatcher(profile or Profile(), replace(context(), refusal_as_text=codex))
    sent = b"".join(map(frame_bytes, frames))
    size = step or len(sent)
    out = b"".join(watcher.feed(sent[at : at + size]) for at in range(0, len(sent), size)) + watcher.close()
    return watcher, [orjson.loads(payload) for payload in SseFramer().feed(out) if payload != b"[DONE]"]


def items_of(told: list[Json], kind: str) -> list[Json]:
    return [event["item"] for event in told if event["type"] == f"response.output_item.{kind}"]


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize(
    ("item", "want"),
    [
        (less(SAID, "role"), SAID),
        ({**SAID, "content": "ok"}, SAID),
        ({**SAID, "content": [{**PART, "type": "text"}]}, SAID),
        (THOUGHT, {**THOUGHT, "summary": []}),
        ({**CALLED, "arguments": {"a": 1}}, CALLED),
        (less(CALLED, "arguments"), {**CALLED, "arguments": "{}"}),
        ({**CALLED, "arguments": " "}, {**CALLED, "arguments": "{}"}),
        (less(CALLED, "call_id"), {**CALLED, "call_id": CALLED["id"]}),
        (less(FREE, "call_id"), {**FREE, "call_id": "ctc_1"}),
        (less(FREE, "input"), {**FREE, "input": ""}),
    ],
)
def test_an_item_is_made_readable(item: Json, want: Json, step: int) -> None:
    watcher, told = read(events(item), step=step)
    assert items_of(told, "done") == [want] == told[-1]["response"]["output"]
    assert watcher.violations["bad_item"] >= 1
    assert [event["sequence_number"] for event in told] == list(range(4))
    for event in told:
        EVENT.validate_python(event)
    announced = items_of(told, "added")[0]
    assert announced.get("call_id") == want.get("call_id")


def test_an_exact_backend_keeps_its_items() -> None:
    odd = events({**CALLED, "arguments": {"a": 1}}, less(CALLED, "call_id"))
    watcher, told = read(odd, EXACT)
    assert told == odd
    assert not watcher.violations


def test_a_stream_in_order_is_passed_as_it_is() -> None:
    frames = item_stream([SAID, CALLED])
    for codex in (False, True):
        watcher, told = read(frames, codex=codex)
        assert told == frames
        assert not watcher.violations


def test_an_item_keeps_the_id_it_was_added_with() -> None:
    told = read(events(less(SAID, "id"), added=opened(SAID)))[1]
    assert items_of(told, "done") == [SAID]
    told = read(events(less(SAID, "id")))[1]
    assert items_of(told, "done")[0]["id"].startswith("msg_")


def test_an_announced_item_has_all_its_keys() -> None:
    told = read(
        events(CALLED, added={"id": CALLED["id"], "type": "function_call", "call_id": "call_1", "name": "f"})
    )[1]
    assert items_of(told, "added") == [opened(CALLED)]


def test_two_calls_under_one_id_get_two() -> None:
    told = read(events(CALLED, {**CALLED, "id": "fc_2"}))[1]
    first, second = (item["call_id"] for item in items_of(told, "done"))
    assert first == "call_1" != second
    assert len(second) <= 64
    assert [item["call_id"] for item in items_of(told, "added")] == [first, second]
    assert [item["call_id"] for item in told[-1]["response"]["output"]] == [first, second]


def test_arguments_that_are_none_are_an_empty_object() -> None:
    frames = copy.deepcopy(item_stream([{**CALLED, "arguments": ""}]))
    told = read(frames)[1]
    done = [event for event in told if event["type"] == "response.function_call_arguments.done"]
    assert [event["arguments"] for event in done] == ["{}"]
    assert items_of(told, "done")[0]["arguments"] == "{}"


@pytest.mark.parametrize("profile", [None, EXACT])
def test_codex_reads_a_refusal_as_text(profile: Profile | None) -> None:
    frames = events(REFUSED, {**SAID, "content": None, "id": "msg_2"}, THOUGHT | {"summary": []})
    assert items_of(read(frames, profile)[1], "done")[0] == REFUSED
    told = read(frames, profile, codex=True)[1]
    assert items_of(told, "done")[0] == SPOKEN
    if profile is None:
        assert told[-1]["response"]["output"][0] == SPOKEN


@pytest.mark.parametrize(
    ("status", "want"),
    [("completed", "completed"), ("incomplete", "incomplete"), ("failed", "failed"), (None, "completed")],
)
def test_the_end_has_a_name_that_clients_know(status: str | None, want: str) -> None:
    frames = events(SAID)
    frames[-1] |= {"type": "response.done", "response": {**frames[-1]["response"], "status": status}}
    told = read(frames)[1]
    assert told[-1]["type"] == f"response.{want}"
    assert [event["type"] for event in told].count("response.failed") == (want == "failed")


def test_an_end_without_a_response_is_an_end() -> None:
    frames = events(SAID)
    frames[-1] = {"type": "response.done", "sequence_number": 3}
    told = read(frames)[1]
    assert told[-1]["type"] == "response.completed"
    assert told[-1]["response"]["output"] == [SAID]


@pytest.mark.parametrize("item", [None, [], {"type": [], "id": "x"}])
def test_an_announced_item_of_no_known_form_passes(item: Any) -> None:
    frames = events(SAID)
    frames[1]["item"] = item
    assert read(frames, codex=True)[1][1] == frames[1]


def test_two_calls_under_one_id_in_a_whole_reply_get_two() -> None:
    output = [CALLED, SAID, {**FREE, "call_id": CALLED["call_id"]}, {**CALLED, "id": "fc_3"}]
    tidy = tidy_response(response_object(output))["output"]
    ids = [item.get("call_id") for item in tidy]
    assert ids[:2] == ["call_1", None]
    assert len(set(ids)) == 4
    assert [{**item, "call_id": ""} for item in tidy] == [{**item, "call_id": ""} for item in output]
