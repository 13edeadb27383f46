"""One limit for many waits at once, on one timer.

`asyncio.timeout` and a timer for each exchange cost more than sending its request. Waits of the same length
end in the order in which they begin, so the first of them is all that has to be watched.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Protocol


class Wait(Protocol):
    def late(self) -> None:
        """The limit has passed; called once, and not after `end`."""
        ...


class Deadlines:
    """Waits of at most `limit_s` seconds, all in one event loop."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._ends: dict[Wait, float] = {}
        """When each is late, in the loop's time; rising."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, wait: Wait, loop: asyncio.AbstractEventLoop) -> None:
        """Begin a wait that is not going on."""
        end = self._ends[wait] = loop.time() + self._limit_s
        if self._timer is None:
            self._timer = loop.call_at(end, self._look, loop)

    def end(self, wait: Wait) -> None:
        """It is over; nothing when it has been told that it is late, or has ended."""
        self._ends.pop(wait, None)

    def close(self) -> None:
        """End all waits."""
        self._ends.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now, passed = loop.time(), list[Wait]()
        for wait, end in self._ends.items():
            if end > now:
                self._timer = loop.call_at(end, self._look, loop)
                break
            passed.append(wait)
        for wait in passed:
            if self._ends.pop(wait, None) is not None:
                wait.late()


class TimeLimit:
    """`with TimeLimit(deadlines):` raises `TimeoutError` like `asyncio.timeout`, and cancels like it."""

    __slots__ = ("_before", "_deadlines", "_late", "_loop", "_task")

    def __init__(self, deadlines: Deadlines, loop: asyncio.AbstractEventLoop) -> None:
        task = asyncio.current_task(loop)
        assert task is not None  # noqa: S101 - whoever waits is a task
        self._deadlines, self._loop, self._task, self._late = deadlines, loop, task, False
        self._before = task.cancelling()

    def late(self) -> None:
        self._late = True
        self._task.cancel()

    def __enter__(self) -> None:
        self._deadlines.begin(self, self._loop)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.end(self)
        # Whoever else has cancelled the task goes first.
        if self._late and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error
