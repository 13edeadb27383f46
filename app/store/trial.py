"""Whether a store that could not write can write again: nothing but writing shows it.

A transaction without writes is committed on a full disk too. So as long as nothing has failed nothing is
tried, and after a failure about as much is written as a response takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

TRIAL_BYTES = 256 * 1024
"""Bytes that are written: more than what is left over in pages, and as much as a long response."""


class Trial:
    """One at a time, for all who ask meanwhile; it goes on when they have left."""

    def __init__(self, failures: Callable[[], int], write: Callable[[], Awaitable[None]]) -> None:
        """`failures`: how many writes have failed so far; `write` raises `StoreDown`."""
        self._failures, self._write = failures, write
        self._overcome = 0
        self._task: asyncio.Task[None] | None = None

    async def passed(self) -> None:
        """Raises `StoreDown` when something has failed, and still fails."""
        if self._failures() == self._overcome:
            return
        if self._task is None:
            self._task = asyncio.create_task(self._try(self._failures()))
            self._task.add_done_callback(self._ended)
        await asyncio.shield(self._task)

    async def aclose(self) -> None:
        """After the one that is under way."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _try(self, failures: int) -> None:
        await self._write()
        self._overcome = failures

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled():
            task.exception()  # is theirs who wait, if anybody still does
