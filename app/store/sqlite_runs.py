"""Background runs in an SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence

from .base import Record
from .runs import MOST_BATCHES, Batch, Key, Run, Step
from .sqlite_file import Lane

Put = Callable[[sqlite3.Connection, Record], None]

_BEGIN = (
    "INSERT OR REPLACE INTO runs (owner, id, chain, worker, lease, ended, last_number, bytes) "
    "VALUES (?, ?, ?, ?, ?, 0, ?, ?)"
)
_STEP = (
    "UPDATE runs SET worker = ?, lease = ?, ended = ?, last_number = ?, bytes = bytes + ? "
    "WHERE owner = ? AND id = ? AND ended = 0 AND last_number = ? AND (worker = ? OR lease < ?) "
    "RETURNING chain"
)
_APPEND = (
    "INSERT INTO run_events (owner, id, chain, first_number, last_number, data) VALUES (?, ?, ?, ?, ?, ?)"
)
_RUN = "SELECT owner, id, worker, lease, ended, last_number FROM runs WHERE owner = ? AND id = ?"
_LATER = (
    "SELECT first_number, last_number, data FROM run_events "
    "WHERE owner = ? AND id = ? AND last_number > ? ORDER BY first_number LIMIT ?"
)
_OPEN = "SELECT owner, id FROM runs WHERE ended = 0 AND"


class SqliteRuns:
    def __init__(self, writer: Lane, reader: Lane, put: Put) -> None:
        """`put` keeps a record, in the transaction of the connection that it is given."""
        self._writer, self._reader, self._put = writer, reader, put

    async def begin(self, record: Record, worker: str, lease: int, batch: Batch) -> None:
        def write(db: sqlite3.Connection) -> None:
            self._put(db, record)
            owner, id, chain = record.owner, record.id, record.chain
            db.execute(_BEGIN, (owner, id, chain, worker, lease, batch.last, len(batch.data)))
            _append(db, owner, id, chain, batch)

        await self._writer.do(write)

    async def step(self, step: Step) -> bool:
        return bool(await self._writer.do(lambda db: self.step_within(db, step)))

    async def read(self, owner: str, id: str, after: int) -> tuple[Run | None, Sequence[Batch]]:
        def find(db: sqlite3.Connection) -> tuple[Run | None, Sequence[Batch]]:
            row = db.execute(_RUN, (owner, id)).fetchone()
            if row is None:
                return None, []
            owner_, id_, worker, lease, ended, last = row
            later = db.execute(_LATER, (owner, id, after, MOST_BATCHES)).fetchall()
            return Run(owner_, id_, worker, lease, bool(ended), last), [Batch(*each) for each in later]

        found: tuple[Run | None, Sequence[Batch]] = await self._reader.do(find)
        return found

    async def of(self, worker: str) -> Collection[Key]:
        query = f"{_OPEN} worker = ?"
        found: list[Key] = await self._reader.do(lambda db: db.execute(query, (worker,)).fetchall())
        return found

    async def renew(self, worker: str, lease: int) -> None:
        query = "UPDATE runs SET lease = ? WHERE worker = ? AND ended = 0"
        await self._writer.do(lambda db: db.execute(query, (lease, worker)).close())

    async def overdue(self, now: int) -> Collection[Key]:
        query = f"{_OPEN} lease < ? LIMIT 100"
        found: list[Key] = await self._reader.do(lambda db: db.execute(query, (now,)).fetchall())
        return found

    def step_within(self, db: sqlite3.Connection, step: Step) -> bool:
        """The same in a transaction that holds more."""
        batch, owner, id = step.batch, step.owner, step.id
        new = step.worker, step.lease, int(step.ended), batch.last, len(batch.data)
        row = db.execute(_STEP, (*new, owner, id, batch.first - 1, step.worker, step.free_before)).fetchall()
        if not row:
            return False
        _append(db, owner, id, row[0][0], batch)
        if step.record is not None:
            self._put(db, step.record)
        return True


def _append(db: sqlite3.Connection, owner: str, id: str, chain: str, batch: Batch) -> None:
    db.execute(_APPEND, (owner, id, chain, batch.first, batch.last, batch.data))
