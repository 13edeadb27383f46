"""Counting by PyPI `limits`, in memory or in a Redis that several processes share.

Fixed windows: the one strategy that counts what goes beyond the limit too, as tokens do that are known only
afterwards, in one step of the store. `limits` and `redis` are imported when a key has limits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

import structlog
from limits import RateLimitItem, RateLimitItemPerDay, RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage, Storage
from limits.aio.strategies import FixedWindowRateLimiter

from config.extras import NO_REDIS
from config.schema import RateLimits
from providers.extras import is_installed

from .limits import DAY_S, Counter, Left, LimitsDown, Window

T = TypeVar("T")

NAMESPACE = "dragoman"
"""What its keys begin with in a Redis that others use too."""


_log = structlog.get_logger("dragoman.limits")


def open_counters(config: RateLimits) -> Counter:
    """Where the configuration says; it connects when it is first asked."""
    url = config.storage.get_secret_value()
    if url == "memory":
        return Counters(MemoryStorage())
    if not is_installed("redis"):
        _log.error("limits:unavailable", reason=NO_REDIS)
        return Missing()
    storage = RedisStorage(
        f"async+{url}",
        implementation="redispy",
        key_prefix=NAMESPACE,
        socket_timeout=config.timeout_s,
        socket_connect_timeout=config.timeout_s,
    )
    return Counters(storage, config.timeout_s)


class Missing:
    """A Redis that was asked for and cannot be had."""

    async def count(self, key: str, window: Window, amount: int) -> bool:
        raise LimitsDown("the extra is not installed")

    async def left(self, key: str, window: Window) -> Left:
        raise LimitsDown("the extra is not installed")

    async def aclose(self) -> None:
        """Nothing is open."""


class Counters:
    """See `key_limits.Counter`."""

    def __init__(self, storage: Storage, timeout_s: float | None = None) -> None:
        """`timeout_s`: longest wait, None: it never waits for anything."""
        self._storage, self._timeout_s = storage, timeout_s
        self._limiter = FixedWindowRateLimiter(storage)

    async def count(self, key: str, window: Window, amount: int) -> bool:
        return await self._ask(self._limiter.hit(item_of(window), key, window.of, cost=amount))

    async def left(self, key: str, window: Window) -> Left:
        stats = await self._ask(self._limiter.get_window_stats(item_of(window), key, window.of))
        # A window that nothing was counted in has not begun.
        reset_s = stats.reset_time - time.time()
        fresh = stats.remaining >= window.most
        return Left(
            window, stats.remaining, 0.0 if fresh else max(0.001, min(reset_s, float(window.seconds)))
        )

    async def aclose(self) -> None:
        bridge = getattr(self._storage, "bridge", None)
        if bridge is not None:
            await bridge.storage.aclose()

    async def _ask(self, asked: Awaitable[T]) -> T:
        if self._timeout_s is None:
            return await asked
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asked
        except Exception as error:  # of the driver, the network or the server: it does not count
            # Their words name the address, and it may hold a password.
            raise LimitsDown(type(error).__name__) from None


def item_of(window: Window) -> RateLimitItem:
    """The library's word for it."""
    per = RateLimitItemPerDay if window.seconds == DAY_S else RateLimitItemPerMinute
    return per(window.most)
