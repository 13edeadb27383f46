"""Requests that nobody can answer as asked: what is odd, and the `param` it is refused by.

What has no translation may still be right for a backend of the client's own shape: those rows are
told in `PASSING`, with who takes them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from translators.ir import Shape

Json = dict[str, Any]


class Impossible(NamedTuple):
    """`keys` on top of an ordinary body; `param` of the refusal."""

    shape: Shape
    name: str
    keys: Json
    param: str


NAN = float("nan")
_USER: Json = {"role": "user", "content": "hi"}
_CALL: Json = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_FUNCTION: Json = {"type": "function", "name": "f", "parameters": {"type": "object"}}
_NESTED: Json = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def _chat_tool(**function: Any) -> Json:
    return {"tools": [{"type": "function", "function": function}]}


def _said(*messages: Any) -> Json:
    return {"messages": [_USER, *messages]}


def _format(**nested: Any) -> Json:
    return {"response_format": {"type": "json_schema", "json_schema": nested}}


_CHAT: list[tuple[str, Json, str]] = [
    ("no messages", {"messages": None}, "messages"),
    ("empty messages", {"messages": []}, "messages"),
    ("messages as text", {"messages": "hi"}, "messages"),
    ("a message as text", {"messages": ["hi"]}, "messages[0]"),
    ("no role", _said({"content": "x"}), "messages[1].role"),
    ("unknown role", _said({"role": "robot", "content": "x"}), "messages[1].role"),
    ("content as number", _said({"role": "user", "content": 5}), "messages[1].content"),
    ("role as number", _said({"role": 5, "content": "x"}), "messages[1].role"),
    ("content as object", _said({"role": "user", "content": {"type": "text"}}), "messages[1].content"),
    ("a part without type", _said({"role": "user", "content": [{"text": "x"}]}), "messages[1].content[0]"),
    (
        "text as number",
        _said({"role": "user", "content": [{"type": "text", "text": 5}]}),
        "messages[1].content[0].text",
    ),
    (
        "sound without a format",
        _said({"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA"}}]}),
        "messages[1].content[0].input_audio.format",
    ),
    (
        "a file of nothing",
        _said({"role": "user", "content": [{"type": "file", "file": {}}]}),
        "messages[1].content[0].file.file_data",
    ),
    ("a part as number", _said({"role": "user", "content": [5]}), "messages[1].content[0]"),
    (
        "image without url",
        _said({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}),
        "messages[1].content[0].image_url.url",
    ),
    (
        "audio as text",
        _said({"role": "user", "content": [{"type": "input_audio", "input_audio": "x"}]}),
        "messages[1].content[0].input_audio",
    ),
    ("calls as object", _said({"role": "assistant", "tool_calls": {"id": "c"}}), "messages[1].tool_calls"),
    ("call as text", _said({"role": "assistant", "tool_calls": ["c"]}), "messages[1].tool_calls[0]"),
    (
        "call without function",
        _said({"role": "assistant", "tool_calls": [{"id": "c", "type": "function"}]}),
        "messages[1].tool_calls[0].function.name",
    ),
    (
        "call with an empty name",
        _said({"role": "assistant", "tool_calls": [{**_CALL, "function": {"name": ""}}]}),
        "messages[1].tool_calls[0].function.name",
    ),
    (
        "old call without a name",
        _said({"role": "assistant", "function_call": {"arguments": "{}"}}),
        "messages[1].function_call.name",
    ),
    ("tools as object", {"tools": {}}, "tools"),
    ("a tool as text", {"tools": ["f"]}, "tools[0]"),
    ("tool type as number", {"tools": [{"type": 5}]}, "tools[0].type"),
    ("name as number", _chat_tool(name=5), "tools[0].function.name"),
    ("description as number", _chat_tool(name="f", description=5), "tools[0].function.description"),
    ("function as text", {"tools": [{"type": "function", "function": "f"}]}, "tools[0].function"),
    ("functions as object", {"functions": {}}, "functions"),
    ("old function without a name", {"functions": [{}]}, "functions[0].name"),
    ("old choice of none", {"functions": [{"name": "f"}], "function_call": {"name": "g"}}, "tool_choice"),
    ("old choice as number", {"functions": [{"name": "f"}], "function_call": 5}, "function_call"),
    ("function without a name", _chat_tool(description="d"), "tools[0].function.name"),
    ("parameters as text", _chat_tool(name="f", parameters="x"), "tools[0].function.parameters"),
    (
        "grammar without definition",
        {
            "tools": [
                {
                    "type": "custom",
                    "custom": {"name": "p", "format": {"type": "grammar", "grammar": {"syntax": "lark"}}},
                }
            ]
        },
        "tools[0].custom.format.grammar.definition",
    ),
    (
        "a choice of no tool",
        {"tools": [_NESTED], "tool_choice": {"type": "function", "function": {"name": "g"}}},
        "tool_choice",
    ),
    ("a choice without a name", {"tools": [_NESTED], "tool_choice": {"type": "function"}}, "tool_choice"),
    ("an unknown choice", {"tools": [_NESTED], "tool_choice": "maybe"}, "tool_choice"),
    ("required without tools", {"tool_choice": "required"}, "tool_choice"),
    ("any without tools", {"tool_choice": "any"}, "tool_choice"),
    ("a choice as number", {"tools": [_NESTED], "tool_choice": 5}, "tool_choice"),
    ("a choice of a number", {"tools": [_NESTED], "tool_choice": {"type": 5}}, "tool_choice"),
    (
        "an allowed set of no tool",
        {"tools": [_NESTED], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": []}}},
        "tool_choice",
    ),
    ("an unknown kind of choice", {"tools": [_NESTED], "tool_choice": {"type": "tool"}}, "tool_choice"),
    ("two choices", {"n": 2}, "n"),
    ("no choice", {"n": 0}, "n"),
    ("no tokens", {"max_completion_tokens": 0}, "max_completion_tokens"),
    ("less than no tokens", {"max_tokens": -2}, "max_tokens"),
    ("tokens as text", {"max_tokens": "5"}, "max_tokens"),
    ("half a token", {"max_tokens": 1.5}, "max_tokens"),
    ("temperature not a number", {"temperature": NAN}, "temperature"),
    ("temperature as text", {"temperature": "hot"}, "temperature"),
    ("too hot", {"temperature": 99}, "temperature"),
    ("top_p above one", {"top_p": 2}, "top_p"),
    ("effort as number", {"reasoning_effort": 5}, "reasoning_effort"),
    ("store as text", {"store": "yes"}, "store"),
    ("metadata as list", {"metadata": ["a"]}, "metadata"),
    ("stop as number", {"stop": 5}, "stop"),
    ("stops as numbers", {"stop": [5]}, "stop"),
    ("logprobs as number", {"logprobs": 5}, "logprobs"),
    ("logprobs as text", {"logprobs": "5"}, "logprobs"),
    ("seed as text", {"seed": "x"}, "seed"),
    ("penalty as text", {"presence_penalty": "x"}, "presence_penalty"),
    ("stream as text", {"stream": "yes"}, "stream"),
    ("modalities as text", {"modalities": "audio"}, "modalities"),
    ("voice as text", {"audio": "alloy"}, "audio"),
    ("verbosity as number", {"verbosity": 1}, "verbosity"),
    ("cache options as text", {"prompt_cache_options": "24h"}, "prompt_cache_options"),
    ("cache mode", {"prompt_cache_options": {"mode": "odd"}}, "prompt_cache_options.mode"),
    ("top_logprobs as text", {"top_logprobs": "5"}, "top_logprobs"),
    ("less than no logprobs", {"logprobs": True, "top_logprobs": -1}, "top_logprobs"),
    ("stream options as list", {"stream": True, "stream_options": []}, "stream_options"),
    ("usage as text", {"stream_options": {"include_usage": "x"}}, "stream_options.include_usage"),
    ("format as text", {"response_format": "json"}, "response_format"),
    ("format without type", {"response_format": {}}, "response_format"),
    ("schema without name", _format(schema={}), "response_format.json_schema.name"),
    ("schema as text", _format(name="n", schema="x"), "response_format.json_schema.schema"),
    ("schema name as number", _format(name=5, schema={}), "response_format.json_schema.name"),
    (
        "format as list",
        {"response_format": {"type": "json_schema", "json_schema": []}},
        "response_format.json_schema",
    ),
]


def _namespace(*tools: Any) -> Json:
    return {"tools": [{"type": "namespace", "name": "n", "description": "d", "tools": [*tools]}]}


_RESPONSES: list[tuple[str, Json, str]] = [
    ("no input", {"input": None}, "input"),
    ("empty input", {"input": []}, "input"),
    ("input as number", {"input": 5}, "input"),
    ("input as object", {"input": {"role": "user"}}, "input"),
    ("an item as text", {"input": ["hi"]}, "input[0]"),
    ("unknown role", {"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
    ("content as number", {"input": [{"role": "user", "content": 5}]}, "input[0].content"),
    (
        "image without url",
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        "input[0].content[0].image_url",
    ),
    ("role as number", {"input": [{"role": 5, "content": "x"}]}, "input[0].role"),
    ("type as list", {"input": [{"type": ["message"], "output": [5]}]}, "input[0].type"),
    ("an item of nothing", {"input": [{"x": 1}]}, "input[0].type"),
    ("a part as text", {"input": [{"role": "user", "content": ["x"]}]}, "input[0].content[0]"),
    (
        "a part without type",
        {"input": [{"role": "user", "content": [{"x": 1}]}]},
        "input[0].content[0].type",
    ),
    (
        "text as number",
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": 5}]}]},
        "input[0].content[0].text",
    ),
    (
        "call id as list",
        {"input": [{"type": "function_call_output", "call_id": [], "output": "x"}]},
        "input[0].call_id",
    ),
    (
        "image without url in a result",
        {"input": [{"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image"}]}]},
        "input[0].output[0].image_url",
    ),
    ("summary as number", {"input": [{"type": "reasoning", "summary": 5}]}, "input[0].summary"),
    ("thought as number", {"input": [{"type": "reasoning", "content": [5]}]}, "input[0].content[0]"),
    (
        "seal as list",
        {"input": [{"type": "reasoning", "summary": [], "encrypted_content": ["x"]}]},
        "input[0].encrypted_content",
    ),
    (
        "found tools as text",
        {"input": [{"type": "additional_tools", "role": "developer", "tools": "x"}]},
        "input[0].tools",
    ),
    (
        "a found tool without name",
        {"input": [{"type": "additional_tools", "role": "developer", "tools": [{"type": "function"}]}]},
        "input[0].tools[0].name",
    ),
    (
        "call without name",
        {"input": [{"type": "function_call", "call_id": "c", "arguments": "{}"}]},
        "input[0].name",
    ),
    ("instructions as list", {"instructions": ["x"]}, "instructions"),
    ("a stored response", {"previous_response_id": "resp_1"}, "previous_response_id"),
    ("two memories", {"previous_response_id": "r", "conversation": "c"}, "previous_response_id"),
    ("a conversation", {"conversation": "c"}, "conversation"),
    ("background stream", {"background": True, "stream": True}, "background"),
    ("background as text", {"background": "yes"}, "background"),
    ("tools as object", {"tools": {}}, "tools"),
    ("a tool as text", {"tools": ["f"]}, "tools[0]"),
    ("a namespaced tool without name", _namespace({"type": "function"}), "tools[0].tools[0].name"),
    ("a namespaced tool as text", _namespace("f"), "tools[0].tools[0]"),
    ("strict as text", {"tools": [{**_FUNCTION, "strict": "yes"}]}, "tools[0].strict"),
    ("a tool without a type", {"tools": [{"x": 1}]}, "tools[0].type"),
    ("function without a name", {"tools": [{"type": "function"}]}, "tools[0].name"),
    ("parameters as text", {"tools": [{**_FUNCTION, "parameters": "x"}]}, "tools[0].parameters"),
    ("namespace without tools", {"tools": [{"type": "namespace", "name": "n"}]}, "tools[0].tools"),
    ("namespace without name", {"tools": [{"type": "namespace", "tools": [_FUNCTION]}]}, "tools[0].name"),
    (
        "grammar without definition",
        {"tools": [{"type": "custom", "name": "p", "format": {"type": "grammar", "syntax": "lark"}}]},
        "tools[0].format.definition",
    ),
    (
        "a choice of no tool",
        {"tools": [_FUNCTION], "tool_choice": {"type": "function", "name": "g"}},
        "tool_choice",
    ),
    ("an unknown choice", {"tools": [_FUNCTION], "tool_choice": "maybe"}, "tool_choice"),
    ("required without tools", {"tool_choice": "required"}, "tool_choice"),
    ("a choice as number", {"tools": [_FUNCTION], "tool_choice": 5}, "tool_choice"),
    ("no tokens", {"max_output_tokens": 0}, "max_output_tokens"),
    ("less than no tokens", {"max_output_tokens": -1}, "max_output_tokens"),
    ("tokens as text", {"max_output_tokens": "5"}, "max_output_tokens"),
    ("temperature not a number", {"temperature": NAN}, "temperature"),
    ("too hot", {"temperature": 99}, "temperature"),
    ("top_p as text", {"top_p": "x"}, "top_p"),
    ("effort as number", {"reasoning": {"effort": 5}}, "reasoning.effort"),
    ("effort in Chat's words", {"reasoning_effort": 5}, "reasoning_effort"),
    ("summary as list", {"reasoning": {"summary": ["auto"]}}, "reasoning.summary"),
    ("old summary as list", {"reasoning": {"generate_summary": ["auto"]}}, "reasoning.generate_summary"),
    ("an unknown mode", {"reasoning": {"mode": "odd"}}, "reasoning.mode"),
    ("verbosity as number", {"text": {"verbosity": 5}}, "text.verbosity"),
    ("format as text", {"text": {"format": "json"}}, "text.format"),
    ("stops of numbers", {"stop": [5]}, "stop"),
    ("stream as text", {"stream": "yes"}, "stream"),
    ("half a token", {"max_output_tokens": 16.5}, "max_output_tokens"),
    ("prompt as text", {"prompt": "pmpt_1"}, "prompt"),
    ("cache mode", {"prompt_cache_options": {"mode": "odd"}}, "prompt_cache_options.mode"),
    ("reasoning as text", {"reasoning": "high"}, "reasoning"),
    ("text as text", {"text": "json"}, "text"),
    ("include as text", {"include": "x"}, "include"),
    ("include of numbers", {"include": [5]}, "include"),
    ("metadata as list", {"metadata": ["a"]}, "metadata"),
    ("store as text", {"store": "yes"}, "store"),
    ("too many logprobs", {"top_logprobs": 100}, "top_logprobs"),
    ("truncation as number", {"truncation": 5}, "truncation"),
    ("truncation of another kind", {"truncation": "oldest"}, "truncation"),
    ("stream options as list", {"stream_options": []}, "stream_options"),
    ("format without type", {"text": {"format": {}}}, "text.format.type"),
    ("schema without name", {"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
    ("no schema", {"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema"),
]

CASES = [Impossible("chat", *case) for case in _CHAT] + [
    Impossible("responses", *case) for case in _RESPONSES
]


_RANGE = "a number out of OpenAI's range is the backend's business"
PASSING: dict[tuple[Shape, str], str] = {
    ("chat", "unknown role"): "templates of self-hosted models have roles of their own",
    ("chat", "sound without a format"): "DashScope takes it so",
    ("chat", "an unknown choice"): "a backend may have another word (Mistral: any)",
    ("chat", "an unknown kind of choice"): "a backend may have other kinds (Anthropic: tool)",
    ("chat", "two choices"): "a backend gives as many; a translation has one",
    ("chat", "no tokens"): _RANGE,
    ("chat", "less than no tokens"): _RANGE,
    ("chat", "temperature not a number"): "no JSON text has it: refused before it is read",
    ("chat", "too hot"): _RANGE,
    ("chat", "top_p above one"): _RANGE,
    ("chat", "logprobs as number"): "Together and Fireworks take a number",
    ("chat", "less than no logprobs"): "vLLM: -1 is all of them",
    ("chat", "schema without name"): "llama.cpp and Together do without",
    ("responses", "unknown role"): "a backend may know it (OpenAI had `tool` and `critic`)",
    ("responses", "an unknown choice"): "a backend may have another word",
    ("responses", "temperature not a number"): "no JSON text has it: refused before it is read",
    ("responses", "too hot"): _RANGE,
    ("responses", "too many logprobs"): _RANGE,
}
"""Rows that pass to a backend of the client's own shape, and why; they are refused when translated."""


def passes(case: Impossible) -> bool:
    return (case.shape, case.name) in PASSING


def body(case: Impossible) -> Json:
    plain: Json = {"messages": [_USER]} if case.shape == "chat" else {"input": "hi"}
    return {"model": "m", **plain, **case.keys}
