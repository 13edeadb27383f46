"""What was answered with a failure while a file was locked is not done when the lock is gone."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.store.base import Record, StoreDown
from app.store.sqlite import SqliteStore


def record(id: str) -> Record:
    return Record("o", id, "c", None, 1, b"[]", b"{}")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r.db"


async def test_what_waits_behind_a_lock(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline passes while the first of them waits for the lock."""
    store = SqliteStore(path, 1000, 10**9, timeout_s=5)
    for id in ("a", "b"):
        await store.put(record(id))
    monkeypatch.setattr(store._writer._deadlines, "_limit_s", 0.3)
    with locked(path):
        first = asyncio.create_task(store.delete("o", "a"))
        await asyncio.sleep(0.1)  # it waits for the lock
        rest = [store.put(record("c")), store.delete("o", "b")]
        done = await asyncio.gather(first, *rest, return_exceptions=True)
        assert [type(each) for each in done] == [StoreDown] * 3
        last = asyncio.create_task(store.put(record("d")))
        await asyncio.sleep(0.1)
    await last
    there = [id for id in "abcd" if await store.get("o", id) is not None]
    assert there == ["a", "b", "d"]
    await store.aclose()


async def test_results_are_those_of_the_jobs_that_were_done(path: Path) -> None:
    store = SqliteStore(path, 1000, 10**9, timeout_s=5)
    for id in ("a", "b", "c"):
        await store.put(record(id))
    with locked(path):
        first = asyncio.create_task(store.check())
        await asyncio.sleep(0.05)
        jobs = [asyncio.create_task(store.delete("o", id)) for id in ("a", "b", "none", "c")]
        await asyncio.sleep(0.05)
        for entry in list(store._writer._deadlines._ends)[1:3]:
            entry.late()
    await first
    done = await asyncio.gather(*jobs, return_exceptions=True)
    assert [isinstance(each, StoreDown) or each for each in done] == [True, True, False, True]
    assert [id for id in "abc" if await store.get("o", id) is not None] == ["a", "b"]
    await store.aclose()


async def test_what_nobody_waits_for_any_more_is_done(path: Path) -> None:
    """Its client left and was told nothing."""
    store = SqliteStore(path, 1000, 10**9, timeout_s=5)
    await store.put(record("a"))
    with locked(path):
        left = asyncio.create_task(store.delete("o", "a"))
        await asyncio.sleep(0.05)
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
    await store.check()
    assert await store.get("o", "a") is None
    await store.aclose()
