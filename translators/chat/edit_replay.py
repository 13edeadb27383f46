"""Reasoning in the history: `reasoning.replay` of the profile.

Clients and gateways keep it with assistant messages under several names; a backend wants it
back in one of these ways, or refuses it. What is wanted:

    never    nowhere
    field    a string under `replay_field`
    parts    a content part: {"type": "thinking", "thinking": [{"type": "text", "text"}]}
             or {"type": "reasoning", "summary": [{"type": "summary_text", "text"}]}
    details  the list under `replay_field`, word for word as it came
    tags     at the start of the content, between the profile's tags
"""

from __future__ import annotations

from typing import Any

from ..ir import Json
from ..profile import ReasoningRules
from .content import as_parts, joined, string
from .edit_draft import Draft

_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking_blocks", "reasoning_details")
"""Keys that hold reasoning; the first one with words in it is the one read."""
_PARTS = frozenset({"reasoning", "thinking", "redacted_thinking"})
_TAGS = ("<think>", "</think>")


NATIVE = "native"
"""Key under which a translation hands over content parts out of a capsule."""


class NativeParts(list[Json]):
    """Of a type of its own, so that no client's body can hold one."""


def edit_replay(draft: Draft, message: Json, at: int) -> Json:
    """An assistant message with its reasoning where this backend wants it, the same one if it has none."""
    native = message.get(NATIVE)
    if not isinstance(native, NativeParts):
        return _edited(draft, message, at)
    rest = _edited(draft, {key: value for key, value in message.items() if key != NATIVE}, at)
    return {**rest, "content": [*native, *as_parts(rest.get("content"))]}


def _edited(draft: Draft, message: Json, at: int) -> Json:
    rules = draft.profile.reasoning
    content = message.get("content")
    parts = [part for part in content if _is_thought(part)] if isinstance(content, list) else []
    fields = [key for key in _FIELDS if key in message]
    if not parts and not fields:
        return _with_placeholder(message, rules)
    if not _is_replayed(rules, message):
        return _without(draft, message, fields, parts, at)
    if not draft.in_scope(at):
        return _with_placeholder(_without(draft, message, fields, parts, at), rules)
    return _with_placeholder(_replayed(message, fields, parts, rules), rules)


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and string(part.get("type")) in _PARTS


def _is_replayed(rules: ReasoningRules, message: Json) -> bool:
    if rules.mode == "off" or rules.replay == "never":
        return False
    if rules.replay == "details" and rules.replay_field in rules.fields:
        return False  # a backend with signatures and no field for words (Gemini): it refuses the key
    return rules.replay_on == "all" or bool(message.get("tool_calls"))


def _bare(message: Json) -> Json:
    """The message without any reasoning."""
    bare = {key: value for key, value in message.items() if key not in _FIELDS}
    if isinstance(message.get("content"), list):
        bare["content"] = [part for part in message["content"] if not _is_thought(part)]
    return bare


def _without(draft: Draft, message: Json, fields: list[str], parts: list[Json], at: int) -> Json:
    held = next((key for key in fields if message[key]), "content" if parts else None)
    if held is not None:
        reason = "this backend does not take the reasoning of earlier turns back"
        draft.lose(f"/messages/{at}/{held}", reason, "bookkeeping")
    return _bare(message)


def _replayed(message: Json, fields: list[str], parts: list[Json], rules: ReasoningRules) -> Json:
    words = next((text for key in fields if (text := _text_of(message[key]))), None) or _text_of(parts)
    bare = _bare(message)
    match rules.replay:
        case "parts" if parts:
            return {**bare, "content": message["content"]}
        case "parts" if words:
            return {**bare, "content": [_as_part(words, rules), *as_parts(bare.get("content"))]}
        case "details" if isinstance(message.get(rules.replay_field), list):
            return {**bare, rules.replay_field: message[rules.replay_field]}
        case "details" if words:
            return {**bare, rules.replay_field: [{"type": "reasoning.text", "text": words}]}
        case "tags" if words:
            opening, closing = rules.tags or _TAGS
            return {**bare, "content": joined(f"{opening}{words}{closing}", bare.get("content"), "\n")}
        case "field" if words:
            return {**bare, rules.replay_field: words}
        case _:
            return bare


def _with_placeholder(message: Json, rules: ReasoningRules) -> Json:
    """DeepSeek refuses a turn with calls that has no reasoning; any text will do."""
    held = message.get(rules.replay_field)
    if rules.placeholder is None or held or not message.get("tool_calls"):
        return message
    return {**message, rules.replay_field: rules.placeholder}


def _as_part(words: str, rules: ReasoningRules) -> Json:
    if rules.parts[:1] == ("thinking",):
        return {"type": "thinking", "thinking": [{"type": "text", "text": words}]}
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": words}]}


def _text_of(held: Any) -> str:
    """The words in a field or a list of parts, whatever their form; blank ones are none."""
    if isinstance(held, str):
        return held if held.strip() else ""
    if isinstance(held, list):
        texts = (_text_of(entry) for entry in held)
        return "\n\n".join(text for text in texts if text)
    if not isinstance(held, dict):
        return ""
    return next((text for key in ("text", "thinking", "summary") if (text := _text_of(held.get(key)))), "")
