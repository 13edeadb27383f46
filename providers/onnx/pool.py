"""The models of one provider that are in memory: loaded when asked, ended when idle, a few at a time.

One request at a time is before each model, because its engine holds one conversation; the others wait in
the order they came. A load is one, however many wait for it, and goes on when they leave. Where there is
no room for another model the one that was used longest ago makes way; when all are answering, the next
that ends its answer does, even if more wait for it: they come after those who waited for room.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from translators.errors import ProxyError

from .events import Feed, State, Status

if TYPE_CHECKING:
    from .process import Tell, Worker

RETRY_S = 2.0
"""Retry-After of a full queue where no answer has been timed yet."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is held; `idle_unload_s` 0: a model stays until another needs its place."""

    max_loaded: int = 2
    idle_unload_s: float = 300.0
    max_queue: int = 8
    """Requests that wait for one model; more get 503 with Retry-After."""


@dataclass(slots=True, eq=False)
class _Slot:
    """One model's place."""

    name: str
    status: Status = field(default_factory=Status)
    worker: Worker | None = None
    loading: asyncio.Task[Worker] | None = None
    taken: bool = False
    """Whether someone has the turn."""
    in_use: bool = False
    """Whether its process is about to answer or does."""
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    used_at: float = 0.0
    idle: asyncio.TimerHandle | None = None
    took_s: float = RETRY_S
    """Seconds of the last answer."""

    @property
    def occupied(self) -> bool:
        return self.worker is not None or self.loading is not None


class Pool:
    """`start(name, tell)` makes a model's process, and tells how far its load is."""

    def __init__(self, start: Callable[[str, Tell], Awaitable[Worker]], bounds: Bounds, feed: Feed) -> None:
        self._start, self._bounds, self._feed = start, bounds, feed
        self._slots: dict[str, _Slot] = {}
        self._room = asyncio.Lock()
        self._freed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def status(self, name: str) -> Status:
        slot = self._slots.get(name)
        return Status() if slot is None else replace(slot.status, waiting=len(slot.waiting))

    @contextlib.asynccontextmanager
    async def lease(self, name: str) -> AsyncGenerator[Worker, None]:
        """The model's process, for one request, when it is this one's turn.

        Raises `ProxyError`: overloaded (too many wait), unavailable (it cannot be loaded).
        """
        slot = self._slots.setdefault(name, _Slot(name))
        await self._turn(slot)
        clock = asyncio.get_running_loop().time
        try:
            worker = await self._ready(slot)
            began = clock()
            self._tell(slot, "generating")
            try:
                yield worker
            finally:
                slot.took_s = clock() - began
        finally:
            self._done(slot)

    async def aclose(self) -> None:
        """End every process; who waits is told."""
        self._closed = True
        loads = [slot.loading for slot in self._slots.values() if slot.loading is not None]
        for load in loads:
            load.cancel()
        await asyncio.gather(*loads, return_exceptions=True)
        await asyncio.gather(*(self._unload(slot, None) for slot in self._slots.values()))
        if self._tasks:
            await asyncio.wait(self._tasks)

    # --- turns -------------------------------------------------------------------------

    async def _turn(self, slot: _Slot) -> None:
        if not slot.taken:
            slot.taken = True
            return
        if len(slot.waiting) >= self._bounds.max_queue:
            wait_s = max(1.0, round(slot.took_s * (len(slot.waiting) + 1)))
            message = f"{len(slot.waiting)} requests wait for {slot.name} already; try again later"
            raise ProxyError("overloaded", message, retry_after=wait_s)
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        slot.waiting.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled():
                self._pass_on(slot)  # the turn came in the same moment
            else:
                slot.waiting.remove(mine)
            raise

    def _done(self, slot: _Slot) -> None:
        slot.in_use = False
        slot.used_at = asyncio.get_running_loop().time()
        self._freed.set()  # who waits for room wakes up first, and may end this process
        self._pass_on(slot)
        if slot.worker is not None and not slot.waiting and not slot.taken:
            self._tell(slot, "ready")
            self._arm(slot)

    def _pass_on(self, slot: _Slot) -> None:
        slot.taken = bool(slot.waiting)
        if slot.waiting:
            slot.waiting.popleft().set_result(None)

    # --- processes ---------------------------------------------------------------------

    async def _ready(self, slot: _Slot) -> Worker:
        if slot.idle is not None:
            slot.idle.cancel()
            slot.idle = None
        slot.in_use = True
        if slot.worker is not None and slot.worker.alive:
            return slot.worker
        slot.worker = None
        if slot.loading is None:
            slot.in_use = False
            await self._make_room(slot)
        slot.in_use = True
        assert slot.loading is not None  # noqa: S101 - made with the room
        return await asyncio.shield(slot.loading)

    async def _make_room(self, slot: _Slot) -> None:
        """Begin to load, as soon as that is one of `max_loaded` at most."""
        async with self._room:
            while sum(each.occupied for each in self._slots.values()) >= self._bounds.max_loaded:
                free = [each for each in self._slots.values() if each.worker is not None and not each.in_use]
                if free:
                    oldest = min(free, key=lambda each: each.used_at)
                    await self._unload(oldest, f"{slot.name} needs its place")
                else:
                    self._freed.clear()
                    await self._freed.wait()
            if self._closed:
                raise ProxyError("unavailable", "the gateway is shutting down; send the request again")
            slot.loading = asyncio.create_task(self._load(slot))
            slot.loading.add_done_callback(_heard)

    async def _load(self, slot: _Slot) -> Worker:
        def tell(state: str, progress: float) -> None:
            self._tell(slot, "compiling" if state == "compiling" else "loading", progress)

        self._tell(slot, "loading", 0.0)
        try:
            worker = await self._start(slot.name, tell)
        except BaseException as error:
            self._tell(slot, "unloaded", reason=str(error) or type(error).__name__)
            raise
        else:
            slot.worker = worker
            worker.on_end(lambda: self._ended(slot, worker))
            self._tell(slot, "ready")
            if not slot.taken:  # all who waited have left
                slot.used_at = asyncio.get_running_loop().time()
                self._arm(slot)
            return worker
        finally:
            slot.loading = None
            self._freed.set()

    def _ended(self, slot: _Slot, worker: Worker) -> None:
        """A process is gone: unless we ended it, it died or hung."""
        if slot.worker is worker:
            slot.worker = None
            self._tell(slot, "unloaded", reason="its process ended")
            self._freed.set()

    def _arm(self, slot: _Slot) -> None:
        idle_s = self._bounds.idle_unload_s
        if idle_s:
            loop = asyncio.get_running_loop()
            slot.idle = loop.call_later(idle_s, self._expire, slot)

    def _expire(self, slot: _Slot) -> None:
        slot.idle = None
        self._spawn(self._expired(slot))

    async def _expired(self, slot: _Slot) -> None:
        if not slot.taken:
            await self._unload(slot, f"not used for {self._bounds.idle_unload_s:g} s")

    async def _unload(self, slot: _Slot, reason: str | None) -> None:
        """End a model's process; its memory is the system's again when this returns."""
        worker, slot.worker = slot.worker, None
        if slot.idle is not None:
            slot.idle.cancel()
            slot.idle = None
        if worker is not None:
            await worker.stop()
            if not slot.occupied:  # else it has begun to load again
                self._tell(slot, "unloaded", reason=reason)
            self._freed.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _tell(
        self, slot: _Slot, state: State, progress: float | None = None, reason: str | None = None
    ) -> None:
        told = Status(state, progress, reason)
        if told == slot.status:
            return
        slot.status = told
        self._feed.tell(slot.name, replace(slot.status, waiting=len(slot.waiting)))


def _heard(load: asyncio.Task[Worker]) -> None:
    """A load that failed when nobody waited any more has told so in its status."""
    if not load.cancelled():
        load.exception()
