"""Connections from a socket that several processes listen on, taken one at a time.

An event loop takes all that wait at once: of a client that opens sixteen, the worker that wakes first would
have every one for as long as they are kept, and the others nothing to do: two served as much as one. To take
one at a time is not enough, because the other may need longer to wake than all of them take; so whoever has
more than another leaves the next one to it for a moment.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from mmap import mmap

AGAIN_S = 0.1
"""Until it is tried again where the system has no descriptor left."""


YIELD_S = 0.002
"""For how long a connection is left to a process that has fewer."""
MOST_IN_VAIN = 8
"""Times in a row that nobody takes it: then the others are busy, or stopped,"""
ALONE_S = 0.25
"""and nothing is left to them for so long."""
_LEFT = 2**62
"""The count of a process that takes none: it is compared with nobody."""
_EVEN = 8
"""Of so many connections one more or less makes no difference."""


class Shares:
    """How many connections each of several processes has; the parent makes it before it forks."""

    def __init__(self, processes: int) -> None:
        self._counts = memoryview(mmap(-1, 8 * processes)).cast("q")

    def of(self, place: int) -> Share:
        return Share(self._counts, place)


class Share:
    """What one of them has."""

    def __init__(self, counts: memoryview, place: int) -> None:
        """It takes none until a count is noted."""
        self._counts, self._place = counts, place
        self.leave()

    def leave(self) -> None:
        """It takes none any more."""
        self.note(_LEFT)

    def note(self, count: int) -> None:
        self._counts[self._place] = count

    def add(self) -> None:
        """One more, until the count is noted."""
        self._counts[self._place] += 1

    @property
    def is_larger(self) -> bool:
        """Whether another has fewer, by more than makes no difference."""
        least = min(self._counts)
        return bool(self._counts[self._place] > least + least // _EVEN)


class Turns:
    """What uvicorn asks of a server of its event loop."""

    def __init__(
        self, listening: socket.socket, protocol: Callable[[], asyncio.Protocol], share: Share
    ) -> None:
        """Takes connections from now on; each is served by a `protocol` of its own."""
        self._listening, self._protocol, self._share = listening, protocol, share
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[None]] = set()
        self._in_vain = 0
        self._alone_until = 0.0
        self._pause: asyncio.TimerHandle | None = None
        listening.setblocking(False)
        share.note(0)
        self._listen()

    def _listen(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening.fileno(), self._take)

    def _take(self) -> None:
        if self._share.is_larger and self._loop.time() >= self._alone_until:
            self._loop.remove_reader(self._listening.fileno())
            self._pause = self._loop.call_later(YIELD_S, self._take_what_is_left)
        else:
            self._accept()

    def _take_what_is_left(self) -> None:
        self._listen()
        self._in_vain = self._in_vain + 1 if self._accept() else 0
        if self._in_vain >= MOST_IN_VAIN:
            self._in_vain, self._alone_until = 0, self._loop.time() + ALONE_S

    def _accept(self) -> bool:
        """Whether there was one."""
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False  # another worker has it, or nobody does any more
        except OSError:
            self._loop.remove_reader(self._listening.fileno())
            self._pause = self._loop.call_later(AGAIN_S, self._listen)
            return False
        self._share.add()
        task = self._loop.create_task(self._begin(connection))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)
        return True

    async def _begin(self, connection: socket.socket) -> None:
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError:  # it has gone already
            connection.close()

    def close(self) -> None:
        self._share.leave()
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listening.fileno())

    async def wait_closed(self) -> None:
        """Nothing of it is left once it is closed."""
