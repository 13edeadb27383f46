"""A disk that is full: nothing is written, while transactions that write nothing are still committed."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.store.base import Record, StoreDown
from app.store.sqlite import SqliteStore
from tests.backends.gateway import Gateway
from tests.backends.scripted import ScriptedBackend

from .processes import gateway

if TYPE_CHECKING:
    from .conftest import Postgres

ASK = {"model": "m", "input": "x"}
OTHERS = 20


@contextlib.contextmanager
def limited(pid: int, size: int) -> Iterator[None]:
    """No file of the process grows beyond `size`: the kernel refuses it as on a full disk."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store" / "r.db"


@pytest.fixture
def running(tmp_path: Path, scripted: ScriptedBackend, file: Path) -> Iterator[Gateway]:
    with gateway(tmp_path / "g", scripted, {"kind": "sqlite", "path": str(file)}) as running:
        yield running


def said(running: Gateway) -> tuple[int, int]:
    """How often the log says that the store is down, and that it is up."""
    log = running.log()
    return log.count("store:down"), log.count("store:up")


@pytest.mark.parametrize("room", [0, 1 << 16])
def test_no_backend_is_paid_and_the_log_says_it_once(
    running: Gateway, scripted: ScriptedBackend, file: Path, room: int
) -> None:
    """With a little `room` left in the file, where a small write goes in and a response may not."""
    with running.client() as client:
        made = client.post("/v1/responses", json=ASK).json()
        size = file.with_name("r.db-wal").stat().st_size
        with limited(running.process.pid, size + room):
            assert client.post("/v1/responses", json={**ASK, "input": "x" * 500_000}).status_code == 503
            paid = len(scripted.bodies())
            for _ in range(OTHERS):
                assert client.post("/v1/responses", json=ASK).status_code == 503
                assert client.get(f"/v1/responses/{made['id']}").json() == made
            assert "store" in client.get("/ready").json()["not_ready"]
            assert len(scripted.bodies()) == paid
            assert said(running) == (1, 0)
        assert client.get("/ready").json()["status"] == "ready"
        assert client.post("/v1/responses", json=ASK).status_code == 200
    assert said(running) == (1, 1)


def record(id: str, size: int = 0) -> Record:
    return Record("o", id, "c", None, 1, b"[]", b" " * size)


async def test_a_trial_leaves_nothing(file: Path) -> None:
    store = SqliteStore(file, 1000, 10**9, 5)
    await store.put(record("a"))
    with pytest.raises(StoreDown):
        await store._writer.do(lambda _: 1 / 0)
    await asyncio.gather(*(store.check() for _ in range(5)))
    with contextlib.closing(sqlite3.connect(file)) as db:
        held = db.execute("SELECT id FROM responses UNION ALL SELECT id FROM chains").fetchall()
    assert held == [("a",), ("c",)]
    await store.aclose()


async def test_what_was_overcome_is_not_tried_again(file: Path) -> None:
    store = SqliteStore(file, 1000, 10**9, 5)
    with pytest.raises(StoreDown):
        await store._writer.do(lambda _: 1 / 0)
    await store.check()
    changes = store._writer._db.total_changes  # type: ignore[union-attr]
    assert changes > 0
    await store.check()
    assert store._writer._db.total_changes == changes  # type: ignore[union-attr]
    await store.aclose()


async def test_a_trial_goes_on_when_who_asked_has_left(file: Path) -> None:
    """Else a slow disk would never be found to be there again by those who wait for half a second."""
    store = SqliteStore(file, 1000, 10**9, 5)
    with pytest.raises(StoreDown):
        await store._writer.do(lambda _: 1 / 0)
    gate = threading.Event()
    held = asyncio.create_task(store._writer.do(lambda _: gate.wait(5)))
    asked = asyncio.create_task(store._trial.passed())
    await asyncio.sleep(0.05)
    asked.cancel()
    gate.set()
    await held
    await asyncio.gather(asked, return_exceptions=True)
    await store.aclose()
    assert store._trial._overcome == store._writer.failures


FULL = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON responses EXECUTE FUNCTION refuse()
"""


async def test_a_database_on_a_full_disk(postgres: Postgres) -> None:
    import asyncpg

    from app.store.postgres import PostgresStore

    url = postgres.new_database()
    store = PostgresStore(url, 100, 10**6, 10)
    await store.put(record("a"))
    db = await asyncpg.connect(url)
    await db.execute(FULL)
    await store.check()  # nobody knows
    with pytest.raises(StoreDown, match="No space"):
        await store.put(record("b"))
    for _ in range(2):
        with pytest.raises(StoreDown, match="No space"):
            await store.check()
    await db.execute("DROP TRIGGER refuse ON responses")
    await store.check()
    assert [row["id"] for row in await db.fetch("SELECT id FROM responses")] == ["a"]
    await db.close()
    await store.aclose()
