"""Response objects that pass: whole ones as they are, odd ones written by the book."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from openai.types.responses import Response

from translators.ir import Usage
from translators.profile import AnswerRules, Profile
from translators.responses.ids import made_id
from translators.responses.tidy import is_whole, tidy_item, tidy_reply, tidy_response, untold

Json = dict[str, Any]

ANY = Profile()
EXACT = replace(ANY, answer=AnswerRules(exact=True))
USAGE: Json = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 14,
}
NO_DETAILS: Json = {
    "input_tokens": 9,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 14,
}
TEXT: Json = {"type": "output_text", "text": "ok", "annotations": []}
MESSAGE: Json = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [TEXT],
}
CALL: Json = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "f",
    "arguments": "{}",
    "status": "completed",
}
WHOLE: Json = {
    "id": "resp_1",
    "object": "response",
    "created_at": 5,
    "model": "up",
    "status": "completed",
    "output": [MESSAGE, CALL],
    "parallel_tool_calls": False,
    "tools": [],
    "tool_choice": {"type": "function", "name": "f"},
    "usage": USAGE,
    "metadata": {"of": "the backend"},
}


def less(whole: Json, *keys: str) -> Json:
    return {key: value for key, value in whole.items() if key not in keys}


def test_a_whole_response_is_not_touched() -> None:
    assert tidy_response(WHOLE) is WHOLE
    assert is_whole(WHOLE)
    tidy, usage = tidy_reply(WHOLE, ANY)
    assert tidy is WHOLE
    assert usage == Usage(9, 5, cached=4, reasoning=3)


def test_an_exact_backend_is_believed() -> None:
    odd = {"output": [{"type": "message"}]}
    assert tidy_reply(odd, EXACT) == (odd, None)
    assert tidy_reply(odd, EXACT)[0] is odd


# what is wrong with WHOLE, and what it becomes; every other key stays
MENDED: list[tuple[Json, Json]] = [
    (
        {"object": None, "model": None, "parallel_tool_calls": None, "tools": None, "tool_choice": None},
        {
            "object": "response",
            "model": "",
            "parallel_tool_calls": True,
            "tools": [],
            "tool_choice": "auto",
        },
    ),
    ({"created_at": 17.9}, {"created_at": 17}),
    ({"created_at": True}, {"created_at": 0}),
    ({"created_at": None, "status": None}, {"created_at": 0, "status": "completed"}),
    ({"usage": {"input_tokens": 9, "output_tokens": 5}}, {"usage": NO_DETAILS}),
    ({"usage": {"prompt_tokens": 9, "completion_tokens": 5}}, {"usage": {**NO_DETAILS}}),
    ({"usage": {**USAGE, "total_tokens": 99}}, {"usage": {**USAGE, "total_tokens": 14}}),
    ({"usage": {**USAGE, "input_tokens_details": None}}, {"usage": {**USAGE, "input_tokens_details": {}}}),
    ({"usage": {}}, {"usage": None}),
    ({"usage": "none"}, {"usage": None}),
    ({"output": [MESSAGE, "junk"]}, {"output": [MESSAGE]}),
    ({"output": None}, {"output": []}),
]


@pytest.mark.parametrize(("wrong", "right"), MENDED)
def test_what_a_backend_left_out_is_filled_in(wrong: Json, right: Json) -> None:
    odd = {**WHOLE, **wrong}
    before = copy.deepcopy(odd)
    tidy = tidy_response(odd)
    assert odd == before
    for key, value in right.items():
        if isinstance(value, dict):
            assert tidy[key].items() >= less(value, "input_tokens_details", "output_tokens_details").items()
        else:
            assert tidy[key] == value
    assert less(tidy, *right) == less(WHOLE, *right)
    assert tidy_response(tidy) is tidy
    Response.model_validate({**tidy, "usage": None})


@pytest.mark.parametrize(("key", "value"), [("created_at", 1.5), ("id", ""), ("tools", None), ("output", {})])
def test_a_snapshot_with_a_hole_is_not_whole(key: str, value: Any) -> None:
    assert not is_whole({**WHOLE, key: value})
    assert not is_whole(None)


@pytest.mark.parametrize("id", [None, "", 5])
def test_a_response_without_an_id_gets_one(id: Any) -> None:
    odd = {**WHOLE, "id": id}
    assert tidy_response(odd)["id"].startswith("resp_")
    assert tidy_response(odd) == tidy_response(dict(odd))


def test_the_last_snapshot_keeps_what_the_first_one_said() -> None:
    begun = {**WHOLE, "id": "resp_first", "created_at": 3, "model": "told once", "output": [], "usage": None}
    tidy = tidy_response({"id": "resp_other", "status": "completed", "output": [MESSAGE]}, begun)
    assert tidy == {
        **begun,
        "status": "completed",
        "output": [MESSAGE],
    }
    assert tidy_response({**WHOLE, "id": "resp_first", "created_at": 3}, begun) == {
        **WHOLE,
        "id": "resp_first",
        "created_at": 3,
    }


ITEMS: list[tuple[Json, Json]] = [
    (MESSAGE, MESSAGE),
    (CALL, CALL),
    (less(MESSAGE, "type"), MESSAGE),
    (less(MESSAGE, "role", "status"), MESSAGE),
    (less(MESSAGE, "content"), {**MESSAGE, "content": []}),
    (
        {**MESSAGE, "content": "ok"},
        {**MESSAGE, "content": [{**TEXT, "logprobs": []}]},
    ),
    ({**MESSAGE, "content": [{"type": "text", "text": "ok"}]}, MESSAGE),
    ({**MESSAGE, "content": [{"type": "output_text"}]}, {**MESSAGE, "content": [{**TEXT, "text": ""}]}),
    (
        {**MESSAGE, "content": [{"type": "refusal", "refusal": "no"}, 4]},
        {**MESSAGE, "content": [{"type": "refusal", "refusal": "no"}, 4]},
    ),
    (less(CALL, "status", "arguments"), CALL),
    (less(CALL, "call_id"), {**CALL, "call_id": "fc_1"}),
    (
        {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c", "name": "k", "input": None},
        {"id": "ctc_1", "type": "custom_tool_call", "call_id": "c", "name": "k", "input": ""},
    ),
    ({"id": "rs_1", "type": "reasoning"}, {"id": "rs_1", "type": "reasoning", "summary": []}),
    ({"id": "ws_1", "type": "web_search_call"}, {"id": "ws_1", "type": "web_search_call"}),
]


@pytest.mark.parametrize(("item", "want"), ITEMS)
def test_items(item: Json, want: Json) -> None:
    before = copy.deepcopy(item)
    assert tidy_item(item, 0) == want
    assert item == before
    assert (tidy_item(item, 0) is item) is (item == want)


@pytest.mark.parametrize(
    ("item", "prefix"),
    [(less(MESSAGE, "id"), "msg_"), ({**CALL, "id": 4}, "fc_"), ({"type": "odd", "id": ""}, "item_")],
)
def test_an_item_without_an_id_gets_one_of_its_own(item: Json, prefix: str) -> None:
    first, second = tidy_item(item, 0)["id"], tidy_item(item, 1)["id"]
    assert first.startswith(prefix)
    assert first != second
    assert first == tidy_item(dict(item), 0)["id"]


def test_a_call_without_any_id_is_called_by_its_own() -> None:
    nameless = less(CALL, "id", "call_id")
    tidy = tidy_item(nameless, 2)
    assert tidy["call_id"] == tidy["id"]
    assert tidy["id"] != made_id("fc_", "2")


@pytest.mark.parametrize(
    ("output", "finished", "late"),
    [
        ([MESSAGE, CALL], [], [MESSAGE, CALL]),
        ([MESSAGE, CALL], [MESSAGE], [CALL]),
        ([{**MESSAGE, "id": "msg_2"}], [MESSAGE], []),
        ([{**CALL, "id": "fc_2"}, MESSAGE], [MESSAGE, CALL], []),
        ([MESSAGE, {**MESSAGE, "id": "msg_2"}], [MESSAGE], [{**MESSAGE, "id": "msg_2"}]),
        ([], [MESSAGE], []),
        (None, [MESSAGE], []),
        (["junk"], [], []),
    ],
)
def test_what_only_the_last_event_tells(output: Any, finished: list[Json], late: list[Json]) -> None:
    assert untold(output, finished) == late
