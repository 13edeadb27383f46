"""Background runs in PostgreSQL; the statements are those of `sqlite_runs.py`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from .base import Record
from .runs import MOST_BATCHES, Batch, Key, Run, Step

T = TypeVar("T")
Put = Callable[[AsyncConnection, Record], Awaitable[None]]

_BEGIN = text(
    "INSERT INTO runs (owner, id, chain, worker, lease, ended, last_number, bytes) "
    "VALUES (:owner, :id, :chain, :worker, :lease, 0, :last, :size) ON CONFLICT (owner, id) DO NOTHING"
)
_STEP = text(
    "UPDATE runs SET worker = :worker, lease = :lease, ended = :ended, last_number = :last, "
    "bytes = bytes + :size WHERE owner = :owner AND id = :id AND ended = 0 AND last_number = :before "
    "AND (worker = :worker OR lease < :free_before) RETURNING chain"
)
_APPEND = text(
    "INSERT INTO run_events (owner, id, chain, first_number, last_number, data) "
    "VALUES (:owner, :id, :chain, :first, :last, :data) ON CONFLICT DO NOTHING"
)
_RUN = text("SELECT owner, id, worker, lease, ended, last_number FROM runs WHERE owner = :owner AND id = :id")
_LATER = text(
    "SELECT first_number, last_number, data FROM run_events WHERE owner = :owner AND id = :id "
    "AND last_number > :after ORDER BY first_number LIMIT :most"
)
_OF = text("SELECT owner, id FROM runs WHERE ended = 0 AND worker = :worker")
_RENEW = text("UPDATE runs SET lease = :lease WHERE ended = 0 AND worker = :worker")
_OVERDUE = text("SELECT owner, id FROM runs WHERE ended = 0 AND lease < :now LIMIT 100")


class Do(Protocol):
    async def __call__(self, work: Callable[[AsyncConnection], Awaitable[T]], /) -> T:
        """In one transaction; raises `StoreDown`."""
        ...


class PostgresRuns:
    def __init__(self, do: Do, put: Put) -> None:
        """`put` keeps a record, in the transaction of the connection that it is given."""
        self._do, self._put = do, put

    async def begin(self, record: Record, worker: str, lease: int, batch: Batch) -> None:
        fields = _fields(record.owner, record.id, batch)
        told = {"worker": worker, "lease": lease, "chain": record.chain, **fields}

        async def write(db: AsyncConnection) -> None:
            await self._put(db, record)
            await db.execute(_BEGIN, told)
            await db.execute(_APPEND, told)

        await self._do(write)

    async def step(self, step: Step) -> bool:
        return await self._do(lambda db: self.step_within(db, step))

    async def step_within(self, db: AsyncConnection, step: Step) -> bool:
        """The same in a transaction that holds more."""
        told = {
            "worker": step.worker,
            "lease": step.lease,
            "ended": int(step.ended),
            "before": step.batch.first - 1,
            "free_before": step.free_before,
            **_fields(step.owner, step.id, step.batch),
        }
        row = (await db.execute(_STEP, told)).first()
        if row is None:
            return False
        await db.execute(_APPEND, {**told, "chain": row[0]})
        if step.record is not None:
            await self._put(db, step.record)
        return True

    async def read(self, owner: str, id: str, after: int) -> tuple[Run | None, Sequence[Batch]]:
        asked = {"owner": owner, "id": id, "after": after}

        async def find(db: AsyncConnection) -> tuple[Run | None, Sequence[Batch]]:
            row = (await db.execute(_RUN, asked)).first()
            if row is None:
                return None, []
            rows = (await db.execute(_LATER, {**asked, "most": MOST_BATCHES})).all()
            run = Run(row[0], row[1], row[2], row[3], bool(row[4]), row[5])
            return run, [Batch(first, last, bytes(data)) for first, last, data in rows]

        return await self._do(find)

    async def of(self, worker: str) -> Collection[Key]:
        return await self._keys(_OF, worker=worker)

    async def renew(self, worker: str, lease: int) -> None:
        await self._do(lambda db: db.execute(_RENEW, {"worker": worker, "lease": lease}))

    async def overdue(self, now: int) -> Collection[Key]:
        return await self._keys(_OVERDUE, now=now)

    async def _keys(self, statement: Any, **values: Any) -> list[Key]:
        async def find(db: AsyncConnection) -> list[Key]:
            return [(row[0], row[1]) for row in (await db.execute(statement, values)).all()]

        return await self._do(find)


def _fields(owner: str, id: str, batch: Batch) -> dict[str, Any]:
    return {
        "owner": owner,
        "id": id,
        "first": batch.first,
        "last": batch.last,
        "data": batch.data,
        "size": len(batch.data),
    }
