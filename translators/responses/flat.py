"""The one spelling of tools and tool choices on this wire, for reading and for echoing them.

Chat clients nest a tool's fields under its type; many send the same to /v1/responses. Both
spellings are read; the flat one is what the published Responses types know.
"""

from __future__ import annotations

from typing import Any

from ..ir import Json

_NESTED = ("function", "custom")


def flat_tool(raw: Json) -> Json:
    """`{type: function, function: {name, ...}}` as `{type: function, name, ...}`; others as they are."""
    kind = raw.get("type")
    if kind is None and (isinstance(raw.get("function"), dict) or "name" in raw):
        kind = "function"  # seen from clients that only ever knew one type
    nested = raw.get(kind) if kind in _NESTED else None
    if not isinstance(nested, dict):
        return raw if kind == raw.get("type") else {"type": kind, **raw}
    rest = {key: value for key, value in raw.items() if key not in ("type", kind)}
    flat = {"type": kind, **rest, **nested}
    if kind == "custom" and isinstance(flat.get("format"), dict):
        flat["format"] = _flat_format(flat["format"])
    return flat


def _flat_format(raw: Json) -> Json:
    """Chat: `{type: grammar, grammar: {syntax, definition}}`."""
    nested = raw.get("grammar")
    return {"type": "grammar", **nested} if isinstance(nested, dict) else raw


def flat_choice(raw: Json) -> Json:
    """A `tool_choice` object whose fields may be nested under its type, flat."""
    kind = raw.get("type")
    nested = raw.get(kind) if isinstance(kind, str) else None
    flat = {"type": kind, **nested} if isinstance(nested, dict) else raw
    if kind == "allowed_tools" and isinstance(flat.get("tools"), list):
        tools = [flat_choice(ref) if isinstance(ref, dict) else ref for ref in flat["tools"]]
        return {**flat, "tools": tools}
    return flat


def text_of(value: Any) -> str | None:
    """`value` when it is a string with something in it."""
    return value if isinstance(value, str) and value else None
