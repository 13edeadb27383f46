"""A Chat client's tools, its choice among them, and its parameters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translators.chat_requests import CUSTOM, FLAT, FUNCTION, HOSTED, SCHEMA, decode
from translators.ir import Opaque, Tool, ToolChoice, ToolRef

# --- tools and tool_choice -------------------------------------------------------------

GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: x"}
TOOLS = {
    "function": (FUNCTION, Tool("f", "d", SCHEMA, True, at="/tools/0")),
    "function, bare": ({"type": "function", "function": {"name": "f"}}, Tool("f", at="/tools/0")),
    "function, nulls": (
        {
            "type": "function",
            "function": {"name": "f", "parameters": None, "description": None, "strict": None},
        },
        Tool("f", at="/tools/0"),
    ),
    "function, flat": (
        {"type": "function", "name": "f", "parameters": SCHEMA},
        Tool("f", schema=SCHEMA, at="/tools/0"),
    ),
    "function, no type": ({"function": {"name": "f"}}, Tool("f", at="/tools/0")),
    "key beside the function": (
        {**FUNCTION, "cache_control": {}},
        Tool("f", "d", SCHEMA, True, at="/tools/0", extra={"cache_control": {}}),
    ),
    "custom": (CUSTOM, Tool("p", kind="custom", format=GRAMMAR, at="/tools/0")),
    "custom, text": (
        {"type": "custom", "custom": {"name": "p", "description": "d", "format": {"type": "text"}}},
        Tool("p", "d", kind="custom", format={"type": "text"}, at="/tools/0"),
    ),
    "custom, bare": ({"type": "custom", "custom": {"name": "p"}}, Tool("p", kind="custom", at="/tools/0")),
    "custom, flat": (
        {"type": "custom", "name": "p", "format": GRAMMAR},
        Tool("p", kind="custom", format=GRAMMAR, at="/tools/0"),
    ),
    "hosted": ({"type": "web_search", "x": 1}, Opaque("chat", {"type": "web_search", "x": 1}, "/tools/0")),
}


@pytest.mark.parametrize("name", TOOLS)
def test_tools(name: str) -> None:
    raw, tool = TOOLS[name]
    assert decode(tools=[raw]).tools == (tool,)


def test_old_functions_are_tools_that_call_once() -> None:
    call = decode(functions=[{"name": "f", "parameters": SCHEMA}], function_call={"name": "f"})
    assert call.tools == (Tool("f", schema=SCHEMA, at="/functions/0"),)
    assert call.params == {"parallel_tool_calls": False}
    assert call.tool_choice is not None
    assert (call.tool_choice.named, call.tool_choice.only[0].name) == (True, "f")
    assert "functions" not in call.extra


def ref(kind: str, name: str | None, raw: dict[str, Any]) -> ToolRef:
    return ToolRef(kind, name, raw=raw)


NAMED = {"type": "function", "function": {"name": "f"}}
NAMED_CUSTOM = {"type": "custom", "custom": {"name": "p"}}
CHOICES: dict[str, tuple[Any, ToolChoice]] = {
    "auto": ("auto", ToolChoice("auto")),
    "none": ("none", ToolChoice("none")),
    "required": ("required", ToolChoice("required")),
    "Mistral's any": ("any", ToolChoice("required")),
    "Anthropic's object": ({"type": "auto"}, ToolChoice("auto")),
    "function": (NAMED, ToolChoice("required", (ref("function", "f", NAMED),), True)),
    "function, flat": (FLAT, ToolChoice("required", (ref("function", "f", FLAT),), True)),
    "custom": (NAMED_CUSTOM, ToolChoice("required", (ref("custom", "p", NAMED_CUSTOM),), True)),
    "hosted": (HOSTED, ToolChoice("required", (ref("web_search", None, HOSTED),), True)),
    "allowed": (
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED, NAMED_CUSTOM]}},
        ToolChoice("required", (ref("function", "f", NAMED), ref("custom", "p", NAMED_CUSTOM))),
    ),
    "allowed, flat": (
        {"type": "allowed_tools", "tools": [FLAT]},
        ToolChoice("auto", (ref("function", "f", FLAT),)),
    ),
}


@pytest.mark.parametrize("name", CHOICES)
def test_tool_choice(name: str) -> None:
    raw, choice = CHOICES[name]
    assert decode(tools=[FUNCTION, CUSTOM, HOSTED], tool_choice=raw).tool_choice == choice


@pytest.mark.parametrize("raw", ["auto", "none"])
def test_old_function_call_modes(raw: str) -> None:
    assert decode(functions=[{"name": "f"}], function_call=raw).tool_choice == ToolChoice(raw)


def test_tool_choice_wins_over_function_call() -> None:
    assert decode(tools=[FUNCTION], tool_choice="none", function_call="auto").tool_choice == ToolChoice(
        "none"
    )


# --- parameters ------------------------------------------------------------------------

PARAMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "limit": ({"max_completion_tokens": 5}, {"max_tokens": 5}),
    "old limit": ({"max_tokens": 5}, {"max_tokens": 5}),
    "the new limit wins": ({"max_tokens": 5, "max_completion_tokens": 6}, {"max_tokens": 6}),
    "the Responses name of the limit": (
        {"max_output_tokens": 7, "max_tokens": 5, "max_completion_tokens": 6},
        {"max_tokens": 7},
    ),
    "null limit": ({"max_tokens": 5, "max_completion_tokens": None}, {"max_tokens": 5}),
    "sampling": (
        {"temperature": 0, "top_p": 1.0, "seed": 7, "n": 2, "presence_penalty": 0.5, "frequency_penalty": 0},
        {"temperature": 0, "top_p": 1.0, "seed": 7, "n": 2, "presence_penalty": 0.5, "frequency_penalty": 0},
    ),
    "stop": ({"stop": "END"}, {"stop": "END"}),
    "stops": ({"stop": ["a", "b"]}, {"stop": ["a", "b"]}),
    "logprobs": (
        {"logprobs": True, "top_logprobs": 2, "logit_bias": {"1": 2}},
        {"logprobs": True, "top_logprobs": 2, "logit_bias": {"1": 2}},
    ),
    "effort": ({"reasoning_effort": "low"}, {"effort": "low"}),
    "OpenRouter's effort": ({"reasoning": {"effort": "high"}, "reasoning_effort": "low"}, {"effort": "high"}),
    "verbosity": ({"verbosity": "low"}, {"verbosity": "low"}),
    "format text": ({"response_format": {"type": "text"}}, {"format": {"type": "text"}}),
    "format object": ({"response_format": {"type": "json_object"}}, {"format": {"type": "json_object"}}),
    "format schema": (
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "a", "strict": True, "schema": SCHEMA},
            }
        },
        {"format": {"type": "json_schema", "name": "a", "strict": True, "schema": SCHEMA}},
    ),
    "format schema, flat": (
        {"response_format": {"type": "json_schema", "name": "a", "schema": SCHEMA}},
        {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}},
    ),
    "tools": ({"parallel_tool_calls": False}, {"parallel_tool_calls": False}),
    "bookkeeping": (
        {
            "metadata": {"a": "b"},
            "user": "u",
            "safety_identifier": "s",
            "store": True,
            "prompt_cache_key": "k",
        },
        {
            "metadata": {"a": "b"},
            "user": "u",
            "safety_identifier": "s",
            "store": True,
            "prompt_cache_key": "k",
        },
    ),
    "empty strings are unset": ({"prompt_cache_key": "", "user": ""}, {}),
    "nulls are absent": (
        {"temperature": None, "tools": None, "tool_choice": None, "functions": None, "stop": None},
        {},
    ),
}


@pytest.mark.parametrize("name", PARAMS)
def test_params(name: str) -> None:
    body, params = PARAMS[name]
    call = decode(**body)
    assert call.params == params
    assert call.extra == {}


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        ({"max_completion_tokens": 5, "max_tokens": 4, "logprobs": True, "top_logprobs": 2}, {}),
        ({"max_tokens": 5, "logprobs": False}, {"max_tokens": "/max_tokens"}),
        ({"max_output_tokens": 5, "logprobs": False}, {"max_tokens": "/max_output_tokens"}),
        ({"reasoning": {"effort": "low"}, "logprobs": False}, {"effort": "/reasoning/effort"}),
        ({"top_logprobs": 2}, {"logprobs": "/top_logprobs"}),
    ],
)
def test_parameters_said_under_another_name_are_known_by_it(
    asked: dict[str, Any], places: dict[str, str]
) -> None:
    assert decode(**asked).places == places


def test_unknown_keys_travel_apart() -> None:
    call = decode(
        top_k=5, chat_template_kwargs={"x": 1}, nothing=None, reasoning={"effort": "low", "exclude": True}
    )
    assert call.extra == {"top_k": 5, "chat_template_kwargs": {"x": 1}, "reasoning": {"exclude": True}}


def test_reasoning_without_an_effort_is_left_alone() -> None:
    assert decode(reasoning={"max_tokens": 5}).extra == {"reasoning": {"max_tokens": 5}}


@pytest.mark.parametrize(
    ("body", "stream", "usage"),
    [
        ({}, False, False),
        ({"stream": None, "stream_options": None}, False, False),
        ({"stream": True}, True, False),
        ({"stream": True, "stream_options": {"include_usage": True}}, True, True),
        (
            {"stream": True, "stream_options": {"include_usage": None, "include_obfuscation": False}},
            True,
            False,
        ),
    ],
)
def test_stream(body: dict[str, Any], stream: bool, usage: bool) -> None:
    call = decode(**body)
    assert (call.stream, call.include_usage, call.extra) == (stream, usage, {})
