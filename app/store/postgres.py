"""Responses in PostgreSQL, for several gateways that share them (extra `postgres`).

The statements are those of `sqlite.py` but for the placeholders. A connection that turns out to be gone (the
server was started anew) is replaced and asked once more: every statement here may be repeated.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from .base import MAX_CHAIN, ChainTooLong, Record, StoreDown
from .postgres_conversations import PostgresConversations
from .postgres_runs import PostgresRuns
from .schema import HELD, NEWEST, OF_CHAINS, newer, steps_after
from .trial import TRIAL_BYTES, Trial

T = TypeVar("T")

PURGE_S = 60.0
"""Between two looks for what has expired."""
_AT_ONCE = 500
"""Chains of one transaction of a purge."""
_LOCK = 0x647261676F6D616E
"""Of one gateway at a time, while it changes tables: `dragoman` in ASCII."""

_FIELDS = "r.owner, r.id, r.chain, r.previous, r.created, r.input, r.response, r.target, r.upstream"
_ALIVE = "JOIN chains c ON c.id = r.chain AND c.expires > :now"
_GET = text(f"SELECT {_FIELDS} FROM responses r {_ALIVE} WHERE r.owner = :owner AND r.id = :id")  # noqa: S608
_CHAIN = text(f"""
    WITH RECURSIVE line (id, previous, place, size) AS (
        SELECT r.id, r.previous, 0, r.bytes FROM responses r {_ALIVE} WHERE r.owner = :owner AND r.id = :id
        UNION ALL
        SELECT r.id, r.previous, line.place + 1, line.size + r.bytes
        FROM line JOIN responses r ON r.owner = :owner AND r.id = line.previous
        WHERE line.size <= :most AND line.place < {MAX_CHAIN}
    )
    SELECT {_FIELDS} FROM line JOIN responses r ON r.owner = :owner AND r.id = line.id ORDER BY line.place
""")  # noqa: S608
_SIZE = text(
    "SELECT coalesce(sum(bytes), 0) FROM responses r JOIN chains c ON c.id = r.chain AND c.expires > :now "
    "WHERE r.owner = :owner AND r.id = ANY(:ids)"
)
_MANY = text(f"SELECT {_FIELDS} FROM responses r {_ALIVE} WHERE r.owner = :owner AND r.id = ANY(:ids)")  # noqa: S608
_NAMED = text("SELECT item, response FROM items WHERE owner = :owner AND item = ANY(:items)")
_PUT_CHAIN = text(
    "INSERT INTO chains (id, expires) VALUES (:chain, :expires) "
    "ON CONFLICT (id) DO UPDATE SET expires = greatest(chains.expires, excluded.expires)"
)
_PUT = text(
    "INSERT INTO responses (owner, id, chain, previous, created, bytes, input, response, target, upstream) "
    "VALUES (:owner, :id, :chain, :previous, :created, :bytes, :input, :response, :target, :upstream) "
    "ON CONFLICT (owner, id) DO UPDATE SET chain = excluded.chain, previous = excluded.previous, "
    "created = excluded.created, bytes = excluded.bytes, input = excluded.input, "
    "response = excluded.response, target = excluded.target, upstream = excluded.upstream"
)
_PUT_ITEM = text(
    "INSERT INTO items (owner, item, response, chain) VALUES (:owner, :item, :id, :chain) "
    "ON CONFLICT (owner, item) DO UPDATE SET response = excluded.response, chain = excluded.chain"
)
_DELETE_ITEMS = text("DELETE FROM items WHERE owner = :owner AND response = :id AND chain = :chain")
_DELETE = text("DELETE FROM responses WHERE owner = :owner AND id = :id RETURNING chain")
_DELETE_RUN = [
    text(f"DELETE FROM {table} WHERE owner = :owner AND id = :id")  # noqa: S608
    for table in ("run_events", "runs")
]
_EXPIRED = text(
    "SELECT id FROM chains WHERE expires <= :now ORDER BY expires LIMIT :count FOR UPDATE SKIP LOCKED"
)
_OVER = text(f"""
    SELECT id, expires FROM (
        SELECT c.id, c.expires, sum(coalesce(s.bytes, 0)) OVER (ORDER BY c.expires DESC, c.id) AS held
        FROM chains c LEFT JOIN (SELECT chain, sum(bytes) AS bytes FROM {HELD} h GROUP BY chain) s
        ON s.chain = c.id
    ) newest_first WHERE held > :most ORDER BY expires
""")  # noqa: S608
_STILL_OVER = text(
    "SELECT id FROM chains WHERE id = ANY(:ids) AND expires <= :expires FOR UPDATE SKIP LOCKED"
)
"""Without those that have been continued since."""
_TAKE_OUT = [
    text(f"DELETE FROM {table} WHERE {column} = ANY(:ids)")  # noqa: S608
    for table, column in OF_CHAINS
]


class PostgresStore:
    def __init__(
        self, url: str, ttl_s: float, max_bytes: int, timeout_s: float, now: Callable[[], float] = time.time
    ) -> None:
        """`url`: `postgresql://user:password@host/database`; `timeout_s` bounds every operation."""
        self._ttl_s, self._max_bytes, self._timeout_s, self._now = ttl_s, max_bytes, timeout_s, now
        self._url = "postgresql+asyncpg://" + url.partition("://")[2]
        self._found: AsyncEngine | None = None
        self._opening = asyncio.Lock()
        self._failures = 0
        self._trial = Trial(lambda: self._failures, lambda: self._do(_try))
        self._closing = asyncio.Event()
        self._purging: asyncio.Task[None] | None = None
        self.runs = PostgresRuns(self._writing, self._put)
        self.conversations = PostgresConversations(
            self._writing, self._keep, self._put, self.runs.step_within, now
        )

    async def check(self) -> None:
        await self._do(_takes_writes)
        await self._trial.passed()

    async def put(self, record: Record) -> None:
        await self._writing(lambda db: self._put(db, record))

    async def _put(self, db: AsyncConnection, record: Record) -> None:
        told = _values(record)
        await self._keep(db, record.chain)
        await db.execute(_PUT, told)
        items = [{**told, "item": item} for item in record.items]
        if items:
            await db.execute(_PUT_ITEM, items)

    async def _keep(self, db: AsyncConnection, chain: str) -> None:
        """The chain lives on."""
        await db.execute(_PUT_CHAIN, {"chain": chain, "expires": int(self._now() + self._ttl_s)})

    async def _writing(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        try:
            done = await self._do(work)
        except StoreDown:
            self._failures += 1
            raise
        if self._purging is None:
            self._purging = asyncio.create_task(self._purge_now_and_then())
        return done

    async def get(self, owner: str, id: str) -> Record | None:
        rows = await self._rows(_GET, owner=owner, id=id)
        return _record(rows[0]) if rows else None

    async def chain(self, owner: str, id: str, max_bytes: int) -> list[Record]:
        records = [_record(row) for row in await self._rows(_CHAIN, owner=owner, id=id, most=max_bytes)]
        if sum(record.size for record in records) > max_bytes:
            raise ChainTooLong
        return records[::-1]

    async def holders(self, owner: str, items: Sequence[str], max_bytes: int) -> Mapping[str, Record]:
        named = {row[0]: row[1] for row in await self._rows(_NAMED, owner=owner, items=list(items))}
        ids = list(set(named.values()))
        size = await self._rows(_SIZE, owner=owner, ids=ids)
        if size[0][0] > max_bytes:
            raise ChainTooLong
        found = [_record(row) for row in await self._rows(_MANY, owner=owner, ids=ids)]
        records = {record.id: record for record in found}
        return {item: records[id] for item, id in named.items() if id in records}

    async def delete(self, owner: str, id: str) -> bool:
        alive = await self.get(owner, id) is not None

        async def write(db: AsyncConnection) -> None:
            for statement in _DELETE_RUN:
                await db.execute(statement, {"owner": owner, "id": id})
            row = (await db.execute(_DELETE, {"owner": owner, "id": id})).first()
            if row is not None:
                await db.execute(_DELETE_ITEMS, {"owner": owner, "id": id, "chain": row[0]})

        await self._writing(write)
        return alive

    async def purge(self) -> None:
        """In many transactions: each is waited for no longer than any other, and what it did stays done."""
        now = int(self._now())
        while not await self._do(lambda db: _take_expired(db, now)) and not self._closing.is_set():
            """There may be more."""
        over = await self._rows(_OVER, most=self._max_bytes)
        for start in range(0, len(over), _AT_ONCE):
            if self._closing.is_set():
                return
            ids, expires = zip(*over[start : start + _AT_ONCE], strict=True)
            going = {"ids": ids, "expires": expires[-1]}
            await self._do(partial(_take_out, statement=_STILL_OVER, values=going))

    async def aclose(self) -> None:
        self._closing.set()
        await self._trial.aclose()
        if self._purging is not None:
            await self._purging
        if self._found is not None:
            await self._found.dispose()

    async def _purge_now_and_then(self) -> None:
        """Also while nobody writes: what has expired does not wait for that."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(PURGE_S):
                    await self._closing.wait()
                return
            with suppress(StoreDown):  # whoever needs the store now is told
                await self.purge()

    async def _rows(self, statement: Any, **values: Any) -> Sequence[Any]:
        async def read(db: AsyncConnection) -> Sequence[Any]:
            found = await db.execute(statement, {"now": int(self._now()), **values})
            rows: Sequence[Any] = found.all()
            return rows

        return await self._do(read)

    async def _do(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """In one transaction; raises `StoreDown`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    return await self._once(work)
                except (DBAPIError, OSError) as error:
                    if self._found is None or not _is_lost(error):
                        raise
                    await self._found.dispose()  # the others of the pool are as stale
                    return await self._once(work)
        except TimeoutError:
            raise StoreDown(f"PostgreSQL did not answer within {self._timeout_s:g} s") from None
        except SQLAlchemyError as error:
            raise StoreDown(f"PostgreSQL: {getattr(error, 'orig', None) or error}") from error
        except OSError as error:
            raise StoreDown(f"PostgreSQL: {error}") from error

    async def _once(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        engine = self._found or await self._open()
        async with engine.begin() as db:
            return await work(db)

    async def _open(self) -> AsyncEngine:
        async with self._opening:
            if self._found is None:
                engine = create_async_engine(self._url, pool_size=10, max_overflow=10, hide_parameters=True)
                try:
                    async with engine.begin() as db:
                        await _migrate(db)
                except BaseException:
                    await engine.dispose()
                    raise
                self._found = engine
            return self._found


async def _takes_writes(db: AsyncConnection) -> None:
    """Raises `OSError` for a replica; another connection may lead to what has taken its place."""
    if (await db.execute(text("SHOW transaction_read_only"))).scalar() == "on":
        raise OSError("it is read-only")


async def _take_expired(db: AsyncConnection, now: int) -> bool:
    """Whether those were the last."""
    return await _take_out(db, _EXPIRED, {"now": now, "count": _AT_ONCE}) < _AT_ONCE


async def _take_out(db: AsyncConnection, statement: Any, values: Mapping[str, Any]) -> int:
    """The chains that the statement names, and how many they were; nobody continues them meanwhile."""
    ids = [row[0] for row in await db.execute(statement, values)]
    for each in _TAKE_OUT if ids else ():
        await db.execute(each, {"ids": ids})
    return len(ids)


async def _try(db: AsyncConnection) -> None:
    """Write what nobody gets to see; a table that cannot grow refuses it before the transaction ends."""
    blank = Record("", "", "", None, 0, b"", os.urandom(TRIAL_BYTES))
    await db.execute(_PUT, _values(blank))
    await db.execute(_DELETE, {"owner": blank.owner, "id": blank.id})


def _values(record: Record) -> dict[str, Any]:
    return {
        "owner": record.owner,
        "id": record.id,
        "chain": record.chain,
        "previous": record.previous,
        "created": record.created,
        "bytes": record.size,
        "input": record.input,
        "response": record.response,
        "target": record.target,
        "upstream": record.upstream,
    }


def _is_lost(error: Exception) -> bool:
    """Whether the connection is gone rather than the statement wrong."""
    if not isinstance(error, DBAPIError):
        return True
    return error.connection_invalidated or isinstance(error, InterfaceError | OperationalError)


async def _migrate(db: AsyncConnection) -> None:
    await db.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    await db.execute(text("CREATE TABLE IF NOT EXISTS dragoman_schema (version INTEGER NOT NULL)"))
    version = (await db.execute(text("SELECT max(version) FROM dragoman_schema"))).scalar() or 0
    if version > NEWEST:
        raise OSError(newer(version))
    if version < NEWEST:
        for statement in steps_after(version, "postgres"):
            await db.execute(text(statement))
        await db.execute(text("INSERT INTO dragoman_schema VALUES (:version)"), {"version": NEWEST})


def _record(row: Sequence[Any]) -> Record:
    owner, id, chain, previous, created, given, response, target, upstream = row
    read = bytes(given), bytes(response)
    return Record(owner, id, chain, previous, created, *read, target=target, upstream=upstream)
