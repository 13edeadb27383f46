"""`messages.system_channel`: where a backend of this wire reads the words that come before all else."""

from __future__ import annotations

from ..ir import Json
from ..profile import MessageRules


def move_instructions(body: Json, rules: MessageRules) -> None:
    """`instructions` as the first item of `input`, in place, where the backend wants them there.

    Runs after every rule that gathers or writes `instructions`. A developer's item is called as
    `messages.developer` calls developers, so that editing the edited body changes nothing.
    """
    told = body.get("instructions") or ""
    if rules.system_channel == "instructions" or not isinstance(told, str):
        return
    body.pop("instructions", None)
    if told:
        body["input"] = [_item(told, rules), *_items(body.get("input"))]


def _item(told: str, rules: MessageRules) -> Json:
    role = "system"
    if rules.system_channel == "developer-item":
        role = "developer" if rules.developer == "keep" else rules.developer
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": told}]}


def _items(given: object) -> list[object]:
    """`input` as the list that it stands for: a string is one user message."""
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
    return given if isinstance(given, list) else []
