"""The fields that say what a thing is: text, wherever they stand.

Reading a request finds other types anyway; a body that passes unread is looked at here, so
that its faults are a 400 too, and the rules can rely on it.
"""

from __future__ import annotations

from typing import Any

from ..ir import Json
from .decode_parts import wrong

_WORDS = ("type", "role", "name", "namespace", "id", "call_id")
_MODES = (None, "standard", "pro")
"""Of `reasoning.mode` (openai 3.57.0): how the effort is spent; no backend takes another word."""
_LISTS = ("content", "output", "tools")
"""Where further things stand in an item or a tool."""


def check_forms(body: Json) -> None:
    """Raise 400 (`ProxyError`) for an item, part or tool that does not say in words what it is."""
    given, tools = body.get("input"), body.get("tools")
    if not isinstance(given, str | list | None):
        raise wrong("/input", "a string or a list of items")
    if not isinstance(tools, list | None):
        raise wrong("/tools", "a list")
    for key, entries in (("input", given), ("tools", tools)):
        if isinstance(entries, list):
            _check(entries, f"/{key}")
    reasoning = body.get("reasoning")
    if isinstance(reasoning, dict) and reasoning.get("mode") not in _MODES:
        raise wrong("/reasoning/mode", "'standard' or 'pro'")


def _check(entries: list[Any], at: str) -> None:
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise wrong(f"{at}/{index}", "an object")
        for key in _WORDS:
            if not isinstance(entry.get(key), str | None):
                raise wrong(f"{at}/{index}/{key}", "a string")
        for key in _LISTS:
            inner = entry.get(key)
            if isinstance(inner, list):
                _check(inner, f"{at}/{index}/{key}")
