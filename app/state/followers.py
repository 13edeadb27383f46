"""Who follows a background run: its events from the log, from wherever they left off, until its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from translators.dialect import End, ReplyStream
from translators.errors import ProxyError, bad_request
from translators.ir import Usage
from translators.responses.frames import END, frame

from ..store import Record
from ..store.runs import Batch, Key, Run
from ..stream import Client
from ..telemetry.trace import Headers
from .replay import replayed
from .run_log import is_active
from .runs import current, frames_of
from .state import State, response_not_found

if TYPE_CHECKING:
    from .background import Background

POLL_S = 0.3
"""Between two looks at the log of a run of another process."""
NEWS_S = 1.0
"""Longest wait for news of a run of this process before its log is looked at all the same."""
_KEEP_ALIVE = b": keep-alive\n\n"
_MOST_DIGITS = 15


class Followed:
    """The client's side of it, as a `ReplyStream`: nothing but comments and failures is made up for it."""

    begun, told, ended = True, False, False
    fault: Exception | None = None
    error: ProxyError | None = None
    usage: Usage | None = None
    end: End | None = None
    violations: Mapping[str, int] = {}

    def __init__(self, after: int) -> None:
        """`after`: the number of the last event that the client has."""
        self.last = after

    def start(self) -> bytes:
        return _KEEP_ALIVE

    def keepalive(self) -> bytes:
        return _KEEP_ALIVE

    def feed(self, data: bytes) -> bytes:
        return data

    def close(self) -> bytes:
        return b""

    def fail(self, error: ProxyError) -> bytes:
        """An `error` event under the last number: whoever comes back after it misses nothing."""
        body = error.body()
        fields = {key: body[key] for key in ("code", "message", "param")}
        return frame("error", max(self.last, 0), fields)

    def new(self, batch: Batch) -> bytes:
        """The events of a batch that the client does not have."""
        frames = frames_of(batch)[max(0, self.last + 1 - batch.first) :]
        self.last = batch.last
        return b"".join(each + b"\n\n" for each in frames)


def starting_after(query: Mapping[str, str]) -> int:
    """The number after which a client wants events, -1 for all; raises `ProxyError` (400)."""
    told = query.get("starting_after")
    if told is None:
        return -1
    if not (told.isascii() and told.isdigit() and len(told) <= _MOST_DIGITS):
        raise bad_request("`starting_after` must be the `sequence_number` of an event", "starting_after")
    return int(told)


async def show(background: Background, state: State, record: Record, after: int, client: Client) -> None:
    """The events of a stored response later than `after`; raises `ProxyError`."""
    run, _ = await state.runs(lambda runs: runs.read(record.owner, record.id, 1 << 60))
    if run is not None:
        key = record.owner, record.id
        await follow(background, state, key, after, client, client.trace.headers())
    else:
        await client.write(replayed(record.response, after), more=False)


async def follow(
    background: Background, state: State, key: Key, after: int, client: Client, head: Headers
) -> None:
    """The events of a run later than `after`, as they come, to its end; raises `ProxyError`."""
    shown: ReplyStream = (followed := Followed(after))
    client.expect(shown, head)
    while True:
        news = background.news(key)
        run, batches = await state.runs(lambda runs: runs.read(*key, followed.last))
        if run is None:
            raise response_not_found(key[1])
        for batch in batches:
            await client.write(followed.new(batch))
        if run.ended and followed.last >= run.last:
            await client.write(END, more=False)
            return
        if not batches and not await _is_over(state, run):
            await _wait(client, news)


async def _is_over(state: State, run: Run) -> bool:
    """Whether it was ended now, because the process that worked on it has died."""
    if run.lease >= time.time():
        return False
    return not is_active((await current(state, await state.record(run.owner, run.id))).response)


async def _wait(client: Client, news: asyncio.Event | None) -> None:
    if not client.committed:
        await client.write(b"")  # its client learns at once that it is listened to
    if news is None:
        await asyncio.sleep(POLL_S)
        return
    try:
        async with asyncio.timeout(NEWS_S):
            await news.wait()
    except TimeoutError:
        return
