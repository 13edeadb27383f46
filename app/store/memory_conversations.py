"""Conversations in the memory of one process; `memory.py` bounds them together with the responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from .base import ChainTooLong, Record
from .conversations import Conversation, Entry, fitting
from .runs import Step

Grow = Callable[[str, int], None]
"""A chain has become larger by that many bytes (or smaller)."""


@dataclass(slots=True)
class _Kept:
    conversation: Conversation
    bodies: dict[str, bytes] = field(default_factory=dict)
    """By the entries' ids, in their order."""


class MemoryConversations:
    def __init__(
        self,
        look: Callable[[], None],
        touch: Grow,
        shrink: Grow,
        put: Callable[[Record], None],
        step: Callable[[Step], Awaitable[bool]],
    ) -> None:
        """`look` takes out what has expired or has no room; `touch` makes a chain live on as well."""
        self._look, self._touch, self._shrink, self._put, self._step = look, touch, shrink, put, step
        self._kept: dict[str, _Kept] = {}
        self._holders: dict[tuple[str, str], str] = {}
        """(owner, entry) -> the last conversation that took it."""

    async def create(self, conversation: Conversation, entries: Sequence[Entry]) -> None:
        self._kept[conversation.id] = _Kept(conversation)
        self._touch(conversation.id, len(conversation.metadata))
        self._append(self._kept[conversation.id], entries)
        self._look()

    async def get(self, owner: str, id: str) -> Conversation | None:
        kept = self._find(owner, id)
        return None if kept is None else kept.conversation

    async def update(self, owner: str, id: str, metadata: bytes) -> Conversation | None:
        kept = self._find(owner, id)
        if kept is None:
            return None
        self._touch(id, len(metadata) - len(kept.conversation.metadata))
        kept.conversation = replace(kept.conversation, metadata=metadata)
        return kept.conversation

    async def delete(self, owner: str, id: str) -> bool:
        kept = self._find(owner, id)
        if kept is None:
            return False
        self.forget(id)
        self._shrink(id, len(kept.conversation.metadata) + sum(map(len, kept.bodies.values())))
        return True

    async def add(
        self, owner: str, id: str, entries: Sequence[Entry], record: Record | None = None
    ) -> Collection[str] | None:
        kept = self._find(owner, id)
        if taken := _taken(kept, entries):
            return taken
        if kept is not None:
            self._append(kept, entries)
        if record is not None:
            self._put(record)
        self._look()
        return None if kept is None else ()

    async def end_turn(self, step: Step, id: str, entries: Sequence[Entry]) -> Collection[str] | None:
        if taken := _taken(self._find(step.owner, id), entries):
            return taken
        if not await self._step(step):  # which waits for nothing
            return None
        kept = self._find(step.owner, id)
        if kept is not None:
            self._append(kept, entries)
        self._look()
        return ()

    async def entries(self, owner: str, id: str, max_bytes: int) -> Sequence[Entry] | None:
        kept = self._find(owner, id)
        if kept is None:
            return None
        if sum(map(len, kept.bodies.values())) > max_bytes:
            raise ChainTooLong
        return [Entry(*each) for each in kept.bodies.items()]

    async def page(
        self, owner: str, id: str, after: str | None, limit: int, newest_first: bool, max_bytes: int
    ) -> Sequence[Entry] | None:
        kept = self._find(owner, id)
        if kept is None or (after is not None and after not in kept.bodies):
            return None
        ids = iter(reversed(kept.bodies)) if newest_first else iter(kept.bodies)
        if after is not None:
            next(each for each in ids if each == after)
        return fitting([Entry(each, kept.bodies[each]) for each in islice(ids, limit)], max_bytes)

    async def entry(self, owner: str, id: str, entry: str) -> Entry | None:
        kept = self._find(owner, id)
        return Entry(entry, kept.bodies[entry]) if kept is not None and entry in kept.bodies else None

    async def remove(self, owner: str, id: str, entry: str) -> bool:
        kept = self._find(owner, id)
        if kept is None or entry not in kept.bodies:
            return False
        self._shrink(id, len(kept.bodies.pop(entry)))
        self._release(kept, entry)
        return True

    async def named(self, owner: str, ids: Sequence[str], max_bytes: int) -> Mapping[str, bytes]:
        self._look()
        holders = {id: self._holders[owner, id] for id in ids if (owner, id) in self._holders}
        found = {id: self._kept[holder].bodies[id] for id, holder in holders.items()}
        if sum(map(len, found.values())) > max_bytes:
            raise ChainTooLong
        return found

    def forget(self, id: str) -> None:
        """Its chain is gone, or counts it no more."""
        kept = self._kept.pop(id, None)
        if kept is not None:
            for entry in kept.bodies:
                self._release(kept, entry)

    def _find(self, owner: str, id: str) -> _Kept | None:
        self._look()
        kept = self._kept.get(id)
        return kept if kept is not None and kept.conversation.owner == owner else None

    def _append(self, kept: _Kept, entries: Sequence[Entry]) -> None:
        owner, id = kept.conversation.owner, kept.conversation.id
        kept.bodies |= entries
        self._holders |= {(owner, entry.id): id for entry in entries}
        self._touch(id, sum(len(entry.body) for entry in entries))

    def _release(self, kept: _Kept, entry: str) -> None:
        key = kept.conversation.owner, entry
        if self._holders.get(key) == kept.conversation.id:
            del self._holders[key]


def _taken(kept: _Kept | None, entries: Sequence[Entry]) -> list[str]:
    """The ids that are in the conversation already."""
    return [entry.id for entry in entries if kept is not None and entry.id in kept.bodies]
