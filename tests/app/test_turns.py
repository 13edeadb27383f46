"""Several processes on one listening socket: connections that come at once are shared among them."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import pytest

from app.turns import Turns


class Listening:
    """A listening socket that accepts what it is told to."""

    def __init__(self, *outcomes: Any) -> None:
        self.real, self._outcomes = socket.create_server(("127.0.0.1", 0)), list(outcomes)
        self.accepted = 0

    def setblocking(self, blocking: bool) -> None:
        self.real.setblocking(blocking)

    def fileno(self) -> int:
        return self.real.fileno()

    def accept(self) -> tuple[socket.socket, Any]:
        self.accepted += 1
        if self._outcomes:
            raise self._outcomes.pop(0)
        return self.real.accept()


class Greeting(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        transport.write(b"hello")
        transport.close()


async def greeted(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    said = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return said


@pytest.mark.parametrize(
    "outcomes",
    [(), (BlockingIOError(),), (ConnectionAbortedError(),), (OSError(errno.EMFILE, "too many"),)],
    ids=["free", "taken", "gone", "no descriptor"],
)
async def test_a_connection_is_served_whatever_came_before(outcomes: Any) -> None:
    listening = Listening(*outcomes)
    turns = Turns(listening, Greeting)
    assert await greeted(listening.real.getsockname()[1]) == b"hello"
    turns.close()
    await turns.wait_closed()
    listening.real.close()


async def test_nothing_is_taken_after_the_end_even_in_a_pause() -> None:
    listening = Listening(OSError(errno.EMFILE, "too many"))
    turns = Turns(listening, Greeting)
    with socket.create_connection(listening.real.getsockname()):
        while not listening.accepted:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)
        turns.close()
        await asyncio.sleep(0.2)
    assert listening.accepted == 1
    listening.real.close()


async def test_one_is_taken_at_a_time() -> None:
    listening = Listening()
    turns = Turns(listening, Greeting)
    address = listening.real.getsockname()
    opened = [socket.create_connection(address) for _ in range(3)]
    await asyncio.sleep(0)  # one look at what is ready
    await asyncio.sleep(0)
    assert listening.accepted < 3
    for each in opened:
        each.close()
    turns.close()
    listening.real.close()
