"""Responses in an SQLite file: the default, for one machine, any number of workers."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .base import MAX_CHAIN, ChainTooLong, Record
from .schema import HELD, OF_CHAINS
from .sqlite_batch import Insert, Together
from .sqlite_conversations import SqliteConversations
from .sqlite_file import Lane
from .sqlite_runs import SqliteRuns
from .trial import TRIAL_BYTES, Trial

PURGE_S = 60.0
"""Between two looks for what has expired."""
PURGE_SHARE = 16
"""It is looked sooner when this part of the whole size has been written."""
PAUSE_S = 0.1
"""Before the next look when there was more than is taken out at once: others write meanwhile."""
PAUSE_SHARE = 4
"""That pause is at least so many times as long as what was taken out took."""
_AT_ONCE = 500
"""Chains of one purge, and ids in one query: a writer that is busy with them keeps requests waiting."""

_TRIAL = ""
"""The chain, and the id, of what is written to find out whether anything can be."""

_FIELDS = "r.owner, r.id, r.chain, r.previous, r.created, r.input, r.response, r.target, r.upstream"
_ALIVE = "JOIN chains c ON c.id = r.chain AND c.expires > ?"
_GET = f"SELECT {_FIELDS} FROM responses r {_ALIVE} WHERE r.owner = ? AND r.id = ?"  # noqa: S608
_CHAIN = f"""
    WITH RECURSIVE line (id, previous, place) AS (
        SELECT r.id, r.previous, 0 FROM responses r {_ALIVE} WHERE r.owner = ? AND r.id = ?
        UNION ALL
        SELECT r.id, r.previous, line.place + 1
        FROM line JOIN responses r ON r.owner = ? AND r.id = line.previous LIMIT {MAX_CHAIN}
    )
    SELECT {_FIELDS} FROM line JOIN responses r ON r.owner = ? AND r.id = line.id ORDER BY line.place
"""  # noqa: S608
_PUT_CHAINS = Insert(
    "INSERT INTO chains (id, expires)",
    2,
    "ON CONFLICT (id) DO UPDATE SET expires = max(expires, excluded.expires)",
)
_PUT = Insert(
    "INSERT OR REPLACE INTO responses (owner, id, chain, previous, created, bytes, input, response, target, "
    "upstream)",
    10,
)
_PUT_ITEMS = Insert("INSERT OR REPLACE INTO items (owner, item, response, chain)", 4)


class SqliteStore:
    def __init__(
        self,
        path: Path,
        ttl_s: float,
        max_bytes: int,
        timeout_s: float,
        now: Callable[[], float] = time.time,
    ) -> None:
        """The file is opened when it is first needed. `timeout_s`: how long a lock is waited for."""
        self._ttl_s, self._max_bytes, self._now = ttl_s, max_bytes, now
        self._writer = Lane(path, timeout_s, writes=True, idle=self._purge_now_and_then)
        self._reader = Lane(path, timeout_s, writes=False)
        self._trial = Trial(lambda: self._writer.failures, self._try)
        self._due, self._written = 0.0, 0
        self.runs = SqliteRuns(self._writer, self._reader, self._put)
        self.conversations = SqliteConversations(
            self._writer, self._reader, self._keep, self._put, self.runs.step_within, now
        )

    async def check(self) -> None:
        await self._writer.do(lambda _: None)  # what has expired may make room behind it
        await self._trial.passed()

    async def _try(self) -> None:
        await self._writer.do(_put_trial)
        await self._writer.do(lambda db: _take_out(db, [(_TRIAL,)]))

    async def put(self, record: Record) -> None:
        await self._writer.do(Together(self._put_all, record))

    async def get(self, owner: str, id: str) -> Record | None:
        now = int(self._now())
        row = await self._reader.do(lambda db: db.execute(_GET, (now, owner, id)).fetchone())
        return None if row is None else _record(row)

    async def chain(self, owner: str, id: str, max_bytes: int) -> list[Record]:
        now = int(self._now())
        found = await self._reader.do(lambda db: _chain(db, owner, id, now, max_bytes))
        return _whole(found)[::-1]

    async def holders(self, owner: str, items: Sequence[str], max_bytes: int) -> Mapping[str, Record]:
        now = int(self._now())
        named: dict[str, str] = await self._reader.do(lambda db: _named(db, owner, items))
        ids = list(dict.fromkeys(named.values()))
        found = await self._reader.do(lambda db: _records(db, owner, ids, now, max_bytes))
        records = {record.id: record for record in _whole(found)}
        return {item: records[id] for item, id in named.items() if id in records}

    async def delete(self, owner: str, id: str) -> bool:
        now = int(self._now())
        return bool(await self._writer.do(lambda db: _delete(db, owner, id, now)))

    async def purge(self) -> None:
        while await self._writer.do(self._purge):
            """Others write in between."""

    async def aclose(self) -> None:
        await self._trial.aclose()
        await self._reader.aclose()
        await self._writer.aclose()  # last: whoever closes the file last empties its log into it

    def _put(self, db: sqlite3.Connection, record: Record) -> None:
        self._put_all(db, [record])

    def _put_all(self, db: sqlite3.Connection, records: Sequence[Record]) -> None:
        expires = int(self._now() + self._ttl_s)
        _PUT_CHAINS.run(db, [(record.chain, expires) for record in records])
        _PUT.run(db, [_row(record) for record in records])
        _PUT_ITEMS.run(db, [row for record in records for row in _item_rows(record)])
        self._written += sum(record.size for record in records)

    def _keep(self, db: sqlite3.Connection, chain: str, size: int) -> None:
        """The chain lives on, and `size` bytes are written to it."""
        _PUT_CHAINS.run(db, [(chain, int(self._now() + self._ttl_s))])
        self._written += size

    def _purge_now_and_then(self, db: sqlite3.Connection) -> float:
        """In how many seconds it is looked again."""
        now = time.monotonic()
        if now < self._due and self._written < self._max_bytes // PURGE_SHARE:
            return self._due - now
        self._due, self._written = now + PURGE_S, 0
        db.execute("BEGIN IMMEDIATE")
        more = self._purge(db)
        db.execute("COMMIT")
        db.execute("PRAGMA incremental_vacuum(1000)").fetchall()
        if not more:
            return PURGE_S
        pause = max(PAUSE_S, PAUSE_SHARE * (time.monotonic() - now))
        self._due = time.monotonic() + pause
        return pause

    def _purge(self, db: sqlite3.Connection) -> bool:
        """Whether there may be more than was taken out at once."""
        expired = db.execute("SELECT id FROM chains WHERE expires <= ? LIMIT ?", (int(self._now()), _AT_ONCE))
        if _take_out(db, expired) == _AT_ONCE:
            return True
        (size,) = db.execute(f"SELECT coalesce(sum(bytes), 0) FROM {HELD}").fetchone()  # noqa: S608
        if size <= self._max_bytes:
            return False
        oldest = db.execute(
            f"SELECT c.id, (SELECT coalesce(sum(h.bytes), 0) FROM {HELD} h WHERE h.chain = c.id) "  # noqa: S608
            "FROM chains c ORDER BY c.expires LIMIT ?",
            (_AT_ONCE,),
        )
        going = []
        for chain, held in oldest:
            if size <= self._max_bytes:
                break
            size -= held
            going.append((chain,))
        return _take_out(db, going) == _AT_ONCE


def _put_trial(db: sqlite3.Connection) -> None:
    """What nobody can ask for, and what is taken out as expired should this process end first."""
    _PUT_CHAINS.run(db, [(_TRIAL, 0)])
    blank = Record("", _TRIAL, _TRIAL, None, 0, b"", os.urandom(TRIAL_BYTES))
    _PUT.run(db, [_row(blank)])


def _take_out(db: sqlite3.Connection, chains: Iterable[tuple[str]]) -> int:
    """How many they were."""
    ids = list(chains)
    for table, column in OF_CHAINS:
        db.executemany(f"DELETE FROM {table} WHERE {column} = ?", ids)  # noqa: S608
    return len(ids)


def _chain(db: sqlite3.Connection, owner: str, id: str, now: int, most: int) -> list[Record] | None:
    return _within(db.execute(_CHAIN, (now, owner, id, owner, owner)), most)


def _named(db: sqlite3.Connection, owner: str, items: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for start in range(0, len(items), _AT_ONCE):
        some = items[start : start + _AT_ONCE]
        marks = ",".join("?" * len(some))
        query = f"SELECT item, response FROM items WHERE owner = ? AND item IN ({marks})"  # noqa: S608
        found.update(db.execute(query, (owner, *some)).fetchall())
    return found


def _records(
    db: sqlite3.Connection, owner: str, ids: Sequence[str], now: int, most: int
) -> list[Record] | None:
    found: list[Record] = []
    for id in ids:
        some = _within(db.execute(_GET, (now, owner, id)), most)
        if some is None:
            return None
        most -= sum(record.size for record in some)
        found += some
    return found


def _record(row: Sequence[Any]) -> Record:
    owner, id, chain, previous, created, given, response, target, upstream = row
    return Record(owner, id, chain, previous, created, given, response, target=target, upstream=upstream)


def _within(rows: sqlite3.Cursor, most: int) -> list[Record] | None:
    """None: more bytes than `most`. (An exception would look like trouble with the file.)"""
    found, size = [], 0
    for row in rows:
        record = _record(row)
        size += record.size
        if size > most:
            return None
        found.append(record)
    return found


def _whole(found: list[Record] | None) -> list[Record]:
    if found is None:
        raise ChainTooLong
    return found


def _delete(db: sqlite3.Connection, owner: str, id: str, now: int) -> bool:
    row = db.execute(_GET, (now, owner, id)).fetchone()
    if row is None:
        return False
    chain = _record(row).chain
    db.execute("DELETE FROM items WHERE chain = ? AND response = ? AND owner = ?", (chain, id, owner))
    for table in ("run_events", "runs", "responses"):
        db.execute(f"DELETE FROM {table} WHERE owner = ? AND id = ?", (owner, id))  # noqa: S608
    return True


def _row(record: Record) -> tuple[Any, ...]:
    told = (record.owner, record.id, record.chain, record.previous, record.created, record.size)
    return (*told, record.input, record.response, record.target, record.upstream)


def _item_rows(record: Record) -> list[tuple[str, ...]]:
    return [(record.owner, item, record.id, record.chain) for item in record.items]
