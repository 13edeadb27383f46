"""Citations: the neutral form is the Responses one, flat; Chat nests the same keys under their type.

{"type": "url_citation", "url": ..., "title": ..., "start_index": ..., "end_index": ...}
{"type": "url_citation", "url_citation": {"url": ..., "title": ..., "start_index": ..., "end_index": ...}}
"""

from __future__ import annotations

from typing import Any

from ..ir import Json

_URL_CITATION: Json = {"end_index": 0, "start_index": 0, "title": "", "url": ""}
"""Keys that OpenAI's Chat type requires, with what stands in for a missing one."""


def from_chat(raw: Any) -> Json | None:
    """The neutral form of one entry of `message.annotations`; None when it is none."""
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        return None
    nested = raw.get(raw["type"])
    rest = {key: value for key, value in raw.items() if key not in ("type", raw["type"])}
    return {"type": raw["type"], **rest, **nested} if isinstance(nested, dict) else dict(raw)


def to_chat(annotation: Json, offset: int = 0) -> Json:
    """The Chat form; `offset` is what stands in `content` before the annotated text, in characters."""
    kind = str(annotation.get("type") or "url_citation")
    nested = {key: value for key, value in annotation.items() if key != "type"}
    if kind == "url_citation":
        nested = {**_URL_CITATION, **{key: value for key, value in nested.items() if value is not None}}
    for key in ("start_index", "end_index"):
        if isinstance(nested.get(key), int):
            nested[key] += offset
    return {"type": kind, kind: nested}
