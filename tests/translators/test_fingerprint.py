"""Which changes of a conversation are found when a thought comes back, and which count as none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translators.chat_edits import profile
from tests.translators.test_capsules import CLAUDE, SHAPES, answered
from translators import fingerprint
from translators.capsule import Seals, seal
from translators.chat import ChatBackend
from translators.fingerprint import Asked
from translators.ir import Json
from translators.responses import ResponsesClient
from translators.translate import translate_request

ASKED: Json = {
    "model": "m",
    "instructions": "be brief",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "ok"},
    ],
}
USER, CALL, DONE = ASKED["input"]

SAME: dict[str, Json] = {
    "as it was": ASKED,
    "it went on": {**ASKED, "input": [*ASKED["input"], {"role": "user", "content": "more"}]},
    "text as a string": {**ASKED, "input": [{"role": "user", "content": "go"}, CALL, DONE]},
    "text by another name": {
        **ASKED,
        "input": [{"role": "user", "content": [{"type": "text", "text": "go"}]}, CALL, DONE],
    },
    "other ids": {**ASKED, "input": [{**USER, "id": "msg_1"}, {**CALL, "id": "fc_2"}, DONE]},
    "status and null": {**ASKED, "input": [USER, {**CALL, "status": "completed"}, {**DONE, "name": None}]},
    "annotations": {
        **ASKED,
        "input": [
            {**USER, "content": [{**USER["content"][0], "annotations": [], "logprobs": []}]},
            CALL,
            DONE,
        ],
    },
    "keys in another order": {**ASKED, "input": [dict(reversed(item.items())) for item in ASKED["input"]]},
    "a thought more": {**ASKED, "input": [USER, {"type": "reasoning", "summary": []}, CALL, DONE]},
    "tools": {**ASKED, "tools": [{"type": "function", "name": "f"}]},
    "an alias": {**ASKED, "model": "other"},
}

CHANGED: dict[str, Json] = {
    "instructions": {**ASKED, "instructions": "be long"},
    "no instructions": {"model": "m", "input": ASKED["input"]},
    "a text": {**ASKED, "input": [{"role": "user", "content": "stop"}, CALL, DONE]},
    "a role": {**ASKED, "input": [{**USER, "role": "system"}, CALL, DONE]},
    "arguments": {**ASKED, "input": [USER, {**CALL, "arguments": "{} "}, DONE]},
    "a call's name": {**ASKED, "input": [USER, {**CALL, "name": "g"}, DONE]},
    "a result": {**ASKED, "input": [USER, CALL, {**DONE, "output": "no"}]},
    "the order": {**ASKED, "input": [CALL, USER, DONE]},
    "one left out": {**ASKED, "input": [USER, DONE]},
    "cut short": {**ASKED, "input": [USER]},
    "no list": {**ASKED, "input": None},
}


@pytest.mark.parametrize("name", SAME)
def test_what_says_the_same(name: str) -> None:
    assert Asked(SAME[name]).begins_with(Asked(ASKED).whole())


@pytest.mark.parametrize("name", CHANGED)
def test_what_was_changed(name: str) -> None:
    assert not Asked(CHANGED[name]).begins_with(Asked(ASKED).whole())


def test_a_string_is_one_item() -> None:
    assert Asked({"input": "go"}).whole() == Asked({"input": [{"role": "user", "content": "go"}]}).whole()
    assert Asked({"input": "go"}).whole().items == 1


@pytest.mark.parametrize("change", [{"detail": "low"}, {"image_url": "data:image/png;base64,BB"}])
def test_an_image_is_hashed_by_what_it_is(change: Json) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA"}
    first, other = ({"input": [{"role": "user", "content": [one]}]} for one in (image, {**image, **change}))
    assert not Asked(other).begins_with(Asked(first).whole())


# --- in capsules -----------------------------------------------------------------------

QUESTION = {"role": "user", "content": "go"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "r"}


def returned(name: str, first: Json, second: Json, **reasoning: Any) -> tuple[Json, list[Any]]:
    """The assistant's message as the backend gets it, where the reply to `first` comes back in `second`."""
    rules, message = SHAPES[name]
    rules = {"reasoning": {**rules["reasoning"], **reasoning}}
    seals = Seals(lambda: b"k" * 32, "p/m", Asked(first))
    output = answered(message, rules, seals)
    body = {**second, "input": [*second["input"], *output, RESULT]}
    client, seals = ResponsesClient(), Seals(lambda: b"k" * 32, "p/m", Asked(body))
    made = translate_request(
        client.decode_request(body, lambda p: p + "1"), client, ChatBackend(), profile(**rules), seals
    )
    sent = next(m for m in made.encoded.body["messages"] if m["role"] == "assistant")
    return sent, [loss.pointer for loss in made.encoded.losses]


FIRST: Json = {"model": "m", "instructions": "a", "input": [QUESTION]}


@pytest.mark.parametrize("name", SHAPES)
def test_unchanged_all_comes_back(name: str) -> None:
    sent, lost = returned(name, FIRST, FIRST)
    assert {key: sent.get(key) for key in SHAPES[name][1]} == SHAPES[name][1]
    assert lost == []


@pytest.mark.parametrize("name", SHAPES)
def test_changed_thoughts_stay_out_and_signatures_stay(name: str) -> None:
    sent, lost = returned(name, FIRST, {**FIRST, "instructions": "b"})
    if "gemini" in name:
        assert sent["tool_calls"] == SHAPES[name][1]["tool_calls"]
        assert lost == []
    else:
        assert not any(secret in repr(sent) for secret in ("SIG", "ENC", "'E'"))
        assert "/input/1" in lost


def test_the_sweep_may_be_off() -> None:
    sent, lost = returned("claude summary", FIRST, {**FIRST, "instructions": "b"}, sweep=False)
    assert (sent["content"], lost) == (SHAPES["claude summary"][1]["content"], [])


def test_nothing_is_hashed_that_no_capsule_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []

    def items(given: Any) -> list[Any]:
        hashed.append(1)
        return []

    monkeypatch.setattr(fingerprint, "_items", items)
    asked = Asked(FIRST)
    seals = Seals(lambda: b"k" * 32, "p/m", asked)
    answered({"content": "hi"}, CLAUDE, seals)
    assert hashed == []
    seal(seals, {"calls": {}})
    seal(seals, {"parts": []})
    assert hashed == [1]
