"""Requests of the other shape, end to end: decode, lower, encode. Each kind was a bug report once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tests.translators.chat_edits import OPENAI, profile
from translators.chat.decode import decode_request as decode_chat
from translators.chat.edit import edit_request, passes
from translators.chat.encode import encode_request
from translators.responses.decode import decode_request as decode_responses
from translators.tools import lower_tools

Json = dict[str, Any]
EMPTY = {"type": "object", "properties": {}}
BASE = {
    "request": {
        "drop_translated": ["store", "metadata", "verbosity", "prompt_cache_key", "safety_identifier"]
    }
}
U = {"role": "user", "content": "x"}


def new_id() -> Callable[[str], str]:
    numbers = count(1)
    return lambda prefix: f"{prefix}{next(numbers)}"


def translated(body: Json, rules: Json | None = None) -> Json:
    """The Chat body for a Responses request, without its model."""
    how = profile(**(rules or BASE))
    call = decode_responses({"model": "m", **body}, new_id())
    encoded = encode_request(lower_tools(call, how, "chat").call, how)
    return {key: value for key, value in encoded.body.items() if key != "model"}


def message(role: str, *parts: Json | str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": part} if isinstance(part, str) else part for part in parts]
    return {"type": "message", "role": role, "content": content}


def call(call_id: str, name: str = "f", **more: Any) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}", **more}


def output(call_id: str, value: Any = "r") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": value}


def wire_call(call_id: str, name: str = "f", arguments: str = "{}") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def wire_tool(name: str, **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": EMPTY, **more}}


F = {"type": "function", "name": "f", "parameters": EMPTY}
NAMESPACE = {"type": "namespace", "name": "ns", "tools": [{**F, "name": "g"}]}

CASES: dict[str, tuple[Json, Json]] = {
    "a string and instructions": (
        {"input": "x", "instructions": "s"},
        {"messages": [{"role": "system", "content": "s"}, U]},
    ),
    "instructions and a developer message are one": (
        {"instructions": "core", "input": [message("developer", "rules"), message("user", "x")]},
        {"messages": [{"role": "system", "content": "core\n\nrules"}, U]},
    ),
    "the whole of a turn": (
        {
            "input": [
                message("user", "x"),
                message("assistant", "Let me look."),
                call("a"),
                call("b"),
                output("b", [{"type": "input_text", "text": "2"}, {"type": "input_text", "text": "two"}]),
                output("a", "1"),
            ],
            "tools": [F],
        },
        {
            "messages": [
                U,
                {
                    "role": "assistant",
                    "content": "Let me look.",
                    "tool_calls": [wire_call("a"), wire_call("b")],
                },
                {"role": "tool", "tool_call_id": "a", "content": "1"},
                {"role": "tool", "tool_call_id": "b", "content": "2\ntwo"},
            ],
            "tools": [wire_tool("f")],
        },
    ),
    "a call that has an item id only": (
        {
            "input": [
                message("user", "x"),
                {"type": "function_call", "id": "fc_9", "name": "f", "arguments": ""},
                {"type": "function_call_output", "id": "fc_9", "output": "r"},
            ]
        },
        {
            "messages": [
                U,
                {"role": "assistant", "content": None, "tool_calls": [wire_call("fc_9")]},
                {"role": "tool", "tool_call_id": "fc_9", "content": "r"},
            ]
        },
    ),
    "a namespaced call is named as its tool": (
        {
            "input": [message("user", "x"), call("a", "g", namespace="ns"), output("a")],
            "tools": [NAMESPACE],
        },
        {
            "messages": [
                U,
                {"role": "assistant", "content": None, "tool_calls": [wire_call("a", "ns__g")]},
                {"role": "tool", "tool_call_id": "a", "content": "r"},
            ],
            "tools": [wire_tool("ns__g")],
        },
    ),
    "a free-form call as a function's": (
        {
            "input": [
                message("user", "x"),
                {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": "P"},
                {"type": "custom_tool_call_output", "call_id": "a", "output": "Done"},
            ]
        },
        {
            "messages": [
                U,
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [wire_call("a", "patch", '{"input":"P"}')],
                },
                {"role": "tool", "tool_call_id": "a", "content": "Done"},
            ]
        },
    ),
    "tools as an item of the input": (
        {"input": [{"type": "additional_tools", "tools": [F]}, message("user", "x")]},
        {"messages": [U], "tools": [wire_tool("f")]},
    ),
    "hosted tools and nothing else": (
        {
            "input": "x",
            "tools": [{"type": "web_search"}],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
        },
        {"messages": [U]},
    ),
    "an allowed set": (
        {
            "input": "x",
            "tools": [F, {**F, "name": "g"}],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "g"}],
            },
        },
        {"messages": [U], "tools": [wire_tool("g")], "tool_choice": "required"},
    ),
    "what no chat backend knows": (
        {
            "input": "x",
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "k",
            "client_metadata": {"a": "b"},
            "truncation": "disabled",
            "max_tool_calls": 3,
            "text": {"verbosity": "low", "format": {"type": "text"}},
            "reasoning": {"summary": "auto", "effort": "medium"},
        },
        {"messages": [U], "reasoning_effort": "medium"},
    ),
    "log probabilities": (
        {"input": "x", "include": ["message.output_text.logprobs"]},
        {"messages": [U], "logprobs": True},
    ),
}


@pytest.mark.parametrize(("body", "wanted"), CASES.values(), ids=CASES)
def test_responses_to_chat(body: Json, wanted: Json) -> None:
    assert translated(body) == wanted


CHAT_BODIES: dict[str, Json] = {
    "text": {"messages": [{"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, U]},
    "parts": {
        "messages": [
            {
                "role": "user",
                "name": "ann",
                "content": [
                    {"type": "text", "text": "a"},
                    {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
                    {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
                    {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:,x"}},
                ],
            }
        ]
    },
    "a broken history": {
        "messages": [
            U,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [wire_call("a", arguments=""), wire_call("a")],
            },
            {"role": "assistant", "content": "text", "reasoning_content": "why"},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "tool", "tool_call_id": "gone", "content": "2"},
        ]
    },
    "tools": {
        "messages": [U],
        "tools": [wire_tool("f", strict=True, description="d"), {"type": "function", "name": "g"}],
        "tool_choice": {"type": "function", "name": "g"},
        "parallel_tool_calls": False,
    },
    "parameters": {
        "messages": [U],
        "max_tokens": 5,
        "temperature": 0.5,
        "n": 2,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": EMPTY}},
        "reasoning_effort": "xhigh",
        "metadata": {"a": "b"},
        "logit_bias": {"1": 2},
        "stream": True,
        "odd": 1,
    },
}
RULES = {
    "base": {},
    "openai": OPENAI,
    "closed": {
        "request": {
            "extra_keys": [],
            "drop": ["metadata"],
            "rename": {"max_completion_tokens": "max_tokens"},
        },
        "messages": {"text_parts": "string", "user_name": "drop", "null_content": "omit"},
    },
}


BROKEN = "a broken history"
"""An exact backend gets it as it is in the pass lane, and judges it in its own words."""


@pytest.mark.parametrize(
    ("name", "case"), [(n, c) for n in RULES for c in CHAT_BODIES if (n, c) != ("openai", BROKEN)]
)
def test_both_lanes_say_the_same(name: str, case: str) -> None:
    """Law: between equal shapes a passed body and a translated one are the same."""
    body, rules = {"model": "m", **CHAT_BODIES[case]}, profile(**RULES[name])
    passed = edit_request(body, rules)
    encoded = encode_request(decode_chat(body, new_id()), rules)
    assert passes(body, rules)
    assert encoded.body == passed.body


def test_a_broken_history_passes_to_the_exact_as_it_is() -> None:
    body = {"model": "m", "messages": [U, {"role": "tool", "tool_call_id": "gone", "content": "2"}]}
    assert edit_request(body, profile(**OPENAI)).body is body
    repaired = encode_request(decode_chat(body, new_id()), profile(**OPENAI))
    assert repaired.body["messages"] == [U, {"role": "user", "content": "[Tool result gone]: 2"}]
