"""Reasoning items that a backend cannot use, and says so.

Only the deployment that sealed a thought can open it, and only a backend that stores answers
finds one by its id. After a switch of provider, key or region, or a history that was cut in the
wrong place, OpenAI answers 400 on every later turn (openai/codex#8100). The conversation is worth more
than its thoughts: it is sent once more without them, and without the ids by which the other
items are tied to them.
"""

from __future__ import annotations

import re
from typing import Any

from ..dialect import Loss
from ..ir import Json
from .edit_thoughts import REASONING, without_id

_Q = r"[`'\"\\]*"
"""Quotes of every kind, or none: gateways put the words in JSON of their own."""

_REFUSED = re.compile(
    rf"invalid_encrypted_content"
    rf"|encrypted content .*could not be verified"
    rf"|of type {_Q}reasoning{_Q} was provided without"
    rf"|without its required (?:preceding item of type )?{_Q}reasoning{_Q}"
    rf"|items are not persisted when {_Q}store{_Q} is set to false",
    re.IGNORECASE,
)
"""The documented words, in `error.code` or in the message."""

_STATUSES = frozenset({400, 404})
"""An id that leads nowhere is a 404."""


def refused(status: int, code: str | None, message: str) -> bool:
    """Whether a backend's error is about reasoning that it cannot use."""
    return status in _STATUSES and _REFUSED.search(f"{code} {message}") is not None


def without_seals(body: Json) -> Json | None:
    """`body` without reasoning items and ids that refer to them; None when it has neither."""
    items = body.get("input")
    if not isinstance(items, list):
        return None
    kept = [without_id(item) for item in items if not _is_reasoning(item)]
    same = len(kept) == len(items) and all(new is old for new, old in zip(kept, items, strict=True))
    return None if same else {**body, "input": kept}


def sealed(body: Json) -> list[Loss]:
    """What a client's own Responses body loses by that."""
    items = body.get("input")
    return [
        Loss(f"/input/{index}", "this backend cannot use its reasoning", "bookkeeping")
        for index, item in enumerate(items if isinstance(items, list) else ())
        if _is_reasoning(item)
    ]


def _is_reasoning(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") in REASONING
