"""Items, tools and parts of Responses bodies, and bodies that a backend takes as they are."""

from __future__ import annotations

from translators.ir import Json


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def system(text: str, role: str = "system") -> Json:
    return {"role": role, "content": text}


def answer(*parts: Json) -> Json:
    return {"type": "message", "role": "assistant", "content": list(parts)}


SAID = {"type": "output_text", "text": "b", "annotations": [], "logprobs": []}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "r"}
F = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
G = {**F, "name": "g"}
WEB = {"type": "web_search"}
MCP = {"type": "mcp", "server_label": "a"}
SPACE = {"type": "namespace", "name": "ns", "description": "", "tools": [F]}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "zz"}
HARD = {"effort": "high"}


def without(body: Json, *keys: str) -> Json:
    return {key: value for key, value in body.items() if key not in keys}


JSON: Json = {"format": {"type": "json_object"}}
LABEL: Json = {"type": "input_text", "text": "[Tool result c1]:"}
NUDGE: Json = {"type": "input_text", "text": "Respond with a JSON object."}


GOOD: list[Json] = [
    {"input": "hi"},
    {"input": [user("hi"), answer(SAID), CALL, RESULT, SEALED, {"id": "x"}, "junk"], "store": False},
    {"input": "hi", "tools": [F, WEB, SPACE, {"type": "custom", "name": "p"}], "tool_choice": "required"},
    {
        "input": "hi",
        "tools": [F],
        "parallel_tool_calls": False,
        "tool_choice": {"type": "function", "name": "f"},
    },
    {"input": "hi", "tools": [F, WEB], "tool_choice": {"type": "web_search"}},
    {
        "input": [{"type": "additional_tools", "role": "developer", "tools": [F]}, user("hi")],
        "tool_choice": {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "f"}],
        },
    },
    {
        "input": "hi",
        "tool_choice": {"type": "function", "name": "of the prompt"},
        "prompt": {"id": "p"},
    },
    {"input": [user("json?")], "text": {"format": {"type": "json_object"}, "verbosity": "low"}},
    {"input": "hi", "reasoning": {"effort": "xhigh", "summary": "auto"}, "temperature": 0.5},
    {"input": "hi", "reasoning": {"summary": "auto"}, "unheard_of": {"of": 1}},
    {"input": [RESULT], "previous_response_id": "resp_1"},
    {"input": [RESULT, {"type": "compaction", "encrypted_content": "zz"}]},
    {"input": [user("hi"), CALL]},
    {"input": [{"type": "local_shell_call", "call_id": "c1"}, RESULT, user("hi")]},
    {"input": [CALL, {"type": "apply_patch_call_output", "call_id": "c1"}, user("hi")]},
    {"input": [{"type": "function_call_output", "name": "f", "output": "no call id, as of 2026"}]},
    {"input": [user("hi")], "text": {"format": {"type": "text"}}},
    {},
]
"""Whole bodies that need no edit."""
