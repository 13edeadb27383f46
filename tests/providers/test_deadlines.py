"""One timer for many waits: each ends when it should, and no sooner."""

from __future__ import annotations

import asyncio
import time

import pytest

from providers.deadlines import Deadlines, TimeLimit


class Noted:
    """A wait that notes when it was late."""

    def __init__(self) -> None:
        self.at: list[float] = []

    def late(self) -> None:
        self.at.append(time.monotonic())


async def test_each_is_late_after_its_own_limit_and_once() -> None:
    loop, deadlines, began = asyncio.get_running_loop(), Deadlines(0.1), time.monotonic()
    first, ended, second = Noted(), Noted(), Noted()
    deadlines.begin(first, loop)
    deadlines.begin(ended, loop)
    await asyncio.sleep(0.05)
    deadlines.begin(second, loop)
    deadlines.end(ended)
    deadlines.end(ended)
    await asyncio.sleep(0.3)
    assert (len(first.at), len(ended.at), len(second.at)) == (1, 0, 1)
    assert first.at[0] - began >= 0.099
    assert second.at[0] - began >= 0.149


async def test_one_that_is_late_may_end_another() -> None:
    loop, deadlines, other = asyncio.get_running_loop(), Deadlines(0.01), Noted()

    class Ending(Noted):
        def late(self) -> None:
            super().late()
            deadlines.end(other)

    first = Ending()
    deadlines.begin(first, loop)
    deadlines.begin(other, loop)
    time.sleep(0.02)  # noqa: ASYNC251 - both are late at the same look
    await asyncio.sleep(0.05)
    assert (len(first.at), other.at) == (1, [])


async def test_after_closing_nothing_is_late() -> None:
    loop, deadlines, wait = asyncio.get_running_loop(), Deadlines(0.01), Noted()
    deadlines.begin(wait, loop)
    deadlines.close()
    deadlines.close()
    await asyncio.sleep(0.05)
    assert wait.at == []


async def test_a_limit_that_passes_is_a_timeout_and_leaves_no_cancellation() -> None:
    loop = asyncio.get_running_loop()
    with pytest.raises(TimeoutError), TimeLimit(Deadlines(0.02), loop):
        await asyncio.sleep(5)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)


async def test_an_error_within_the_limit_is_its_own() -> None:
    with pytest.raises(ValueError, match="own"), TimeLimit(Deadlines(1), asyncio.get_running_loop()):
        raise ValueError("own")


async def test_a_cancellation_from_elsewhere_is_no_timeout() -> None:
    """Also when the limit passes at the same moment."""
    loop = asyncio.get_running_loop()

    async def wait() -> None:
        with TimeLimit(Deadlines(0.02), loop):
            await asyncio.sleep(5)

    early, both = asyncio.ensure_future(wait()), asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    early.cancel()
    time.sleep(0.03)  # noqa: ASYNC251 - the limit passes before the loop gets to it
    loop.call_soon(both.cancel)
    for task in (early, both):
        with pytest.raises(asyncio.CancelledError):
            await task
