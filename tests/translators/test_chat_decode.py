"""A Chat client's request: what each form of it becomes, and what is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translators.chat.annotations import from_chat, to_chat
from translators.chat.decode import decode_request
from translators.errors import ProxyError
from translators.ir import (
    Audio,
    Call,
    File,
    Image,
    Message,
    Opaque,
    Reasoning,
    Refusal,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolRef,
    ToolResult,
)

USER = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


def counter() -> Callable[[str], str]:
    ids = iter(range(100))
    return lambda prefix: f"{prefix}{next(ids)}"


def decode(**body: Any) -> Call:
    return decode_request({"model": "m", "messages": [USER], **body}, counter())


def items(*messages: Any) -> tuple[Any, ...]:
    return decode(messages=list(messages)).items


# --- messages --------------------------------------------------------------------------

CONTENT = {
    "string": ("hi", (Text("hi"),)),
    "empty string": ("", ()),
    "null": (None, ()),
    "list of strings": (["a", {"type": "text", "text": ""}], (Text("a"), Text(""))),
    "Responses names": (
        [{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}],
        (Text("a"), Text("b")),
    ),
    "refusal": ([{"type": "refusal", "refusal": "no"}], (Refusal("no"),)),
    "image": (
        [{"type": "image_url", "image_url": {"url": "data:x", "detail": "high"}}],
        (Image("data:x", detail="high"),),
    ),
    "image as a string": (
        [{"type": "image_url", "image_url": "http://x/y.png", "detail": "low"}],
        (Image("http://x/y.png", detail="low"),),
    ),
    "image by id": (
        [{"type": "input_image", "file_id": "file_1", "image_url": None}],
        (Image(file_id="file_1"),),
    ),
    "audio": (
        [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}],
        (Audio("AA", "wav"),),
    ),
    "file": (
        [{"type": "file", "file": {"file_data": "data:x", "filename": "a.pdf"}}],
        (File("data:x", filename="a.pdf"),),
    ),
    "file by id": ([{"type": "file", "file": {"file_id": "file_1"}}], (File(file_id="file_1"),)),
    "file, flat": ([{"type": "input_file", "file_url": "http://x"}], (File(url="http://x"),)),
    "unknown part": (
        [{"type": "video_url", "video_url": {"url": "x"}}],
        (Opaque("chat", {"type": "video_url", "video_url": {"url": "x"}}, "/messages/0/content/0"),),
    ),
}


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
@pytest.mark.parametrize("name", CONTENT)
def test_content(role: str, name: str) -> None:
    content, parts = CONTENT[name]
    assert items({"role": role, "content": content}) == (Message(role, parts, at="/messages/0"),)


def test_missing_content_is_none() -> None:
    assert items({"role": "user"}) == (Message("user", (), at="/messages/0"),)


def test_name_and_unknown_keys_stay_with_their_message() -> None:
    raw = {
        "role": "user",
        "content": "x",
        "name": "ann",
        "cache_control": {"type": "ephemeral"},
        "tool_calls": None,
    }
    assert items(raw) == (
        Message(
            "user", (Text("x"),), "ann", at="/messages/0", extra={"cache_control": {"type": "ephemeral"}}
        ),
    )


CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}


def test_assistant_text_calls_and_their_results() -> None:
    found = items(
        {"role": "assistant", "content": "look", "tool_calls": [CALL, {**CALL, "id": "call_2"}]},
        {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "two"}]},
        {"role": "tool", "tool_call_id": "call_1", "name": "f", "content": "one", "extra": 1},
    )
    assert found == (
        Message("assistant", (Text("look"),), at="/messages/0"),
        ToolCall("call_1", "f", '{"a":1}', at="/messages/0/tool_calls/0"),
        ToolCall("call_2", "f", '{"a":1}', at="/messages/0/tool_calls/1"),
        ToolResult("call_2", (Text("two"),), at="/messages/1"),
        ToolResult("call_1", (Text("one"),), name="f", at="/messages/2", extra={"extra": 1}),
    )


CALLS = {
    "object arguments": (
        {"id": "c", "function": {"name": "f", "arguments": {"a": [1]}}},
        ToolCall("c", "f", '{"a":[1]}'),
    ),
    "no arguments": ({"id": "c", "type": "function", "function": {"name": "f"}}, ToolCall("c", "f", "")),
    "no id": ({"type": "function", "function": {"name": "f", "arguments": ""}}, ToolCall("call_0", "f", "")),
    "empty id": ({"id": "", "function": {"name": "f", "arguments": ""}}, ToolCall("call_0", "f", "")),
    "flat": (
        {"id": "c", "type": "function", "name": "f", "arguments": "{}", "index": 0},
        ToolCall("c", "f", "{}"),
    ),
    "custom": (
        {"id": "c", "type": "custom", "custom": {"name": "p", "input": "*** Begin"}},
        ToolCall("c", "p", "*** Begin", kind="custom"),
    ),
    "Gemini's signature": (
        {**CALL, "extra_content": {"google": {"thought_signature": "s"}}},
        ToolCall("call_1", "f", '{"a":1}', extra={"extra_content": {"google": {"thought_signature": "s"}}}),
    ),
}


@pytest.mark.parametrize("content", [None, "", "missing"])
@pytest.mark.parametrize("name", CALLS)
def test_call_without_text_has_no_message(name: str, content: str | None) -> None:
    raw, call = CALLS[name]
    message = {
        "role": "assistant",
        "tool_calls": [raw],
        **({} if content == "missing" else {"content": content}),
    }
    (found,) = items(message)
    assert found.at == "/messages/0/tool_calls/0"
    assert (found.call_id, found.name, found.arguments, found.kind, found.extra) == (
        *(call.call_id, call.name, call.arguments, call.kind, call.extra),
    )


def test_result_of_a_custom_call_is_custom() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "p", "input": "x"}}
    found = items(
        {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "ok"}
    )
    assert found[1] == ToolResult("c", (Text("ok"),), "custom", at="/messages/1")


@pytest.mark.parametrize("call_id", [None, 7, ""])
def test_result_without_a_usable_id_is_an_orphan(call_id: Any) -> None:
    assert items({"role": "tool", "tool_call_id": call_id, "content": "x"})[0].call_id == ""


def test_old_function_calls_are_paired_by_name() -> None:
    found = items(
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "one"},
        {"role": "function", "name": "g", "content": "orphan"},
        {"role": "function", "content": "nameless"},
    )
    assert found == (
        ToolCall("call_0", "f", "{}", at="/messages/0/function_call"),
        ToolResult("call_0", (Text("one"),), name="f", at="/messages/1"),
        ToolResult("", (Text("orphan"),), name="g", at="/messages/2"),
        ToolResult("", (Text("nameless"),), at="/messages/3"),
    )


def test_bare_assistant_message_stays() -> None:
    raw = {"role": "assistant", "content": None, "refusal": None, "tool_calls": [], "function_call": None}
    assert items(raw) == (Message("assistant", (), at="/messages/0"),)


def test_unknown_keys_keep_the_message_of_a_call() -> None:
    found = items({"role": "assistant", "content": None, "tool_calls": [CALL], "audio": {"id": "a"}})
    assert found[0] == Message("assistant", (), at="/messages/0", extra={"audio": {"id": "a"}})
    assert isinstance(found[1], ToolCall)


def test_refusal_and_citations_of_an_assistant_message() -> None:
    cited = {
        "type": "url_citation",
        "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 2},
    }
    found = items(
        {
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": "a"}, "bc"],
            "annotations": [cited, 3],
        },
        {"role": "assistant", "content": "x", "refusal": "no", "annotations": []},
        {"role": "assistant", "refusal": "no", "annotations": [cited]},
    )
    flat = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 2}
    assert [message.parts for message in found] == [
        (Refusal("a"), Text("bc", (flat,))),
        (Text("x"), Refusal("no")),
        (Refusal("no"),),
    ]


REASONING = {
    "reasoning_content": ({"reasoning_content": "r"}, [(("r",), None)]),
    "reasoning": ({"reasoning": "r"}, [(("r",), None)]),
    "reasoning_text": ({"reasoning_text": "r"}, [(("r",), None)]),
    "the same twice": ({"reasoning": "r", "reasoning_content": "r"}, [(("r",), None)]),
    "two different": ({"reasoning": "b", "reasoning_content": "a"}, [(("a",), None), (("b",), None)]),
    "blank": ({"reasoning_content": " \n", "reasoning": None}, []),
    "Databricks part": (
        {
            "content": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "r", "signature": "s"}]}
            ]
        },
        [(("r",), "s")],
    ),
    "Mistral part": (
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "r"}]}]},
        [(("r",), None)],
    ),
    "Anthropic part": (
        {"content": [{"type": "thinking", "thinking": "r", "signature": "s"}]},
        [(("r",), "s")],
    ),
    "redacted part": ({"content": [{"type": "redacted_thinking", "data": "zz"}]}, [((), "zz")]),
    "odd part": (
        {
            "content": [
                {"type": "thinking", "thinking": 3},
                {"type": "reasoning", "summary": [3, {"text": 4}]},
            ]
        },
        [((), None), ((), None)],
    ),
}


@pytest.mark.parametrize("name", REASONING)
def test_reasoning_goes_before_its_message(name: str) -> None:
    keys, wanted = REASONING[name]
    content = [*keys.get("content", []), "answer"]
    *thoughts, message = items({"role": "assistant", **keys, "content": content})
    assert [(thought.summary, thought.sealed) for thought in thoughts] == wanted
    assert message == Message("assistant", (Text("answer"),), at="/messages/0")


def test_reasoning_details_are_kept_whole() -> None:
    details = [{"type": "reasoning.encrypted", "data": "zz"}]
    first, second = items(
        {"role": "assistant", "reasoning": "r", "reasoning_details": details, "tool_calls": [CALL]}
    )
    assert first == Reasoning(("r",), at="/messages/0/reasoning", extra={"reasoning_details": details})
    assert isinstance(second, ToolCall)
    alone = items({"role": "assistant", "content": "x", "reasoning_details": details})[0]
    assert alone == Reasoning(at="/messages/0/reasoning_details", extra={"reasoning_details": details})


# --- tools and tool_choice -------------------------------------------------------------

FUNCTION = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True},
}
CUSTOM = {
    "type": "custom",
    "custom": {
        "name": "p",
        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}},
    },
}
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
FLAT = {"type": "function", "name": "f"}
NAMED_CUSTOM = {"type": "custom", "custom": {"name": "p"}}
HOSTED = {"type": "web_search"}
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


# --- citations -------------------------------------------------------------------------

FLAT_URL = {"type": "url_citation", "url": "u", "title": "t", "start_index": 1, "end_index": 3}
FILE_CITED = {"type": "file_citation", "file_id": "file_1", "filename": "a", "index": 2}


@pytest.mark.parametrize("flat", [FLAT_URL, FILE_CITED])
def test_citations_there_and_back(flat: dict[str, Any]) -> None:
    nested = to_chat(flat)
    assert nested == {"type": flat["type"], flat["type"]: {k: v for k, v in flat.items() if k != "type"}}
    assert from_chat(nested) == flat
    assert from_chat(flat) == flat


def test_citation_offsets_and_missing_keys() -> None:
    moved = to_chat(FLAT_URL, 10)["url_citation"]
    assert (moved["start_index"], moved["end_index"]) == (11, 13)
    bare = to_chat({"type": "url_citation", "url": "u", "title": None})["url_citation"]
    assert bare == {"url": "u", "title": "", "start_index": 0, "end_index": 0}
    assert from_chat("x") is None
    assert from_chat({"type": None}) is None
