"""What one WebSocket remembers: responses that are not stored, as long as the connection lives.

A client that sends `store: false` may continue its responses over the connection that they came by (OpenAI's
rule), so a chain may begin in the store and go on in memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import orjson

from ..request import new_id
from ..state import chaining
from ..state.state import State
from ..store import Record
from ..store.memory import MemoryStore

T = TypeVar("T")


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

    async def _ask(self, asked: Awaitable[T]) -> T:
        return await (super()._ask(asked) if self._stored is None else self._stored._ask(asked))
