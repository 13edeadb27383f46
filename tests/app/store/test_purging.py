"""What has expired goes soon, however much it is, and nobody waits for that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.store.base import Record
from app.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from .conftest import Clock, Postgres

CHAINS = 2200
TTL_S = 100.0


def record(chain: str) -> Record:
    return Record("o", chain, chain, None, 1, b"[]", b"{}", (f"msg_{chain}",))


async def put(store: Any, count: int) -> None:
    await asyncio.gather(*(store.put(record(f"c{number}")) for number in range(count)))


async def come_to(wanted: int, held: Callable[[], Awaitable[int]], within_s: float = 10) -> None:
    """Wait until so many are left."""
    end = time.monotonic() + within_s
    while await held() != wanted:
        assert time.monotonic() < end, f"{await held()} are still held"
        await asyncio.sleep(0.02)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "r.db"


def in_file(store: SqliteStore) -> Callable[[], Awaitable[int]]:
    """Read beside the writer, which does nothing for that."""
    count = "SELECT (SELECT count(*) FROM responses) + (SELECT count(*) FROM chains)"

    async def held() -> int:
        found: int = await store._reader.do(lambda db: db.execute(count).fetchone()[0])
        return found

    return held


async def test_much_goes_soon_in_parts(file: Path, clock: Clock) -> None:
    store = SqliteStore(file, TTL_S, 10**9, 5, clock)
    await put(store, CHAINS)
    clock.time += 2 * TTL_S
    store._due = 0.0
    await store.put(record("new"))
    await come_to(2, in_file(store))
    await store.aclose()


async def test_what_is_over_the_size_goes_in_parts(file: Path, clock: Clock) -> None:
    store = SqliteStore(file, TTL_S, 10**9, 5, clock)
    await put(store, CHAINS)
    store._max_bytes, store._written, held = 400, 0, in_file(store)
    assert await store._writer.do(store._purge)
    assert await held() == 2 * (CHAINS - 500)
    store._due = 0.0
    await store.check()
    await come_to(200, held)  # 4 bytes each, and its chain
    await store.aclose()


async def test_it_goes_while_nobody_writes(file: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.store.sqlite.PURGE_S", 0.05)
    store = SqliteStore(file, TTL_S, 10**9, 5, clock)
    await put(store, 3)
    clock.time += 2 * TTL_S
    await come_to(0, in_file(store))
    await store.aclose()


async def test_writers_are_let_in_between(file: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.store.sqlite.PAUSE_S", 5.0)
    store = SqliteStore(file, TTL_S, 10**9, 5, clock)
    await put(store, CHAINS)
    clock.time += 2 * TTL_S
    store._due = 0.0
    held = in_file(store)
    for number in range(20):
        await store.put(record(f"new{number}"))
    assert await held() == 2 * (CHAINS - 500 + 20)
    await store.aclose()


async def test_all_that_has_expired_is_taken_out_when_asked(file: Path, clock: Clock) -> None:
    store = SqliteStore(file, TTL_S, 10**9, 5, clock)
    await put(store, CHAINS)
    clock.time += 2 * TTL_S
    await store.purge()
    assert await in_file(store)() == 0
    await store.aclose()


SLOW = """
CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
PERFORM pg_sleep(0.1); RETURN OLD; END $$;
CREATE TRIGGER slowly BEFORE DELETE ON chains FOR EACH ROW EXECUTE FUNCTION slowly()
"""


@pytest.mark.parametrize(("ttl_s", "most"), [(TTL_S, 10**6), (10 * TTL_S, 0)])
async def test_a_database_that_takes_longer_for_all_than_one_may_wait(
    postgres: Postgres, clock: Clock, monkeypatch: pytest.MonkeyPatch, ttl_s: float, most: int
) -> None:
    """Expired, or over the size: what was taken out stays so when the next takes too long."""
    import asyncpg

    from app.store import postgres as module

    monkeypatch.setattr(module, "_AT_ONCE", 3)
    url = postgres.new_database()
    former = module.PostgresStore(url, ttl_s, 10**6, 10, clock)
    await put(former, 15)
    await former.aclose()
    db = await asyncpg.connect(url)
    await db.execute(SLOW)
    clock.time += 2 * TTL_S
    store = module.PostgresStore(url, ttl_s, most, 0.8, clock)
    await store.purge()
    assert await db.fetchval("SELECT count(*) FROM chains") == 0
    await db.close()
    await store.aclose()


async def test_a_database_is_purged_while_nobody_writes(
    postgres: Postgres, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncpg

    from app.store import postgres as module

    monkeypatch.setattr(module, "PURGE_S", 0.05)
    url = postgres.new_database()
    store = module.PostgresStore(url, TTL_S, 1000, 10, clock)
    await store.put(record("a"))
    await asyncio.sleep(0.2)
    clock.time += 2 * TTL_S
    db = await asyncpg.connect(url)
    await come_to(0, lambda: db.fetchval("SELECT count(*) FROM chains"))
    await db.close()
    await store.aclose()


async def test_what_is_continued_meanwhile_stays(postgres: Postgres, clock: Clock) -> None:
    """Of what is over the size, one has gone on since it was seen."""
    from app.store import postgres as module

    store = module.PostgresStore(postgres.new_database(), TTL_S, 0, 10, clock)
    store._purging = asyncio.create_task(asyncio.sleep(0))  # only this one
    await put(store, 2)
    over = store._rows

    async def seen(statement: Any, **values: Any) -> Any:
        found = await over(statement, **values)
        clock.time += 10
        await store.put(record("c1"))
        return found

    store._rows = seen  # type: ignore[method-assign]
    await store.purge()
    store._rows = over  # type: ignore[method-assign]
    assert [await store.get("o", id) is not None for id in ("c0", "c1")] == [False, True]
    await store.aclose()
