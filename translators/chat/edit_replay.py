"""Reasoning in the history: `reasoning.replay` of the profile.

Clients and gateways keep it with assistant messages under several names; a backend wants it
back in one of these ways, or refuses it. What is wanted:

    never    nowhere
    field    a string under `replay_field`; each under its own name, where two fields say different things
    parts    a content part: {"type": "thinking", "thinking": [{"type": "text", "text"}]}
             or {"type": "reasoning", "summary": [{"type": "summary_text", "text"}]}
    details  the list under `replay_field`, word for word as it came
    tags     at the start of the content, between the profile's tags
"""

from __future__ import annotations

from typing import Any

from ..dialect import LossKind
from ..ir import Json
from ..profile import ReasoningRules
from .content import as_parts, joined, string
from .edit_draft import Draft

_TEXTS = ("reasoning_content", "reasoning", "reasoning_text")
_FIELDS = (*_TEXTS, "thinking_blocks", "reasoning_details")
"""Keys that hold reasoning; the last two repeat the words of the others and are read where there are none."""
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
    left_out = _reason_against(draft, message, at)
    if left_out is not None:
        return _with_placeholder(_without(draft, message, fields, parts, at, left_out), rules)
    return _with_placeholder(_replayed(draft, message, fields, parts, at), rules)


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and string(part.get("type")) in _PARTS


def _reason_against(draft: Draft, message: Json, at: int) -> LossKind | None:
    """What kind of loss it is that this message's reasoning does not go back; None where it does."""
    rules = draft.profile.reasoning
    if rules.mode == "off":
        return "policy"
    if rules.replay == "never":
        return "bookkeeping"
    unwanted = rules.replay_on == "tool_turns" and not message.get("tool_calls")
    return "policy" if unwanted or not draft.in_scope(at) else None


def _bare(message: Json) -> Json:
    """The message without any reasoning."""
    bare = {key: value for key, value in message.items() if key not in _FIELDS}
    if isinstance(message.get("content"), list):
        bare["content"] = [part for part in message["content"] if not _is_thought(part)]
    return bare


_NOT_TAKEN = "this backend does not take the reasoning of earlier turns back"
_NOT_ASKED = "reasoning of this turn is not given back, by reasoning.mode, scope or replay_on"


def _without(
    draft: Draft, message: Json, fields: list[str], parts: list[Json], at: int, kind: LossKind
) -> Json:
    held = next((key for key in fields if message[key]), "content" if parts else None)
    if held is not None:
        reason = _NOT_ASKED if kind == "policy" else _NOT_TAKEN
        draft.lose(f"/messages/{at}/{held}", reason, kind)
    return _bare(message)


def _replayed(draft: Draft, message: Json, fields: list[str], parts: list[Json], at: int) -> Json:
    rules = draft.profile.reasoning
    texts = _distinct_texts(message, rules)
    words = "\n\n".join(texts.values())
    words = words or next((text for key in fields if (text := _text_of(message[key]))), "") or _text_of(parts)
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
        case "field" if len(texts) > 1:
            return {**bare, **_own_fields(draft, texts, at)}
        case "field" if words:
            return {**bare, rules.replay_field: words}
        case _:
            return bare


def _distinct_texts(message: Json, rules: ReasoningRules) -> dict[str, str]:
    """Field -> its words, the backend's own field first; of equal words the first field only."""
    texts: dict[str, str] = {}
    for key in dict.fromkeys((rules.replay_field, *_TEXTS)):
        text = message.get(key)
        if isinstance(text, str) and text.strip() and text not in texts.values():
            texts[key] = text
    return texts


def _own_fields(draft: Draft, texts: dict[str, str], at: int) -> Json:
    """Different words in several fields: each goes back in its own, where the backend has such a field.

    What another backend said beside them is none of its words, and a thought is refused that it never had.
    """
    rules = draft.profile.reasoning
    own = {key: text for key, text in texts.items() if key in (*rules.fields, rules.replay_field)}
    kept = own if len(own) > 1 else {rules.replay_field: next(iter((own or texts).values()))}
    for key, text in texts.items():
        if text not in kept.values():
            draft.lose(f"/messages/{at}/{key}", "this backend takes reasoning under one name", "bookkeeping")
    return kept


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
