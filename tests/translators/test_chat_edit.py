"""`edit_request` and `passes` as a whole."""

from __future__ import annotations

import pytest

from tests.translators.chat_edit_profiles import CLAUDE, CUSTOM, FUNCTION, SCHEMA, Json
from tests.translators.chat_edits import OPENAI, profile
from translators.chat.edit import edit_request, passes

ORDINARY: Json = {
    "model": "m",
    "messages": [
        {"role": "developer", "content": "Answer in JSON."},
        {"role": "user", "name": "ann", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "call_2", "type": "custom", "custom": {"name": "p", "input": "x"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_2", "content": "2"},
        {"role": "tool", "tool_call_id": "call_1", "content": "1"},
        {"role": "assistant", "content": "It is"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "f",
                "description": "d",
                "strict": True,
                "parameters": {
                    "type": "object",
                    "properties": {"a": {"$ref": "#/$defs/A"}},
                    "$defs": {"A": {}},
                },
            },
        },
        {"type": "custom", "custom": {"name": "p"}},
    ],
    "tool_choice": {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
    },
    "parallel_tool_calls": False,
    "response_format": {"type": "json_object"},
    "reasoning_effort": "high",
    "stream": True,
    "stream_options": {"include_usage": True, "include_obfuscation": False},
    "max_completion_tokens": 100,
    "metadata": {"a": "b"},
    "store": True,
    "temperature": 0.2,
    "logprobs": True,
    "top_logprobs": 2,
    "verbosity": "low",
}


def test_an_ordinary_body_goes_to_openai_as_it_is() -> None:
    edited = edit_request(ORDINARY, profile(**OPENAI))
    assert edited.body is ORDINARY
    assert (edited.changed, edited.losses, edited.repairs) == (False, [], [])


OF_ALL_SORTS = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "developer", "content": "d"},
        {"role": "user", "name": "ann", "content": [{"type": "text", "text": "x", "cache_control": {}}]},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "why",
            "tool_calls": [
                {"id": "a", "type": "function", "index": 0, "function": {"name": "f", "arguments": ""}}
            ],
        },
        {"role": "user", "content": "Warning"},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "assistant", "content": "So"},
    ],
    "tools": [{"type": "function", "name": "f", "strict": True}],
    "tool_choice": "required",
    "reasoning_effort": "low",
    "max_completion_tokens": 10000,
    "temperature": 1,
    "seed": 1,
    "odd": 1,
    "stream": True,
}
CLOSED = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "s\n\nd"},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {
            "role": "assistant",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "user", "content": "Warning"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "f", "parameters": {"type": "object", "properties": {}}},
        }
    ],
    "tool_choice": "auto",
    "thinking": {"type": "enabled", "budget_tokens": 2048},
    "max_tokens": 10000,
    "stream": True,
    "stream_options": {"include_usage": True},
}
LOST = [
    "/tools/0/function/strict",
    "/temperature",
    "/tool_choice",
    "/messages/2/name",
    "/messages/3/reasoning_content",
    "/messages/3/tool_calls/0/index",
    "/messages/6",
    "/seed",
    "/odd",
]


def test_every_rule_of_a_closed_backend_in_one_body() -> None:
    edited = edit_request(OF_ALL_SORTS, profile(**CLAUDE))
    assert edited.body == CLOSED
    assert len(edited.repairs) == 1
    assert [loss.pointer for loss in edited.losses] == LOST


CUSTOM_CALL = {"id": "a", "type": "custom", "custom": {"name": "c", "input": "x"}}
KEEPS_CUSTOM = {"tools": {"types": ["function", "custom"], "custom": "keep"}}


@pytest.mark.parametrize(
    ("body", "rules", "lane"),
    [
        ({}, {}, True),
        ({"tools": [FUNCTION, {"function": {"name": "f"}}, {"type": "function", "name": "f"}]}, {}, True),
        ({"tools": "odd", "messages": ["odd", {"tool_calls": "odd"}]}, {}, True),
        ({"tools": [FUNCTION, CUSTOM]}, {}, False),
        ({"tools": [CUSTOM]}, {"tools": {"types": ["function", "custom"], "custom": "drop"}}, False),
        ({"tools": [CUSTOM]}, KEEPS_CUSTOM, True),
        ({"tools": [{"type": "web_search"}]}, {}, False),
        ({"tools": [{"type": "web_search"}]}, {"tools": {"builtin": "keep"}}, True),
        ({"tools": [{"type": "browser_search"}]}, {"tools": {"types": ["function", "browser_search"]}}, True),
        ({"messages": [{"role": "assistant", "tool_calls": [CUSTOM_CALL]}]}, {}, False),
        ({"messages": [{"role": "assistant", "tool_calls": [CUSTOM_CALL]}]}, KEEPS_CUSTOM, True),
        ({"messages": [{"role": "assistant", "tool_calls": [{"type": "function"}]}]}, {}, True),
        ({"response_format": SCHEMA}, {}, True),
        ({"response_format": SCHEMA}, {"output_format": {"json_schema": "tool"}}, False),
        ({"response_format": {"type": "json_object"}}, {"output_format": {"json_schema": "tool"}}, True),
    ],
)
def test_which_bodies_pass(body: Json, rules: Json, lane: bool) -> None:
    assert passes({"model": "m", "messages": [], **body}, profile(**rules)) is lane
