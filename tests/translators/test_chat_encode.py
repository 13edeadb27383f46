"""A `Call` as a Chat body: parameters, tools, choices; losses and errors in the client's words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.translators.chat_edits import OPENAI, profile
from translators.chat.encode import encode_request
from translators.dialect import Encoded
from translators.errors import ProxyError
from translators.ir import (
    Call,
    Item,
    Message,
    Namespace,
    Opaque,
    Reasoning,
    Shape,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolRef,
    ToolResult,
)
from translators.params import PARAMS, idle

Json = dict[str, Any]
USER = Message("user", (Text("x"),), at="/input/0")
TRANSLATED = {"request": {"drop_translated": ["store", "metadata", "verbosity"]}}
EMPTY = {"type": "object", "properties": {}}


def encode(
    shape: Shape = "responses", rules: Json | None = None, items: tuple[Item, ...] = (USER,), **fields: Any
) -> Encoded:
    call = Call(shape=shape, model="m", items=items, **fields)
    return encode_request(call, profile(**(rules or {})))


def rest(encoded: Encoded) -> Json:
    """What is in the body beside model and messages."""
    return {key: value for key, value in encoded.body.items() if key not in ("model", "messages")}


def lost(encoded: Encoded) -> list[str]:
    return [loss.pointer for loss in encoded.losses]


SCHEMA = {"type": "json_schema", "name": "n", "schema": {"a": 1}, "strict": True, "description": None}


@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        ({}, {}),
        ({"max_tokens": 5}, {"max_tokens": 5}),
        (
            {"temperature": 0, "top_p": 1, "stop": ["a"], "seed": 3},
            {"temperature": 0, "top_p": 1, "stop": ["a"], "seed": 3},
        ),
        ({"effort": "low"}, {"reasoning_effort": "low"}),
        ({"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"logprobs": True}, {"logprobs": True}),
        ({"format": {"type": "json_object"}}, {"response_format": {"type": "json_object"}}),
        ({"format": {"type": "text"}}, {}),
        (
            {"format": SCHEMA},
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": {"a": 1}, "strict": True},
                }
            },
        ),
        ({"user": "u"}, {"user": "u"}),
        # what says the same as nothing is not said
        ({"presence_penalty": 0, "top_logprobs": 0, "logprobs": False, "logit_bias": {}}, {}),
        (
            {
                "summary": "auto",
                "truncation": "disabled",
                "store": False,
                "metadata": {},
                "service_tier": "auto",
            },
            {},
        ),
    ],
)
def test_parameters_of_a_responses_client(params: Json, wanted: Json) -> None:
    encoded = encode(rules=TRANSLATED, params=params)
    assert encoded.body == {"model": "m", "messages": [{"role": "user", "content": "x"}], **wanted}
    assert encoded.changed
    assert lost(encoded) == []


@pytest.mark.parametrize(
    ("params", "pointers"),
    [
        ({"include": ["reasoning.encrypted_content"]}, ["/include"]),
        ({"max_tool_calls": 3, "truncation": "auto"}, ["/max_tool_calls", "/truncation"]),
        (
            {"store": True, "metadata": {"a": "b"}, "verbosity": "low"},
            ["/text/verbosity", "/metadata", "/store"],
        ),
        ({"effort": "xhigh"}, ["/reasoning/effort"]),
        ({"temperature": 9, "max_tokens": 9}, ["/temperature", "/max_output_tokens"]),
    ],
)
def test_what_is_lost_is_told_in_the_client_s_words(params: Json, pointers: list[str]) -> None:
    rules = {"request": {**TRANSLATED["request"], "clamp": {"temperature": [0, 1], "max_tokens": [1, 5]}}}
    assert lost(encode(rules=rules, params=params)) == pointers


def test_a_loss_is_told_by_the_name_the_client_used() -> None:
    said: Json = {"params": {"effort": "xhigh"}, "places": {"effort": "/reasoning_effort"}}
    assert lost(encode(**said)) == ["/reasoning_effort"]
    dropped = {"request": {"drop": ["max_tokens"]}}
    said = {"params": {"max_tokens": 5}, "places": {"max_tokens": "/max_tokens"}}
    assert lost(encode("chat", dropped, **said)) == ["/max_tokens"]


@pytest.mark.parametrize(
    ("name", "value", "is_idle"),
    [
        ("presence_penalty", 0, True),
        ("presence_penalty", 0.0, True),
        ("presence_penalty", False, False),
        ("logprobs", False, True),
        ("logprobs", 0, False),
        ("n", 1.0, True),
        ("n", True, False),
        ("metadata", {}, True),
    ],
)
def test_what_says_the_same_as_nothing(name: str, value: Any, is_idle: bool) -> None:
    assert idle(name, value) is is_idle


def test_a_chat_client_keeps_what_it_says_in_this_shape() -> None:
    params = {"store": True, "metadata": {"a": "b"}, "verbosity": "low", "presence_penalty": 0}
    encoded = encode("chat", TRANSLATED, params=params, extra={"odd": 1})
    assert rest(encoded) == {**params, "odd": 1}
    assert lost(encoded) == []


def test_unknown_keys_reach_their_own_shape_only() -> None:
    encoded = encode(extra={"access_programs": {"cyber": 1}, "nothing": None})
    assert rest(encoded) == {}
    assert lost(encoded) == ["/access_programs"]


def test_the_limit_has_the_backend_s_name() -> None:
    assert rest(encode(rules=OPENAI, params={"max_tokens": 5})) == {"max_completion_tokens": 5}


def test_usage_is_asked_for_in_every_stream() -> None:
    assert rest(encode(stream=True)) == {"stream": True, "stream_options": {"include_usage": True}}


FEATURES = [param for param in PARAMS if param.kind == "feature"]


@pytest.mark.parametrize("param", [param for param in FEATURES if param.chat is None], ids=lambda p: p.name)
def test_a_feature_that_chat_lacks_is_refused(param: Any) -> None:
    with pytest.raises(ProxyError) as caught:
        encode(params={param.name: {"id": "p"}})
    assert (caught.value.http_status, caught.value.param) == (400, param.name)


# --- tools -----------------------------------------------------------------------------


def test_tools_in_their_chat_form() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: x"}
    tools = (
        Tool("f", "d", EMPTY, strict=True, at="/tools/0", extra={"defer_loading": True}),
        Tool("g", at="/tools/1"),
        Tool("p", kind="custom", format=grammar, at="/tools/2"),
        Tool("q", kind="custom", format={"type": "text"}, at="/tools/3"),
        Tool("r", kind="custom", at="/tools/4"),
        Opaque("responses", {"type": "web_search"}, "/tools/5"),
        Namespace("ns", (), at="/tools/6"),
        Opaque("chat", {"type": "browser_search"}, "/tools/7"),
    )
    encoded = encode(rules={"tools": {"strict": "keep"}}, tools=tools)
    assert rest(encoded)["tools"] == [
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": EMPTY, "strict": True},
        },
        {"type": "function", "function": {"name": "g", "parameters": EMPTY}},
        {
            "type": "custom",
            "custom": {
                "name": "p",
                "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}},
            },
        },
        {"type": "custom", "custom": {"name": "q", "format": {"type": "text"}}},
        {"type": "custom", "custom": {"name": "r"}},
        {"type": "browser_search"},
    ]
    assert lost(encoded) == ["/tools/5", "/tools/6"]


def test_losses_inside_tools_point_into_the_client_s_form() -> None:
    strict = Tool("f", strict=True, at="/tools/2/tools/1")
    hosted = Opaque("responses", {"type": "x"}, "/tools/0")
    assert lost(encode(tools=(hosted, strict))) == ["/tools/0", "/tools/2/tools/1/strict"]
    kept = Tool("f", strict=True, at="/tools/0", extra={"cache_control": 1})
    encoded = encode("chat", {"request": {"extra_keys": []}}, tools=(kept,))
    assert lost(encoded) == ["/tools/0/function/strict", "/tools/0/cache_control"]


F, C = Tool("f", at="/tools/0"), Tool("c", kind="custom", at="/tools/1")
REF_F, REF_C = ToolRef("function", "f"), ToolRef("custom", "c")
NAMED_F = {"type": "function", "function": {"name": "f"}}
NAMED_C = {"type": "custom", "custom": {"name": "c"}}


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (ToolChoice("auto"), "auto"),
        (ToolChoice("none"), "none"),
        (ToolChoice("required"), "required"),
        (ToolChoice("required", (REF_F,), named=True), NAMED_F),
        (ToolChoice("required", (REF_C,), named=True), NAMED_C),
        (
            ToolChoice("auto", (REF_F, REF_C)),
            {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED_F, NAMED_C]}},
        ),
    ],
)
def test_choices(choice: ToolChoice, wanted: Any) -> None:
    assert rest(encode(rules=OPENAI, tools=(F, C), tool_choice=choice))["tool_choice"] == wanted


def test_a_hosted_tool_is_chosen_in_the_words_it_came_in() -> None:
    tools = (Opaque("chat", {"type": "browser_search"}, "/tools/0"),)
    raw = {"type": "browser_search", "mode": "x"}
    for ref, wanted in (
        (ToolRef("browser_search", raw=raw), raw),
        (ToolRef("browser_search"), {"type": "browser_search"}),
    ):
        encoded = encode("chat", OPENAI, tools=tools, tool_choice=ToolChoice("required", (ref,), named=True))
        assert rest(encoded)["tool_choice"] == wanted


def test_nothing_left_of_tools_leaves_no_trace() -> None:
    encoded = encode(tool_choice=ToolChoice("auto"), params={"parallel_tool_calls": True})
    assert rest(encoded) == {}
    assert lost(encoded) == []


def test_one_call_at_a_time() -> None:
    assert rest(encode(tools=(F,), params={"parallel_tool_calls": False}))["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in rest(encode(tools=(F,), params={"parallel_tool_calls": True}))


# --- places ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "pointer"),
    [("responses", ["/input/1"]), ("chat", ["/input/1/name"])],
)
def test_losses_in_messages_point_to_the_client_s(shape: Shape, pointer: list[str]) -> None:
    items = (USER, replace(USER, name="ann", at="/input/1"), replace(USER, at="/input/2"))
    assert lost(encode(shape, {"messages": {"user_name": "drop"}}, items=items)) == pointer


def test_one_item_is_reported_once() -> None:
    items = (USER, Message("user", (Text("x"),), name="n", at="/input/1", extra={"a": 1, "b": 2}))
    encoded = encode("chat", {"request": {"extra_keys": []}}, items=items)
    assert lost(encoded) == ["/input/1/a", "/input/1/b"]
    reasoning = (
        USER,
        Reasoning(("w",), at="/input/1"),
        Message("assistant", (Text("y"),), at="/input/2"),
        USER,
    )
    rules = {"reasoning": {"replay": "field", "replay_on": "tool_turns"}}
    assert lost(encode(rules=rules, items=reasoning)) == ["/input/2"]


def test_what_no_client_said_is_no_loss() -> None:
    """The repair made this message; its reasoning field is ours as well."""
    items = (
        USER,
        Reasoning(("w",), at="/input/1"),
        ToolCall("a", "f", "{}", at="/input/2"),
        ToolCall("a", "f", "{}", at="/input/3"),
        ToolResult("a", (Text("1"),), at="/input/4"),
        ToolResult("a", (Text("2"),), at="/input/5"),
    )
    rules = {"request": {"extra_keys": []}, "reasoning": {"replay": "tags"}}
    encoded = encode(rules=rules, items=items)
    assert lost(encoded) == []
    assert len(encoded.repairs) == 1


@pytest.mark.parametrize(
    ("fields", "rules", "param"),
    [
        (
            {"tools": (F, replace(F, name="g", schema={"anyOf": []}, at="/tools/4"))},
            {"tools": {"schema": {"top_level_union": "reject"}}},
            "tools[4].parameters",
        ),
        (
            {"tools": (F,), "tool_choice": ToolChoice("required", (REF_C,), named=True)},
            {},
            "tool_choice",
        ),
        ({"params": {"format": SCHEMA}}, {"request": {"drop": ["response_format"]}}, "text.format"),
    ],
)
def test_errors_name_the_client_s_parameter(fields: Json, rules: Json, param: str) -> None:
    with pytest.raises(ProxyError) as caught:
        encode(rules=rules, **fields)
    assert (caught.value.http_status, caught.value.param) == (400, param)
