"""`edit_request` and `passes` as a whole."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.translators.chat_edits import OPENAI, USER, profile
from translators.chat.edit import edit_request, passes
from translators.errors import ProxyError

Json = dict[str, Any]

CLAUDE: Json = {
    "request": {
        "drop": ["parallel_tool_calls", "store", "metadata", "seed", "user", "reasoning_effort"],
        "rename": {"max_completion_tokens": "max_tokens"},
        "extra_keys": ["thinking", "output_config", "top_k"],
    },
    "messages": {
        "null_content": "omit",
        "drop_empty_text": True,
        "user_name": "drop",
        "trailing_assistant": "drop",
    },
    "tools": {
        "schema": {"top_level_union": "wrap"},
        "choice": {"with_thinking": "auto"},
        "parallel_flag": "drop",
    },
    "output_format": {"json_object": "drop", "json_schema": "tool"},
    "reasoning": {
        "ask": "thinking_budget",
        "efforts": ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
        "drop_sampling": True,
    },
}
OSS: Json = {
    "request": {
        "drop": ["parallel_tool_calls", "store"],
        "rename": {"max_completion_tokens": "max_tokens"},
        "extra_keys": [],
    },
    "messages": {
        "text_parts": "string",
        "user_name": "drop",
        "split_parallel_tool_results": True,
        "null_content": "omit",
    },
    "output_format": {"needs_json_word": True},
}
DEEPSEEK: Json = {
    "messages": {"text_parts": "string", "system": "hoist_all", "tool_name": True},
    "tools": {"choice": {"with_thinking": "auto", "named": "required_single", "required": "auto"}},
    "output_format": {"json_schema": "prompt", "needs_json_word": True},
    "reasoning": {
        "ask": "thinking_toggle",
        "efforts": ["low", "high", "max"],
        "replay": "field",
        "replay_on": "tool_turns",
        "placeholder": " ",
    },
}
MISTRAL: Json = {
    "request": {"rename": {"seed": "random_seed"}, "allow": ["model", "messages", "tools", "random_seed"]},
    "messages": {"null_content": "space", "tool_call_id": {"max": 9, "pattern": "^[A-Za-z0-9]{9}$"}},
    "tools": {"schema": {"drop": ["$id", "strict"], "inline_refs": True}, "choice": {"required": "any"}},
    "reasoning": {"parts": ["thinking"], "replay": "parts", "efforts": ["none", "high"]},
}
PROFILES = {
    "base": {},
    "openai": OPENAI,
    "claude": CLAUDE,
    "oss": OSS,
    "deepseek": DEEPSEEK,
    "mistral": MISTRAL,
}

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


def test_every_rule_of_a_closed_backend_in_one_body() -> None:
    body = {
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
    edited = edit_request(body, profile(**CLAUDE))
    assert edited.body == {
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
    assert len(edited.repairs) == 1
    assert [loss.pointer for loss in edited.losses] == [
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


# --- the lanes -------------------------------------------------------------------------

FUNCTION = {"type": "function", "function": {"name": "f"}}
CUSTOM = {"type": "custom", "custom": {"name": "c"}}
CUSTOM_CALL = {"id": "a", "type": "custom", "custom": {"name": "c", "input": "x"}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
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


# --- laws ------------------------------------------------------------------------------

_ids = st.sampled_from(["a", "b", "c" * 70, ""])
_texts = st.sampled_from(["", " ", "x", "say json"])
_parts = st.lists(
    st.sampled_from(
        [
            {"type": "text", "text": "t"},
            {"type": "text", "text": ""},
            {"type": "text", "text": "m", "cache_control": {}},
            {"type": "image_url", "image_url": {"url": "data:,"}},
            {"type": "thinking", "thinking": "w"},
            {"type": "refusal", "refusal": "no"},
        ]
    ),
    max_size=3,
)
_content = st.one_of(st.none(), _texts, _parts)
_call = st.fixed_dictionaries(
    {
        "id": _ids,
        "type": st.just("function"),
        "function": st.fixed_dictionaries(
            {"name": st.just("f"), "arguments": st.sampled_from(["", "{}", "{", {"x": 1}])}
        ),
    }
)
_optional = {
    "name": st.just("n"),
    "reasoning_content": _texts,
    "reasoning": _texts,
    "refusal": st.one_of(st.none(), _texts),
    "tool_calls": st.lists(_call, max_size=3),
}
_message = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user", "reasoning"]), "content": _content}
    ),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": _content}, optional=_optional),
    st.fixed_dictionaries({"role": st.just("tool"), "content": _content, "tool_call_id": _ids}),
)
_tool = st.sampled_from(
    [
        FUNCTION,
        {"type": "function", "name": "flat", "strict": True},
        {
            "type": "function",
            "function": {"name": "g", "strict": None, "parameters": {"oneOf": [{"$ref": "#"}]}},
        },
        CUSTOM,
    ]
)
_body = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": st.lists(_message, max_size=7).map(lambda drawn: [USER, *drawn])},
    optional={
        "tools": st.lists(_tool, max_size=3, unique_by=str),
        "tool_choice": st.sampled_from(["auto", "none", "required", "any", None]),
        "parallel_tool_calls": st.booleans(),
        "response_format": st.sampled_from([{"type": "json_object"}, SCHEMA, {"type": "text"}, None]),
        "reasoning_effort": st.sampled_from(["none", "minimal", "xhigh", "?", None]),
        "reasoning": st.sampled_from([{"effort": "low"}, {"effort": "high", "exclude": True}]),
        "stream": st.sampled_from([True, False, None]),
        "stream_options": st.sampled_from([{"include_usage": False}, None]),
        "max_tokens": st.sampled_from([5, 50000, None]),
        "max_completion_tokens": st.just(7),
        "temperature": st.just(0.5),
        "seed": st.just(3),
        "odd": st.just({"x": 1}),
    },
)


@settings(max_examples=150, deadline=None)
@given(body=_body, name=st.sampled_from(sorted(PROFILES)))
def test_a_second_edit_finds_nothing_and_the_input_is_never_touched(body: Json, name: str) -> None:
    rules = profile(**PROFILES[name])
    before = copy.deepcopy(body)
    try:
        edited = edit_request(body, rules)
    except ProxyError:  # a choice of a tool that is not there
        return
    assert body == before
    assert edited.changed == (edited.body != body)
    again = edit_request(edited.body, rules)
    assert (again.body, again.repairs) == (edited.body, [])
    assert not again.changed


@settings(max_examples=150, deadline=None)
@given(body=_body, name=st.sampled_from([name for name in PROFILES if name != "openai"]))
def test_every_call_is_answered_right_after_it(body: Json, name: str) -> None:
    try:
        messages = edit_request(body, profile(**PROFILES[name])).body["messages"]
    except ProxyError:
        return
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert waiting == []
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        assert len(waiting) == len(set(waiting))
        assert seen.isdisjoint(waiting)
        seen.update(waiting)
        assert message["role"] in ("system", "user", "assistant")
        assert message.get("content") is not None or message.get("tool_calls")
    assert waiting == []


_leaf = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "a", "function", "text", "#"])
)
_key = st.sampled_from(
    [
        *("role", "content", "type", "text", "function", "custom", "name", "id", "parameters"),
        *("allowed_tools", "tools", "effort", "anyOf", "$ref", "properties", "required"),
        *("image_url", "refusal", "json_schema", "summary"),
    ]
)
_junk = st.recursive(
    _leaf,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_key, inner, max_size=4)),
    max_leaves=10,
)
_odd_message = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "odd"])},
    optional=dict.fromkeys(
        ["content", "tool_calls", "tool_call_id", "name", "reasoning", "refusal", "function_call"], _junk
    ),
)
_odd_tool = st.fixed_dictionaries(
    {"type": st.sampled_from(["function", "custom", "odd"])},
    optional=dict.fromkeys(["function", "custom", "name", "parameters"], _junk),
)
_odd_body = st.fixed_dictionaries(
    {"messages": st.one_of(_junk, st.lists(st.one_of(_junk, _odd_message), max_size=4))},
    optional={
        "tools": st.one_of(_junk, st.lists(_odd_tool, max_size=3)),
        **dict.fromkeys(
            ["tool_choice", "response_format", "reasoning_effort", "reasoning", "thinking", "stream"], _junk
        ),
        **dict.fromkeys(["stream_options", "max_tokens", "temperature", "n", "parallel_tool_calls"], _junk),
    },
)


@settings(max_examples=200, deadline=None)
@given(body=_odd_body, name=st.sampled_from(sorted(PROFILES)))
def test_whatever_a_client_sends_is_edited_or_refused(body: Json, name: str) -> None:
    rules = profile(**PROFILES[name])
    passes(body, rules)
    try:
        edit_request(body, rules)
    except ProxyError as error:
        status = error.http_status
        assert status == 400
