"""Keys of content parts that the neutral model has no name for: what a translation loses of them.

Parts are small and many, so the model keeps no room for foreign keys in them; they are reported
instead. One is carried, between Chat and Chat: the `cache_control` of a text. A part of an unknown
type is `Opaque`, not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .dialect import Loss
from .ir import Json, Shape

_TEXT = frozenset({"type", "text", "annotations", "logprobs"})
_PARTS: Mapping[str, frozenset[str]] = {
    "text": _TEXT,
    "input_text": _TEXT,
    "output_text": _TEXT,
    "refusal": frozenset({"type", "refusal"}),
    "image_url": frozenset({"type", "image_url", "detail"}),
    "input_image": frozenset({"type", "image_url", "file_id", "detail"}),
    "input_audio": frozenset({"type", "input_audio"}),
    "file": frozenset({"type", "file"}),
    "input_file": frozenset({"type", "file_data", "file_id", "file_url", "filename", "detail"}),
}
"""What is read of each kind of part. Log probabilities of earlier answers say nothing to a model."""

_TURNS: Mapping[Shape, str] = {"chat": "messages", "responses": "input"}


def unread_keys(body: Json, shape: Shape, backend: Shape) -> list[Loss]:
    """The losses, with pointers into `body`, which has been decoded without complaint."""
    marks = shape == backend == "chat"
    turns = body.get(_TURNS[shape])
    if not isinstance(turns, list):
        return []
    lists = (
        (f"/{_TURNS[shape]}/{i}/{key}", parts) for i, turn in enumerate(turns) for key, parts in _lists(turn)
    )
    return [loss for at, parts in lists for loss in _of_parts(parts, at, marks)]


def _lists(turn: Json) -> Iterator[tuple[str, list[Any]]]:
    for key in ("content", "output"):
        parts = turn.get(key)
        if isinstance(parts, list):
            yield key, parts


def _of_parts(parts: list[Any], at: str, marks: bool) -> Iterator[Loss]:
    """`marks`: a text's `cache_control` is carried."""
    for index, part in enumerate(parts):
        known = (
            _PARTS.get(part["type"]) if isinstance(part, dict) and isinstance(part.get("type"), str) else None
        )
        for key in () if known is None else sorted(part.keys() - known):
            carried = marks and known is _TEXT and key == "cache_control" and isinstance(part[key], dict)
            if part[key] is not None and not carried:
                yield Loss(f"{at}/{index}/{key}", "no translation of this key of a part", "bookkeeping")
