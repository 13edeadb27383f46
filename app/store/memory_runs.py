"""Background runs in the memory of one process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from .base import Record
from .runs import MOST_BATCHES, Batch, Key, Run, Step


@dataclass(slots=True)
class _Log:
    run: Run
    batches: list[Batch] = field(default_factory=list)


class MemoryRuns:
    def __init__(self, put: Callable[[Record], Awaitable[None]], grown: Callable[[Key, int], bool]) -> None:
        """`put` keeps a record; `grown` counts bytes to it, and says whether it is still there."""
        self._put, self._grown = put, grown
        self._logs: dict[Key, _Log] = {}

    async def begin(self, record: Record, worker: str, lease: int, batch: Batch) -> None:
        key = record.owner, record.id
        self._logs[key] = _Log(Run(*key, worker, lease, False, batch.last), [batch])
        await self._put(record)  # which counts the log too

    async def step(self, step: Step) -> bool:
        key = step.owner, step.id
        log = self._logs.get(key)
        if log is None or log.run.ended or log.run.last != step.batch.first - 1:
            return False
        if log.run.worker != step.worker and log.run.lease >= step.free_before:
            return False
        if step.record is not None:
            await self._put(step.record)
        log.run = Run(*key, step.worker, step.lease, step.ended, step.batch.last)
        log.batches.append(step.batch)
        return self._grown(key, len(step.batch.data))

    async def read(self, owner: str, id: str, after: int) -> tuple[Run | None, Sequence[Batch]]:
        log = self._logs.get((owner, id))
        if log is None:
            return None, []
        later = [batch for batch in log.batches if batch.last > after]
        return log.run, later[:MOST_BATCHES]

    async def of(self, worker: str) -> Collection[Key]:
        return [key for key, log in self._logs.items() if log.run.worker == worker and not log.run.ended]

    async def renew(self, worker: str, lease: int) -> None:
        for key in await self.of(worker):
            log = self._logs[key]
            log.run = replace(log.run, lease=lease)

    async def overdue(self, now: int) -> Collection[Key]:
        return [key for key, log in self._logs.items() if log.run.lease < now and not log.run.ended]

    def size(self, key: Key) -> int:
        """Bytes of a log."""
        log = self._logs.get(key)
        return 0 if log is None else sum(len(batch.data) for batch in log.batches)

    def forget(self, key: Key) -> None:
        self._logs.pop(key, None)
