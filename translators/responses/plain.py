"""Whether an input item is written as this wire says, so that edits are enough for it.

Clients send Chat spellings, objects where text belongs, parts of the other speaker, and calls
without an id. Reading such an item and writing it anew puts all of it right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir import Json
from .flat import text_of

_CHAT_SPELLINGS = frozenset({"text", "image_url", "file"})
_OF_ANSWERS = frozenset({"output_text", "refusal"})
_WRITTEN = {"function_call": "arguments", "custom_tool_call": "input"}
"""Call item -> the key of what the model wrote."""
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})


def is_plain(item: Mapping[str, Any]) -> bool:
    """Items of types that have no neutral form are what they are."""
    kind = item.get("type") or "message"
    if not isinstance(kind, str):
        return False
    if kind == "message":
        return "role" not in item or _is_plain_message(item)
    if kind in _WRITTEN:
        written = item.get(_WRITTEN[kind])
        is_text = isinstance(written, str) and (kind != "function_call" or bool(written.strip()))
        return is_text and text_of(item.get("call_id")) is not None
    # A result may do without a call id (S openai 3.57.0), but an empty one is refused.
    return kind not in _RESULTS or (item.get("call_id") != "" and _is_output(item.get("output")))


def _is_plain_message(item: Mapping[str, Any]) -> bool:
    content = item.get("content")
    if not isinstance(content, list):
        return isinstance(content, str)
    odd = _CHAT_SPELLINGS | (frozenset({"input_text"}) if item["role"] == "assistant" else _OF_ANSWERS)
    return not any(isinstance(part, dict) and text_of(part.get("type")) in odd for part in content)


def _is_output(output: Any) -> bool:
    if not isinstance(output, list):
        return isinstance(output, str)
    return all(isinstance(part, dict) and _is_result_part(part) for part in output)


def _is_result_part(part: Json) -> bool:
    kind = text_of(part.get("type"))
    return kind is not None and kind not in _CHAT_SPELLINGS | _OF_ANSWERS
