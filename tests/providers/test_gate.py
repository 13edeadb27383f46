"""A provider's places: how many at a time, how many wait, and for how long."""

from __future__ import annotations

import asyncio

import pytest

from providers.gate import Gate, GateFull


async def hold(gate: Gate, free: asyncio.Event, inside: list[int], number: int) -> None:
    async with gate:
        inside.append(number)
        await free.wait()


async def test_no_more_than_the_limit_are_inside_and_they_come_in_order() -> None:
    gate, free, inside = Gate("p", 2, 10, 5.0), asyncio.Event(), list[int]()
    tasks = [asyncio.create_task(hold(gate, free, inside, number)) for number in range(5)]
    await asyncio.sleep(0.01)
    assert (inside, gate.waiting) == ([0, 1], 3)
    free.set()
    await asyncio.gather(*tasks)
    assert (inside, gate.waiting) == ([0, 1, 2, 3, 4], 0)


async def test_a_full_queue_refuses_at_once() -> None:
    gate, free, inside = Gate("p", 1, 1, 5.0), asyncio.Event(), list[int]()
    tasks = [asyncio.create_task(hold(gate, free, inside, number)) for number in range(2)]
    await asyncio.sleep(0.01)
    with pytest.raises(GateFull) as refused:
        async with gate:
            pass
    assert (refused.value.http_status, refused.value.retry_after) == (503, 1)
    free.set()
    await asyncio.gather(*tasks)


async def test_a_wait_ends_in_time_and_leaves_its_place() -> None:
    gate, free, inside = Gate("p", 1, 1, 0.02), asyncio.Event(), list[int]()
    first = asyncio.create_task(hold(gate, free, inside, 0))
    await asyncio.sleep(0)
    with pytest.raises(GateFull, match=r"0\.02 s"):
        async with gate:
            pass
    assert gate.waiting == 0
    free.set()
    await first
    async with gate:
        pass


async def test_one_that_is_cancelled_while_it_waits_takes_no_place() -> None:
    gate, free, inside = Gate("p", 1, 1, 5.0), asyncio.Event(), list[int]()
    first = asyncio.create_task(hold(gate, free, inside, 0))
    second = asyncio.create_task(hold(gate, free, inside, 1))
    await asyncio.sleep(0.01)
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    free.set()
    await first
    assert (inside, gate.waiting) == ([0], 0)
    async with gate:
        pass


async def test_a_failure_inside_gives_the_place_back() -> None:
    gate = Gate("p", 1, 0, 5.0)
    with pytest.raises(ValueError, match="odd"):
        async with gate:
            raise ValueError("odd")
    async with gate:
        pass
