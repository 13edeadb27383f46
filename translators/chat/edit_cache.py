"""Marks for Anthropic's prompt cache: `messages.cache_marks` of the profile.

    {type: text, text, cache_control: {type: ephemeral}}

What stands up to a mark is read from the cache when the next request begins with the same. Two do for a
conversation: one after the first system message, which every request of an agent has, and one before the
last message, which holds all that the next turn repeats. A client's own marks stay where they are and
count: Anthropic takes four in all.
"""

from __future__ import annotations

from typing import Any

from ..ir import Json
from .content import MARK, is_blank, string
from .edit_draft import Draft

_EPHEMERAL = {"type": "ephemeral"}
_MARKS = 2
_SYSTEM = ("system", "developer")


def mark_cache(draft: Draft) -> None:
    """Mark the first system message and the nearest one before the last that has text; idempotent.

    Needs the final messages: whatever moves or adds one comes before.
    """
    rules = draft.profile.messages
    messages: list[Json] = draft.body["messages"]
    if not rules.cache_marks or rules.text_parts == "string" or len(messages) < _MARKS:
        return
    left = _MARKS - sum(map(_marks, messages)) - _tool_marks(draft.body)
    for at in _places(messages):
        if left > 0 and not _marks(messages[at]):
            messages = [*messages[:at], _marked(messages[at]), *messages[at + 1 :]]
            left -= 1
    draft.keep("messages", messages)


def _places(messages: list[Json]) -> list[int]:
    """Where the marks go, each place once."""
    holding = [i for i, message in enumerate(messages[:-1]) if _last_text(message) is not None]
    system = [i for i in holding if messages[i].get("role") in _SYSTEM]
    return list(dict.fromkeys([*system[:1], *holding[-1:]]))


def _last_text(message: Json) -> int | None:
    """The part that a mark goes on, 0 for a string; None when there is no text, which takes no mark."""
    content = message.get("content")
    if isinstance(content, str):
        return None if is_blank(content) else 0
    parts = content if isinstance(content, list) else []
    texts = (i for i, part in enumerate(parts) if _is_text(part))
    return max(texts, default=None)


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and bool(string(part.get("text")).strip())


def _marked(message: Json) -> Json:
    content, at = message["content"], _last_text(message)
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    marked = [{**part, MARK: _EPHEMERAL} if i == at else part for i, part in enumerate(parts)]
    return {**message, "content": marked}


def _marks(message: Json) -> int:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return sum(isinstance(part, dict) and bool(part.get(MARK)) for part in [*parts, message])


def _tool_marks(body: Json) -> int:
    tools = body.get("tools")
    return sum(isinstance(tool, dict) and bool(tool.get(MARK)) for tool in tools or ())
