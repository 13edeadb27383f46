"""Chat requests that are refused by name, and that nothing escapes but such refusals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translators.chat_requests import CUSTOM, FLAT, FUNCTION, HOSTED, USER, counter, decode
from translators.chat.decode import decode_request
from translators.errors import ProxyError

# --- refusals --------------------------------------------------------------------------


def tool(spec: Any) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": spec}]}


def message(**keys: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", **keys}]}


REFUSED: dict[str, dict[str, Any]] = {
    "model": {"model": None},
    "messages": {"messages": []},
    "messages[0]": {"messages": ["hi"]},
    "messages[0].role": {"messages": [{"content": "x"}]},
    "messages[1].content": message(content=5),
    "messages[1].content[0]": message(content=[5]),
    "messages[1].content[0].text": message(content=[{"type": "text"}]),
    "messages[1].content[0].refusal": message(content=[{"type": "refusal", "refusal": None}]),
    "messages[1].content[0].image_url.url": message(
        content=[{"type": "image_url", "image_url": {"url": ""}}]
    ),
    "messages[1].content[0].input_audio": message(content=[{"type": "input_audio"}]),
    "messages[1].content[0].input_audio.format": message(
        content=[{"type": "input_audio", "input_audio": {"data": "A"}}]
    ),
    "messages[1].content[0].file.file_data": message(content=[{"type": "file", "file": {"filename": "x"}}]),
    "messages[1].tool_calls": message(tool_calls={"id": "x"}),
    "messages[1].tool_calls[0]": message(tool_calls=["x"]),
    "messages[1].tool_calls[0].function.name": message(
        tool_calls=[{"id": "c", "function": {"arguments": ""}}]
    ),
    "messages[1].tool_calls[0].custom.name": message(
        tool_calls=[{"id": "c", "type": "custom", "custom": "x"}]
    ),
    "messages[1].function_call.name": message(function_call={"arguments": ""}),
    "tools": {"tools": {}},
    "tools[0]": {"tools": ["f"]},
    "tools[0].function": tool("f"),
    "tools[0].function.name": tool({"name": ""}),
    "tools[0].function.description": tool({"name": "f", "description": 3}),
    "tools[0].function.parameters": tool({"name": "f", "parameters": []}),
    "tools[0].custom.name": {"tools": [{"type": "custom", "custom": {}}]},
    "tools[0].custom.format": {"tools": [{"type": "custom", "custom": {"name": "p", "format": "lark"}}]},
    "functions": {"functions": "f"},
    "functions[0].name": {"functions": [{}]},
    "function_call": {"function_call": "sometimes"},
    "temperature": {"temperature": "hot"},
    "top_p": {"top_p": True},
    "max_completion_tokens": {"max_completion_tokens": 1.5},
    "max_tokens": {"max_tokens": "5"},
    "max_output_tokens": {"max_output_tokens": "5", "max_tokens": 5},
    "n": {"n": []},
    "seed": {"seed": "x"},
    "stop": {"stop": ["a", 1]},
    "logprobs": {"logprobs": 1},
    "logit_bias": {"logit_bias": []},
    "metadata": {"metadata": "x"},
    "modalities": {"modalities": "text"},
    "reasoning_effort": {"reasoning_effort": 3},
    "response_format": {"response_format": "json"},
    "response_format.json_schema": {"response_format": {"type": "json_schema", "json_schema": 1}},
    "response_format.json_schema.name": {
        "response_format": {"type": "json_schema", "json_schema": {"schema": {}}}
    },
    "stream": {"stream": "yes"},
    "stream_options": {"stream_options": True},
    "stream_options.include_usage": {"stream_options": {"include_usage": 1}},
}


@pytest.mark.parametrize("param", REFUSED)
def test_refused_by_name(param: str) -> None:
    with pytest.raises(ProxyError) as caught:
        decode(**REFUSED[param])
    error = caught.value
    assert (error.http_status, error.kind, error.param) == (400, "bad_request", param)
    assert param in error.message.replace("`", "")


BAD_CHOICES: dict[str, Any] = {
    "unknown word": "sometimes",
    "wrong type": 5,
    "not offered": {"type": "function", "function": {"name": "zzz"}},
    "offered as the other kind": {"type": "custom", "custom": {"name": "f"}},
    "hosted, not offered": {"type": "file_search"},
    "no name": {"type": "function", "function": {}},
    "no type and no name": {"type": None},
    "allowed, not offered": {
        "type": "allowed_tools",
        "allowed_tools": {"tools": [{"type": "custom", "name": "q"}]},
    },
    "allowed, empty": {"type": "allowed_tools", "allowed_tools": {"tools": []}},
    "allowed, no list": {"type": "allowed_tools", "allowed_tools": "f"},
    "allowed, bad mode": {"type": "allowed_tools", "allowed_tools": {"mode": "none", "tools": [FLAT]}},
    "allowed, odd entry": {"type": "allowed_tools", "allowed_tools": {"tools": ["f"]}},
}


@pytest.mark.parametrize("name", BAD_CHOICES)
def test_refused_choices(name: str) -> None:
    with pytest.raises(ProxyError) as caught:
        decode(tools=[FUNCTION, CUSTOM, HOSTED], tool_choice=BAD_CHOICES[name])
    assert (caught.value.http_status, caught.value.param) == (400, "tool_choice")


# --- anything at all -------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        *("role", "content", "type", "text", "name", "function", "custom", "user", "assistant", "tool", "id"),
        *("tool_calls", "function_call", "image_url", "url", "file", "input_audio", "refusal", "annotations"),
        *("reasoning", "thinking", "summary", "allowed_tools", "tools", "format", "grammar", "json_schema"),
        *("url_citation", "effort", "include_usage", "arguments", "input", "parameters", "auto", ""),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=True) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
TOP = st.sampled_from(
    [
        *(
            "messages",
            "model",
            "tools",
            "functions",
            "tool_choice",
            "function_call",
            "stream",
            "stream_options",
        ),
        *(
            "max_tokens",
            "seed",
            "stop",
            "n",
            "response_format",
            "reasoning",
            "logit_bias",
            "user",
            "metadata",
        ),
    ]
)


@given(body=st.dictionaries(TOP, JSON), messages=st.lists(st.dictionaries(WORDS, JSON)), tools=st.lists(JSON))
def test_only_proxy_errors_escape(body: Any, messages: Any, tools: Any) -> None:
    extended = {**body, "model": "m", "messages": [USER, *messages]}
    for whole in (body, extended, {"model": "m", "messages": [USER], "tools": tools, **body}):
        error = refusal(whole)
        assert error is None or (error.http_status == 400 and error.param)


def refusal(body: Any) -> ProxyError | None:
    try:
        decode_request(body, counter())
    except ProxyError as error:
        return error
    return None
