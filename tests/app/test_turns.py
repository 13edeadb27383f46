"""Several processes on one listening socket: connections that come at once are shared among them."""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
import time
from typing import Any

import pytest

from app.turns import MOST_IN_VAIN, YIELD_S, Share, Shares, Turns


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
    turns = Turns(listening, Greeting, Shares(1).of(0))
    assert await greeted(listening.real.getsockname()[1]) == b"hello"
    turns.close()
    await turns.wait_closed()
    listening.real.close()


async def test_nothing_is_taken_after_the_end_even_in_a_pause() -> None:
    listening = Listening(OSError(errno.EMFILE, "too many"))
    turns = Turns(listening, Greeting, Shares(1).of(0))
    with socket.create_connection(listening.real.getsockname()):
        while not listening.accepted:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)
        turns.close()
        await asyncio.sleep(0.2)
    assert listening.accepted == 1
    listening.real.close()


async def test_one_is_taken_at_a_time() -> None:
    listening = Listening()
    turns = Turns(listening, Greeting, Shares(1).of(0))
    address = listening.real.getsockname()
    opened = [socket.create_connection(address) for _ in range(3)]
    await asyncio.sleep(0)  # one look at what is ready
    await asyncio.sleep(0)
    assert listening.accepted < 3
    for each in opened:
        each.close()
    turns.close()
    listening.real.close()


# --- shares ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "other", "larger"), [(0, 0, False), (1, 0, True), (1, 1, False), (9, 8, False), (10, 8, True)]
)
def test_one_more_of_many_makes_no_difference(own: int, other: int, larger: bool) -> None:
    shares = Shares(2)
    one, two = shares.of(0), shares.of(1)
    one.note(own - 1)
    one.add()
    two.note(other)
    assert one.is_larger is larger


async def test_whoever_has_more_waits_and_then_takes_what_is_left() -> None:
    listening, shares = Listening(), Shares(2)
    share = shares.of(0)
    shares.of(1).note(0)
    turns = Turns(listening, Greeting, share)
    share.note(5)
    began = time.monotonic()
    assert await greeted(listening.real.getsockname()[1]) == b"hello"
    assert time.monotonic() - began >= YIELD_S
    turns.close()
    listening.real.close()


async def test_to_one_that_takes_none_nothing_is_left_for_long() -> None:
    listening, shares = Listening(), Shares(2)
    share = shares.of(0)
    shares.of(1).note(0)
    turns = Turns(listening, Greeting, share)
    share.note(5)
    began = time.monotonic()
    for _ in range(MOST_IN_VAIN):
        assert await greeted(listening.real.getsockname()[1]) == b"hello"
    assert time.monotonic() - began >= MOST_IN_VAIN * YIELD_S
    assert turns._alone_until > time.monotonic()
    turns.close()
    listening.real.close()


async def test_who_has_ended_is_compared_with_nobody() -> None:
    listening, shares = Listening(), Shares(2)
    one, two = shares.of(0), shares.of(1)
    one.note(1)
    assert not one.is_larger, "the other has not begun"
    turns = Turns(listening, Greeting, two)
    assert one.is_larger
    turns.close()
    assert not one.is_larger
    listening.real.close()


class Keeping(asyncio.Protocol):
    """Keeps its connection."""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport


class Process(threading.Thread):
    """An event loop of its own that takes connections; `late_s`: it takes that long to wake."""

    def __init__(self, listening: socket.socket, share: Share, late_s: float) -> None:
        super().__init__(daemon=True)
        self.kept: list[Keeping] = []
        self._listening, self._share, self._late_s = listening.dup(), share, late_s
        self._begun, self._done = threading.Event(), threading.Event()

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        turns = Turns(self._listening, self._one, self._share)
        self._begun.set()
        time.sleep(self._late_s)  # noqa: ASYNC251 - a loop that is busy
        while not self._done.is_set():  # noqa: ASYNC110 - a thread's event
            await asyncio.sleep(0.001)
        turns.close()
        self._listening.close()
        for each in self.kept:
            each.transport.abort()
        await asyncio.sleep(0)

    def _one(self) -> Keeping:
        self.kept.append(Keeping())
        return self.kept[-1]

    def __enter__(self) -> Process:
        self.start()
        assert self._begun.wait(5)
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self.join(5)


def test_connections_that_come_at_once_are_shared_even_with_one_that_wakes_late() -> None:
    shares = Shares(2)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        one = Process(listening, shares.of(0), 0)
        two = Process(listening, shares.of(1), 6 * YIELD_S)
        with one, two:
            opened = [socket.create_connection(listening.getsockname()) for _ in range(16)]
            deadline = time.monotonic() + 5
            while len(one.kept) + len(two.kept) < 16 and time.monotonic() < deadline:
                time.sleep(0.005)
            assert min(len(one.kept), len(two.kept)) >= 6
            for each in opened:
                each.close()
