"""What passes to a backend of the client's own shape although no translation knows it, and how refusals read.

What is refused is a table of the laws (`tests/laws/impossible.py`).
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.laws.pairs import CLIENTS, new_ids
from translators.errors import ProxyError
from translators.ir import Json, Shape
from translators.values import LIST, STOP, integer, number

USER: Json = {"role": "user", "content": "x"}
FUNCTION: Json = {"type": "function", "name": "f", "parameters": {"type": "object"}}
CALL: Json = {"type": "function", "id": "c", "function": {"name": "f", "arguments": {}}}
PNG = "data:image/png;base64,AAAA"


def user(*parts: Any) -> Json:
    return {"messages": [{"role": "user", "content": [*parts]}]}


def said(**keys: Any) -> Json:
    return {"messages": [USER, {"role": "assistant", **keys}]}


CHAT: dict[str, Json] = {
    "a key of nobody's": {"top_k": 5, "chat_template_kwargs": {"enable_thinking": False}, "x": [None]},
    "nulls": dict.fromkeys(("temperature", "tools", "stop", "n", "response_format", "stream_options")),
    "parameters that are set to nothing": {"temperature": "", "user": "", "response_format": ""},
    "whole numbers with a point": {"max_tokens": 16.0, "seed": 7.0, "n": 1.0},
    "no limit": {"max_tokens": -1},
    "nothing said": {"messages": [{"role": "user"}, {"role": "user", "content": None}, USER]},
    "no parts": user(),
    "a part that is a text": user("hi"),
    "a part of another type": user({"type": "video_url", "video_url": {"url": "https://example.com/v"}}),
    "vLLM's short picture": user({"image_url": PNG}),
    "vLLM's seen picture": user({"type": "image_url", "image_url": None, "uuid": "u"}),
    "DashScope's sound": user({"type": "input_audio", "input_audio": {"data": "https://example.com/a"}}),
    "OpenRouter's file": user({"type": "file", "file": {"filename": "a.pdf", "file_data": PNG}}),
    "a thinking part": said(content=[{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "y"}]),
    "arguments as an object": said(tool_calls=[CALL]),
    "no calls": said(content="x", tool_calls=[]),
    "a flat call": said(tool_calls=[{"name": "f", "arguments": "{}"}]),
    "an old call": said(content=None, function_call={"name": "f", "arguments": "{}"}),
    "a tool of another type": {"tools": [{"type": "builtin_function", "function": {"name": "$web_search"}}]},
    "a flat tool": {"tools": [FUNCTION]},
    "a tool without a type": {"tools": [{"function": {"name": "f"}}]},
    "Anthropic's choice": {"tools": [FUNCTION], "tool_choice": {"type": "tool", "name": "f"}},
    "a choice without tools": {"tool_choice": "auto"},
    "a named choice": {"tools": [FUNCTION], "tool_choice": {"type": "function", "name": "f"}},
    "the old choice": {"functions": [{"name": "f"}], "function_call": {"name": "f"}},
    "the old mode": {"functions": [{"name": "f"}], "function_call": "auto"},
    "Fireworks' log probabilities": {"logprobs": 5},
    "Together's schema": {"response_format": {"type": "json_schema", "schema": {"type": "object"}}},
    "vLLM's grammar": {"response_format": {"type": "grammar", "grammar": "root ::= x"}},
}

MESSAGE: Json = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]}
CODEX_TOOLS: Json = {"type": "namespace", "name": "n", "description": "d", "tools": [FUNCTION]}


def items(*given: Any) -> Json:
    return {"input": [MESSAGE, *given]}


RESPONSES: dict[str, Json] = {
    "a key of nobody's": {"top_k": 5, "x": [None]},
    "nulls": dict.fromkeys(("temperature", "tools", "text", "reasoning", "stop", "stream_options")),
    "parameters that are set to nothing": {"temperature": "", "text": {"format": ""}},
    "an empty text": {"input": ""},
    "instructions alone": {"input": [], "instructions": "x"},
    "a stored prompt": {"input": None, "prompt": {"id": "p"}, "tool_choice": "required"},
    "a message without a type": {"input": [USER]},
    "a message without content": items({"type": "message", "role": "user"}),
    "a reference": items({"id": "msg_1"}),
    "an item of another type": items({"type": "odd", "content": [{"x": 5}], "summary": 5}),
    "a foreign seal": items({"type": "compaction", "encrypted_content": {"a": 1}, "tools": [{"x": 1}]}),
    "an item of another type with content": items({"type": "odd", "content": 5, "output": 5}),
    "a part of another type": items({"role": "user", "content": [{"type": "odd", "text": 5}]}),
    "an output of any form": items({"type": "function_call_output", "call_id": "c", "output": {"a": 1}}),
    "parts of a result": items(
        {
            "type": "custom_tool_call_output",
            "call_id": "c",
            "output": [{"type": "input_image", "image_url": PNG}],
        }
    ),
    "output of a hosted tool": items(
        {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "x"}]}
    ),
    "a thought": items({"type": "reasoning", "summary": [{"text": "x"}], "content": [{"text": "x"}]}),
    "no thought": items({"type": "reasoning", "summary": [], "content": None, "encrypted_content": "e"}),
    "tools of the input": {
        **items({"type": "additional_tools", "role": "developer", "tools": [FUNCTION]}),
        "tool_choice": "required",
    },
    "no tools found": items({"type": "tool_search_output", "call_id": "c", "tools": None}),
    "namespaces": {"tools": [CODEX_TOOLS], "tool_choice": "required"},
    "a plain tool": {"tools": [{**FUNCTION, "description": "d", "strict": None}]},
    "a tool of another type": {"tools": [{"type": "odd", "parameters": "x"}]},
    "a hosted choice": {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}},
    "another mode": {"tools": [FUNCTION], "tool_choice": "any"},
    "another format": {"text": {"format": {"type": "grammar", "grammar": "root ::= x"}, "odd": 1}},
    "other reasoning": {"reasoning": {"effort": "ultra", "generate_summary": "auto", "odd": 1}},
}
PASSING: list[tuple[Shape, str, Json]] = [
    *(("chat", name, {"messages": [USER], **keys}) for name, keys in CHAT.items()),
    *(("responses", name, {"input": "x", **keys}) for name, keys in RESPONSES.items()),
]


@pytest.mark.parametrize(("shape", "name", "body"), PASSING)
def test_what_some_backend_knows_passes(shape: Shape, name: str, body: Json) -> None:
    before = copy.deepcopy(body)
    CLIENTS[shape].check(body)
    assert body == before


@pytest.mark.parametrize(
    ("shape", "keys", "message"),
    [
        ("chat", {"temperature": "hot"}, "`temperature` must be a number between 0 and 2."),
        ("chat", {"max_tokens": 1.5}, "`max_tokens` must be an integer of at least 1."),
        ("chat", {"tools": ""}, "`tools` must be a list."),
        ("chat", {"logprobs": "5"}, "`logprobs` must be true or false."),
        ("responses", {"include": [5]}, "`include` must be a list of strings."),
        ("responses", {"max_output_tokens": 0}, "`max_output_tokens` must be an integer of at least 1."),
        ("responses", {"tool_choice": 5}, "`tool_choice` must be a string or an object."),
        (
            "responses",
            {"input": [{"type": "input_text", "text": "x"}]},
            "`input[0]` must be an item: put this `input_text` into the `content` list of "
            '{"role": "user", ...}.',
        ),
    ],
)
def test_it_is_told_what_to_send(shape: Shape, keys: Json, message: str) -> None:
    body = {"model": "m", **({"messages": [USER]} if shape == "chat" else {"input": "x"}), **keys}
    for refuse in (CLIENTS[shape].check, lambda body: CLIENTS[shape].decode_request(body, new_ids())):
        with pytest.raises(ProxyError) as caught:
            refuse(body)
        assert (caught.value.http_status, caught.value.message) == (400, message)


@pytest.mark.parametrize("key", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_minus_one_is_no_limit_when_translated(key: str) -> None:
    call = CLIENTS["chat"].decode_request({"model": "m", "messages": [USER], key: -1}, new_ids())
    assert call.params == {}


@pytest.mark.parametrize(
    ("rule", "value", "typed", "fits"),
    [
        (number(0, 2), 1, True, True),
        (number(0, 2), 2.5, True, False),
        (number(0, 2), True, False, False),
        (number(0, 2), "1", False, False),
        (integer("", 1), 3.0, True, True),
        (integer("", 1), 3.5, False, False),
        (integer("", 1), 0, True, False),
        (integer(""), -5, True, True),
        (STOP, ["a", "b"], True, True),
        (STOP, ["a", 1], False, False),
        (LIST, [1], True, True),
        (LIST, {}, False, False),
        (number(0, 2), float("nan"), True, False),
        (integer("", 1), float("inf"), False, False),
    ],
)
def test_a_rule(rule: Any, value: Any, typed: bool, fits: bool) -> None:
    assert (rule.is_typed(value), rule.fits(value)) == (typed, fits)
