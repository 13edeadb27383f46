"""Conversations in an SQLite file: each method is one transaction, and writers take turns."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from .base import ChainTooLong, Record
from .conversations import Conversation, Entry
from .runs import Step
from .sqlite_file import Lane

Keep = Callable[[sqlite3.Connection, str, int], None]
"""A chain lives on, and that many bytes were written to it."""
_AT_ONCE = 500
"""Ids in one query."""

_GET = (
    "SELECT v.owner, v.id, v.created, v.metadata FROM conversations v "
    "JOIN chains c ON c.id = v.id AND c.expires > ? WHERE v.owner = ? AND v.id = ?"
)
_CREATE = "INSERT INTO conversations (owner, id, created, bytes, metadata) VALUES (?, ?, ?, ?, ?)"
_LAST = "SELECT coalesce(max(place), 0) FROM conversation_items WHERE chain = ?"
_ADD = "INSERT INTO conversation_items (chain, place, item, turn, bytes, body) VALUES (?, ?, ?, ?, ?, ?)"
_ENTRIES = "SELECT item, body FROM conversation_items WHERE chain = ?"
_NAMED = (
    "SELECT i.item, i.body FROM conversation_items i JOIN conversations v ON v.id = i.chain AND v.owner = ? "
    "JOIN chains c ON c.id = v.id AND c.expires > ? WHERE i.item IN"
)


class SqliteConversations:
    def __init__(
        self,
        writer: Lane,
        reader: Lane,
        keep: Keep,
        put: Callable[[sqlite3.Connection, Record], None],
        step: Callable[[sqlite3.Connection, Step], bool],
        now: Callable[[], float],
    ) -> None:
        """`put` and `step`: what the other stores do, in the transaction of the connection."""
        self._writer, self._reader, self._keep, self._now = writer, reader, keep, now
        self._put, self._step = put, step

    async def create(self, conversation: Conversation, entries: Sequence[Entry]) -> None:
        def write(db: sqlite3.Connection) -> None:
            owner, id, created, metadata = _fields(conversation)
            self._keep(db, id, len(metadata))
            db.execute(_CREATE, (owner, id, created, len(metadata), metadata))
            self._append(db, id, entries)

        await self._writer.do(write)

    async def get(self, owner: str, id: str) -> Conversation | None:
        found: Conversation | None = await self._reader.do(lambda db: self._find(db, owner, id))
        return found

    async def update(self, owner: str, id: str, metadata: bytes) -> Conversation | None:
        def write(db: sqlite3.Connection) -> Conversation | None:
            if self._find(db, owner, id) is None:
                return None
            self._keep(db, id, len(metadata))
            given = len(metadata), metadata, id
            db.execute("UPDATE conversations SET bytes = ?, metadata = ? WHERE id = ?", given)
            return self._find(db, owner, id)

        found: Conversation | None = await self._writer.do(write)
        return found

    async def delete(self, owner: str, id: str) -> bool:
        def write(db: sqlite3.Connection) -> bool:
            if self._find(db, owner, id) is None:
                return False
            db.execute("DELETE FROM conversation_items WHERE chain = ?", (id,))
            db.execute("DELETE FROM conversations WHERE id = ?", (id,))
            return True

        return bool(await self._writer.do(write))

    async def add(
        self, owner: str, id: str, entries: Sequence[Entry], record: Record | None = None
    ) -> Collection[str] | None:
        def write(db: sqlite3.Connection) -> Collection[str] | None:
            there = self._find(db, owner, id) is not None
            if there and (taken := _taken(db, id, entries)):
                return taken
            if there:
                self._append(db, id, entries)
            if record is not None:
                self._put(db, record)
            return () if there else None

        done: Collection[str] | None = await self._writer.do(write)
        return done

    async def end_turn(self, step: Step, id: str, entries: Sequence[Entry]) -> Collection[str] | None:
        def write(db: sqlite3.Connection) -> Collection[str] | None:
            there = self._find(db, step.owner, id) is not None
            if there and (taken := _taken(db, id, entries)):
                return taken
            if not self._step(db, step):
                return None
            if there:
                self._append(db, id, entries)
            return ()

        done: Collection[str] | None = await self._writer.do(write)
        return done

    async def entries(self, owner: str, id: str, max_bytes: int) -> Sequence[Entry] | None:
        def read(db: sqlite3.Connection) -> tuple[bool, list[Entry] | None]:
            there = self._find(db, owner, id) is not None
            return there, _whole(db.execute(_ENTRIES + " ORDER BY place", (id,)), max_bytes) if there else []

        there, found = await self._reader.do(read)
        if found is None:
            raise ChainTooLong
        return found if there else None

    async def page(
        self, owner: str, id: str, after: str | None, limit: int, newest_first: bool, max_bytes: int
    ) -> Sequence[Entry] | None:
        def read(db: sqlite3.Connection) -> list[Entry] | None:
            if self._find(db, owner, id) is None:
                return None
            compared, order = ("<", "DESC") if newest_first else (">", "ASC")
            query, given = _ENTRIES, [id]
            if after is not None:
                asked = "SELECT place FROM conversation_items WHERE chain = ? AND item = ?"
                place = db.execute(asked, (id, after)).fetchone()
                if place is None:
                    return None
                query, given = f"{query} AND place {compared} ?", [id, place[0]]
            rows = db.execute(f"{query} ORDER BY place {order} LIMIT {limit:d}", given)
            return _fitting(rows, max_bytes)

        found: list[Entry] | None = await self._reader.do(read)
        return found

    async def entry(self, owner: str, id: str, entry: str) -> Entry | None:
        def read(db: sqlite3.Connection) -> Entry | None:
            if self._find(db, owner, id) is None:
                return None
            row = db.execute(_ENTRIES + " AND item = ?", (id, entry)).fetchone()
            return None if row is None else Entry(*row)

        found: Entry | None = await self._reader.do(read)
        return found

    async def remove(self, owner: str, id: str, entry: str) -> bool:
        def write(db: sqlite3.Connection) -> bool:
            if self._find(db, owner, id) is None:
                return False
            asked = "DELETE FROM conversation_items WHERE chain = ? AND item = ?"
            return db.execute(asked, (id, entry)).rowcount > 0

        return bool(await self._writer.do(write))

    async def named(self, owner: str, ids: Sequence[str], max_bytes: int) -> Mapping[str, bytes]:
        now = int(self._now())
        found = await self._reader.do(lambda db: _whole(_some(db, _NAMED, (owner, now), ids), max_bytes))
        if found is None:
            raise ChainTooLong
        return dict(found)

    def _find(self, db: sqlite3.Connection, owner: str, id: str) -> Conversation | None:
        row = db.execute(_GET, (int(self._now()), owner, id)).fetchone()
        return None if row is None else Conversation(*row)

    def _append(self, db: sqlite3.Connection, id: str, entries: Sequence[Entry]) -> None:
        (last,) = db.execute(_LAST, (id,)).fetchone()
        turn = os.urandom(8).hex()
        rows = [
            (id, place, entry.id, turn, len(entry.body), entry.body)
            for place, entry in enumerate(entries, last + 1)
        ]
        db.executemany(_ADD, rows)
        self._keep(db, id, sum(len(entry.body) for entry in entries))


def _fields(conversation: Conversation) -> tuple[str, str, int, bytes]:
    return conversation.owner, conversation.id, conversation.created, conversation.metadata


def _taken(db: sqlite3.Connection, id: str, entries: Sequence[Entry]) -> list[str]:
    """The ids that are in the conversation already."""
    found = _some(db, _ENTRIES + " AND item IN", (id,), [each.id for each in entries])
    return [each[0] for each in found]


def _some(
    db: sqlite3.Connection, query: str, given: Sequence[object], ids: Sequence[str]
) -> Iterable[tuple[str, bytes]]:
    """The rows of `query` for each of the ids, of which its last word is the list."""
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        yield from db.execute(f"{query} ({','.join('?' * len(some))})", (*given, *some))


def _whole(rows: Iterable[tuple[str, bytes]], most: int) -> list[Entry] | None:
    """None: more bytes than `most`. (An exception would look like trouble with the file.)"""
    found, size = [], 0
    for row in rows:
        size += len(row[1])
        if size > most:
            return None
        found.append(Entry(*row))
    return found


def _fitting(rows: Iterable[tuple[str, bytes]], most: int) -> list[Entry]:
    """As many of the first as are no more than `most` bytes, one at least."""
    found: list[Entry] = []
    for row in rows:
        most -= len(row[1])
        if found and most < 0:
            break
        found.append(Entry(*row))
    return found
