"""Several processes that serve one listening socket.

The parent binds the socket, forks, and replaces a worker that dies. It forks before anything
has been started, so that nothing runs in the copy; what a worker needs it makes itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

CANNOT_START = 1
"""Exit status."""

Ready = Callable[[], object]
Work = Callable[[Ready, int, int], None]
"""A worker's whole work; it is handed what says that it is ready, the parent's pid, and its own place among
the workers, which is that of a former one when it is there in its stead."""


class Workers:
    """The parent of several processes that serve one socket."""

    def __init__(
        self,
        count: int,
        work: Work,
        announce: Ready,
        stopping: Callable[[], None],
        died: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`stopping` is called when the stop begins: no connection may then wait for the parent's end.

        `died` is told the pid of a worker that has ended.
        """
        self._count, self._work, self._announce, self._let_go = count, work, announce, stopping
        self._died = died
        self._running: dict[int, int] = {}
        """By pid, the places."""
        self._stopping = False

    def run(self) -> int:
        """Start them, replace those that die, until a stop; the exit status."""
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, self._stop)
        signal.signal(signal.SIGHUP, self._pass_on)
        pipes = [self._fork(place) for place in range(self._count)]
        answers = [_is_ready(pipe) for pipe in pipes]
        started = all(answers)
        status = 0 if started or self._stopping else CANNOT_START
        if not started:
            self._stop()
        else:
            self._announce()
        while self._running:
            pid, _ = os.wait()
            place = self._running.pop(pid, 0)
            self._died(pid)
            if not self._stopping and not self._replace(pid, place):
                status = CANNOT_START
                self._stop()
        return status

    def _replace(self, pid: int, place: int) -> bool:
        """False when the new one does not get ready either: then something is wrong for good."""
        print(f"dragoman worker {pid} died; starting another", file=sys.stderr, flush=True)  # noqa: T201
        return _is_ready(self._fork(place))

    def _fork(self, place: int) -> int:
        """Start a worker; the end of a pipe on which it says that it is ready."""
        reading, writing = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until it serves and takes one as meant
            os.close(reading)
            _live(lambda: self._work(lambda: os.write(writing, b"1"), parent, place))
        self._running[pid] = place
        os.close(writing)
        if self._stopping:  # the signal came while it was being born
            os.kill(pid, signal.SIGTERM)
        return reading

    def _stop(self, number: int = 0, _frame: FrameType | None = None) -> None:
        """Who interrupts a second time will not wait: a worker that is stopping takes an interrupt so."""
        hurried = self._stopping and number == signal.SIGINT
        self._stopping = True
        self._let_go()
        self._pass_on(signal.SIGINT if hurried else signal.SIGTERM)

    def _pass_on(self, number: int, _frame: FrameType | None = None) -> None:
        """To every worker; on SIGHUP each reads its configuration itself."""
        for pid in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _live(work: Callable[[], None]) -> NoReturn:
    """The child's whole life: it must never return into the parent's code."""
    status = CANNOT_START
    try:
        work()
        status = 0
    except SystemExit:
        pass
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _is_ready(pipe: int) -> bool:
    """Wait for a worker's word; False when it ended without one."""
    with os.fdopen(pipe, "rb") as reading:
        return reading.read(1) == b"1"
