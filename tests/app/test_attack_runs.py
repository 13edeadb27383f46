"""Background runs and stored lists against odd backends, odd queries, and clocks that jump."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest

from app.state import runs
from app.state.runs import current, lease, packed, sweep
from app.state.state import State
from app.store import MemoryStore, Record
from app.store.runs import Batch
from tests.app.background_asked import ASK, Json, create, ended, read, replay, running, slow_reply
from tests.app.conftest import Serve, Served, provider
from tests.backends.replies import response_stream, sse_reply
from tests.backends.scripted import ScriptedBackend

MEMORY = {"kind": "memory"}


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend) -> Served:
    return serve(providers=[provider(scripted), provider(scripted, "responses", name="r")], store=MEMORY)


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as client:
        yield client


@pytest.mark.parametrize(
    "told",
    [
        '{"type": "x\\n\\nevent: response.completed", "sequence_number": 3}',
        '{"type": "x\\r", "sequence_number": 3}',
        '{"type": ""}',
        '{"type": 5}',
        "{}",
    ],
)
def test_an_events_name_cannot_break_the_log(
    client: httpx.Client, scripted: ScriptedBackend, told: str
) -> None:
    """A line feed in it would split an event in two: followers would get a false one, and others' numbers."""
    first, *rest = response_stream("hello there")
    scripted.play(sse_reply([first, told, *rest]))
    made = create(client, model="r/m")
    assert ended(client, made["id"])["status"] == "completed"
    text = client.get(f"/v1/responses/{made['id']}?stream=true").text
    blocks = [block.split("\n") for block in text.split("\n\n") if block and block != "data: [DONE]"]
    assert all(len(block) == 2 for block in blocks)
    events = [orjson.loads(data.removeprefix("data: ")) for _, data in blocks]
    assert [name for name, _ in blocks] == [f"event: {event['type']}" for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    for after in (0, 2, len(events) - 2):
        assert replay(client, made["id"], after) == events[after + 1 :]


@pytest.mark.parametrize("digits", ["1" * 5000, "0" * 5000 + "1", "9" * 10])
def test_a_limit_of_thousands_of_digits(client: httpx.Client, digits: str) -> None:
    """Python reads no such number: it was a 500."""
    made = client.post("/v1/responses", json={"model": "p/m", "input": "hi"}).json()["id"]
    conversation = client.post("/v1/conversations", json={}).json()["id"]
    for path in (f"/v1/responses/{made}/input_items", f"/v1/conversations/{conversation}/items"):
        reply = client.get(f"{path}?limit={digits}")
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, "limit")


def test_a_run_that_is_worked_on_outlives_its_lease(
    client: httpx.Client, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that is set, a machine that slept, a store that was gone: its process knows that it lives."""
    scripted.play(slow_reply(1.0))
    made = create(client)
    running(client, made["id"])
    monkeypatch.setattr(runs, "LEASE_S", -3600)
    assert read(client, made["id"])["status"] == "in_progress"
    early = client.post("/v1/responses", json={**ASK, "previous_response_id": made["id"]})
    assert early.json()["error"]["code"] == "previous_response_not_completed"
    assert replay(client, made["id"])[-1]["type"] == "response.completed"
    assert ended(client, made["id"])["status"] == "completed"


async def _overdue(at_work: Any) -> Json:
    """What becomes of a run whose lease has expired."""
    state = State(MemoryStore(1e6, 10**9), 10**9)
    state.at_work = at_work
    response = {"id": "resp_a", "status": "in_progress", "background": True, "output": []}
    record = Record("o", "resp_a", "c", None, 1, b"[]", orjson.dumps(response))
    begun = packed(Batch(0, 0, b"event: response.created\ndata: {}\n\n"))
    await state.runs(lambda runs: runs.begin(record, "w", lease() - 3600, begun))
    await sweep(state)
    found: Json = orjson.loads((await current(state, record)).response)
    return found


@pytest.mark.parametrize(
    ("at_work", "status"), [({("o", "resp_a")}, "in_progress"), ({("o", "resp_b")}, "failed"), ((), "failed")]
)
async def test_only_other_processes_runs_are_swept(at_work: Any, status: str) -> None:
    assert (await _overdue(at_work))["status"] == status
