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
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from .base import StoreDown
from .schema import NEWEST, newer, steps_after
from .sqlite_batch import Job, Together, do_all

MOST_WAITING = 10_000
"""Writes that wait at a time; a disk that falls behind that far is as good as none."""
MOST_AT_ONCE = 500
"""Writes of one transaction."""
_WAL_PAUSE_S = 0.02
"""Going over to WAL does not wait for other connections that open or close the file; it is tried again."""


def open_file(path: Path, timeout_s: float) -> sqlite3.Connection:
    """A connection to the file, made and brought up to date; raises `sqlite3.Error`, `OSError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # what people said is for nobody else to read
    db = sqlite3.connect(path, timeout=timeout_s, isolation_level=None, check_same_thread=False)
    try:
        _set_up(db, timeout_s)
        _migrate(db)
    except BaseException:
        db.close()
        raise
    return db


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

    def __init__(self, path: Path, timeout_s: float, writes: bool, idle: Job | None = None) -> None:
        """`idle` is offered the connection after each transaction; its failures are nobody's."""
        self._path, self._timeout_s, self._writes, self._idle = path, timeout_s, writes, idle
        self._jobs: SimpleQueue[tuple[Job | Together, asyncio.Future[Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._db: sqlite3.Connection | None = None

    async def do(self, job: Job | Together) -> Any:
        """The job's result, once it is committed; raises `StoreDown`."""
        if self._jobs.qsize() >= MOST_WAITING:
            raise StoreDown(f"{MOST_WAITING} writes wait for the disk")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if self._thread is None:
            name = "store-writer" if self._writes else "store-reader"
            self._thread = threading.Thread(target=self._run, args=(loop,), name=name, daemon=True)
            self._thread.start()
        self._jobs.put((job, future))
        try:
            async with asyncio.timeout(self._timeout_s + 1):  # a lock is waited for that long itself
                return await future
        except TimeoutError:
            raise StoreDown("the disk is too slow") from None

    async def aclose(self) -> None:
        """End the thread, after what was asked before."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(thread.join, self._timeout_s + 1)

    # --- in the thread ------------------------------------------------------------------

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        ending = False
        while not ending:
            batch, ending = self._next()
            if batch:
                outcome = self._perform([job for job, _ in batch])
                with suppress(RuntimeError):  # the loop has ended, nobody waits any more
                    loop.call_soon_threadsafe(_tell, [future for _, future in batch], outcome)
                self._rest()
        self._drop()

    def _next(self) -> tuple[list[tuple[Job | Together, asyncio.Future[Any]]], bool]:
        """What waits, at least one, and whether that was the last."""
        batch = []
        entry = self._jobs.get()
        with suppress(Empty):
            while entry is not None:
                batch.append(entry)
                if not self._writes or len(batch) == MOST_AT_ONCE:
                    return batch, False
                entry = self._jobs.get_nowait()
            return batch, True
        return batch, False

    def _perform(self, jobs: list[Job | Together]) -> list[Any] | StoreDown:
        try:
            if self._db is None:
                self._db = open_file(self._path, self._timeout_s)
            self._db.execute("BEGIN IMMEDIATE" if self._writes else "BEGIN")
            results = do_all(self._db, jobs)
            self._db.execute("COMMIT")
        except Exception as error:  # whatever it was: nothing is written, and those who wait are told
            self._drop()
            return StoreDown(f"{self._path}: {error}")
        return results

    def _rest(self) -> None:
        if self._idle is not None and self._db is not None:
            try:
                self._idle(self._db)
            except Exception:  # the thread outlives whatever it was, and begins anew with the next job
                self._drop()

    def _drop(self) -> None:
        """Closing rolls back; the next job opens the file anew, which may have been replaced."""
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.close()


def _tell(futures: list[asyncio.Future[Any]], outcome: list[Any] | StoreDown) -> None:
    for place, future in enumerate(futures):
        if future.done():  # who waited has left
            continue
        if isinstance(outcome, StoreDown):
            future.set_exception(StoreDown(str(outcome)))
        else:
            future.set_result(outcome[place])
