"""Chains of 500 responses, in each store: linear time, and memory that what is asked for bounds."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest

from app.store.base import ChainTooLong, Record, ResponseStore
from app.store.memory import MemoryStore
from app.store.sealed import SealedStore
from app.store.sqlite import SqliteStore

from .conftest import KINDS

SIZE = 20_000
ROOM = 10**9


@pytest.fixture(params=KINDS)
def roomy(request: pytest.FixtureRequest, tmp_path: Path) -> ResponseStore:
    kind: str = request.param
    made: ResponseStore
    if kind == "memory":
        made = MemoryStore(1000, ROOM)
    elif kind == "postgres":
        from app.store.postgres import PostgresStore

        made = PostgresStore(request.getfixturevalue("postgres").new_database(), 1000, ROOM, 20)
    else:
        made = SqliteStore(tmp_path / "r.db", 1000, ROOM, 20)
    return SealedStore(made, "secret") if kind.endswith("-sealed") else made


async def _write(store: ResponseStore, turns: range) -> None:
    for turn in turns:
        previous = f"r{turn - 1}" if turn > 1 else None
        body = b'"%b"' % (b"%04d" % turn * (SIZE // 4))
        await store.put(Record("o", f"r{turn}", "c", previous, turn, b"[]", body))


async def _read_s(store: ResponseStore, turns: int, enough_s: float = 0) -> float:
    """The shortest time that it took of five, or of more until one is short enough: others work here too."""
    times: list[float] = []
    while len(times) < 5 or (len(times) < 40 and min(times) >= enough_s > 0):
        began = time.perf_counter()
        found = await store.chain("o", f"r{turns}", ROOM)
        times.append(time.perf_counter() - began)
        assert [each.id for each in found] == [f"r{at}" for at in range(1, turns + 1)]
    return min(times)


async def test_linear_time_and_bounded_memory(roomy: ResponseStore) -> None:
    await _write(roomy, range(1, 51))
    short = await _read_s(roomy, 50)
    await _write(roomy, range(51, 501))
    linear_s = 40 * short + 0.02
    assert await _read_s(roomy, 500, linear_s) < linear_s
    tracemalloc.start()
    try:
        await roomy.chain("o", "r500", ROOM)
        assert tracemalloc.get_traced_memory()[1] < 4 * 500 * SIZE
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        with pytest.raises(ChainTooLong):
            await roomy.chain("o", "r500", 5 * SIZE)
        assert tracemalloc.get_traced_memory()[1] - before < 50 * SIZE
    finally:
        tracemalloc.stop()
        await roomy.aclose()
