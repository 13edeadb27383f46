"""Bodies made of every kind of item, part, tool, choice and parameter, and values that fit nowhere."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from translators.capsule import PREFIX
from translators.ir import Shape

Json = dict[str, Any]

_SEAL = PREFIX + "1."
_CAPSULES = (
    "",
    PREFIX,
    _SEAL,
    _SEAL + "AAAA",
    _SEAL + "!!",
    _SEAL + "é" * 9,
    _SEAL + "A" * 5000,
    "gAAAA",
    "\x00",
)
_SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "string"}}}
_IMAGE = "data:image/png;base64,AAAA"
_PDF = "data:application/pdf;base64,AA"

# --- Responses -------------------------------------------------------------------------

_PARTS: list[Json] = [
    {"type": "input_text", "text": "hi"},
    {"type": "input_image", "image_url": _IMAGE, "detail": "low"},
    {"type": "input_image", "file_id": "file_1"},
    {"type": "input_file", "filename": "a.pdf", "file_data": _PDF},
    {"type": "input_file", "file_url": "https://example.com/a.pdf"},
    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    {"type": "text", "text": "in Chat's words"},
]
_ITEMS: list[Json] = [
    {"role": "user", "content": "hi"},
    {"type": "message", "role": "user", "content": _PARTS[:2]},
    {"type": "message", "role": "developer", "content": [_PARTS[0]]},
    {"type": "message", "role": "system", "content": "hi"},
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "phase": "commentary",
        "content": [
            {"type": "output_text", "text": "x", "annotations": [{"type": "url_citation", "url": "u"}]},
            {"type": "refusal", "refusal": "no"},
        ],
    },
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "s"}],
        "content": [{"type": "reasoning_text", "text": "t"}],
        "encrypted_content": None,
    },
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "namespace": "ns"},
    {"type": "function_call_output", "call_id": "c", "output": "ok"},
    {"type": "function_call_output", "call_id": "c", "output": _PARTS[:3]},
    {"type": "custom_tool_call", "call_id": "d", "name": "p", "input": "raw"},
    {"type": "custom_tool_call_output", "call_id": "d", "output": "ok"},
    {"type": "local_shell_call", "id": "l", "call_id": "e", "action": {"type": "exec", "command": ["ls"]}},
    {"type": "local_shell_call_output", "id": "l", "call_id": "e", "output": "{}"},
    {"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}, "status": "completed"},
    {"type": "shell_call_output", "call_id": "s", "output": [{"stdout": "x", "stderr": ""}]},
    {"type": "apply_patch_call", "call_id": "a", "operation": {"type": "delete_file", "path": "x"}},
    {"type": "apply_patch_call_output", "call_id": "a", "status": "completed"},
    {
        "type": "web_search_call",
        "id": "ws",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    },
    {"type": "file_search_call", "id": "fs", "queries": ["q"], "status": "completed"},
    {"type": "code_interpreter_call", "id": "ci", "code": "1", "container_id": "x", "outputs": None},
    {"type": "image_generation_call", "id": "ig", "result": "AAAA", "status": "completed"},
    {"type": "computer_call", "id": "cc", "call_id": "x", "action": {"type": "screenshot"}},
    {"type": "computer_call_output", "call_id": "x", "output": {"type": "computer_screenshot"}},
    {"type": "mcp_list_tools", "id": "ml", "server_label": "s", "tools": []},
    {"type": "mcp_call", "id": "mc", "server_label": "s", "name": "f", "arguments": "{}", "output": "x"},
    {"type": "mcp_approval_request", "id": "ma", "server_label": "s", "name": "f", "arguments": "{}"},
    {"type": "mcp_approval_response", "approval_request_id": "ma", "approve": True},
    {"type": "item_reference", "id": "msg_1"},
    {"type": "compaction", "id": "cm", "encrypted_content": "zz"},
    {"type": "tool_search_call", "call_id": "t", "execution": "client", "arguments": {"query": "q"}},
    {"type": "tool_search_output", "call_id": "t", "execution": "client", "tools": []},
    {"type": "telepathy"},
]
_FUNCTION: Json = {"type": "function", "name": "f", "parameters": _SCHEMA, "strict": True}
_TOOLS: list[Json] = [
    _FUNCTION,
    {"type": "function", "name": "g"},
    {
        "type": "custom",
        "name": "p",
        "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"},
    },
    {"type": "namespace", "name": "ns", "description": "d", "tools": [_FUNCTION]},
    {"type": "tool_search", "execution": "client", "description": "d", "parameters": _SCHEMA},
    {"type": "web_search", "filters": {"allowed_domains": ["example.com"]}},
    {"type": "file_search", "vector_store_ids": ["v"]},
    {"type": "code_interpreter", "container": {"type": "auto"}},
    {"type": "image_generation"},
    {"type": "computer_use_preview", "display_width": 1, "display_height": 1, "environment": "linux"},
    {"type": "mcp", "server_label": "s", "server_url": "https://example.com"},
    {"type": "local_shell"},
    {"type": "shell"},
    {"type": "apply_patch"},
]
_CHOICES: list[Any] = [
    *("auto", "none", "required"),
    {"type": "function", "name": "f"},
    {"type": "custom", "name": "p"},
    {"type": "web_search"},
    {"type": "mcp", "server_label": "s", "name": "f"},
    {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
]
_PARAMS: dict[str, list[Any]] = {
    "instructions": ["be brief"],
    "tool_choice": _CHOICES,
    "parallel_tool_calls": [True, False],
    "reasoning": [{"effort": "high", "summary": "auto"}, {"effort": "none"}],
    "text": [
        {"verbosity": "low"},
        {"format": {"type": "json_object"}},
        {"format": {"type": "json_schema", "name": "n", "schema": _SCHEMA, "strict": True}},
    ],
    "include": [["reasoning.encrypted_content"], ["message.output_text.logprobs"]],
    "max_output_tokens": [16],
    "max_tool_calls": [3],
    "temperature": [0, 1.5],
    "top_p": [0.5],
    "top_logprobs": [0, 5],
    "truncation": ["auto"],
    "metadata": [{"a": "b"}],
    "store": [False, True],
    "stream": [True],
    "stream_options": [{"include_obfuscation": False}],
    "service_tier": ["flex"],
    "prompt": [{"id": "pmpt_1"}],
    "prompt_cache_key": ["k"],
    "safety_identifier": ["s"],
    "client_metadata": [{"x": "y"}],
}

# --- Chat ------------------------------------------------------------------------------

_CHAT_PARTS: list[Json] = [
    {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}},
    {"type": "image_url", "image_url": {"url": _IMAGE, "detail": "low"}},
    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    {"type": "file", "file": {"filename": "a.pdf", "file_data": _PDF}},
    {"type": "file", "file": {"file_id": "f"}},
]
_CALL: Json = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_MESSAGES: list[Json] = [
    {"role": "system", "content": "hi"},
    {"role": "developer", "content": [_CHAT_PARTS[0]]},
    {"role": "user", "name": "u", "content": _CHAT_PARTS},
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "x", "refusal": None, "audio": {"id": "a"}},
    {"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "refusal", "refusal": "no"}]},
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {
        "role": "assistant",
        "tool_calls": [{"id": "d", "type": "custom", "custom": {"name": "p", "input": "raw"}}],
        "reasoning_content": "thought",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "zz", "format": "f", "index": 0}],
    },
    {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "tool", "tool_call_id": "c", "content": "ok"},
    {"role": "tool", "tool_call_id": "d", "content": [{"type": "text", "text": "x"}]},
    {"role": "function", "name": "f", "content": "ok"},
]
_CHAT_FUNCTION: Json = {"name": "f", "parameters": _SCHEMA, "strict": True}
_CHAT_TOOLS: list[Json] = [
    {"type": "function", "function": _CHAT_FUNCTION},
    {"type": "function", "function": {"name": "g"}},
    {"type": "custom", "custom": {"name": "p", "format": {"type": "text"}}},
]
_CHAT_PARAMS: dict[str, list[Any]] = {
    "functions": [[_CHAT_FUNCTION]],
    "function_call": ["auto", {"name": "f"}],
    "tool_choice": [
        *("auto", "none", "required"),
        {"type": "function", "function": {"name": "f"}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [_CHAT_TOOLS[0]]}},
    ],
    "parallel_tool_calls": [True, False],
    "reasoning_effort": ["high", "none"],
    "verbosity": ["low"],
    "response_format": [
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "n", "schema": _SCHEMA, "strict": True}},
    ],
    "max_tokens": [16],
    "max_completion_tokens": [16],
    "n": [1, 2],
    "temperature": [0, 1.5],
    "top_p": [0.5],
    "stop": ["END", ["a", "b"]],
    "seed": [7],
    "logprobs": [True],
    "top_logprobs": [5],
    "logit_bias": [{"50256": -100}],
    "presence_penalty": [0.5],
    "frequency_penalty": [-2],
    "modalities": [["text", "audio"]],
    "audio": [{"voice": "alloy", "format": "wav"}],
    "prediction": [{"type": "content", "content": "x"}],
    "web_search_options": [{"search_context_size": "low"}],
    "metadata": [{"a": "b"}],
    "store": [True],
    "stream": [True],
    "stream_options": [{"include_usage": True}],
    "user": ["u"],
    "reasoning": [{"effort": "low"}],
}
_KINDS: dict[Shape, tuple[str, list[Json], list[Json], dict[str, list[Any]]]] = {
    "chat": ("messages", _MESSAGES, _CHAT_TOOLS, _CHAT_PARAMS),
    "responses": ("input", _ITEMS, _TOOLS, _PARAMS),
}


@st.composite
def every_kind(draw: st.DrawFn, shape: Shape) -> Json:
    """A body of known things in any combination; capsules in it are garbage."""
    key, items, tools, params = _KINDS[shape]
    body: Json = {"model": "m", key: draw(st.lists(st.sampled_from(items), min_size=1, max_size=5))}
    if draw(st.booleans()):
        body["tools"] = draw(st.lists(st.sampled_from(tools), max_size=4))
    for name in draw(st.lists(st.sampled_from(sorted(params)), max_size=5, unique=True)):
        body[name] = draw(st.sampled_from(params[name]))
    body = copy.deepcopy(body)
    for item in body[key]:
        if "encrypted_content" in item:
            item["encrypted_content"] = draw(st.sampled_from(_CAPSULES))
        for detail in item.get("reasoning_details", ()):
            detail["data"] = draw(st.sampled_from(_CAPSULES))
    return body


@st.composite
def single(draw: st.DrawFn, shape: Shape) -> Json:
    """An ordinary body with one known thing in it."""
    key, items, tools, params = _KINDS[shape]
    body: Json = {"model": "m", key: [{"role": "user", "content": "hi"}], "tools": tools}
    kind = draw(st.sampled_from(["item", "tool", *sorted(params)]))
    if kind == "item":
        body[key] = [draw(st.sampled_from(items))]
    elif kind == "tool":
        body["tools"] = [draw(st.sampled_from(tools))]
    else:
        body[kind] = draw(st.sampled_from(params[kind]))
    return copy.deepcopy(body)


def _deep(kind: type, levels: int = 60) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value] if kind is list else {"a": value}
    return value


ODD = st.sampled_from(
    [
        *(None, True, False, 0, -1, 1.5, 2**63, -(2**63), 1e308, -0.0),
        *("", " ", "\x00", "x" * 20_000, "\u202e\u200b\ufeff", "\U0001f9d1\u200d\U0001f680", "null", "../.."),
        *([], {}, [None], [[]], [{}], {"": ""}, {"type": None}, {"type": []}, {"type": "x"}, [1, "a", None]),
        *(_deep(list), _deep(dict)),
    ]
)
"""Lone surrogates and larger numbers are no JSON to us: they never come this far."""


@st.composite
def mutated(draw: st.DrawFn, shape: Shape) -> Json:
    """A body of known things with one to three places made odd, emptied, taken away or doubled."""
    body = draw(every_kind(shape))
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from(list(places(body))))
        kind = draw(st.sampled_from(["odd", "odd", "odd", "drop", "double"]))
        if kind == "odd":
            holder[key] = copy.deepcopy(draw(ODD))
        elif kind == "drop":
            del holder[key]
        else:
            holder[key] = [holder[key], copy.deepcopy(holder[key])]
        body["model"] = "m"
    return body


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every holder and key in `value`."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *places(value[key])]]
