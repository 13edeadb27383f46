"""How many requests a provider is asked at a time, and how many may wait for their turn.

Off unless configured. What finds the queue full, or waits in it for too long, fails at once with
503 and a Retry-After: another candidate may have room, and a client that is told so comes back.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from translators.errors import ProxyError

RETRY_AFTER_S = 1
"""What a client is told: a place is free again within a reply's time, of which nobody knows more."""


class GateFull(ProxyError):
    """No room; the provider was not asked, so it says nothing against it."""


class Gate:
    """At most `limit` inside, `queue` waiting for at most `wait_s` each, first come first served."""

    def __init__(self, provider: str, limit: int, queue: int, wait_s: float) -> None:
        self._provider, self._queue, self._wait_s = provider, queue, wait_s
        self.limit = limit
        self._places = asyncio.Semaphore(limit)
        self.waiting = 0

    @property
    def full(self) -> bool:
        """Whether the next one would have to wait."""
        return self._places.locked()

    async def __aenter__(self) -> None:
        """Raises `GateFull` (503, `server_is_overloaded`)."""
        if not self._places.locked():
            await self._places.acquire()
            return
        if self.waiting >= self._queue:
            raise self._full(f"has as many requests as it takes, and {self.waiting} waiting")
        self.waiting += 1
        try:
            async with asyncio.timeout(self._wait_s):
                await self._places.acquire()
        except TimeoutError:
            raise self._full(f"had no place free for {self._wait_s:g} s") from None
        finally:
            self.waiting -= 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._places.release()

    def _full(self, what: str) -> GateFull:
        message = f"provider {self._provider} {what}; try again"
        return GateFull("overloaded", message, retry_after=RETRY_AFTER_S)
