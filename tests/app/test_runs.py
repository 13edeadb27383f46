"""Ending a background run when others do something to it at the same time."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest

from app.state import runs as module
from app.state.runs import cancelled, current, end_run, lease, packed, sweep
from app.state.state import State
from app.store import MemoryStore, Record
from app.store.runs import ANYONES, Batch, Step
from translators.errors import ProxyError

QUEUED = {"id": "resp_a", "status": "in_progress", "background": True, "output": []}
ITEM = {"id": "msg_1", "type": "message"}


def made(**more: Any) -> Record:
    return Record("o", "resp_a", "c", None, 1, b"[]", orjson.dumps({**QUEUED, **more}))


def batch(number: int, kind: str = "response.x", **fields: Any) -> Batch:
    data = orjson.dumps({"type": kind, **fields})
    return packed(Batch(number, number, b"event: %b\ndata: %b\n\n" % (kind.encode(), data)))


@pytest.fixture
async def state() -> State:
    """With one run, of a worker that is alive."""
    found = State(MemoryStore(1e6, 10**9), 10**9)
    await found.runs(lambda runs: runs.begin(made(), "w", lease(), batch(0)))
    return found


async def tell(state: State, number: int, **more: Any) -> bool:
    step = Step("o", "resp_a", "w", lease(), batch(number), **more)
    return await state.runs(lambda runs: runs.step(step))


async def test_what_was_finished_stays(state: State) -> None:
    for number, index in ((1, 1), (2, 0)):
        event = batch(
            number, "response.output_item.done", output_index=index, item={**ITEM, "id": f"m{index}"}
        )
        step = Step("o", "resp_a", "w", lease(), event)
        assert await state.runs(lambda runs, step=step: runs.step(step))  # type: ignore[misc]
    done = await cancelled(state, made())
    response = orjson.loads(done.response)
    assert (response["status"], [each["id"] for each in response["output"]]) == ("cancelled", ["m0", "m1"])
    assert done.items == ("m0", "m1")
    assert (await state.record("o", "resp_a")).response == done.response


async def test_a_run_that_goes_on_meanwhile_is_tried_again(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    async def interrupted(*args: Any) -> Record | None:
        tries.append(1)
        if len(tries) < 3:
            return None
        return await end_run(*args)

    monkeypatch.setattr(module, "end_run", interrupted)
    assert b'"cancelled"' in (await cancelled(state, made())).response
    assert len(tries) == 3


async def test_one_that_goes_on_all_the_time(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any) -> None:
        return None

    monkeypatch.setattr(module, "end_run", never)
    with pytest.raises(ProxyError) as caught:
        await cancelled(state, made())
    assert (caught.value.http_status, caught.value.retry_after) == (503, 1)


async def test_one_that_ended_by_itself_meanwhile(state: State) -> None:
    """The record was read before the end."""
    whole = made(status="completed")
    assert await tell(state, 1, record=whole, ended=True)
    assert (await current(state, made())).response == whole.response
    with pytest.raises(ProxyError, match="it is completed"):
        await cancelled(state, made())
    assert await end_run(state, made(), "cancelled", None, ANYONES) is None


async def test_a_run_that_tells_between_looking_and_ending(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = module._told

    async def late(*args: Any) -> Any:
        found = await told(*args)
        assert await tell(state, 1)
        return found

    monkeypatch.setattr(module, "_told", late)
    assert await end_run(state, made(), "cancelled", None, ANYONES) is None
    assert b"in_progress" in (await state.record("o", "resp_a")).response


async def test_a_record_without_its_run_has_nobody_who_works_on_it(state: State) -> None:
    alone = Record("o", "resp_b", "c", None, 1, b"[]", orjson.dumps({**QUEUED, "id": "resp_b"}))
    await state.put(alone)
    with pytest.raises(ProxyError) as caught:
        await cancelled(state, alone)
    assert caught.value.http_status == 503


async def test_sweeping_passes_over_what_was_deleted(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    await state.runs(lambda runs: runs.renew("w", 1))
    await sweep(state)
    assert b'"failed"' in (await state.record("o", "resp_a")).response

    async def gone(*_: Any) -> Any:
        return [("o", "resp_nowhere")]

    monkeypatch.setattr(state._store.runs, "overdue", gone)
    await sweep(state)

    async def down(*_: Any) -> Any:
        raise ProxyError("unavailable", "down")

    monkeypatch.setattr(state, "record", down)
    with pytest.raises(ProxyError):
        await sweep(state)


def test_a_lease_is_in_the_future() -> None:
    assert time.time() < lease() <= time.time() + module.LEASE_S + 1
