"""Reasoning of earlier turns in an `input`: what goes back, and what is tied to what does not.

OpenAI ties the items of one answer to the reasoning before them, by their ids, and refuses either alone:
"Item 'rs_1' of type 'reasoning' was provided without its required following item", "Item 'fc_1' of type
'function_call' was provided without its required 'reasoning' item". An item without an id is tied to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..dialect import Loss
from ..ir import Json
from ..profile import Profile, ReasoningRules
from ..turns import begins_turn
from .pairing import Placed

REASONING = frozenset({"reasoning", "thinking", "redacted_thinking"})
"""Item and part types that hold thoughts, which Anthropic signs and refuses when moved."""
NOT_TAKEN = "its reasoning cannot be given back to this backend"
_NOT_ASKED = "reasoning of this turn is not given back, by reasoning.mode or scope"
_BEYOND_WORDS = ("id", "content", "encrypted_content")
"""What of a reasoning item is more than its summary; an id alone leads nowhere where nothing is stored."""
_TIED = frozenset({"message", "function_call", "custom_tool_call"})
"""Items whose id may be left out."""


def replayed(placed: list[Placed], body: Json, profile: Profile, losses: list[Loss]) -> list[Placed]:
    """Without the reasoning that does not go back to this backend; the same list where there is none."""
    if not any(one.type in REASONING for one in placed):
        return placed
    start = _scope(placed, profile.reasoning)
    return [
        kept for i, one in enumerate(placed) for kept in _thoughts(one, body, profile, losses, i >= start)
    ]


def _scope(placed: list[Placed], rules: ReasoningRules) -> int:
    """The place from which on reasoning goes back, by `reasoning.mode` and `reasoning.scope`."""
    if rules.mode == "off" or rules.scope == "none":
        return len(placed)
    if rules.scope == "all":
        return 0
    return max((i for i, one in enumerate(placed) if begins_turn(one.item)), default=0)


def _thoughts(
    one: Placed, body: Json, profile: Profile, losses: list[Loss], in_scope: bool
) -> Iterator[Placed]:
    """Reasoning items the backend can use, whole; everything else as it is.

    Without `encrypted_content` an id is all OpenAI has to find the reasoning by, and with
    `store: false` it kept nothing: 404 "Items are not persisted when `store` is set to false".
    Items with their text in `content` come from open models, which read it.
    """
    if one.type not in REASONING:
        yield one
        return
    item = one.item
    empty = not item.get("encrypted_content") and not item.get("content")
    if in_scope and profile.reasoning.mode == "summary-only" and item.get("summary"):
        item = {key: value for key, value in item.items() if key not in _BEYOND_WORDS}
        yield one if len(item) == len(one.item) else Placed(item, one.at)
    elif profile.messages.reasoning_items == "drop":
        losses.append(Loss(one.at, NOT_TAKEN, "bookkeeping"))
    elif not in_scope:
        losses.append(Loss(one.at, _NOT_ASKED, "policy"))
    elif body.get("store") is False and empty:
        losses.append(Loss(one.at, NOT_TAKEN, "bookkeeping"))
    elif isinstance(item.get("summary"), list):
        yield one
    else:
        yield Placed({**item, "summary": []}, one.at)


def swept(placed: list[Placed], losses: list[Loss]) -> list[Placed]:
    """Without reasoning that nothing of the assistant follows."""
    kept: list[Placed] = []
    followed = False
    for one in reversed(placed):
        if one.type in REASONING:
            if not followed:
                losses.append(Loss(one.at, "nothing that the assistant said follows it", "bookkeeping"))
                continue
        else:
            followed = is_answer(one) or not (one.type == "message" or one.type.endswith("_output"))
        kept.append(one)
    return kept[::-1]


def untied(whole: list[Placed], kept: list[Placed]) -> list[Placed]:
    """`kept` without the ids of items whose reasoning, in `whole`, went or lost its own id.

    Those are the items of the answer that stand right behind it.
    """
    ids = {one.at: one.item.get("id") for one in kept if one.type in REASONING}
    loose: set[str] = set()
    torn = False
    for one in whole:
        if one.type in REASONING:
            torn = ids.get(one.at) != one.item.get("id") or one.at not in ids
        elif torn and one.type in _TIED and (one.type != "message" or is_answer(one)):
            loose.add(one.at)
        else:
            torn = False
    return (
        [Placed(without_id(one.item), one.at) if one.at in loose else one for one in kept] if loose else kept
    )


def without_id(item: Any) -> Any:
    """The same object where it has no id, or needs the one it has."""
    if not isinstance(item, dict) or "id" not in item or item.get("type", "message") not in _TIED:
        return item
    return {key: value for key, value in item.items() if key != "id"}


def is_answer(one: Placed) -> bool:
    return one.type == "message" and isinstance(one.item, dict) and one.item.get("role") == "assistant"
