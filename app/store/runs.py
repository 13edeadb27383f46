"""Background runs in a store: who answers them, until when they are sure to live, and what they have told.

A run is a response that is being made while nobody need be listening. The process that makes it is its
*worker*: it appends the events that the run tells, in batches, and renews a lease. What is in the log is what
anyone may be told, so that every process can follow a run, and each that finds the lease expired may end it.
Whoever ends a run does so once: `step` writes nothing to one that has ended, or is another's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from .base import Record

MOST_BATCHES = 64
"""Of a log that are read at a time."""
ANYONES = 1 << 60
"""`Step.free_before` of who takes a run from whoever has it."""

Key = tuple[str, str]
"""Owner and id."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Some events of a run, whose numbers follow each other."""

    first: int
    last: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Run:
    owner: str
    id: str
    worker: str
    lease: int
    """Seconds since the epoch; the worker is taken for dead when it has not renewed it by then."""
    ended: bool
    last: int
    """Number of the last event in the log."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a run has come to: all of it is written, or nothing."""

    owner: str
    id: str
    worker: str
    """Who writes it, and has the run from then on."""
    lease: int
    batch: Batch
    """It has to follow the last one in the log."""
    record: Record | None = None
    """The response as it is now, where that is something else."""
    ended: bool = False
    free_before: int = 0
    """Of another's run: it is taken if its lease expired before that."""


class RunStore(Protocol):
    """Part of a `ResponseStore`; every method raises `StoreDown` when the store cannot be used."""

    async def begin(self, record: Record, worker: str, lease: int, batch: Batch) -> None:
        """A new run with its first events, durable on return."""
        ...

    async def step(self, step: Step) -> bool:
        """Whether it was written, then durable: not for a run that has ended, is gone or another worker's."""
        ...

    async def read(self, owner: str, id: str, after: int) -> tuple[Run | None, Sequence[Batch]]:
        """The run and the next batches with an event later than `after`, at most `MOST_BATCHES`."""
        ...

    async def of(self, worker: str) -> Collection[Key]:
        """The runs of a worker that have not ended."""
        ...

    async def renew(self, worker: str, lease: int) -> None:
        """Another lease for all of them."""
        ...

    async def overdue(self, now: int) -> Collection[Key]:
        """Some runs whose lease has expired."""
        ...
