"""Many writes in few calls into SQLite.

Each call gives up the lock of the interpreter, and a writer beside a busy event loop waits for it again for
as long as a request takes. So writes of one kind that wait together are one job, and rows go in by the dozen.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Job = Callable[[sqlite3.Connection], Any]
SIZES = (32, 8, 1)
"""Rows of one statement: few different ones, because SQLite reads each text once."""


@dataclass(frozen=True, slots=True)
class Together:
    """A write that is done at once with those like it that stand beside it; it has no result."""

    function: Callable[[sqlite3.Connection, list[Any]], None]
    item: Any


def do_all(db: sqlite3.Connection, jobs: Sequence[Job | Together]) -> list[Any]:
    """The jobs' results, in order."""
    results: list[Any] = []
    while len(results) < len(jobs):
        job = jobs[len(results)]
        if isinstance(job, Together):
            items = _alike(jobs, len(results), job)
            job.function(db, items)
            results += [None] * len(items)
        else:
            results.append(job(db))
    return results


def _alike(jobs: Sequence[Job | Together], start: int, first: Together) -> list[Any]:
    items = []
    for job in jobs[start:]:
        if not isinstance(job, Together) or job.function != first.function:
            break
        items.append(job.item)
    return items


class Insert:
    """An `INSERT` of any number of rows."""

    def __init__(self, into: str, columns: int, then: str = "") -> None:
        """`into` up to `VALUES`, and what follows the rows."""
        row = f"({', '.join('?' * columns)})"
        self._statements = [(size, f"{into} VALUES {', '.join([row] * size)} {then}") for size in SIZES]

    def run(self, db: sqlite3.Connection, rows: Sequence[Sequence[Any]]) -> None:
        place = 0
        for size, statement in self._statements:
            while len(rows) - place >= size:
                values = [value for row in rows[place : place + size] for value in row]
                db.execute(statement, values)
                place += size
