"""What one WebSocket remembers: responses that are not stored, as long as the connection lives.

A client that sends `store: false` may continue its responses over the connection that they came by (OpenAI's
rule), so a chain may begin in the store and go on in memory. OpenAI remembers the latest response; here it is
the chains that were continued last, so that one can be continued twice, within bounds: whoever goes on from
what is forgotten is told `previous_response_not_found`, and sends the whole conversation.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import orjson

from ..ids import new_id
from ..state import chaining
from ..state.state import State
from ..store import Record
from ..store.memory import MemoryStore

T = TypeVar("T")

MOST_TOGETHER = 4
"""How many times what one connection may remember all of a process may, however many there are."""


class Memories:
    """What all connections of a process remember. The one that holds most makes room for the others."""

    def __init__(self) -> None:
        self._sizes: dict[Memory, int] = {}
        self.size = 0

    def open(self, max_bytes: int, max_chains: int) -> Memory:
        memory = Memory(self, max_bytes, max_chains)
        self._sizes[memory] = 0
        return memory

    def close(self, memory: Memory) -> None:
        """Its connection is gone; what was one refers to itself, and may stay for a while."""
        self.size -= self._sizes.pop(memory, 0)
        memory.forget()

    def grown(self, memory: Memory) -> None:
        if memory not in self._sizes:  # its connection was closed meanwhile
            memory.forget()
            return
        self._note(memory)
        while self.size > MOST_TOGETHER * memory.max_bytes:
            largest = max(self._sizes, key=self._sizes.__getitem__)
            largest.forget_oldest()
            self._note(largest)

    def _note(self, memory: Memory) -> None:
        self.size += memory.size - self._sizes[memory]
        self._sizes[memory] = memory.size


class Memory(MemoryStore):
    """One connection's."""

    def __init__(self, all: Memories, max_bytes: int, max_chains: int) -> None:
        super().__init__(math.inf, max_bytes, max_chains=max_chains)
        self._all = all

    async def put(self, record: Record) -> None:
        await super().put(record)
        self._all.grown(self)

    def forget(self) -> None:
        while self._chains:
            self.forget_oldest()


class ConnectionState(State):
    """The gateway's state as one request over a connection sees it."""

    remembers = True

    def __init__(self, stored: State | None, mine: MemoryStore, max_bytes: int) -> None:
        """`stored` None: nothing is stored; `mine`: the connection's memory."""
        super().__init__(mine, max_bytes)
        self._stored, self._mine = stored, mine
        if stored is not None:
            self._store, self.at_work = stored._store, stored.at_work

    @property
    def keeps(self) -> bool:
        return self._stored is not None

    async def check(self) -> None:
        if self._stored is not None:
            await self._stored.check()

    async def put(self, record: Record) -> None:
        """Into the store, and whole: what is only remembered here cannot be read through it."""
        if self._stored is None:
            await self.remember(record)
            return
        before = record.previous
        if before is not None and await self._mine.get(record.owner, before) is not None:
            items = chaining.history(await self.chain(record.owner, before))
            given = orjson.dumps(items + orjson.loads(record.input))
            record = replace(record, chain=new_id(""), previous=None, input=given)
        await self._stored.put(record)

    async def remember(self, record: Record) -> None:
        await self._mine.put(record)

    async def chain(self, owner: str, id: str) -> list[Record]:
        mine = await self.within(self._mine.chain(owner, id, self.max_bytes))
        first = mine[0].previous if mine else id
        if first is None or self._stored is None:
            return mine
        return await self._stored.chain(owner, first) + mine

    async def holders(self, owner: str, items: Sequence[str]) -> Mapping[str, Record]:
        mine = await self.within(self._mine.holders(owner, items, self.max_bytes))
        rest = [item for item in items if item not in mine]
        if not rest or self._stored is None:
            return mine
        return {**mine, **await self._stored.holders(owner, rest)}

    async def _ask(self, asked: Awaitable[T], proves: bool = False) -> T:
        if self._stored is None:
            return await super()._ask(asked, proves)
        return await self._stored._ask(asked, proves)
