"""Background runs whose events are encrypted on their way into another store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from .base import Record
from .runs import Batch, Key, Run, RunStore, Step

Cipher = Callable[[bytes, str], bytes]
"""What is to be sealed or opened, and what it is bound to."""


class SealedRuns:
    def __init__(
        self, runs: RunStore, seal_record: Callable[[Record], Record], seal: Cipher, open: Cipher
    ) -> None:
        self._runs, self._seal_record, self._seal, self._open = runs, seal_record, seal, open

    async def begin(self, record: Record, worker: str, lease: int, batch: Batch) -> None:
        sealed = self._sealed(record.owner, record.id, batch)
        await self._runs.begin(self._seal_record(record), worker, lease, sealed)

    async def step(self, step: Step) -> bool:
        return await self._runs.step(self.sealed_step(step))

    def sealed_step(self, step: Step) -> Step:
        record = None if step.record is None else self._seal_record(step.record)
        return replace(step, record=record, batch=self._sealed(step.owner, step.id, step.batch))

    async def read(self, owner: str, id: str, after: int) -> tuple[Run | None, Sequence[Batch]]:
        run, batches = await self._runs.read(owner, id, after)
        opened = [replace(each, data=self._open(each.data, _bound(owner, id, each))) for each in batches]
        return run, opened

    async def of(self, worker: str) -> Collection[Key]:
        return await self._runs.of(worker)

    async def renew(self, worker: str, lease: int) -> None:
        await self._runs.renew(worker, lease)

    async def overdue(self, now: int) -> Collection[Key]:
        return await self._runs.overdue(now)

    def _sealed(self, owner: str, id: str, batch: Batch) -> Batch:
        return replace(batch, data=self._seal(batch.data, _bound(owner, id, batch)))


def _bound(owner: str, id: str, batch: Batch) -> str:
    return f"{owner}\0{id}\0{batch.first}"
