"""The keys this shape knows, for backends that answer 400 to any other (`request.extra_keys`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..ir import Json
from ..params import known_keys

# `client_metadata` is Codex's own, OpenAI's published request type does not have it.
BODY = frozenset(
    {
        *("model", "input", "instructions", "tools", "tool_choice", "stream", "stream_options"),
        *("previous_response_id", "conversation", "background_options", "access_programs", "image"),
        *(key for key in known_keys("responses") if key != "client_metadata"),
    }
)

_CALL = ("type", "id", "call_id", "name", "namespace", "async", "caller")
_RESULT = ("type", "id", "call_id", "output", "caller")
ITEMS: Mapping[str, frozenset[str]] = {
    "message": frozenset({"type", "id", "role", "content", "status", "phase"}),
    "function_call": frozenset({*_CALL, "arguments", "status"}),
    "custom_tool_call": frozenset({*_CALL, "input"}),
    "function_call_output": frozenset({*_RESULT, "name", "namespace", "status"}),
    "custom_tool_call_output": frozenset(_RESULT),
    "reasoning": frozenset({"type", "id", "summary", "content", "encrypted_content", "status"}),
}
PARTS: Mapping[str, frozenset[str]] = {
    "input_text": frozenset({"type", "text", "prompt_cache_breakpoint"}),
    "output_text": frozenset({"type", "text", "annotations", "logprobs"}),
    "refusal": frozenset({"type", "refusal"}),
    "input_image": frozenset({"type", "image_url", "file_id", "detail", "prompt_cache_breakpoint"}),
    "input_file": frozenset(
        {"type", "file_id", "file_data", "file_url", "filename", "detail", "prompt_cache_breakpoint"}
    ),
    "input_audio": frozenset({"type", "input_audio"}),
}
_TOOL = ("type", "name", "description", "async", "defer_loading", "allowed_callers")
TOOLS: Mapping[str, frozenset[str]] = {
    "function": frozenset({*_TOOL, "parameters", "strict", "output_schema"}),
    "custom": frozenset({*_TOOL, "format"}),
}


def only_known(value: Json, kinds: Mapping[str, frozenset[str]], extra: Collection[str]) -> Json:
    """`value` without keys its type does not know; as it is when its type is none of these."""
    known: Any = kinds.get(str(value.get("type")))
    if known is None or value.keys() <= known:
        return value
    return {key: inner for key, inner in value.items() if key in known or key in extra}
