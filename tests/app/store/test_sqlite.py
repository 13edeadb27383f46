"""What is peculiar to the SQLite file: its mode, its versions, its writer, long chains."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from app.store.base import Record, StoreDown
from app.store.schema import NEWEST
from app.store.sealed import SealedStore
from app.store.sqlite import SqliteStore


def record(id: str, previous: str | None = None, chain: str = "c", size: int = 0) -> Record:
    return Record("o", id, chain, previous, 1, b"[1]" + b" " * size, b"{}", (f"msg_{id}",))


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def store_at(path: Path, most: int = 10**9, timeout_s: float = 5) -> SqliteStore:
    return SqliteStore(path, 1000, most, timeout_s)


async def test_the_file_is_for_its_owner_alone_and_outlives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "r.db"
    store = store_at(path)
    await store.put(record("a"))
    await store.aclose()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = store_at(path)
    assert await again.get("o", "a") is not None
    await again.aclose()


async def test_nothing_is_opened_before_it_is_needed(tmp_path: Path) -> None:
    store = store_at(tmp_path / "r.db")
    await store.aclose()
    assert not (tmp_path / "r.db").exists()


async def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "r.db")
    db.execute(f"PRAGMA user_version={NEWEST + 1}")
    db.close()
    store = store_at(tmp_path / "r.db")
    with pytest.raises(StoreDown, match="newer version of Dragoman"):
        await store.check()
    await store.aclose()


async def test_many_processes_make_the_file_at_once(tmp_path: Path) -> None:
    stores = [store_at(tmp_path / "r.db") for _ in range(8)]
    await asyncio.gather(*(store.put(record(f"r{at}")) for at, store in enumerate(stores)))
    found = await asyncio.gather(*(store.get("o", "r0") for store in stores))
    assert all(found)
    await asyncio.gather(*(store.aclose() for store in stores))


async def test_what_is_sealed_is_not_in_the_file(tmp_path: Path) -> None:
    store = SealedStore(store_at(tmp_path / "r.db"), "secret")
    await store.put(Record("o", "a", "c", None, 1, b'["a confession"]', b'{"a":"an absolution"}'))
    assert (await store.chain("o", "a", 999))[0].input == b'["a confession"]'
    await store.aclose()
    written = contents(tmp_path)
    assert b"confession" not in written
    assert b"absolution" not in written
    other = SealedStore(store_at(tmp_path / "r.db"), "another")
    with pytest.raises(StoreDown, match="encryption_key"):
        await other.get("o", "a")
    await other.aclose()


async def test_a_record_cannot_be_put_in_the_place_of_another(tmp_path: Path) -> None:
    inner = store_at(tmp_path / "r.db")
    store = SealedStore(inner, "secret")
    await store.put(record("a"))
    await store.aclose()
    db = sqlite3.connect(tmp_path / "r.db")
    db.execute("UPDATE responses SET id = 'b'")
    db.commit()
    db.close()
    with pytest.raises(StoreDown):
        await store.get("o", "b")
    await store.aclose()


async def test_writes_that_wait_share_a_commit(tmp_path: Path) -> None:
    store = store_at(tmp_path / "r.db")
    await store.check()
    commits: list[str] = []
    store._writer._db.set_trace_callback(lambda text: text == "COMMIT" and commits.append(text))  # type: ignore[union-attr]
    gate = threading.Event()
    held = asyncio.ensure_future(store._writer.do(lambda _: gate.wait(5)))
    await asyncio.sleep(0.05)
    writes = [asyncio.ensure_future(store.put(record(f"r{at}"))) for at in range(100)]
    await asyncio.sleep(0.05)
    gate.set()
    await asyncio.gather(held, *writes)
    assert len(commits) <= 3  # one of them for what has expired
    await store.aclose()


async def test_a_slow_disk_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    store = store_at(tmp_path / "r.db", timeout_s=-0.8)
    gate = threading.Event()
    with pytest.raises(StoreDown, match="too slow"):
        await store._writer.do(lambda _: gate.wait(5))
    gate.set()
    await store._writer.do(lambda _: None)
    await store.aclose()


async def test_a_queue_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.store.sqlite_file.MOST_WAITING", 0)
    store = store_at(tmp_path / "r.db")
    with pytest.raises(StoreDown, match="wait for the disk"):
        await store.put(record("a"))
    await store.aclose()


async def test_a_fault_in_one_write_undoes_its_batch_and_the_next_goes_on(tmp_path: Path) -> None:
    store = store_at(tmp_path / "r.db")
    with pytest.raises(StoreDown):
        await store._writer.do(lambda _: 1 / 0)
    await store.put(record("a"))
    assert await store.get("o", "a") is not None
    await store.aclose()


async def test_old_chains_go_while_others_are_written(tmp_path: Path) -> None:
    store = store_at(tmp_path / "r.db", most=16_000)
    for number in range(60):
        await store.put(record(f"r{number}", chain=f"c{number}", size=1000))
    await store.check()
    db = sqlite3.connect(tmp_path / "r.db")
    (size,) = db.execute("SELECT sum(bytes) FROM responses").fetchone()
    db.close()
    assert size <= 18_000
    await store.aclose()
