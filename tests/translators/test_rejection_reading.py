"""From a refusal's words and the body that was sent to what is left out of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translators.rejection_reading import rejected
from translators.rejections import Rejection, without

Json = dict[str, Any]

CHAT: Json = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "s"},
        {
            "role": "user",
            "name": "bob",
            "content": [{"type": "text", "text": "t", "cache_control": {"a": 1}}],
        },
        {"role": "assistant", "content": "x", "reasoning_content": "r", "tool_calls": [{"id": "c", "x": 1}]},
        "odd",
    ],
    "tools": [
        {"type": "function", "function": {"name": "f", "parameters": {"minLength": 1}, "strict": True}},
        {"type": "function", "function": {"name": "g"}, "cache_control": {}},
    ],
    "tool_choice": "auto",
    "response_format": {"type": "json_object"},
    "parallel_tool_calls": False,
    "temperature": 0.2,
    "top_p": 1,
    "top_logprobs": True,
    "reasoning_effort": "minimal",
    "service_tier": "turbo",
    "stop": ["a"],
    "n": 1,
    "modalities": ["text"],
    "stream_options": {"include_usage": True, "include_obfuscation": False},
    "metadata": {"topic": "x"},
}
RESPONSES: Json = {
    "model": "m",
    "instructions": "i",
    "input": [
        {"type": "message", "role": "user", "id": "msg_1", "content": [{"type": "input_text", "text": "t"}]},
        {
            "type": "function_call",
            "id": "fc_1",
            "status": "completed",
            "call_id": "c",
            "name": "f",
            "arguments": "",
        },
    ],
    "tools": [{"type": "function", "name": "f", "parameters": {}, "strict": False}],
    "text": {"format": {"type": "text"}, "verbosity": "low"},
    "reasoning": {"effort": "xhigh", "summary": "auto"},
    "background": False,
    "store": False,
}

LEFT_OUT = [
    (CHAT, "parallel_tool_calls", "parallel_tool_calls"),
    (CHAT, "body.metadata", "metadata"),
    (CHAT, "stop", "stop"),
    (CHAT, "stream_options.include_obfuscation", "stream_options.include_obfuscation"),
    (CHAT, "include_obfuscation", "stream_options.include_obfuscation"),
    (CHAT, "tools.0.custom.strict", "tools.*.function.strict"),
    (CHAT, "tools[0].function.strict", "tools.*.function.strict"),
    (CHAT, "strict", "tools.*.function.strict"),
    (CHAT, "tools.0.strict", "tools.*.function.strict"),
    (CHAT, "tools.1.cache_control", "tools.*.cache_control"),
    (CHAT, "messages.1.name", "messages.*.name"),
    (CHAT, "messages.98.name", "messages.*.name"),
    (CHAT, "messages.name", "messages.*.name"),
    (CHAT, "name", "messages.*.name"),
    (CHAT, "reasoning_content", "messages.*.reasoning_content"),
    (CHAT, "messages.0.content.0.text.cache_control", "messages.*.content.*.cache_control"),
    (CHAT, "messages.2.tool_calls.0.x", "messages.*.tool_calls.*.x"),
    (CHAT, "messages.2.assistant.name", "messages.*.name"),
    (RESPONSES, "input[1].status", "input.*.status"),
    (RESPONSES, "input[0].id", "input.*.id"),
    (RESPONSES, "tools[0].strict", "tools.*.strict"),
    (RESPONSES, "verbosity", "text.verbosity"),
    (RESPONSES, "text.verbosity", "text.verbosity"),
    (RESPONSES, "reasoning.summary", "reasoning.summary"),
    (RESPONSES, "reasoning", "reasoning"),
]


def read(body: Json, message: str, **error: Any) -> tuple[Rejection, ...]:
    return rejected(body, "chat" if "messages" in body else "responses", message, **error)


@pytest.mark.parametrize(("body", "named", "field"), LEFT_OUT)
def test_a_named_field_is_found_and_generalised(body: Json, named: str, field: str) -> None:
    found = read(body, f"{named}: Extra inputs are not permitted")
    assert [each.field for each in found] == [field]
    assert found == (Rejection(tuple(field.split("."))),)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        *(
            (CHAT, key)
            for key in ("model", "messages", "tools", "tool_choice", "response_format", "modalities")
        ),
        *((CHAT, f"messages.0.{key}") for key in ("role", "content", "content.0.text")),
        *((CHAT, f"messages.2.tool_calls.0.{key}") for key in ("id", "0")),
        *((CHAT, f"tools.0.function.{key}") for key in ("name", "parameters", "parameters.minLength")),
        (CHAT, "minLength"),
        (CHAT, "topic"),
        (CHAT, "seed"),
        (CHAT, "seed.x"),
        (CHAT, "body"),
        (CHAT, "messages.0"),
        (CHAT, "temperature.x"),
        *((RESPONSES, key) for key in ("input", "instructions", "text", "text.format", "input.0.content")),
    ],
)
def test_what_gives_the_request_its_meaning_stays(body: Json, named: str) -> None:
    assert read(body, f"{named}: Extra inputs are not permitted") == ()


def test_one_that_may_not_go_keeps_the_others() -> None:
    assert read(CHAT, "Unsupported parameter(s): `stop`, `tools`") == ()
    assert [each.field for each in read(CHAT, "Unsupported parameter(s): `stop`, `seed`, `n`")] == [
        "stop",
        "n",
    ]


def test_a_hosted_tools_keys_are_the_tool() -> None:
    body = {**RESPONSES, "tools": [{"type": "web_search", "strict": True}]}
    assert read(body, "Unknown parameter: 'tools[0].strict'.") == ()


def test_a_feature_goes_only_where_it_asks_for_nothing() -> None:
    assert read(CHAT, "Unsupported parameter: 'n'") == (Rejection(("n",), value=1),)
    assert read({**CHAT, "n": 2}, "Unsupported parameter: 'n'") == ()
    assert read(RESPONSES, "Unknown parameter: 'background'.") == (Rejection(("background",), value=False),)


def test_sampling_is_refused_as_one() -> None:
    """Claude's endpoints name the temperature when it is top_p that was sent."""
    words = "Model does not support the temperature parameter"
    assert read(CHAT, words) == (Rejection(("temperature",)),)
    assert read({"model": "m", "messages": [], "top_p": 1, "top_k": 4}, words) == (
        Rejection(("top_p",)),
        Rejection(("top_k",)),
    )
    assert read({"model": "m", "messages": [], "stop": "a"}, words) == ()


def test_the_limit_is_said_by_its_other_name_first() -> None:
    words = "Unsupported parameter: '{}' is not supported with this model."
    old, new = {"messages": [], "max_tokens": 5}, {"messages": [], "max_completion_tokens": 5}
    renamed = Rejection(("max_tokens",), name="max_completion_tokens")
    assert read(old, words.format("max_tokens")) == (renamed,)
    assert read(new, words.format("max_completion_tokens")) == (
        Rejection(("max_completion_tokens",), name="max_tokens"),
    )
    assert read(new, words.format("max_completion_tokens"), before=[renamed]) == (
        Rejection(("max_completion_tokens",)),
    )
    assert read({**old, **new}, words.format("max_tokens")) == (Rejection(("max_tokens",)),)


LISTED = (
    "Unsupported value: '{}' does not support '{}' with this model. Supported values are: 'low' and 'high'."
)


@pytest.mark.parametrize(
    ("body", "message", "expected"),
    [
        (
            CHAT,
            LISTED.format("reasoning_effort", "minimal"),
            Rejection(("reasoning_effort",), value="minimal", instead="low"),
        ),
        (
            RESPONSES,
            LISTED.format("reasoning.effort", "xhigh"),
            Rejection(("reasoning", "effort"), value="xhigh", instead="high"),
        ),
        (
            RESPONSES,
            "Unsupported value: 'reasoning.effort' does not support 'xhigh' with this model.",
            Rejection(("reasoning", "effort"), value="xhigh"),
        ),
        (
            RESPONSES,
            LISTED.format("verbosity", "low").replace("'low' and ", ""),
            Rejection(("text", "verbosity"), value="low"),
        ),
        (
            CHAT,
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1)",
            Rejection(("temperature",)),
        ),
        (
            {**CHAT, "temperature": 1.5},
            "temperature: Input should be less than or equal to 1",
            Rejection(("temperature",), bounds=(0, 1)),
        ),
        (
            CHAT,
            "Invalid 'temperature': decimal below minimum value. Expected a value >= 0.5, but got 0.2.",
            Rejection(("temperature",), bounds=(0.5, 2)),
        ),
    ],
)
def test_a_refused_value(body: Json, message: str, expected: Rejection) -> None:
    assert read(body, message) == (expected,)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({**CHAT, "temperature": 2.5}, "temperature: Input should be less than or equal to 2"),
        ({**CHAT, "temperature": True}, "temperature: Input should be less than or equal to 2"),
        (CHAT, "temperature: Input should be less than or equal to 1"),
        (CHAT, "service_tier: Input should be 'auto' or 'default'"),
        (CHAT, "stop: Input should be 'a' or 'b'"),
        (CHAT, LISTED.format("seed", "x")),
        ({**CHAT, "reasoning_effort": "low"}, LISTED.format("reasoning_effort", "low")),
        (CHAT, "messages.0.role: Input should be 'user' or 'assistant'"),
        ({**RESPONSES, "reasoning": "x"}, LISTED.format("reasoning.effort", "x")),
        ({**RESPONSES, "input": "x"}, "Unknown parameter: 'input[0].id'."),
    ],
)
def test_the_clients_own_mistake_stays_one(body: Json, message: str) -> None:
    """What OpenAI's API would refuse too, or what the words are not about."""
    assert read(body, message) == ()


_KEYS = st.sampled_from(
    [
        "name",
        "role",
        "content",
        "strict",
        "type",
        "function",
        "id",
        "tool_calls",
        "parameters",
        "x",
        "text",
        "0",
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | _KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)
_TOP = st.sampled_from(["messages", "input", "tools", "tool_choice", "text", "n", "temperature", "stop", "x"])
_WORDS = st.sampled_from(
    [
        "{}: Extra inputs are not permitted",
        'json: unknown field "{}"',
        "Unsupported parameter(s): `{}`, `stop`",
        "{}: Input should be 'low' or 'high'",
        "{}: Input should be less than or equal to 1",
    ]
)


@given(
    body=st.dictionaries(_TOP, _JSON, max_size=5),
    steps=st.lists(_TOP | _KEYS, min_size=1, max_size=5),
    words=_WORDS,
    shape=st.sampled_from(["chat", "responses"]),
)
def test_no_words_take_the_meaning_away(body: Json, steps: list[str], words: str, shape: Any) -> None:
    before = copy.deepcopy(body)
    found = rejected(body, shape, words.format(".".join(steps)))
    edited = body
    for each in found:
        edited = without(edited, each)
    assert body == before
    assert bool(found) == (edited is not body)
    for key in ("messages", "input", "tools", "tool_choice"):
        assert _meaning(edited.get(key)) == _meaning(body.get(key))


def _meaning(value: Any) -> Any:
    """What of a conversation or of tools must never change."""
    if isinstance(value, list):
        return [_meaning(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    kept = ("role", "content", "type", "function", "tool_calls", "parameters", "text")
    return {
        key: inner if key == "parameters" else _meaning(inner) for key, inner in value.items() if key in kept
    }


@pytest.mark.parametrize("param", ["..", "[]", "/", "[[[", "body", "body.", ".body", " "])
def test_a_param_that_names_nothing(param: str) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "metadata": {}}
    assert not rejected(body, "chat", "Unknown parameter.", param, "unknown_parameter")
