"""Refusals as servers word them, and what each leads to: left out, clamped, renamed, or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from translators.rejection_reading import rejected
from translators.rejections import Rejection, allowed, losses, without

Json = dict[str, Any]

TOOL = {"name": "f", "parameters": {"type": "object", "properties": {"x": {"maxItems": 3}}}, "strict": True}
CHAT: Json = {
    "model": "m",
    "messages": [
        {"role": "developer", "content": "s"},
        {"role": "user", "name": "bob", "content": [{"type": "text", "text": "t", "cache_control": {}}]},
        {"role": "assistant", "content": None, "reasoning_content": "r", "tool_calls": [{"id": "c"}]},
    ],
    "tools": [{"type": "function", "function": TOOL}],
    "tool_choice": "auto",
    "response_format": {"type": "json_object"},
    "temperature": 1.5,
    "top_p": 0.9,
    "top_k": 5,
    "seed": 1,
    "stop": ["a"],
    "user": "u",
    "store": False,
    "logprobs": True,
    "logit_bias": {"1": 1},
    "verbosity": "low",
    "service_tier": "flex",
    "reasoning_effort": "minimal",
    "max_completion_tokens": 100,
    "stream_options": {"include_usage": True, "include_obfuscation": False},
}
RESPONSES: Json = {
    "model": "m",
    "input": [{"role": "developer", "content": "x"}, {"type": "function_call", "id": "fc_1", "call_id": "c"}],
    "tools": [{"type": "web_search"}, {"type": "function", "name": "f", "defer_loading": True}],
    "text": {"format": {"type": "text"}, "verbosity": "low"},
    "reasoning": {"effort": "xhigh", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
}

# One key, left out as it is named.
LEFT_OUT = [
    ("seed", "This model doesn't support the `seed` parameter"),
    ("logprobs", "The model does not support parameter 'logprobs'"),
    ("logprobs", "The model does not support parameters: logprobs"),
    ("logprobs", "logprobs is not supported"),
    ("logprobs", "logprobs are not supported by this model"),
    ("logit_bias", "'logit_bias' is not a valid parameter"),
    ("seed", "Unexpected keyword argument 'seed'"),
    ("verbosity", "got an unexpected keyword argument 'verbosity'"),
    ("reasoning_effort", "Completions.create() got an unexpected keyword argument 'reasoning_effort'"),
    ("top_k", "Parameter 'top_k' not supported"),
    ("service_tier", "unrecognized field: service_tier"),
    ("service_tier", "unknown argument: 'service_tier'"),
    ("user", "Unexpected field 'user' in request body"),
    ("user", "The following fields are not allowed: user"),
    ("seed", 'The "seed" parameter is not supported.'),
    ("seed", "The `seed` field is not supported by this model"),
    ("seed", "The seed parameter is not supported"),
    ("user", "Unrecognized key(s) in object: 'user'"),
    ("seed", "additionalProperties 'seed' not allowed"),
    ("seed", "must NOT have additional properties: 'seed'"),
    ("seed", 'data must NOT have additional properties, got "seed"'),
    ("stop", "stop: Field not allowed"),
    ("stream_options", "stream_options: not supported"),
    ("reasoning_effort", "This model does not support reasoning effort."),
    ("temperature", "This model does not support temperature"),
    ("store", "store: property 'store' is unsupported"),
    ("seed", "Failed to deserialize the JSON body: unknown field `seed`, expected one of `model` at line 1"),
    ("messages.*.content.*.cache_control", "cache_control is not supported"),
    ("tools.*.function.strict", "Unknown name \"strict\" at 'tools[0].function': Cannot find field."),
]

SEVERAL = [
    "The following parameters are not supported: seed, user",
    'Unsupported fields: ["seed","user"]',
    "Invalid request: unrecognized key(s) in object: 'seed', 'user'",
    'Unrecognized keys: "seed", "user"',
    'Unknown name "seed": Cannot find field.\nUnknown name "user": Cannot find.',
]

ROLES = [
    "developer is not one of ['system', 'assistant', 'user', 'tool', 'function']",
    "'developer' is not one of ['system', 'assistant', 'user'] - 'messages.0.role'",
    "Unsupported value: 'messages[0].role' does not support 'developer' with this model.",
    "unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`",
    "messages[0].role: unknown variant `developer`, expected one of `system`, `user` at line 1 column 30",
    "messages.0.role: Input should be 'system', 'user', 'assistant' or 'tool'",
]

BOUNDS = [
    "temperature must be less than or equal to 1",
    "temperature must be <= 1",
    "temperature must be at most 1",
    "temperature must be between 0 and 1",
    "Invalid value for 'temperature': must be in [0, 1]",
    "Value error, temperature must be in [0.0, 1.0], got 1.5",
    "temperature should be in the range [0, 1]",
    "temperature: range: 0..1",
]

EFFORTS = [
    ("low", "reasoning_effort 'minimal' is not supported. Supported values: low, medium, high"),
    (
        "low",
        "reasoning_effort: unknown variant `minimal`, expected one of `low`, `medium` at line 1 column 30",
    ),
    ("low", "reasoning_effort must be one of ['low', 'medium', 'high']"),
    (None, "Reasoning effort `minimal` is not supported by this model"),
]

NOTHING = [
    (CHAT, "Invalid parameter: seed"),
    (CHAT, "/seed: must NOT have additional properties"),
    (CHAT, "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"),
    (CHAT, "For 'array' type, property 'maxItems' is not supported"),
    (CHAT, "input_schema does not support oneOf, allOf, or anyOf at the top level"),
    (CHAT, 'tool_choice: type "tool" and "any" are not supported for this model.'),
    (CHAT, "parameter.enable_thinking must be set to false for non-streaming calls"),
    (CHAT, "stream_options is only supported when stream is enabled"),
    (CHAT, "This model does not support streaming"),
    (CHAT, "this model does not support tools"),
    (CHAT, "tools is not supported in this model"),
    (CHAT, "tool_choice is not supported"),
    (CHAT, "response_format is not supported"),
    (CHAT, "temperature must be <= 2"),
    ({**CHAT, "temperature": 2.5}, "temperature must be between 0 and 2"),
    ({**CHAT, "temperature": 2.5}, "temperature must be <= 1"),
    (CHAT, "reasoning_effort 'high' is not supported. Supported values: low"),
    (CHAT, "Invalid 'messages[1].name': string does not match pattern."),
    (CHAT, "messages.0.role: Input should be 'developer' or 'user'"),
    (CHAT, "messages.0.role: Input should be 'assistant'"),
    (CHAT, "'bot' is not one of ['system', 'user'] - 'messages.0.role'"),
    ({"messages": [], "temperature": 1}, "`temperature` and `top_p` cannot both be specified"),
    ({"messages": []}, "`temperature` and `x.y` cannot both be set"),
    (RESPONSES, "Unknown parameter: 'tools[1].defer_loading'."),
    (RESPONSES, "Tool type 'web_search' is not supported"),
    (RESPONSES, "Hosted tool 'web_search' is not supported with gpt-5"),
    (RESPONSES, "This model does not support the 'tools' parameter for the Open Responses API."),
    (RESPONSES, "Invalid 'input[1].id': string too long. Expected a string with maximum length 64."),
]


def read(body: Json, message: str) -> tuple[Rejection, ...]:
    return rejected(body, "chat" if "messages" in body else "responses", message)


@pytest.mark.parametrize(("field", "message"), LEFT_OUT)
def test_a_named_key_is_left_out(field: str, message: str) -> None:
    assert read(CHAT, message) == (Rejection(tuple(field.split("."))),)


@pytest.mark.parametrize("message", SEVERAL)
def test_several_keys_at_once(message: str) -> None:
    assert read(CHAT, message) == (Rejection(("seed",)), Rejection(("user",)))


@pytest.mark.parametrize("message", ROLES)
def test_a_developer_becomes_the_system(message: str) -> None:
    (found,) = read(CHAT, message)
    assert found == Rejection(("messages", "*", "role"), value="developer", instead="system")
    assert [each["role"] for each in without(CHAT, found)["messages"]] == ["system", "user", "assistant"]
    assert losses(found, CHAT, "chat", "chat") == []


def test_a_developer_becomes_the_user_where_there_is_no_system() -> None:
    (found,) = read(RESPONSES, "'developer' is not one of ['user', 'assistant'] - 'input.0.role'")
    assert found == Rejection(("input", "*", "role"), value="developer", instead="user")


@pytest.mark.parametrize(
    "rejection", [Rejection(("messages", "*", "role")), Rejection(("input", "*", "role"))]
)
def test_no_other_role_is_touched(rejection: Rejection) -> None:
    assert not allowed(rejection, "chat")


@pytest.mark.parametrize("message", BOUNDS)
def test_a_number_is_moved_into_the_backends_range(message: str) -> None:
    assert read(CHAT, message) == (Rejection(("temperature",), bounds=(0, 1)),)


@pytest.mark.parametrize(("instead", "message"), EFFORTS)
def test_an_effort_goes_to_one_that_is_taken(instead: str | None, message: str) -> None:
    assert read(CHAT, message) == (Rejection(("reasoning_effort",), value="minimal", instead=instead),)


def test_an_effort_is_found_by_the_other_wires_name() -> None:
    message = "reasoning_effort must be one of ['low', 'high']"
    found = Rejection(("reasoning", "effort"), value="xhigh", instead="high")
    assert read(RESPONSES, message) == (found,)


def test_two_that_exclude_each_other() -> None:
    (found,) = read(CHAT, "`temperature` and `top_p` cannot both be specified for this model.")
    assert found == Rejection(("top_p",), beside="temperature")
    assert "top_p" not in without(CHAT, found)
    alone = {"top_p": 1}
    assert without(alone, found) is alone
    assert [each.reason for each in losses(found, CHAT, "chat", "chat")] == [
        "this backend takes no top_p beside temperature"
    ]


def test_encrypted_reasoning_that_a_model_does_not_have() -> None:
    assert read(RESPONSES, "Encrypted content is not supported with this model.") == (
        Rejection(("include",)),
    )


@pytest.mark.parametrize(("body", "message"), NOTHING)
def test_what_is_the_clients_to_hear(body: Json, message: str) -> None:
    edited = body
    for each in read(body, message):
        edited = without(edited, each)
    assert edited is body


QUOTES = [
    "messages.0.content: bad text: Unknown parameter: 'temperature' please",
    "1 validation error\nmessages.0.content\n  bad [input_value=\"unknown field 'temperature'\", more]",
    "[{'type': 'x', 'loc': ('body', 'messages'), 'msg': 'bad', 'input': \"unknown field 'temperature'\"}]",
]


@pytest.mark.parametrize("message", QUOTES)
def test_a_clients_words_are_no_refusal(message: str) -> None:
    """What is learned holds for everyone: a quoted text may not decide it."""
    words = "Unknown parameter: 'temperature' please"
    nested = {**CHAT, "messages": [{"role": "user", "content": [{"type": "text", "text": words}]}]}
    assert read(nested, message) == ()
