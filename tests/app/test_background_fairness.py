"""Background runs and the keys that ask for them: nobody has all the places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.backends.scripted import ScriptedBackend

from .background_asked import ASK, create, ended, read, running, slow_reply, until
from .conftest import Serve, Served, provider
from .keyed import entry, signed, written

MEMORY = {"kind": "memory"}


def limited(
    serve: Serve, scripted: ScriptedBackend, folder: Path, *entries: str, **background: int
) -> Served:
    return serve(
        fresh=True,
        server={"keys_file": written(folder / "keys.toml", *entries)},
        providers=[provider(scripted)],
        store=MEMORY,
        background=background,
    )


@pytest.mark.parametrize("stream", [False, True])
def test_a_run_has_one_of_its_keys_places(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, stream: bool
) -> None:
    scripted.play(slow_reply(1.0))
    served = limited(serve, scripted, tmp_path, entry("busy", limits={"concurrency": 2}), entry("other"))
    with served.client(headers=signed("busy")) as client, served.client(headers=signed("other")) as other:
        made = [create(client), create(client)]
        refused = client.post("/v1/responses", json={**ASK, "stream": stream})
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (429, "rate_limit_exceeded")
        assert refused.headers["retry-after"] == "1"
        for words in ("background", "cancel", "2 at a time"):
            assert words in error["message"]
        foreground = client.post("/v1/responses", json={"model": "m", "input": "hi"})
        assert foreground.status_code == 429
        assert ended(other, create(other)["id"])["status"] == "completed"
        client.post(f"/v1/responses/{made[0]['id']}/cancel")
        third = until(lambda: (reply := client.post("/v1/responses", json=ASK)).is_success and reply.json())
        for each in (made[1], third):
            assert ended(client, each["id"])["status"] == "completed"
        assert until(lambda: client.post("/v1/responses", json=ASK).is_success)


def test_whoever_follows_a_run_takes_no_place(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path
) -> None:
    scripted.play(slow_reply(0.5))
    served = limited(serve, scripted, tmp_path, entry("one", limits={"concurrency": 1}))
    with served.client(headers=signed("one")) as client:
        for _ in range(3):
            reply = until(lambda: _taken(client.post("/v1/responses", json={**ASK, "stream": True})))
            assert "response.completed" in reply.text


def _taken(reply: httpx.Response) -> httpx.Response | None:
    return reply if reply.status_code == 200 else None


def test_a_run_that_waits_and_is_deleted_gives_its_place_back(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path
) -> None:
    scripted.play(slow_reply(0.5))
    key = entry("one", limits={"concurrency": 2})
    served = limited(serve, scripted, tmp_path, key, max_running=1, max_queue=5)
    with served.client(headers=signed("one")) as client:
        running(client, (first := create(client))["id"])
        for _ in range(3):
            assert client.delete(f"/v1/responses/{create(client)['id']}").status_code == 200
        assert client.post("/v1/responses", json=ASK).status_code == 200
        assert ended(client, first["id"])["status"] == "completed"


def test_one_that_was_refused_gives_its_place_back(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path
) -> None:
    scripted.play(slow_reply(0.3))
    key = entry("one", limits={"concurrency": 2})
    served = limited(serve, scripted, tmp_path, key, max_running=1, max_queue=0)
    with served.client(headers=signed("one")) as client:
        made = create(client)
        for _ in range(3):
            assert client.post("/v1/responses", json=ASK).status_code == 503
        assert client.post("/v1/responses", json={**ASK, "model": "p/none/x", "input": 3}).status_code == 400
        assert ended(client, made["id"])["status"] == "completed"


def test_owners_are_served_in_turn(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    scripted.play(slow_reply(0.4))
    keys = entry("many"), entry("few")
    served = limited(serve, scripted, tmp_path, *keys, max_running=2, max_queue=6)
    with served.client(headers=signed("many")) as many, served.client(headers=signed("few")) as few:
        made = [create(many) for _ in range(8)]
        assert many.post("/v1/responses", json=ASK).status_code == 503, "the queue is full"
        mine = create(few)
        assert few.post("/v1/responses", json=ASK).status_code == 503, "one may always come, not more"
        assert ended(few, mine["id"])["status"] == "completed"
        waiting = [each for each in made if read(many, each["id"])["status"] == "queued"]
        assert len(waiting) >= 2, "it did not wait for all that came before"


def test_without_keys_the_queue_is_what_it_was(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply(0.3))
    background: dict[str, Any] = {"max_running": 1, "max_queue": 0}
    served = serve(fresh=True, providers=[provider(scripted)], store=MEMORY, background=background)
    with served.client() as client:
        made = create(client)
        assert client.post("/v1/responses", json=ASK).status_code == 503
        assert ended(client, made["id"])["status"] == "completed"
        assert until(lambda: client.post("/v1/responses", json=ASK).is_success)
