"""One SQLite file: how it is opened, and the one thread that writes to it.

Writes are gathered: while one commit waits for the disk, those that come in the meantime join the next. With
`synchronous=FULL` a commit is on the disk when it returns, and many requests share the price of it. Several
processes may use one file: each has one writer, and SQLite's lock makes them take turns.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from providers.deadlines import Deadlines

from .base import StoreDown
from .schema import NEWEST, newer, steps_after
from .sqlite_batch import Job, Together, do_all

Idle = Callable[[sqlite3.Connection], float]
"""What is done between transactions; in how many seconds it is to be offered that again at the latest."""

MOST_WAITING = 10_000
"""Writes that wait at a time; a disk that falls behind that far is as good as none."""
MOST_AT_ONCE = 500
"""Writes of one transaction."""
_WAL_PAUSE_S = 0.02
"""Going over to WAL does not wait for other connections that open or close the file; it is tried again."""


def open_file(path: Path, timeout_s: float) -> sqlite3.Connection:
    """A connection to the file, made and brought up to date; raises `sqlite3.Error`, `OSError`."""
    _make(path)
    db = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
    try:
        _set_up(db, timeout_s)
        _migrate(db)
    except BaseException:
        db.close()
        raise
    return db


_making = threading.Lock()


def _make(path: Path) -> None:
    """The file, where there is none: what people said is for nobody else to read.

    One that is there is never opened here. Closing any descriptor of a file drops all locks that the process
    has on it (POSIX), SQLite's too: whoever closes the file elsewhere then takes itself for the last, and
    deletes the log to which others go on writing. So nobody here may open it either until it is made.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _making, suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _set_up(db: sqlite3.Connection, timeout_s: float) -> None:
    if _version(db) == 0:  # of a file that is in use this would wait for its writer
        db.execute("PRAGMA auto_vacuum=INCREMENTAL")
    _to_wal(db, time.monotonic() + timeout_s)
    db.execute("PRAGMA synchronous=FULL")
    db.execute("PRAGMA secure_delete=FAST")


def _to_wal(db: sqlite3.Connection, until: float) -> None:
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() >= until:
                raise
            time.sleep(_WAL_PAUSE_S)
        else:
            return


def _migrate(db: sqlite3.Connection) -> None:
    if _version(db) == NEWEST:
        return
    db.execute("BEGIN IMMEDIATE")
    version = _version(db)  # another process may have been here first
    if version > NEWEST:
        raise sqlite3.DatabaseError(newer(version))
    for statement in steps_after(version, "sqlite"):
        db.execute(statement)
    db.execute(f"PRAGMA user_version={NEWEST}")
    db.execute("COMMIT")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


class Lane:
    """A thread with a connection of its own; jobs run in order, in one transaction as far as they wait.

    `writes` False: for reading, each job by itself, beside the writer (WAL).
    """

    def __init__(self, path: Path, timeout_s: float, writes: bool, idle: Idle | None = None) -> None:
        """`idle` is offered the connection after each transaction; its failures are nobody's."""
        self._path, self._timeout_s, self._writes, self._idle = path, timeout_s, writes, idle
        self._jobs: SimpleQueue[_Entry | None] = SimpleQueue()
        self._deadlines = Deadlines(timeout_s + 1)  # a lock is waited for that long itself
        self._thread: threading.Thread | None = None
        self._db: sqlite3.Connection | None = None
        self._idle_in_s: float | None = None
        self.failures = 0
        """Transactions that came to nothing."""

    async def do(self, job: Job | Together) -> Any:
        """The job's result, once it is committed; raises `StoreDown`."""
        if self._jobs.qsize() >= MOST_WAITING:
            raise StoreDown(f"{MOST_WAITING} writes wait for the disk")
        loop = asyncio.get_running_loop()
        entry = _Entry(job, loop.create_future())
        if self._thread is None:
            name = "store-writer" if self._writes else "store-reader"
            self._thread = threading.Thread(target=self._run, args=(loop,), name=name, daemon=True)
            self._thread.start()
        self._jobs.put(entry)
        self._deadlines.begin(entry, loop)
        try:
            return await entry.future
        finally:
            self._deadlines.end(entry)

    async def aclose(self) -> None:
        """End the thread, after what was asked before."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(thread.join, self._timeout_s + 1)

    # --- in the thread ------------------------------------------------------------------

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._serve(loop):
            pass
        self._drop()

    def _serve(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Do what waits, and say whether that was the last; nothing of it is held any longer."""
        batch, ending = self._next()
        if batch:
            outcome = self._perform(batch)
            with suppress(RuntimeError):  # the loop has ended, nobody waits any more
                loop.call_soon_threadsafe(_tell, batch, outcome)
        if not ending:
            self._rest()
        return ending

    def _next(self) -> tuple[list[_Entry], bool]:
        """What waits, and whether that was the last; nothing when it is time for what is done in between."""
        batch = []
        with suppress(Empty):
            entry = self._jobs.get(timeout=self._idle_in_s)
            while entry is not None:
                batch.append(entry)
                if not self._writes or len(batch) == MOST_AT_ONCE:
                    return batch, False
                entry = self._jobs.get_nowait()
            return batch, True
        return batch, False

    def _perform(self, batch: list[_Entry]) -> list[Any] | StoreDown:
        """The results of `batch`, from which those go whose failure has been told in the meantime."""
        try:
            if self._db is None:
                self._db = open_file(self._path, self._timeout_s)
            self._db.execute("BEGIN IMMEDIATE" if self._writes else "BEGIN")
            batch[:] = [entry for entry in batch if not entry.given_up]  # the lock may have taken long
            results = do_all(self._db, [entry.job for entry in batch])
            self._db.execute("COMMIT")
        except Exception as error:  # whatever it was: nothing is written, and those who wait are told
            self._drop()
            self.failures += 1
            return StoreDown(f"{self._path}: {error}")
        return results

    def _rest(self) -> None:
        self._idle_in_s = None
        if self._idle is not None and self._db is not None:
            try:
                self._idle_in_s = self._idle(self._db)
            except Exception:  # the thread outlives whatever it was, and begins anew with the next job
                self._drop()

    def _drop(self) -> None:
        """Closing rolls back; the next job opens the file anew, which may have been replaced."""
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()


class _Entry:
    """A job, and who waits for its result."""

    __slots__ = ("future", "job")

    def __init__(self, job: Job | Together, future: asyncio.Future[Any]) -> None:
        self.job, self.future = job, future

    @property
    def given_up(self) -> bool:
        """Whether its failure has been told; one whose client left is done all the same."""
        return self.future.done() and not self.future.cancelled()

    def late(self) -> None:
        self.fail("the disk is too slow")

    def fail(self, why: str) -> None:
        if not self.future.done():
            self.future.set_exception(StoreDown(why))


def _tell(entries: list[_Entry], outcome: list[Any] | StoreDown) -> None:
    if isinstance(outcome, StoreDown):
        for entry in entries:
            entry.fail(str(outcome))
        return
    for entry, result in zip(entries, outcome, strict=True):
        if not entry.future.done():  # else who waited has left
            entry.future.set_result(result)
