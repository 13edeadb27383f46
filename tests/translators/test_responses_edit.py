"""Profiles applied to Responses bodies."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.translators.responses_edit_conversation import CONVERSATION
from tests.translators.responses_edit_formats import FORMATS
from tests.translators.responses_edit_history import HISTORY
from tests.translators.responses_edit_keys import KEYS
from tests.translators.responses_edit_tools import TOOLS
from tests.translators.responses_items import CALL, GOOD, RESULT, SAID, SPACE, WEB, F, G, user
from tests.translators.responses_profiles import KEEP, OPEN, formats, messages, tools
from translators.effort import nearest_effort
from translators.errors import ProxyError
from translators.ir import Json, ToolChoice, ToolRef
from translators.profile import CallIdRule, Profile, ReasoningRules, SchemaRules
from translators.responses.edit import edit_request, passes
from translators.responses.edit_tools import write_choice
from translators.responses.ids import call_id, made_id, short_id

# --- nothing asked, nothing changed ------------------------------------------------------


@pytest.mark.parametrize("body", GOOD)
def test_a_good_body_is_not_touched(body: Json) -> None:
    asked = {"model": "m", **body}
    edited = edit_request(asked, KEEP)
    assert edited.body == asked
    assert (edited.changed, edited.losses, edited.repairs) == (False, [], [])


# --- rules, one by one -------------------------------------------------------------------

CASES = {**KEYS, **TOOLS, **CONVERSATION, **HISTORY, **FORMATS}


@pytest.mark.parametrize("name", CASES)
def test_rules(name: str) -> None:
    profile, body, want, lost = CASES[name]
    asked = {"model": "m", **body}
    before = copy.deepcopy(asked)
    edited = edit_request(asked, profile)
    assert edited.body == {"model": "m", **want}
    assert [loss.pointer for loss in edited.losses] == lost
    assert edited.changed is (edited.body != asked)
    assert asked == before


@pytest.mark.parametrize("name", CASES)
def test_editing_twice_is_editing_once(name: str) -> None:
    profile, body, _, _ = CASES[name]
    once = edit_request({"model": "m", **body}, profile).body
    again = edit_request(once, profile)
    assert (again.body, again.repairs) == (once, [])


@pytest.mark.parametrize(
    ("name", "repairs"),
    [
        ("a result without its call", 2),
        ("a call nobody answered", 3),
        ("a prefill", 2),
        ("the word in a string", 1),
        ("the word where nobody says it", 1),
        ("thoughts", 0),
        ("a result that names the item of its call", 1),
    ],
)
def test_repairs_are_counted(name: str, repairs: int) -> None:
    profile, body, _, _ = CASES[name]
    assert len(edit_request(body, profile).repairs) == repairs


REFUSED: list[tuple[Profile, Json, str]] = [
    (KEEP, {"tools": [F, "junk"]}, "tools[1]"),
    (KEEP, {"tools": [F, {"type": "function"}]}, "tools[1].name"),
    (tools(max=1), {"tools": [F, G]}, "tools"),
    (tools(builtin="reject"), {"tools": [F, WEB]}, "tools[1]"),
    (
        tools(schema=SchemaRules(top_level_union="reject")),
        {"tools": [{**F, "parameters": {"anyOf": [{}]}}]},
        "tools[0].parameters",
    ),
    (KEEP, {"tools": [F], "tool_choice": {"type": "function", "name": "nope"}}, "tool_choice"),
    (KEEP, {"tool_choice": {"type": "function", "name": "nope"}}, "tool_choice"),
    (OPEN, {"tools": [F, WEB], "tool_choice": {"type": "web_search"}}, "tool_choice"),
    (
        messages(remote_images="reject"),
        {"input": [user("a"), {**RESULT, "output": [{"type": "input_image", "image_url": "https://x/y"}]}]},
        "input[1].output[0]",
    ),
]


@pytest.mark.parametrize(("profile", "body", "param"), REFUSED)
def test_faults_name_their_place(profile: Profile, body: Json, param: str) -> None:
    with pytest.raises(ProxyError) as caught:
        edit_request({"model": "m", **body}, profile)
    assert (caught.value.http_status, caught.value.param) == (400, param)


# --- whether edits are enough --------------------------------------------------------------

SCHEMA = {"text": {"format": {"type": "json_schema", "name": "a", "schema": {}}}}
CUSTOM = {"type": "custom", "name": "p"}
SEARCH = {"type": "tool_search", "execution": "client"}

PASSES: list[tuple[Profile, Json, bool]] = [
    *((KEEP, body, True) for body in GOOD),
    (KEEP, SCHEMA, True),
    (formats(json_schema="tool"), SCHEMA, False),
    (formats(json_schema="tool"), {"text": {"format": {"type": "json_object"}}}, True),
    (OPEN, {"tools": [F, WEB], "input": [user("a"), CALL, RESULT]}, True),
    (OPEN, {"tools": [CUSTOM]}, False),
    (OPEN, {"tools": [SPACE]}, False),
    (OPEN, {"tools": [SEARCH]}, False),
    (OPEN, {"tools": [{**SEARCH, "execution": "server"}]}, True),
    (tools(types=("function", "namespace")), {"tools": [SPACE]}, True),
    (tools(types=("function", "namespace")), {"tools": [{**SPACE, "tools": [CUSTOM]}]}, False),
    (KEEP, {"tools": [{"type": "function", "function": {"name": "f"}}]}, False),
    (KEEP, {"tools": [{"type": "custom", "custom": {"name": "p"}}]}, False),
    (KEEP, {"tools": [{"name": "f"}]}, False),
    (OPEN, {"input": [{"type": "custom_tool_call", "call_id": "c", "name": "p", "input": ""}]}, False),
    (OPEN, {"input": [{"type": "custom_tool_call_output", "call_id": "c", "output": ""}]}, False),
    (
        tools(types=("function", "custom")),
        {"input": [{"type": "custom_tool_call", "namespace": "ns"}]},
        False,
    ),
    (OPEN, {"input": [{**CALL, "namespace": "ns"}]}, False),
    (OPEN, {"input": [{"type": "tool_search_call", "execution": "client"}]}, False),
    (OPEN, {"input": [{"type": "tool_search_output", "execution": "server"}]}, True),
    (OPEN, {"input": [{"type": "additional_tools", "tools": []}]}, False),
    (KEEP, {"input": [{"type": "additional_tools", "tools": []}, SEARCH], "tools": [SEARCH, CUSTOM]}, True),
    # written otherwise than this wire says: read, and written anew
    (KEEP, {"input": [{"type": ["message"], "role": "user", "content": "a"}]}, False),
    (KEEP, {"input": [{"role": "user", "content": "a"}]}, True),
    (KEEP, {"input": [{"role": "user"}]}, False),
    (KEEP, {"input": [{"role": "user", "content": None}]}, False),
    (KEEP, {"input": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}, False),
    (
        KEEP,
        {"input": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}]},
        False,
    ),
    (KEEP, {"input": [{"role": "user", "content": [SAID]}]}, False),
    (KEEP, {"input": [{"role": "user", "content": [{"type": "unheard_of"}, "junk"]}]}, True),
    (KEEP, {"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "a"}]}]}, False),
    (KEEP, {"input": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "a"}]}]}, True),
    (KEEP, {"input": [{**CALL, "arguments": {"a": 1}}]}, False),
    (KEEP, {"input": [{**CALL, "arguments": ""}]}, False),
    (KEEP, {"input": [{**CALL, "call_id": None}]}, False),
    (KEEP, {"input": [{"type": "custom_tool_call", "call_id": "c", "name": "p", "input": ""}]}, True),
    (KEEP, {"input": [{"type": "custom_tool_call", "call_id": "c", "name": "p"}]}, False),
    (KEEP, {"input": [{**RESULT, "call_id": ""}]}, False),
    (KEEP, {"input": [{**RESULT, "output": None}]}, False),
    (KEEP, {"input": [{**RESULT, "output": {"k": 1}}]}, False),
    (KEEP, {"input": [{**RESULT, "output": [1]}]}, False),
    (KEEP, {"input": [{**RESULT, "output": [{"no": "type"}]}]}, False),
    (KEEP, {"input": [{**RESULT, "output": [SAID]}]}, False),
    (KEEP, {"input": [{**RESULT, "output": [{"type": "input_text", "text": "r"}]}]}, True),
    (KEEP, {"input": [{"type": "custom_tool_call_output", "call_id": "c", "output": 4}]}, False),
]


@pytest.mark.parametrize(("profile", "body", "want"), PASSES)
def test_passes(profile: Profile, body: Json, want: bool) -> None:
    assert passes({"model": "m", **body}, profile) is want


# --- small parts ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "efforts", "mapped", "want"),
    [
        ("high", ("low", "high"), {}, "high"),
        ("xhigh", ("low", "medium", "high"), {}, "high"),
        ("medium", ("low", "high"), {}, "high"),
        ("medium", ("low", "high"), {"medium": "low"}, "low"),
        ("minimal", ("none", "low"), {}, "low"),
        ("none", ("low",), {}, None),
        ("low", ("none",), {}, None),
        ("unheard", ("low",), {}, None),
        ("ultra", ("low", "max", "default"), {}, "max"),
    ],
)
def test_the_nearest_effort(asked: str, efforts: tuple[str, ...], mapped: Any, want: str | None) -> None:
    assert nearest_effort(asked, ReasoningRules(efforts=efforts, map=mapped)) == want


def test_short_ids_are_the_same_for_the_same_id_and_apart_for_others() -> None:
    long, other = "call_" + "a" * 90, "call_" + "a" * 89 + "b"
    assert short_id("call_1", 64) == "call_1"
    assert len({short_id(long, 64), short_id(other, 64)}) == 2
    assert len(short_id(long, 64)) == 64
    assert short_id(long, 64).startswith("call_aaa")
    assert len(short_id(long, 9)) == 9
    rule = CallIdRule(max=9, pattern="[a-zA-Z0-9]{9}")
    assert call_id("abcdefghi", rule) == "abcdefghi"
    assert len(call_id("call_1", rule)) == 9
    assert made_id("msg_", "1", "a") == made_id("msg_", "1", "a") != made_id("msg_", "2", "a")


def test_choices_in_this_shapes_form() -> None:
    refs = (ToolRef("function", "f"), ToolRef("mcp", "x", raw={"type": "mcp", "server_label": "s"}))
    assert write_choice(ToolChoice("required")) == "required"
    assert write_choice(ToolChoice("required", refs[:1], named=True)) == {"type": "function", "name": "f"}
    assert write_choice(ToolChoice("auto", (*refs, ToolRef("custom", "p", "ns")))) == {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [
            {"type": "function", "name": "f"},
            {"type": "mcp", "server_label": "s", "name": "x"},
            {"type": "custom", "name": "p", "namespace": "ns"},
        ],
    }
    assert write_choice(ToolChoice("required", (ToolRef("web_search"),), named=True)) == {
        "type": "web_search"
    }
