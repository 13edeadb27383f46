"""Conversations in PostgreSQL.

Whoever adds to a conversation holds its row until that is committed: turns of several gateways come one after
the other. A transaction may be repeated whose first try was committed after all; what it added then bears its
mark.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from .base import ChainTooLong, Record
from .conversations import Conversation, Entry
from .runs import Step

T = TypeVar("T")

_GET = (
    "SELECT v.owner, v.id, v.created, v.metadata FROM conversations v "
    "JOIN chains c ON c.id = v.id AND c.expires > :now WHERE v.owner = :owner AND v.id = :id"
)
_READ, _LOCK = text(_GET), text(_GET + " FOR UPDATE OF v")
_CREATE = text(
    "INSERT INTO conversations (owner, id, created, bytes, metadata) "
    "VALUES (:owner, :id, :created, :bytes, :metadata) ON CONFLICT (id) DO NOTHING"
)
_UPDATE = text("UPDATE conversations SET bytes = :bytes, metadata = :metadata WHERE id = :id")
_TAKEN = text("SELECT item, turn FROM conversation_items WHERE chain = :id AND item = ANY(:items)")
_LAST = text("SELECT coalesce(max(place), 0) FROM conversation_items WHERE chain = :id")
_ADD = text(
    "INSERT INTO conversation_items (chain, place, item, turn, bytes, body) "
    "VALUES (:id, :place, :item, :turn, :bytes, :body)"
)
_SIZE = text("SELECT coalesce(sum(bytes), 0) FROM conversation_items WHERE chain = :id")
_ENTRIES = text("SELECT item, body FROM conversation_items WHERE chain = :id ORDER BY place")
_ENTRY = text("SELECT item, body FROM conversation_items WHERE chain = :id AND item = :item")
_PLACE = text("SELECT place FROM conversation_items WHERE chain = :id AND item = :item")
_PAGE = """
    SELECT i.item, i.body FROM (
        SELECT chain, place, sum(bytes) OVER (ORDER BY place {order}) AS held,
        row_number() OVER (ORDER BY place {order}) AS nth
        FROM (
            SELECT chain, place, bytes FROM conversation_items WHERE chain = :id AND place {compared} :place
            ORDER BY place {order} LIMIT :limit
        ) few
    ) p JOIN conversation_items i ON i.chain = p.chain AND i.place = p.place
    WHERE p.held <= :most OR p.nth = 1 ORDER BY p.place {order}
"""
_NEXT, _BEFORE = text(_PAGE.format(order="ASC", compared=">")), text(_PAGE.format(order="DESC", compared="<"))
_END = 1 << 62
"""Behind every place."""
_NAMED = text(
    "SELECT i.item, i.chain, i.bytes FROM conversation_items i JOIN conversations v ON v.id = i.chain "
    "AND v.owner = :owner JOIN chains c ON c.id = v.id AND c.expires > :now WHERE i.item = ANY(:items)"
)


class Do(Protocol):
    """Does work in one transaction, which may be tried twice; raises `StoreDown`."""

    def __call__(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> Awaitable[T]: ...


class PostgresConversations:
    def __init__(
        self,
        do: Do,
        keep: Callable[[AsyncConnection, str], Awaitable[None]],
        put: Callable[[AsyncConnection, Record], Awaitable[None]],
        step: Callable[[AsyncConnection, Step], Awaitable[bool]],
        now: Callable[[], float],
    ) -> None:
        """`keep`: a chain lives on; `put` and `step`: what the other stores do, in the same transaction."""
        self._do, self._keep, self._put, self._step, self._now = do, keep, put, step, now

    async def create(self, conversation: Conversation, entries: Sequence[Entry]) -> None:
        turn = os.urandom(8).hex()
        told = {
            "owner": conversation.owner,
            "id": conversation.id,
            "created": conversation.created,
            "bytes": len(conversation.metadata),
            "metadata": conversation.metadata,
        }

        async def write(db: AsyncConnection) -> None:
            await self._keep(db, conversation.id)
            if (await db.execute(_CREATE, told)).rowcount:  # not by a first try
                await _append(db, conversation.id, turn, entries)

        await self._do(write)

    async def get(self, owner: str, id: str) -> Conversation | None:
        return await self._do(lambda db: self._find(db, owner, id))

    async def update(self, owner: str, id: str, metadata: bytes) -> Conversation | None:
        async def write(db: AsyncConnection) -> Conversation | None:
            if await self._find(db, owner, id, _LOCK) is None:
                return None
            await self._keep(db, id)
            await db.execute(_UPDATE, {"id": id, "bytes": len(metadata), "metadata": metadata})
            return await self._find(db, owner, id)

        return await self._do(write)

    async def delete(self, owner: str, id: str) -> bool:
        there = await self.get(owner, id) is not None

        async def write(db: AsyncConnection) -> None:
            if await self._find(db, owner, id, _LOCK) is not None:
                await db.execute(text("DELETE FROM conversation_items WHERE chain = :id"), {"id": id})
                await db.execute(text("DELETE FROM conversations WHERE id = :id"), {"id": id})

        await self._do(write)
        return there

    async def add(
        self, owner: str, id: str, entries: Sequence[Entry], record: Record | None = None
    ) -> Collection[str] | None:
        turn = os.urandom(8).hex()

        async def write(db: AsyncConnection) -> Collection[str] | None:
            there = await self._find(db, owner, id, _LOCK) is not None
            if there:
                taken = await _taken(db, id, entries)
                if taken:
                    return () if turn in taken.values() else list(taken)
                await _append(db, id, turn, entries)
                await self._keep(db, id)
            if record is not None:
                await self._put(db, record)
            return () if there else None

        return await self._do(write)

    async def end_turn(self, step: Step, id: str, entries: Sequence[Entry]) -> Collection[str] | None:
        turn = os.urandom(8).hex()

        async def write(db: AsyncConnection) -> Collection[str] | None:
            there = await self._find(db, step.owner, id, _LOCK) is not None
            if there and (taken := await _taken(db, id, entries)):
                return () if turn in taken.values() else list(taken)
            if not await self._step(db, step):
                return None
            if there:
                await _append(db, id, turn, entries)
                await self._keep(db, id)
            return ()

        return await self._do(write)

    async def entries(self, owner: str, id: str, max_bytes: int) -> Sequence[Entry] | None:
        async def read(db: AsyncConnection) -> Sequence[Entry] | None:
            if await self._find(db, owner, id) is None:
                return None
            if (await db.execute(_SIZE, {"id": id})).scalar_one() > max_bytes:
                raise ChainTooLong
            return _read(await db.execute(_ENTRIES, {"id": id}))

        return await self._do(read)

    async def page(
        self, owner: str, id: str, after: str | None, limit: int, newest_first: bool, max_bytes: int
    ) -> Sequence[Entry] | None:
        async def read(db: AsyncConnection) -> Sequence[Entry] | None:
            if await self._find(db, owner, id) is None:
                return None
            place: int | None = _END if newest_first else 0
            if after is not None:
                place = (await db.execute(_PLACE, {"id": id, "item": after})).scalar()
            if place is None:
                return None
            asked = {"id": id, "place": place, "limit": limit, "most": max_bytes}
            return _read(await db.execute(_BEFORE if newest_first else _NEXT, asked))

        return await self._do(read)

    async def entry(self, owner: str, id: str, entry: str) -> Entry | None:
        async def read(db: AsyncConnection) -> Entry | None:
            if await self._find(db, owner, id) is None:
                return None
            return next(iter(_read(await db.execute(_ENTRY, {"id": id, "item": entry}))), None)

        return await self._do(read)

    async def remove(self, owner: str, id: str, entry: str) -> bool:
        there = await self.entry(owner, id, entry) is not None
        gone = text("DELETE FROM conversation_items WHERE chain = :id AND item = :item")
        if there:
            await self._do(lambda db: db.execute(gone, {"id": id, "item": entry}))
        return there

    async def named(self, owner: str, ids: Sequence[str], max_bytes: int) -> Mapping[str, bytes]:
        async def read(db: AsyncConnection) -> Mapping[str, bytes]:
            asked = {"owner": owner, "now": int(self._now()), "items": list(ids)}
            rows = {row[0]: row for row in await db.execute(_NAMED, asked)}
            if sum(row[2] for row in rows.values()) > max_bytes:
                raise ChainTooLong
            found: dict[str, bytes] = {}
            for item, chain, _ in rows.values():
                found |= _read(await db.execute(_ENTRY, {"id": chain, "item": item}))
            return found

        return await self._do(read)

    async def _find(
        self, db: AsyncConnection, owner: str, id: str, statement: Any = _READ
    ) -> Conversation | None:
        asked = {"owner": owner, "id": id, "now": int(self._now())}
        row = (await db.execute(statement, asked)).first()
        return None if row is None else Conversation(row[0], row[1], row[2], bytes(row[3]))


async def _taken(db: AsyncConnection, id: str, entries: Sequence[Entry]) -> dict[str, str]:
    """Ids that are there already -> the mark of who added them."""
    rows = await db.execute(_TAKEN, {"id": id, "items": [entry.id for entry in entries]})
    return {row[0]: row[1] for row in rows}


async def _append(db: AsyncConnection, id: str, turn: str, entries: Sequence[Entry]) -> None:
    last = (await db.execute(_LAST, {"id": id})).scalar_one()
    rows = [
        {"id": id, "place": place, "item": each.id, "turn": turn, "bytes": len(each.body), "body": each.body}
        for place, each in enumerate(entries, last + 1)
    ]
    if rows:
        await db.execute(_ADD, rows)


def _read(rows: Any) -> Sequence[Entry]:
    return [Entry(row[0], bytes(row[1])) for row in rows]
