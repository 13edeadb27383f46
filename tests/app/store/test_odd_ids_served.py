"""Ids that a database does not take, from backends and from clients: no trouble of the store's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from tests.app.background_asked import ended
from tests.app.conftest import Serve, Served, provider
from tests.app.test_state import events_of
from tests.backends.loopback import Reply, Request
from tests.backends.replies import item_stream, message_item, response_object
from tests.backends.scripted import ScriptedBackend

if TYPE_CHECKING:
    from .conftest import Postgres

ASK: dict[str, Any] = {"model": "p/m", "input": "hi"}
NOISE = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(1000))
"""What no database makes much shorter."""
ODD = {"nul": r"a\u0000b", "long": NOISE, "half": r"\ud83d"}
"""As they stand in a JSON text."""


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def served(request: pytest.FixtureRequest, serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> Served:
    store: dict[str, Any] = {"kind": request.param}
    if request.param == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        store["url"] = postgres.new_database()
    elif request.param == "sqlite":
        store["path"] = str(tmp_path / "r.db")
    return serve(fresh=True, providers=[provider(scripted, "responses")], store=store)


def answers(odd: str, of_item: bool) -> Any:
    """A backend that gives an item, or its whole response, an odd id."""

    def answer(request: Request) -> Reply:
        item, response = message_item("x"), response_object([])
        if of_item:
            item["id"] = "@odd@"
        else:
            response["id"] = "@odd@"
        if not orjson.loads(request.body).get("stream"):
            whole = orjson.dumps({**response, "output": [item]})
            return Reply(200, {"content-type": "application/json"}, [_with(whole, odd)])
        frames = item_stream([item])
        for frame in frames:
            if "response" in frame:
                frame["response"] = {**frame["response"], "id": response["id"]}
        pieces: list[bytes | float] = [
            _with(b"event: %b\ndata: %b\n\n" % (frame["type"].encode(), orjson.dumps(frame)), odd)
            for frame in frames
        ]
        return Reply(200, {"content-type": "text/event-stream"}, pieces)

    return answer


def _with(text: bytes, odd: str) -> bytes:
    return text.replace(b"@odd@", odd.encode())


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("how", ["whole", "stream", "background"])
def test_of_an_item(served: Served, scripted: ScriptedBackend, odd: str, how: str) -> None:
    scripted.play(answers(ODD[odd], of_item=True))
    with served.client() as client:
        more = {how: True} if how != "whole" else {}
        reply = client.post("/v1/responses", json={**ASK, **more})
        assert reply.status_code == 200, reply.text
        made = events_of(reply)[-1]["response"] if how == "stream" else reply.json()
        if how == "background":
            made = ended(client, made["id"])
        assert made["status"] == "completed"
        again = client.post("/v1/responses", json={**ASK, "previous_response_id": made["id"]})
        assert again.status_code == 200, again.text
        conversation = client.post("/v1/conversations", json={}).json()["id"]
        turn = client.post("/v1/responses", json={**ASK, **more, "conversation": conversation})
        assert turn.status_code == 200
    assert not served.log("store:down")


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("stream", [False, True])
def test_of_a_response(served: Served, scripted: ScriptedBackend, odd: str, stream: bool) -> None:
    scripted.play(answers(ODD[odd], of_item=False))
    with served.client() as client:
        conversation = client.post("/v1/conversations", json={}).json()["id"]
        for more in ({}, {"conversation": conversation}):
            reply = client.post("/v1/responses", json={**ASK, **more, "stream": stream})
            assert reply.status_code == 200, reply.text
            assert "response.failed" not in reply.text
        said = client.get(f"/v1/conversations/{conversation}/items").json()["data"]
        assert len(said) == 2
    assert not served.log("store:down")


@pytest.mark.parametrize("id", ["a%00b", NOISE[:3000], "%ED%A0%BD", "%FF"])
def test_of_a_path(served: Served, id: str) -> None:
    with served.client() as client:
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/input_items")):
            assert client.request(method, f"/v1/responses/{id}{path}").status_code == 404, (method, path)
    assert not served.log("store:down")


@pytest.mark.parametrize("odd", ODD)
def test_of_a_request(served: Served, odd: str) -> None:
    reference = b'{"type": "item_reference", "id": "@odd@"}'
    bodies = [
        b'{"model": "p/m", "input": "hi", "previous_response_id": "@odd@"}',
        b'{"model": "p/m", "input": "hi", "conversation": "@odd@"}',
    ]
    with served.client() as client:
        for body in bodies:
            reply = client.post("/v1/responses", content=_with(body, ODD[odd]))
            assert reply.status_code in (400, 404), reply.text
        asked = _with(b'{"model":"p/m","input":[%b]}' % reference, ODD[odd])
        reply = client.post("/v1/responses", content=asked)
        assert reply.status_code == 200, "whose backend may know it"
        asked = _with(b'{"items": [%b]}' % reference, ODD[odd])
        reply = client.post("/v1/conversations", content=asked)
        assert reply.status_code == 400, reply.text
    assert not served.log("store:down")
