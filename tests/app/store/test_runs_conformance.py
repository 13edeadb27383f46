"""What every store does with background runs, over all implementations, with and without encryption."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.store.base import Record, ResponseStore
from app.store.runs import ANYONES, MOST_BATCHES, Batch, Run, RunStore, Step

from .conftest import TTL_S, Clock
from .test_conformance import record

FIRST = Batch(0, 1, b"one two")


@pytest.fixture
def runs(store: ResponseStore) -> RunStore:
    return store.runs


async def begin(
    runs: RunStore, id: str = "a", chain: str = "c", worker: str = "w", lease: int = 100
) -> Record:
    made = record(id, chain=chain)
    await runs.begin(made, worker, lease, FIRST)
    return made


def step(first: int = 2, **more: object) -> Step:
    """The next step of run `a`, by its worker."""
    return replace(Step("o", "a", "w", 200, Batch(first, first + 1, b"three")), **more)  # type: ignore[arg-type]


async def test_what_is_begun_is_there(runs: RunStore, store: ResponseStore) -> None:
    await begin(runs)
    assert await runs.read("o", "a", -1) == (Run("o", "a", "w", 100, False, 1), [FIRST])
    assert await store.get("o", "a") is not None
    assert await runs.read("o", "b", -1) == (None, [])
    assert await runs.read("p", "a", -1) == (None, [])


async def test_a_step_appends_renews_and_replaces(runs: RunStore, store: ResponseStore) -> None:
    await begin(runs)
    changed = record("a", size=7)
    assert await runs.step(step(record=changed))
    run, batches = await runs.read("o", "a", -1)
    assert run == Run("o", "a", "w", 200, False, 3)
    assert [each.data for each in batches] == [b"one two", b"three"]
    found = await store.get("o", "a")
    assert found is not None
    assert found.response == changed.response


async def test_only_later_batches_are_read(runs: RunStore) -> None:
    await begin(runs)
    for number in range(2, 2 * MOST_BATCHES + 20, 2):
        assert await runs.step(step(number))
    _, batches = await runs.read("o", "a", -1)
    assert [each.first for each in batches] == list(range(0, 2 * MOST_BATCHES, 2))
    _, batches = await runs.read("o", "a", 3)
    assert batches[0].first == 4
    _, batches = await runs.read("o", "a", 4)
    assert batches[0].first == 4  # a part of it is later
    _, batches = await runs.read("o", "a", 10_000)
    assert batches == []


async def test_a_step_follows_the_last_event(runs: RunStore) -> None:
    await begin(runs)
    assert not await runs.step(step(3))
    assert not await runs.step(step(1))
    run, batches = await runs.read("o", "a", -1)
    assert (run, batches) == (Run("o", "a", "w", 100, False, 1), [FIRST])


async def test_what_has_ended_stays_as_it_is(runs: RunStore, store: ResponseStore) -> None:
    await begin(runs)
    assert await runs.step(step(ended=True))
    assert not await runs.step(step(4, record=record("a", size=9)))
    assert not await runs.step(step(4, worker="x", free_before=ANYONES))
    found = await store.get("o", "a")
    assert found is not None
    assert found.response == record("a").response
    run, _ = await runs.read("o", "a", -1)
    assert run is not None
    assert run.ended


async def test_whose_a_run_is(runs: RunStore) -> None:
    await begin(runs)
    assert not await runs.step(step(worker="x"))
    assert not await runs.step(step(worker="x", free_before=100))
    assert await runs.step(step(worker="x", free_before=101))
    assert not await runs.step(step(4))
    assert await runs.step(step(4, worker="y", free_before=ANYONES))
    run, _ = await runs.read("o", "a", -1)
    assert run is not None
    assert run.worker == "y"


async def test_the_runs_of_a_worker(runs: RunStore) -> None:
    for id, worker in (("a", "w"), ("b", "w"), ("d", "x")):
        await begin(runs, id, worker=worker)
    assert await runs.step(step(ended=True))
    assert set(map(tuple, await runs.of("w"))) == {("o", "b")}
    await runs.renew("w", 500)
    assert [(await runs.read("o", id, -1))[0].lease for id in "abd"] == [200, 500, 100]  # type: ignore[union-attr]
    assert set(map(tuple, await runs.overdue(300))) == {("o", "d")}
    assert set(map(tuple, await runs.overdue(100))) == set()


async def test_a_deleted_run_is_gone(runs: RunStore, store: ResponseStore) -> None:
    await begin(runs)
    assert await store.delete("o", "a")
    assert await runs.read("o", "a", -1) == (None, [])
    assert not await runs.step(step(record=record("a")))
    assert await store.get("o", "a") is None
    assert await runs.of("w") == []


async def test_logs_expire_with_their_conversations(
    runs: RunStore, store: ResponseStore, clock: Clock
) -> None:
    await begin(runs)
    clock.time += TTL_S - 10
    assert await runs.step(step(record=record("a")))
    clock.time += 20
    await store.purge()
    assert (await runs.read("o", "a", -1))[0] is not None
    clock.time += TTL_S
    await store.purge()
    assert await runs.read("o", "a", -1) == (None, [])


async def test_logs_count_against_the_size(runs: RunStore, store: ResponseStore, clock: Clock) -> None:
    """The store has room for 10,000 bytes."""
    for number in range(4):
        clock.time += 10
        id = f"r{number}"
        await begin(runs, id, chain=f"chain{number}")
        large = Batch(2, 2, b"x" * 4000)
        await runs.step(Step("o", id, "w", 1, large))
    await store.purge()
    found = [number for number in range(4) if (await runs.read("o", f"r{number}", -1))[0] is not None]
    assert found == [2, 3]
    assert [number for number in range(4) if await store.get("o", f"r{number}") is not None] == [2, 3]


async def test_what_is_written_again_keeps_its_log(runs: RunStore, store: ResponseStore) -> None:
    await begin(runs)
    await store.put(record("a", size=3))
    await store.put(record("b", "a"))
    assert (await runs.read("o", "a", -1))[1] == [FIRST]
    assert await store.delete("o", "b")
    assert (await runs.read("o", "a", -1))[1] == [FIRST]
