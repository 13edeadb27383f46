"""Gateways of their own that share one store: any of them does what another began."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.background_asked import slow_reply, until
from tests.backends.scripted import ScriptedBackend

from .processes import SAID, gateway

Origins = Iterator[str]


@pytest.fixture(params=["replicas on postgres", "workers on sqlite"])
def origins(request: pytest.FixtureRequest, tmp_path: Path, scripted: ScriptedBackend) -> Iterator[Origins]:
    """Where to ask next: by turns, or whichever worker takes the connection."""
    with ExitStack() as stack:
        if "postgres" in request.param:
            url = request.getfixturevalue("postgres").new_database()
            store = {"kind": "postgres", "url": url, "encryption_key": "shared"}
            made = [gateway(tmp_path / name, scripted, store) for name in "ab"]
        else:
            made = [gateway(tmp_path / "a", scripted, {"kind": "sqlite", "path": str(tmp_path / "r.db")}, 3)]
        yield cycle([stack.enter_context(each).base for each in made])


def asked(origins: Origins, method: str, path: str, **more: Any) -> httpx.Response:
    reply = httpx.request(method, next(origins) + path, trust_env=False, timeout=30, **more)
    assert reply.status_code == 200, reply.text
    return reply


def _chain(origins: Origins, scripted: ScriptedBackend) -> None:
    previous: dict[str, Any] = {}
    for turn in range(10):
        body = {"model": "m", "input": f"turn {turn}", **previous}
        previous = {"previous_response_id": asked(origins, "POST", "/v1/responses", json=body).json()["id"]}
        for _ in range(2):
            path = f"/v1/responses/{previous['previous_response_id']}/input_items"
            page = asked(origins, "GET", path, params={"limit": 100, "order": "asc"}).json()
            assert len(page["data"]) == 2 * turn + 1
    said = [message["content"] for message in scripted.bodies()[-1]["messages"]]
    assert said == [text for turn in range(10) for text in (f"turn {turn}", SAID)][:-1]


def _conversation(origins: Origins, scripted: ScriptedBackend) -> None:
    id = asked(origins, "POST", "/v1/conversations", json={}).json()["id"]
    for turn in range(6):
        body = {"model": "m", "input": f"turn {turn}", "conversation": id}
        asked(origins, "POST", "/v1/responses", json=body)
    assert len(scripted.bodies()[-1]["messages"]) == 11
    for _ in range(3):
        path = f"/v1/conversations/{id}/items"
        page = asked(origins, "GET", path, params={"limit": 100, "order": "asc"}).json()
        said = [item["content"][0]["text"] for item in page["data"]]
        assert said == [text for turn in range(6) for text in (f"turn {turn}", SAID)]
    asked(origins, "DELETE", f"/v1/conversations/{id}")
    assert httpx.get(next(origins) + path, trust_env=False).status_code == 404


def test_a_chain_and_a_conversation_alternate(origins: Origins, scripted: ScriptedBackend) -> None:
    _chain(origins, scripted)
    _conversation(origins, scripted)


def _begun(origins: Origins, scripted: ScriptedBackend) -> str:
    """A background response that a backend works on."""
    before = len(scripted.requests)
    body = {"model": "m", "input": "x", "background": True}
    id: str = asked(origins, "POST", "/v1/responses", json=body).json()["id"]
    until(lambda: len(scripted.requests) > before)
    return id


def _status(origins: Origins, id: str) -> str:
    return str(asked(origins, "GET", f"/v1/responses/{id}").json()["status"])


def test_a_background_run_is_read_followed_and_cancelled(origins: Origins, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply(1.5))
    id = _begun(origins, scripted)
    for _ in range(4):
        until(lambda: _status(origins, id) == "in_progress")
    path = f"/v1/responses/{id}?stream=true"
    told = [asked(origins, "GET", path).content for _ in range(4)]  # the first while it runs
    assert b"response.completed" in told[0]
    assert told == told[:1] * 4
    assert {_status(origins, id) for _ in range(4)} == {"completed"}
    scripted.play(slow_reply(20))
    for skipped in range(4):  # cancelled by one, by the other
        id = _begun(origins, scripted)
        for _ in range(skipped):
            assert _status(origins, id) == "in_progress"
        assert asked(origins, "POST", f"/v1/responses/{id}/cancel").json()["status"] == "cancelled"
        assert {_status(origins, id) for _ in range(4)} == {"cancelled"}
        assert scripted.requests[-1].gone.wait(5)
