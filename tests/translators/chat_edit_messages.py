"""Edits of one message between others: the forms of their cases."""

from __future__ import annotations

from typing import Any

from tests.translators.chat_edits import USER, Edit

Json = dict[str, Any]
STRICT: Json = {"request": {"extra_keys": []}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
CALLS = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
RESULT = {"role": "tool", "tool_call_id": "a", "content": "r"}
MISTRAL = {"type": "thinking", "thinking": [{"type": "text", "text": "why"}]}
DATABRICKS = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "why", "signature": "s"}]}


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def said(content: Any, **more: Any) -> Json:
    return {"role": "assistant", "content": content, **more}


def one(
    id: str, message: Json, wanted: Json | None, rules: Json | None = None, lost: str | None = None
) -> Edit:
    """A message between two of the user's; None: it is left out. `lost` is a place in the message."""
    given = [USER, message, USER]
    kept = [USER, USER] if wanted is None else [USER, wanted, USER]
    return _edit(id, given, kept, rules, lost)


def turn(id: str, message: Json, wanted: Json, rules: Json | None = None) -> Edit:
    """An assistant message with calls, and their result."""
    given, kept = ([USER, {**each, "tool_calls": CALLS}, RESULT] for each in (message, wanted))
    return _edit(id, given, kept, rules, None)


def _edit(id: str, given: list[Json], kept: list[Json], rules: Json | None, lost: str | None) -> Edit:
    losses = [] if lost is None else [f"/messages/1{lost}"]
    wanted = None if given == kept else {"messages": kept}
    return Edit(id, {"messages": given}, wanted, rules or {}, losses)


def rules(**messages: Any) -> Json:
    return {"messages": messages}
