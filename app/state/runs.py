"""What any process may do to a background run: see how it stands, and end it, once for all.

A run is ended by writing its last event and its response together. That is refused when it has ended already
or has told more in the meantime, so that two who end it at a time cannot both believe that they did.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import orjson

from translators.errors import ProxyError, bad_request, responses_error
from translators.ir import Json
from translators.responses.frames import frame

from ..store import Record
from ..store.runs import ANYONES, Batch, Run, RunStore, Step
from . import chaining
from .run_log import ACTIVE, ending, is_active, last_event, note_item, outputs

if TYPE_CHECKING:
    from .state import State

LEASE_S = 15
"""A worker that has not renewed its lease for that long is taken for dead."""
_TRIES = 50
"""Of ending a run that tells something new each time."""
_ENDER = "nobody"
"""The worker of a run that was ended by another process than its own."""
_FINISHED = b'"type":"response.output_item.done"'


def lease() -> int:
    return int(time.time()) + LEASE_S


def packed(batch: Batch) -> Batch:
    """Events repeat each other's words: compressed they take a tenth."""
    return replace(batch, data=zlib.compress(batch.data, 1))


def frames_of(batch: Batch) -> list[bytes]:
    """The events of a batch that was packed, without the blank lines behind them."""
    return zlib.decompress(batch.data).split(b"\n\n")[:-1]


async def current(state: State, record: Record) -> Record:
    """The response as it is now: a run whose worker has died has failed; raises `ProxyError`."""
    if not is_active(record.response):
        return record
    run, _ = await state.runs(lambda runs: runs.read(record.owner, record.id, 1 << 60))
    now = int(time.time())
    if run is not None and (run.ended or run.lease >= now or (run.owner, run.id) in state.at_work):
        return await state.record(record.owner, record.id) if run.ended else record
    ended = await end_run(state, record, "failed", _interrupted(), now)
    return ended or await state.record(record.owner, record.id)


async def cancelled(state: State, record: Record) -> Record:
    """The response, cancelled; raises `ProxyError`: 400 where there is nothing to be cancelled."""
    for _ in range(_TRIES):
        record = await current(state, record)
        response = orjson.loads(record.response)
        status = response.get("status")
        if response.get("background") is not True:
            raise bad_request("Cannot cancel a synchronous response.", "response_id")
        if status == "cancelled":
            return record
        if status not in ACTIVE:
            raise bad_request(f"Cannot cancel a response that has ended: it is {status}.", "response_id")
        ended = await end_run(state, record, "cancelled", None, ANYONES)
        if ended is not None:
            return ended
        record = await state.record(record.owner, record.id)
    raise ProxyError("unavailable", "the response could not be cancelled now; try again", retry_after=1)


async def sweep(state: State) -> None:
    """End the runs of workers that have died; raises `ProxyError`."""
    now = int(time.time())
    for key in await state.runs(lambda runs: runs.overdue(now)):
        if key not in state.at_work:
            await abandon(state, *key, now)


async def abandon(state: State, owner: str, id: str, free_before: int = ANYONES) -> None:
    """End a run on which nobody works; raises `ProxyError`."""
    try:
        record = await state.record(owner, id)
    except ProxyError as error:
        if error.http_status != 404:
            raise
        return
    await end_run(state, record, "failed", _interrupted(), free_before)


async def end_run(
    state: State, record: Record, status: str, error: ProxyError | None, free_before: int
) -> Record | None:
    """The response as it ended, or None when somebody was faster; what it had told of its output stays."""
    last, items = await _told(state, record)
    if last is None:
        return None
    told = None if error is None else responses_error(error)
    before = orjson.loads(record.response)
    response = {**before, "output": outputs(items), **ending(status, told)}
    kind, fields = last_event(response)
    batch = Batch(last + 1, last + 1, frame(kind, last + 1, fields))
    ended = replace(record, response=orjson.dumps(response), items=chaining.names(response["output"]))
    step = Step(record.owner, record.id, _ENDER, 0, packed(batch), ended, True, free_before)
    if not await state.runs(lambda runs: runs.step(step)):
        return None
    state.say_status(record.id, status, was=before.get("status"), error=told)
    return ended


async def _told(state: State, record: Record) -> tuple[int | None, dict[int, Json]]:
    """The number of the last event, None: it has ended or is gone; and the items that are finished."""
    items: dict[int, Json] = {}
    after = -1
    while True:
        run, batches = await state.runs(partial(_read, record, after))
        if run is None or run.ended:
            return None, items
        for each in batches:
            _note_items(each, items)
            after = each.last
        if not batches:
            return run.last, items


def _read(record: Record, after: int, runs: RunStore) -> Awaitable[tuple[Run | None, Sequence[Batch]]]:
    return runs.read(record.owner, record.id, after)


def _note_items(batch: Batch, items: dict[int, Json]) -> None:
    for each in frames_of(batch):
        if _FINISHED in each:
            event = orjson.loads(each.partition(b"\ndata: ")[2])
            note_item(str(event["type"]), event, items)


def _interrupted() -> ProxyError:
    message = "The gateway was stopped while it worked on this response. Send the request again."
    return ProxyError("internal", message, code="server_error")
