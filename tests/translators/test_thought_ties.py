"""What is tied to reasoning: ids of items behind it, signatures of calls, capsules beside foreign seals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.translators.chat_edits import profile
from tests.translators.test_capsules import CALL, CLAUDE, GEMINI, SEALS, THOUGHT, USER, answered, translation
from translators.capsule import in_messages, seal, without_capsules
from translators.ir import Json
from translators.responses import ResponsesBackend


def user(text: str = "go") -> Json:
    return {"type": "message", "role": "user", "content": text}


def thought(number: int, **more: Any) -> Json:
    sealed = {"encrypted_content": f"E{number}"}
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], **sealed, **more}


def said(number: int) -> Json:
    content = [{"type": "output_text", "text": "x"}]
    return {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": content}


def call(number: int) -> Json:
    ids = {"id": f"fc_{number}", "call_id": f"c{number}"}
    return {"type": "function_call", **ids, "name": "f", "arguments": "{}"}


def result(number: int) -> Json:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": "r"}


ALL = {"scope": "all"}
TIES: dict[str, tuple[list[Json], Json, list[str], list[tuple[str, str]]]] = {
    # input, rules, the ids that are sent, what is lost
    "nothing is left out": (
        [user(), thought(1), call(1), result(1), thought(2), said(2)],
        ALL,
        ["rs_1", "fc_1", "rs_2", "msg_2"],
        [],
    ),
    "an earlier turn's": (
        [user(), thought(1), said(1), user(), thought(2), call(2), result(2)],
        {},
        ["rs_2", "fc_2"],
        [("/input/1", "policy")],
    ),
    "none at all": (
        [user(), thought(1), said(1), call(1), result(1), said(2)],
        {"scope": "none"},
        ["msg_2"],
        [("/input/1", "policy")],
    ),
    "off": ([user(), thought(1), call(1), result(1)], {"mode": "off"}, [], [("/input/1", "policy")]),
    "parallel calls": (
        [user(), thought(1), call(1), call(2), result(1), result(2), call(3), result(3)],
        {"scope": "none"},
        ["fc_3"],
        [("/input/1", "policy")],
    ),
    "an orphan": (
        [thought(1), user(), said(1)],
        ALL,
        ["msg_1"],
        [("/input/0", "bookkeeping")],
    ),
    "an id that leads nowhere": (
        [user(), thought(1, encrypted_content=None), call(1), result(1)],
        ALL,
        [],
        [("/input/1", "bookkeeping")],
    ),
    "one of two": (
        [user(), thought(1, encrypted_content=None), thought(2), call(1), result(1)],
        ALL,
        ["rs_2", "fc_1"],
        [("/input/1", "bookkeeping")],
    ),
    "the nearer of two": (
        [user(), thought(1), thought(2, encrypted_content=None), call(1), result(1)],
        ALL,
        ["rs_1"],
        [("/input/2", "bookkeeping")],
    ),
    "its words alone": (
        [user(), thought(1, summary=[{"type": "summary_text", "text": "w"}]), call(1), result(1)],
        {**ALL, "mode": "summary-only"},
        [],
        [],
    ),
    "a backend that needs the ids": (
        [user(), thought(1), said(1), user()],
        {"sweep": False},
        ["msg_1"],
        [("/input/1", "policy")],
    ),
    "a user's id is its own": (
        [user(), thought(1), {**user(), "id": "msg_9"}, said(1)],
        {"scope": "none"},
        ["msg_9", "msg_1"],
        [("/input/1", "policy")],
    ),
}


@pytest.mark.parametrize("name", TIES)
def test_items_that_lose_their_reasoning_lose_their_ids(name: str) -> None:
    items, rules, ids, lost = TIES[name]
    backend, told = ResponsesBackend(), profile(reasoning=rules)
    edited = backend.edit_request({"model": "m", "store": False, "input": items}, told)
    assert [item["id"] for item in edited.body["input"] if "id" in item] == ids
    assert [(loss.pointer, loss.kind) for loss in edited.losses] == lost
    assert backend.edit_request(edited.body, told).body == edited.body


def test_what_a_backend_never_takes_back_is_a_loss_in_every_turn() -> None:
    rules = profile(messages={"reasoning_items": "drop"})
    body = {"model": "m", "store": False, "input": [user(), thought(1), said(1), user(), thought(2), said(2)]}
    edited = ResponsesBackend().edit_request(body, rules)
    assert [(loss.pointer, loss.kind) for loss in edited.losses] == [
        ("/input/1", "bookkeeping"),
        ("/input/4", "bookkeeping"),
    ]
    assert all("id" not in item for item in edited.body["input"])


def test_reasoning_is_whole_and_before_its_call() -> None:
    """`summary` is required by OpenAI, and empty where nobody may read the thought."""
    bare = {key: value for key, value in thought(1).items() if key != "summary"}
    body = {"model": "m", "store": False, "input": [user(), bare, call(1), result(1)]}
    sent = ResponsesBackend().edit_request(body, profile(reasoning=ALL)).body["input"]
    assert sent[1:3] == [{**bare, "summary": []}, call(1)]


# --- signatures of calls ---------------------------------------------------------------


def signed(letter: str, **ids: str) -> Json:
    return {**CALL, **ids, "thoughtSignature": letter}


def turn(letter: str, call_id: str) -> list[Json]:
    """The output of one reply with one call, and the call's result."""
    output = answered({"content": None, "tool_calls": [signed(letter, id=call_id)]}, GEMINI)
    return [*output, {"type": "function_call_output", "call_id": call_id, "output": "r"}]


def signatures(items: list[Json]) -> list[Any]:
    messages = translation([USER, *items], GEMINI).encoded.body["messages"]
    calls = [each for message in messages for each in message.get("tool_calls", ())]
    return [each.get("thoughtSignature") for each in calls]


def without(items: list[Json], kind: str) -> list[Json]:
    return [item for item in items if item["type"] != kind]


PAIRINGS: dict[str, tuple[list[Json], list[Any]]] = {
    "two replies, two ids": ([*turn("A", "f1"), *turn("B", "f2")], ["A", "B"]),
    "one id in every reply": ([*turn("A", "f"), *turn("B", "f")], ["A", "B"]),
    "one id, the first unsigned": ([*without(turn("A", "f"), "reasoning"), *turn("B", "f")], [None, "B"]),
    "one id, the last unsigned": ([*turn("A", "f"), *without(turn("B", "f"), "reasoning")], ["A", None]),
    "the only call of its id, in another turn": (
        [*turn("A", "f1")[:1], *turn("B", "f2"), *turn("A", "f1")[1:]],
        ["B", "A"],
    ),
    "behind its call": (sorted(turn("A", "f"), key=lambda item: item["type"] == "reasoning"), ["A"]),
    "no call of its id": ([*turn("A", "f1")[:1], *without(turn("B", "f2"), "reasoning")], [None]),
}


@pytest.mark.parametrize("name", PAIRINGS)
def test_a_signature_finds_its_call(name: str) -> None:
    items, found = PAIRINGS[name]
    assert signatures(items) == found


# --- capsules beside what others sealed ------------------------------------------------


def test_a_capsule_beside_reasoning_of_another_backend() -> None:
    output = answered({"content": [THOUGHT], "tool_calls": [CALL]}, CLAUDE)
    foreign = thought(7, summary=[{"type": "summary_text", "text": "theirs"}])
    bare = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "words"}]}
    items = [USER, foreign, bare, *output, {"type": "function_call_output", "call_id": "c1", "output": "r"}]
    encoded = translation(items, CLAUDE).encoded
    assert encoded.body["messages"][1]["content"] == [THOUGHT]
    assert b"E7" not in repr(encoded.body).encode()
    assert [loss.pointer for loss in encoded.losses] == ["/input/1", "/input/2"]


def test_capsules_of_two_targets() -> None:
    mine, other = {"calls": {"c1": {"thoughtSignature": "G"}}}, {"parts": [THOUGHT]}
    theirs = seal(replace(SEALS, target="p/other"), other)
    sealed = [
        {"type": "reasoning", "summary": [], "encrypted_content": text}
        for text in (theirs, seal(SEALS, mine))
    ]
    asked = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    encoded = translation([USER, *sealed, asked], GEMINI).encoded
    assert encoded.body["messages"][1]["tool_calls"][0]["thoughtSignature"] == "G"
    assert "SIG" not in repr(encoded.body)
    assert [loss.pointer for loss in encoded.losses] == ["/input/1"]


def test_a_responses_backend_keeps_its_own_beside_a_capsule() -> None:
    capsule = {
        "type": "reasoning",
        "id": "rs_c",
        "summary": [],
        "encrypted_content": seal(SEALS, {"parts": []}),
    }
    items = [user(), capsule, call(1), result(1), thought(2), said(2)]
    body, lost = without_capsules({"model": "m", "store": False, "input": items})
    edited = ResponsesBackend().edit_request(body, profile(reasoning=ALL))
    sent = edited.body["input"]
    assert [item.get("encrypted_content") for item in sent if item["type"] == "reasoning"] == ["E2"]
    assert "dgm1." not in repr(sent)
    assert [item["id"] for item in sent if "id" in item] == ["rs_2", "msg_2"]
    assert [loss.pointer for loss in (*lost, *edited.losses)] == ["/input/1", "/input/1"]


CAPSULE = {"type": "reasoning.encrypted", "data": "dgm1.x.y"}
BODIES: dict[str, tuple[Any, bool]] = {
    "one": ([{"role": "assistant", "reasoning_details": [CAPSULE]}], True),
    "behind others": ([{"role": "user"}, 5, {"reasoning_details": ["x", {"data": "gAAA"}, CAPSULE]}], True),
    "another's": ([{"role": "assistant", "reasoning_details": [{"data": "gAAA"}, {"data": 5}]}], False),
    "no list of details": ([{"role": "assistant", "reasoning_details": {"data": "dgm1.x.y"}}], False),
    "no list of messages": ("dgm1.x.y", False),
    "none": (None, False),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_chat_body_that_brings_a_capsule_back(name: str) -> None:
    messages, holds = BODIES[name]
    assert in_messages({"messages": messages}) is holds
