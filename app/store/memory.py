"""Responses in the memory of one process: gone with it, and unknown to other workers."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from .base import ChainTooLong, Record
from .memory_conversations import MemoryConversations
from .memory_runs import MemoryRuns


@dataclass(slots=True)
class _Chain:
    expires: float
    size: int = 0
    ids: set[tuple[str, str]] = field(default_factory=set)


class MemoryStore:
    """Bounded: the chains that were continued longest ago make room for new ones."""

    def __init__(
        self,
        ttl_s: float,
        max_bytes: int,
        now: Callable[[], float] = time.time,
        max_chains: float = math.inf,
    ) -> None:
        self._ttl_s, self.max_bytes, self._now, self._max_chains = ttl_s, max_bytes, now, max_chains
        self._records: dict[tuple[str, str], Record] = {}
        self._items: dict[tuple[str, str], str] = {}
        self._chains: OrderedDict[str, _Chain] = OrderedDict()
        """By their expiry, which is the order in which they were last written to."""
        self.size = 0
        self.runs = MemoryRuns(self.put, self._grown)
        self.conversations = MemoryConversations(
            self._make_room, self._touch, self._shrink, self._put, self.runs.step
        )

    async def check(self) -> None:
        """Memory is always there."""

    async def put(self, record: Record) -> None:
        self._put(record)
        self._make_room()

    def _put(self, record: Record) -> None:
        self._forget((record.owner, record.id))
        key = record.owner, record.id
        self._records[key] = record
        self._items |= {(record.owner, item): record.id for item in record.items}
        self._touch(record.chain, record.size + self.runs.size(key))
        self._chains[record.chain].ids.add(key)

    async def get(self, owner: str, id: str) -> Record | None:
        self._make_room()
        return self._records.get((owner, id))

    async def chain(self, owner: str, id: str, max_bytes: int) -> list[Record]:
        self._make_room()
        found: dict[str, Record] = {}
        size, at = 0, id
        while at not in found and (record := self._records.get((owner, at))) is not None:
            size += record.size
            if size > max_bytes:
                raise ChainTooLong
            found[at] = record
            at = record.previous or ""
        return list(found.values())[::-1]

    async def holders(self, owner: str, items: Sequence[str], max_bytes: int) -> Mapping[str, Record]:
        self._make_room()
        named = {item: self._items[owner, item] for item in items if (owner, item) in self._items}
        records = {id: self._records[owner, id] for id in named.values()}
        if sum(record.size for record in records.values()) > max_bytes:
            raise ChainTooLong
        return {item: records[id] for item, id in named.items()}

    async def delete(self, owner: str, id: str) -> bool:
        self._make_room()
        return self._drop((owner, id))

    async def purge(self) -> None:
        self._make_room()

    async def aclose(self) -> None:
        """Nothing is left open."""

    def _make_room(self) -> None:
        now = self._now()
        while self._chains:
            oldest = next(iter(self._chains.values()))
            if oldest.expires > now and self.size <= self.max_bytes and len(self._chains) <= self._max_chains:
                return
            self.forget_oldest()

    def forget_oldest(self) -> None:
        """Take out the chain that was continued longest ago; there has to be one."""
        name, oldest = next(iter(self._chains.items()))
        for key in list(oldest.ids):
            self._drop(key)
        self.conversations.forget(name)
        self._shrink(name, oldest.size)

    def _grown(self, key: tuple[str, str], size: int) -> bool:
        """Count bytes that were added to a record's log; whether the record is there."""
        record = self._records.get(key)
        if record is None:
            return False
        self._chains[record.chain].size += size
        self.size += size
        self._make_room()
        return key in self._records

    def _drop(self, key: tuple[str, str]) -> bool:
        """A record with its log."""
        found = self._forget(key)
        self.runs.forget(key)
        return found

    def _forget(self, key: tuple[str, str]) -> bool:
        record = self._records.pop(key, None)
        if record is None:
            return False
        for item in record.items:
            if self._items.get((record.owner, item)) == record.id:
                del self._items[record.owner, item]
        self._chains[record.chain].ids.discard(key)
        self._shrink(record.chain, record.size + self.runs.size(key))
        return True

    def _touch(self, name: str, size: int) -> None:
        """The chain lives on and holds `size` bytes more."""
        chain = self._chains.setdefault(name, _Chain(0))
        chain.expires = self._now() + self._ttl_s
        self._chains.move_to_end(name)
        chain.size += size
        self.size += size

    def _shrink(self, name: str, size: int) -> None:
        chain = self._chains.get(name)
        if chain is None:
            return
        chain.size -= size
        self.size -= size
        if not chain.size:  # whatever is in it has one
            del self._chains[name]
