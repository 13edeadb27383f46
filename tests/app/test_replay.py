"""A stored response as a stream, whatever a backend has put into it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from app.state.replay import replayed

from .background_asked import events_of

TEXT = {"id": "msg_9", "type": "message", "role": "assistant", "status": "completed"}
HELLO = {**TEXT, "content": [{"type": "output_text", "text": "hello", "annotations": [], "logprobs": []}]}
TORN = {"id": "fc_9", "type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a":'}
SEALED = {"id": "cmp_9", "type": "compaction", "encrypted_content": "zz"}
THOUGHT = {
    "id": "rs_9",
    "type": "reasoning",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "hm"}],
}


def stored(output: Any, status: str = "completed") -> dict[str, Any]:
    return {"id": "resp_9", "status": status, "created_at": 3, "model": "m", "output": output, "error": None}


@pytest.mark.parametrize("item", [HELLO, TORN, SEALED, THOUGHT, {"id": "w", "type": "weird", "x": 1}])
@pytest.mark.parametrize("status", ["completed", "incomplete", "failed", "cancelled"])
def test_every_item_comes_as_it_is_stored(item: dict[str, Any], status: str) -> None:
    whole = stored([{**HELLO, "id": "msg_1"}, item, {**THOUGHT, "id": "rs_1"}], status)
    events = events_of(replayed(orjson.dumps(whole), -1).decode())
    assert [each["sequence_number"] for each in events] == list(range(len(events)))
    assert [each["type"] for each in events[:2]] == ["response.created", "response.in_progress"]
    assert (events[0]["response"]["status"], events[0]["response"]["output"]) == ("in_progress", [])
    last = "failed" if status == "cancelled" else status
    assert (events[-1]["type"], events[-1]["response"]) == (f"response.{last}", whole)
    done = [each["item"] for each in events if each["type"] == "response.output_item.done"]
    assert done == whole["output"]
    added = [each["item"]["id"] for each in events if each["type"] == "response.output_item.added"]
    assert added == [each["id"] for each in whole["output"]]
    assert {each["item_id"] for each in events if "item_id" in each} <= set(added)


@pytest.mark.parametrize("output", [None, [], [7], [{"type": "function_call", "name": None}, HELLO]])
def test_what_cannot_be_read_is_left_to_the_last_event(output: Any) -> None:
    whole = stored(output)
    events = events_of(replayed(orjson.dumps(whole), -1).decode())
    assert events[-1]["response"] == whole
    for each in events:
        assert each.get("item", HELLO)["type"] == "message"


def test_from_somewhere_on() -> None:
    text = replayed(orjson.dumps(stored([HELLO])), -1)
    events = events_of(text.decode())
    rest = events_of(replayed(orjson.dumps(stored([HELLO])), len(events) - 2).decode())
    assert [each["type"] for each in rest] == ["response.completed"]
    assert replayed(orjson.dumps(stored([HELLO])), len(events)) == b"data: [DONE]\n\n"
