"""What holds of background responses on two gateways that share a store, whatever store that is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from tests.backends.scripted import ScriptedBackend

from .background_asked import ASK, create, ended, events_of, read, replay, running, slow_reply, until
from .conftest import Served

T = TypeVar("T")


def on_loop(served: Served, work: Coroutine[Any, Any, T]) -> T:
    """What `work` gives, done where the gateway runs."""
    loop = next(iter(served._server.servers)).get_loop()
    return asyncio.run_coroutine_threadsafe(work, loop).result(20)


def runs_of(served: Served) -> Any:
    assert served.gateway.state is not None
    return served.gateway.state._store.runs


def is_followed_by_another(one: Served, other: Served, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply(0.8))
    with one.client() as mine, other.client() as theirs:
        made = create(mine)
        assert running(theirs, made["id"])["status"] == "in_progress"
        told = replay(theirs, made["id"])
        assert told[-1]["type"] == "response.completed"
        assert told == replay(mine, made["id"])
        assert read(theirs, made["id"]) == told[-1]["response"]
        scripted.clear()
        body = {"model": "m", "input": "and?", "previous_response_id": made["id"]}
        assert theirs.post("/v1/responses", json=body).status_code == 200
        assert len(scripted.bodies()[0]["messages"]) == 3


def is_cancelled_by_another(one: Served, other: Served, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply())
    with one.client() as mine, other.client() as theirs:
        with mine.stream("POST", "/v1/responses", json={**ASK, "stream": True}) as reply:
            until(lambda: scripted.requests)
            got, id = "", ""
            for text in reply.iter_text():
                got += text
                if not id and "output_item.added" in got:
                    id = events_of(got.rpartition("\n\n")[0])[0]["response"]["id"]
                    assert theirs.post(f"/v1/responses/{id}/cancel").json()["status"] == "cancelled"
        assert events_of(got)[-1]["response"]["status"] == "cancelled"
        assert scripted.requests[0].gone.wait(3)
        until(lambda: not one.gateway.background._runs)
        assert read(mine, id)["status"] == read(theirs, id)["status"] == "cancelled"


def is_deleted_by_another(one: Served, other: Served, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply())
    with one.client() as mine, other.client() as theirs:
        id = create(mine)["id"]
        running(theirs, id)
        until(lambda: scripted.requests)
        assert theirs.delete(f"/v1/responses/{id}").json()["deleted"]
        assert scripted.requests[0].gone.wait(3)
        assert mine.get(f"/v1/responses/{id}").status_code == 404


def fails_when_its_lease_has_expired(one: Served, other: Served, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply())
    with one.client() as mine, other.client() as theirs:
        id = create(mine)["id"]
        running(theirs, id)
        until(lambda: scripted.requests)

        def expired() -> Any:
            """Its worker renews the lease while it lives."""
            on_loop(one, runs_of(one).renew(one.gateway.background.worker, 1))
            return (found := read(theirs, id))["status"] == "failed" and found

        done = until(expired)
        assert done["error"]["code"] == "server_error"
        assert "was stopped while it worked" in done["error"]["message"]
        assert replay(theirs, id)[-1]["response"] == done
        assert scripted.requests[0].gone.wait(3)
        assert ended(mine, id) == done


SHARED = [
    is_followed_by_another,
    is_cancelled_by_another,
    is_deleted_by_another,
    fails_when_its_lease_has_expired,
]
