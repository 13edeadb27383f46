"""Which items of a conversation go where `truncation: auto` lets the oldest ones go.

A turn is a message of the user and all that follows it. Whole turns go, the oldest first; never what the
system says, a summary of what was said before, tools, nor the last turn. A turn stays where one of its calls
has its result in another one, so that none loses the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from .budget import chars
from .compaction import COMPACTIONS, is_summary

_STAYS = (*COMPACTIONS, "additional_tools")


def oldest(items: Sequence[Any], least: float) -> set[int]:
    """Places in `items` of the turns that go for the sake of `least` characters; empty when none may."""
    turns = list(_turns(items))
    ids = [set(_call_ids(items, turn)) for turn in turns]
    times = Counter(id for each in ids for id in each)
    found, freed = set[int](), 0.0
    for turn, its in zip(turns[:-1], ids, strict=False):
        own = [place for place in turn if not _stays(items[place])]
        if not own or any(times[id] > 1 for id in its):
            continue
        found.update(own)
        freed += chars([items[place] for place in own])
        if freed >= least:
            break
    return found


def _turns(items: Sequence[Any]) -> Iterator[list[int]]:
    """Places by turn; what comes before the first message of the user is a turn too."""
    turn: list[int] = []
    for place, item in enumerate(items):
        if turn and _is_prompt(item):
            yield turn
            turn = []
        turn.append(place)
    if turn:
        yield turn


def _is_prompt(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") == "user" and not is_summary(item)


def _stays(item: Any) -> bool:
    if not isinstance(item, dict):
        return True
    return item.get("role") in ("system", "developer") or item.get("type") in _STAYS or is_summary(item)


def _call_ids(items: Sequence[Any], turn: Sequence[int]) -> Iterator[str]:
    for place in turn:
        found = items[place].get("call_id") if isinstance(items[place], dict) else None
        if isinstance(found, str):
            yield found
