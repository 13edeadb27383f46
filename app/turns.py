"""Connections from a socket that several processes listen on, taken one at a time.

An event loop takes all that wait at once: of a client that opens sixteen, the worker that wakes first would
have every one for as long as they are kept, and the others nothing to do: two served as much as one.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

AGAIN_S = 0.1
"""Until it is tried again where the system has no descriptor left."""


class Turns:
    """What uvicorn asks of a server of its event loop."""

    def __init__(self, listening: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Takes connections from now on; each is served by a `protocol` of its own."""
        self._listening, self._protocol = listening, protocol
        self._loop = asyncio.get_running_loop()
        self._beginning: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        listening.setblocking(False)
        self._listen()

    def _listen(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening.fileno(), self._take)

    def _take(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another worker has it, or nobody does any more
        except OSError:
            self._loop.remove_reader(self._listening.fileno())
            self._pause = self._loop.call_later(AGAIN_S, self._listen)
            return
        task = self._loop.create_task(self._begin(connection))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _begin(self, connection: socket.socket) -> None:
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError:  # it has gone already
            connection.close()

    def close(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listening.fileno())

    async def wait_closed(self) -> None:
        """Nothing of it is left once it is closed."""
