"""Which item of a stream each item of its last event is.

By its id, else by its call id, else it is the one of its type at its place, or the first of its type that is
left (vLLM gives items new ids in the last event). Looked up, never searched: a last event may list many
thousands of items.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence

from ..ir import Json
from .slots import Slot


class LastWord:
    """What the stream has told when its last event comes."""

    def __init__(self, slots: Sequence[Slot], by_id: Mapping[str, Slot]) -> None:
        """`by_id`: also by ids that the items had before."""
        self._by_id = {**by_id, **{slot.id: slot for slot in reversed(slots)}}
        self._by_call = {slot.call_id: slot for slot in reversed(slots)}
        self._slots = slots
        self._left: dict[Hashable, deque[Slot]] | None = None
        """The items of each type, and of each type and place, in their order."""
        self._taken: set[int] = set()

    def slot(self, item: Json, index: int) -> Slot | None:
        """The slot that streamed `item`, the `index`th of the last event."""
        id, call_id = item.get("id"), item.get("call_id")
        if id and (slot := self._by_id.get(str(id))) is not None:
            return slot
        if isinstance(call_id, str) and call_id and call_id in self._by_call:
            return self._by_call[call_id]
        kind = str(item.get("type") or "message")
        return self._first((kind, index)) or self._first(kind)

    def take(self, slot: Slot) -> None:
        """The slot has its item: none that comes by its type alone is it; one that has its ids is."""
        self._taken.add(id(slot))
        self._by_id.setdefault(slot.id, slot)
        self._by_call.setdefault(slot.call_id, slot)

    def _first(self, key: Hashable) -> Slot | None:
        if self._left is None:
            self._left = self._sorted()
        left = self._left.get(key)
        while left and id(left[0]) in self._taken:
            left.popleft()
        return left[0] if left else None

    def _sorted(self) -> dict[Hashable, deque[Slot]]:
        found: dict[Hashable, deque[Slot]] = {}
        for slot in self._slots:
            for key in (slot.type, (slot.type, slot.output_index)):
                found.setdefault(key, deque()).append(slot)
        return found
