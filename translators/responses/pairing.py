"""Calls and their results on the `input` of a Responses body.

This wire pairs them by `call_id` wherever they stand, so little moves. But a result without
its call ("No tool call found for function call output ...") and a call without its result
("No tool output found for function call ...") are 400 each, and since the history is sent
again every turn, for good. The first becomes a user message, the second gets a result saying
that there was none; a result that stands before its call moves behind it, and an id that two
calls share (some backends give every call the same one) is made two. Calls at the very
end stay open, as the client sent them.

Results of the tools that a backend brings itself (`computer_call_output`, `shell_call_output`,
...) answer their calls too, and stay whatever they name: nothing else can say what they say.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from ..dialect import Repair, RepairKind
from ..ir import Json
from .ids import split_id

_RESULT_OF = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
"""The calls that need a result. Others may get one of these too: Codex answers `local_shell_call` so."""
_RESULTS = frozenset(_RESULT_OF.values())
_PAIRED = _RESULTS | _RESULT_OF.keys()


@dataclass(slots=True)
class Placed:
    """An item, and its pointer in the body that is being edited."""

    item: Any
    at: str

    @property
    def type(self) -> str:
        """`message` where the client left the type out."""
        kind = self.item.get("type") if isinstance(self.item, dict) else None
        return kind if isinstance(kind, str) else "message"


def plain_ids(placed: list[Placed]) -> None:
    """Ids that carry the item's own beside the call's (`call_1|fc_1`) as this wire has them, in place.

    Gateways put both into a Chat call's one id; the first part alone is what pairs. A way of
    writing an id, no repair.
    """
    for index, one in enumerate(placed):
        joined = one.item.get("call_id") if one.type in _PAIRED else None
        if not isinstance(joined, str) or "|" not in joined:
            continue
        call_id, own = split_id(joined)
        item = {**one.item, "call_id": call_id}
        if own is not None and one.type in _RESULT_OF and not item.get("id"):
            item["id"] = own
        placed[index] = Placed(item, one.at)


def repair_owners(placed: list[Placed]) -> list[Repair]:
    """Give results that name the item of their call, not its `call_id`, the latter, in place.

    (OpenAI answers 400 to `fc_...` there.)
    """
    repairs = []
    items = [
        one.item for one in placed if one.type in _RESULT_OF and isinstance(one.item.get("call_id"), str)
    ]
    called = {item["call_id"] for item in items}
    owners = {item["id"]: item for item in items if isinstance(item.get("id"), str)}
    for index, one in enumerate(placed):
        named = one.item.get("call_id") if one.type in _RESULTS else None
        if isinstance(named, str) and named not in called and named in owners:
            owner = owners[named]
            placed[index] = Placed({**one.item, "call_id": owner["call_id"]}, one.at)
            repairs.append(_repair("owner_id", named, owner))
    return repairs


def repair_pairs(placed: list[Placed]) -> tuple[list[Placed], list[Repair]]:
    """The items with every call and result paired, and the repairs that took; itself when it was so."""
    if _is_paired(placed):
        return placed, []
    return _Pairing(placed).run()


def pairing_ids(items: list[Any]) -> tuple[list[str], list[str]]:
    """The ids of the calls and of the results among `items`, in order, each once."""
    placed = [Placed(item, "") for item in items]
    calls = (_id_of(one) for one in placed if one.type.endswith("_call"))
    results = (_id_of(one) for one in placed if one.type.endswith("_output"))
    return list(dict.fromkeys(filter(None, calls))), list(dict.fromkeys(filter(None, results)))


def _is_paired(placed: list[Placed]) -> bool:
    waiting: dict[str, int] = {}
    seen: set[str] = set()
    open_from = _open_from(placed)
    for place, one in enumerate(placed):
        kind, call_id = one.type, _id_of(one)
        if call_id is None:
            continue
        if kind.endswith("_output"):
            if waiting.pop(call_id, None) is None and kind in _RESULTS:
                return False
        elif call_id in seen:
            return False
        else:
            seen.add(call_id)
            waiting[call_id] = place if kind in _RESULT_OF else open_from
    return all(place >= open_from for place in waiting.values())


def _open_from(placed: list[Placed]) -> int:
    """Where the calls at the very end begin."""
    place = len(placed)
    while place and placed[place - 1].type.endswith("_call"):
        place -= 1
    return place


def _id_of(one: Placed) -> str | None:
    """The `call_id` of a call or a result; None for other items, and where there is none."""
    if not one.type.endswith(("_call", "_output")):
        return None
    call_id = one.item.get("call_id")
    return call_id if isinstance(call_id, str) else None


def _repair(kind: RepairKind, call_id: str, item: Json) -> Repair:
    name = item.get("name")
    return Repair("chain_pairing", kind, call_id, name if isinstance(name, str) else "")


@dataclass(slots=True, eq=False)
class _Slot:
    """A call, its place in the list, and the place of the result found for it."""

    call: Placed
    place: int
    turn: int
    call_id: str
    result: int | None = None


class _Pairing:
    """One input being paired."""

    def __init__(self, placed: list[Placed]) -> None:
        self._placed, self._open_from = placed, _open_from(placed)
        self._slots: dict[int, _Slot] = {}
        """By the call's place."""
        self._answers: dict[int, _Slot] = {}
        """By the result's place."""
        self._ids: set[str] = set()
        self._counts: dict[str, int] = {}
        self._repairs: list[Repair] = []

    def run(self) -> tuple[list[Placed], list[Repair]]:
        self._find_calls()
        self._pair()
        if any(slot.result is not None for place, slot in self._slots.items() if place >= self._open_from):
            self._open_from = len(self._placed)  # a result moves there, so the calls do not end the list
        return list(self._written()), self._repairs

    def _find_calls(self) -> None:
        """Every call with an id; messages are where one turn ends and another begins."""
        turn = 0
        for place, one in enumerate(self._placed):
            if one.type == "message":
                turn += 1
            elif one.type.endswith("_call") and (call_id := _id_of(one)) is not None:
                self._slots[place] = _Slot(one, place, turn, call_id)

    def _pair(self) -> None:
        """Each result to the first open call of its id in the nearest turn before it, else to one after."""
        before: dict[str, list[deque[_Slot]]] = defaultdict(list)
        early: dict[str, deque[int]] = defaultdict(deque)
        for place, one in enumerate(self._placed):
            call_id = _id_of(one)
            if call_id is None:
                continue
            slot = self._slots.get(place)
            if slot is not None:
                turns = before[call_id]
                if turns and turns[-1][0].turn == slot.turn:
                    turns[-1].append(slot)
                else:
                    turns.append(deque([slot]))
            elif turns := before[call_id]:
                self._answer(turns[-1].popleft(), place)
                if not turns[-1]:
                    turns.pop()
            else:
                early[call_id].append(place)
        self._pair_early(early)

    def _pair_early(self, early: dict[str, deque[int]]) -> None:
        for slot in self._slots.values():
            places = early[slot.call_id]
            if slot.result is None and places and places[0] < slot.place:
                self._answer(slot, places.popleft())

    def _answer(self, slot: _Slot, place: int) -> None:
        slot.result = place
        self._answers[place] = slot

    def _written(self) -> Iterator[Placed]:
        waiting: list[Placed] = []
        for place, one in enumerate(self._placed):
            slot = self._slots.get(place)
            if one.type == "message" or place == self._open_from:
                yield from waiting
                waiting.clear()
            if slot is not None:
                yield from self._call(slot, waiting)
            elif _id_of(one) is not None:
                yield from self._result(one, place, waiting)
            else:
                yield one
        yield from waiting

    def _call(self, slot: _Slot, waiting: list[Placed]) -> Iterator[Placed]:
        """The call; one that nothing answers gets its result (`waiting`) before the next message."""
        call = slot.call
        self._make_unique(slot)
        if slot.call_id != call.item["call_id"]:
            call = Placed({**call.item, "call_id": slot.call_id}, call.at)
        yield call
        if slot.result is not None and slot.result < slot.place:
            self._repairs.append(_repair("moved_result", slot.call_id, call.item))
            yield self._own(self._placed[slot.result], slot)
        elif slot.result is None and call.type in _RESULT_OF and slot.place < self._open_from:
            self._repairs.append(_repair("missing_result", slot.call_id, call.item))
            waiting.append(_missing(call))

    def _make_unique(self, slot: _Slot) -> None:
        base = slot.call_id
        count = self._counts.get(base, 1)
        while slot.call_id in self._ids:
            count += 1
            slot.call_id = f"{base}_{count}"
        self._counts[base] = count
        self._ids.add(slot.call_id)
        if slot.call_id != base:
            self._repairs.append(_repair("duplicate_id", slot.call_id, slot.call.item))

    def _result(self, one: Placed, place: int, waiting: list[Placed]) -> Iterator[Placed]:
        slot = self._answers.get(place)
        if slot is not None:
            if place > slot.place:
                yield self._own(one, slot)
        elif one.type in _RESULTS:
            yield from waiting
            waiting.clear()
            self._repairs.append(_repair("orphan_result", one.item["call_id"], one.item))
            yield _as_words(one)
        else:
            yield one

    def _own(self, result: Placed, slot: _Slot) -> Placed:
        """The result under its call's id."""
        if result.item["call_id"] == slot.call_id:
            return result
        return Placed({**result.item, "call_id": slot.call_id}, result.at)


def _missing(call: Placed) -> Placed:
    words = f"[No result: the call of {call.item.get('name')} was never answered. It may not have run.]"
    item = {"type": _RESULT_OF[call.type], "call_id": call.item.get("call_id"), "output": words}
    return Placed(item, call.at)


def _as_words(result: Placed) -> Placed:
    """A result whose call is unknown, told as a user message so that what it says survives."""
    label = f"[Tool result {result.item['call_id']}]:".replace(" ]", "]")
    content = [{"type": "input_text", "text": label}, *_told(result.item.get("output"))]
    return Placed({"type": "message", "role": "user", "content": content}, result.at)


def _told(output: Any) -> list[Json]:
    """The parts of an output; any other JSON value is told as its text."""
    if isinstance(output, list) and all(isinstance(part, dict) and "type" in part for part in output):
        return output
    text = output or "" if isinstance(output, str | None) else orjson.dumps(output).decode()
    return [{"type": "input_text", "text": text}] if text.strip() else []
