"""`messages.system_channel`: instructions as such, or as the first item of `input`."""

from __future__ import annotations

from typing import Any

import pytest

from app.ids import new_id
from tests.translators.chat_edits import profile
from translators.chat import ChatClient
from translators.ir import Json
from translators.responses import ResponsesBackend, ResponsesClient

USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
ROLES = {"developer-item": "developer", "system-item": "system"}
KEEP = {"developer": "keep", "system": "many"}


def item(role: str, text: str = "S") -> Json:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def edited(body: Json, **messages: Any) -> Json:
    rules = profile(messages={**KEEP, **messages})
    once = ResponsesBackend().edit_request({"model": "m", **body}, rules)
    assert ResponsesBackend().edit_request(once.body, rules).body == once.body
    assert once.losses == []
    return once.body


@pytest.mark.parametrize("channel", ROLES)
@pytest.mark.parametrize(
    ("given", "rest"),
    [
        ("hi", [USER]),
        ([USER], [USER]),
        ([], []),
        (None, []),
        ([item("system", "T"), USER], [item("system", "T"), USER]),
    ],
)
def test_instructions_become_the_first_item(channel: str, given: Any, rest: list[Json]) -> None:
    body = edited({"instructions": "S", "input": given}, system_channel=channel)
    assert "instructions" not in body
    assert body["input"] == [item(ROLES[channel]), *rest]


@pytest.mark.parametrize("channel", ROLES)
@pytest.mark.parametrize("nothing", [{}, {"instructions": ""}, {"instructions": None}])
def test_nothing_said_is_no_item(channel: str, nothing: Json) -> None:
    assert edited({**nothing, "input": "hi"}, system_channel=channel) == {"model": "m", "input": "hi"}


def test_by_default_they_stay() -> None:
    assert edited({"instructions": "S", "input": "hi"}) == {"model": "m", "instructions": "S", "input": "hi"}


@pytest.mark.parametrize(("named", "role"), [("system", "system"), ("user", "user"), ("keep", "developer")])
def test_a_developers_item_is_called_as_developers_are(named: str, role: str) -> None:
    body = edited({"instructions": "S", "input": "hi"}, system_channel="developer-item", developer=named)
    assert body["input"][0]["role"] == role


def test_what_was_gathered_moves_as_one() -> None:
    given = [item("system", "A"), USER, item("developer", "B")]
    body = edited({"instructions": "S", "input": given}, system="hoist_all", system_channel="system-item")
    assert body == {"model": "m", "input": [item("system", "S\n\nA\n\nB"), USER]}


def test_what_no_backend_reads_is_left_to_it() -> None:
    body = edited({"instructions": ["S"], "input": "hi"}, system_channel="system-item")
    assert body["instructions"] == ["S"]


def test_a_schema_told_in_words_moves_too() -> None:
    rules = profile(
        messages={**KEEP, "system_channel": "system-item"}, output_format={"json_schema": "prompt"}
    )
    text = {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}}
    body = ResponsesBackend().edit_request({"model": "m", "input": "hi", "text": text}, rules).body
    assert body["input"][0]["role"] == "system"
    assert "JSON Schema" in body["input"][0]["content"][0]["text"]


@pytest.mark.parametrize("channel", ROLES)
def test_a_chat_clients_leading_run_is_one_item(channel: str) -> None:
    turns = [{"role": "system", "content": "A"}, {"role": "developer", "content": "B"}]
    turns.append({"role": "user", "content": "hi"})
    call = ChatClient().decode_request({"model": "m", "messages": turns}, new_id)
    rules = profile(messages={**KEEP, "system_channel": channel})
    body = ResponsesBackend().encode_request(call, rules).body
    assert "instructions" not in body
    assert body["input"][0] == item(ROLES[channel], "A\n\nB")
    assert [each["role"] for each in body["input"]] == [ROLES[channel], "user"]


def test_a_responses_clients_losses_keep_their_places() -> None:
    rules = profile(messages={**KEEP, "system_channel": "system-item", "reasoning_items": "drop"})
    body = {"model": "m", "instructions": "S", "input": [USER, {"type": "reasoning", "summary": []}, USER]}
    encoded = ResponsesBackend().encode_request(ResponsesClient().decode_request(body, new_id), rules)
    assert [loss.pointer for loss in encoded.losses] == ["/input/1"]
