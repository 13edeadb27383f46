from __future__ import annotations

import copy
from typing import Any

import pytest

from translators.chat.history import repair_history

Json = dict[str, Any]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def user(text: Any) -> Json:
    return {"role": "user", "content": text}


def call(call_id: Any, name: str = "f", arguments: Any = "{}") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*made: Json, content: Any = None) -> Json:
    return {"role": "assistant", "content": content, "tool_calls": list(made)}


def said(text: str) -> Json:
    return {"role": "assistant", "content": text}


def result(call_id: Any, content: Any = "r") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def missing(call_id: str, name: str = "f") -> Json:
    return result(call_id, f"[No result: the call of {name} was never answered. It may not have run.]")


LEGAL = {
    "no calls": [user("x"), said("y"), said("z"), user("x")],
    "one call": [user("x"), calls(call("a")), result("a"), said("y")],
    "parallel calls": [calls(call("a"), call("b")), result("a"), result("b"), user("x")],
    "turn after turn": [calls(call("a")), result("a"), calls(call("b")), result("b")],
    "a custom call": [
        calls({"id": "a", "type": "custom", "custom": {"name": "p", "input": ""}}),
        result("a"),
    ],
    "text in parts": [calls(call("a")), result("a", [{"type": "text", "text": "t"}])],
    "arguments that are no JSON": [calls(call("a", arguments="{oops")), result("a")],
    "an unknown call form": [calls({"id": "a", "type": "odd"}), result("a")],
    "calls of another role": [{"role": "user", "tool_calls": [call("a")]}],
    "calls that are no list": [{"role": "assistant", "content": "x", "tool_calls": "odd"}],
    "nothing": [],
}


@pytest.mark.parametrize("messages", LEGAL.values(), ids=LEGAL)
def test_a_legal_history_is_returned_as_it_is(messages: list[Json]) -> None:
    repaired, repairs = repair_history(messages)
    assert repaired is messages
    assert repairs == []


CLOSED = "[The turn ended here: not every call was answered.]"

BROKEN: dict[str, tuple[list[Json], list[Json], int]] = {
    "a warning between call and result": (
        [user("go"), calls(call("a")), user("Warning!"), result("a"), user("then?")],
        [user("go"), calls(call("a")), result("a"), user("Warning!"), user("then?")],
        1,
    ),
    "a message between two results": (
        [calls(call("a"), call("b")), result("a"), user("w"), result("b")],
        [calls(call("a"), call("b")), result("a"), result("b"), user("w")],
        1,
    ),
    "results in another order": (
        [calls(call("a"), call("b")), result("b", "2"), result("a", "1")],
        [calls(call("a"), call("b")), result("a", "1"), result("b", "2")],
        0,
    ),
    "a result after the next turn": (
        [calls(call("a")), user("w"), calls(call("b")), result("b"), result("a")],
        [calls(call("a")), result("a"), user("w"), calls(call("b")), result("b")],
        1,
    ),
    "a result before its call": (
        [result("a"), user("x"), calls(call("a"))],
        [user("x"), calls(call("a")), result("a")],
        1,
    ),
    "call, text, result": (
        [calls(call("a")), said("Working."), result("a")],
        [calls(call("a"), content="Working."), result("a")],
        1,
    ),
    "text, call, text, call": (
        [calls(call("a"), content="One."), said("Two."), calls(call("b")), result("a"), result("b")],
        [calls(call("a"), call("b"), content="One.\n\nTwo."), result("a"), result("b")],
        2,
    ),
    "text after a partial answer": (
        [calls(call("a"), call("b")), result("a"), said("t"), result("b")],
        [calls(call("a"), call("b")), result("a"), result("b"), said("t")],
        1,
    ),
    "a result whose call is gone": (
        [user("summary"), result("gone", "text"), user("continue")],
        [user("summary"), user("[Tool result gone]: text"), user("continue")],
        1,
    ),
    "a result that only has a name": (
        [user("go"), {"role": "tool", "name": "tick_tool", "content": "tick"}],
        [user("go"), user("[Tool result tick_tool]: tick")],
        1,
    ),
    "a result with neither": (
        [user("go"), result("", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])],
        [user("go"), user("[Tool result]: a\nb")],
        1,
    ),
    "a picture whose call is gone": (
        [user("go"), result("gone", [IMAGE])],
        [user("go"), user([{"type": "text", "text": "[Tool result gone]:"}, IMAGE])],
        1,
    ),
    "an orphan inside a turn": (
        [calls(call("a")), result("x", "old"), result("a")],
        [calls(call("a")), result("a"), user("[Tool result x]: old")],
        2,
    ),
    "a second result of one call": (
        [calls(call("a")), result("a", "1"), result("a", "2")],
        [calls(call("a")), result("a", "1"), user("[Tool result a]: 2")],
        1,
    ),
    "a call nobody answered": (
        [user("x"), calls(call("a", "sh")), user("stop")],
        [user("x"), calls(call("a", "sh")), missing("a", "sh"), said(CLOSED), user("stop")],
        1,
    ),
    "one of two calls answered": (
        [calls(call("a"), call("b")), result("b"), user("x")],
        [calls(call("a"), call("b")), missing("a"), result("b"), said(CLOSED), user("x")],
        1,
    ),
    "calls at the very end": (
        [user("x"), calls(call("a"))],
        [user("x"), calls(call("a")), missing("a")],
        1,
    ),
    "one id for two calls of a turn": (
        [calls(call("a", "f"), call("a", "g")), result("a", "1"), result("a", "2")],
        [calls(call("a", "f"), call("a_2", "g")), result("a", "1"), result("a_2", "2")],
        1,
    ),
    "one id in two turns": (
        [calls(call("a")), result("a", "1"), calls(call("a")), result("a", "2")],
        [calls(call("a")), result("a", "1"), calls(call("a_2")), result("a_2", "2")],
        1,
    ),
    "an unanswered call whose id comes again": (
        [calls(call("a")), user("x"), calls(call("a")), result("a")],
        [calls(call("a")), missing("a"), said(CLOSED), user("x"), calls(call("a_2")), result("a_2")],
        2,
    ),
    "a new id that is taken": (
        [calls(call("a"), call("a_2"), call("a")), result("a"), result("a_2"), result("a")],
        [calls(call("a"), call("a_2"), call("a_3")), result("a"), result("a_2"), result("a_3")],
        1,
    ),
    "a new id that comes later": (
        [calls(call("a"), call("a"), call("a_2")), result("a"), result("a"), result("a_2")],
        [calls(call("a"), call("a_2"), call("a_2_2")), result("a"), result("a_2"), result("a_2_2")],
        2,
    ),
    "a call without an id": (
        [calls(call(None)), result(None)],
        [calls(call("call")), result("call")],
        1,
    ),
    "an id that is no string": (
        [calls(call(["a"])), result(["a"])],
        [calls(call("call")), result("call")],
        1,
    ),
    "a result without an id": (
        [calls(call("a")), result(None), result("a")],
        [calls(call("a")), result("a"), user("[Tool result]: r")],
        2,
    ),
}


@pytest.mark.parametrize(("messages", "wanted", "count"), BROKEN.values(), ids=BROKEN)
def test_a_broken_history_is_repaired_and_counted(
    messages: list[Json], wanted: list[Json], count: int
) -> None:
    before = copy.deepcopy(messages)
    repaired, repairs = repair_history(messages)
    assert repaired == wanted
    assert len(repairs) == count
    assert messages == before
    assert repair_history(repaired) == (repaired, [])


REWRITTEN: dict[str, tuple[list[Json], list[Json]]] = {
    "empty arguments": (
        [calls(call("a", arguments=""), call("b", arguments=" ")), result("a"), result("b")],
        [calls(call("a"), call("b")), result("a"), result("b")],
    ),
    "null and absent arguments": (
        [
            calls(call("a", arguments=None), {"id": "b", "type": "function", "function": {"name": "f"}}),
            result("a"),
            result("b"),
        ],
        [calls(call("a"), call("b")), result("a"), result("b")],
    ),
    "arguments as an object": (
        [calls(call("a", arguments={"x": 1})), result("a")],
        [calls(call("a", arguments='{"x":1}')), result("a")],
    ),
    "pictures in results follow the whole group": (
        [
            calls(call("a", "view"), call("b")),
            result("a", [{"type": "text", "text": "seen"}, IMAGE]),
            result("b"),
            user("x"),
        ],
        [
            calls(call("a", "view"), call("b")),
            result("a", "seen\n[The attachments of this result follow in the next user message.]"),
            result("b"),
            user([{"type": "text", "text": "[Attachments of the result of view (a):]"}, IMAGE]),
            user("x"),
        ],
    ),
    "a result with an unknown part keeps it": (
        [calls(call("a")), result("a", [{"type": "odd"}, IMAGE])],
        [
            calls(call("a")),
            result(
                "a",
                [
                    {"type": "odd"},
                    {
                        "type": "text",
                        "text": "[The attachments of this result follow in the next user message.]",
                    },
                ],
            ),
            user([{"type": "text", "text": "[Attachments of the result of f (a):]"}, IMAGE]),
        ],
    ),
    "an item's id beside the call's, once only": (
        [calls(call("a|fc_1"), call("|fc_2")), result("a"), result("|fc_2")],
        [calls(call("a|fc_1"), call("|fc_2")), result("a|fc_1"), result("|fc_2")],
    ),
}


@pytest.mark.parametrize(("messages", "wanted"), REWRITTEN.values(), ids=REWRITTEN)
def test_what_backends_take_otherwise_is_no_repair(messages: list[Json], wanted: list[Json]) -> None:
    assert repair_history(messages) == (wanted, [])
    assert repair_history(wanted) == (wanted, [])


def test_reasoning_and_other_keys_of_merged_messages_are_joined() -> None:
    first = {**calls(call("a")), "reasoning_content": "think", "odd": None, "list": [1], "name": "n", "x": 1}
    second = {**said("text"), "reasoning_content": "more", "odd": 2, "list": [2], "only": True, "x": 2}
    repaired, repairs = repair_history([first, second, result("a")])
    assert repaired[0] == {
        **calls(call("a"), content="text"),
        "reasoning_content": "think\n\nmore",
        "odd": 2,
        "list": [1, 2],
        "name": "n",
        "only": True,
        "x": 1,
    }
    assert len(repairs) == 1


def test_content_that_was_left_out_stays_out() -> None:
    bare = [{"role": "assistant", "tool_calls": [call(name)]} for name in ("a", "b")]
    repaired, _ = repair_history([*bare, result("a"), result("b")])
    assert repaired[0] == {"role": "assistant", "tool_calls": [call("a"), call("b")]}


def test_entries_of_tool_calls_that_are_no_objects_are_left_out_of_a_repaired_turn() -> None:
    broken = {"role": "assistant", "content": None, "tool_calls": ["odd", call("a")]}
    repaired, _ = repair_history([broken, user("x"), result("a")])
    assert repaired == [calls(call("a")), result("a"), user("x")]
