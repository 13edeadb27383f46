"""Conversations where a request takes another way: a WebSocket, to be counted, one of several backends."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import Serve, Served, provider
from tests.app.sockets import Talk
from tests.backends.scripted import ScriptedBackend

SAID = "Hello from the backend."
MEMORY = {"kind": "memory"}


def texts(served: Served, id: str) -> list[str]:
    with served.client() as client:
        page = client.get(f"/v1/conversations/{id}/items", params={"order": "asc"}).json()
    return [each["content"][0]["text"] for each in page["data"]]


def new(served: Served, *said: str) -> str:
    items = [{"role": "user", "content": text} for text in said]
    with served.client() as client:
        id: str = client.post("/v1/conversations", json={"items": items}).json()["id"]
    return id


@pytest.mark.parametrize("store", [True, False])
def test_over_a_websocket(serve: Serve, scripted: ScriptedBackend, store: bool) -> None:
    served = serve(providers=[provider(scripted)], store=MEMORY)
    id = new(served, "zero")
    with Talk(served) as talk:
        first = talk.answer(input="one", conversation=id, store=store)
        talk.answer(input="two", conversation={"id": id}, store=store)
        given = [{"type": "item_reference", "id": first["output"][0]["id"]}]
        talk.answer(input=given, store=False)
    assert (first["conversation"], first["store"]) == ({"id": id}, store)
    assert texts(served, id) == ["zero", "one", SAID, "two", SAID]
    assert [each["content"] for each in scripted.bodies()[-2]["messages"]] == ["zero", "one", SAID, "two"]
    assert [each["content"] for each in scripted.bodies()[-1]["messages"]] == [SAID]


def test_what_is_sent_early_over_a_websocket_is_added_without_an_answer(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    served = serve(providers=[provider(scripted)], store=MEMORY)
    id = new(served)
    with Talk(served) as talk:
        early = talk.answer(input="early", conversation=id, generate=False)
        assert (early["conversation"], early["output"]) == ({"id": id}, [])
        assert not scripted.bodies()
        talk.answer(input="late", conversation=id)
        talk.answer(input="later", previous_response_id=early["id"], generate=False)
    assert texts(served, id) == ["early", "late", SAID]


def test_over_a_websocket_without_a_store(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], store={"kind": "off"})
    with Talk(served) as talk:
        (event,) = talk.turn(input="one", conversation="conv_1")
    assert (event["type"], event["error"]["param"]) == ("error", "conversation")
    assert not scripted.bodies()


def test_what_it_holds_is_counted_and_nothing_added(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], store=MEMORY)
    id = new(served, "word " * 1000)
    with served.client() as client:
        asked = {"model": "m", "input": "x", "conversation": id}
        counted = client.post("/v1/responses/input_tokens", json=asked).json()
        assert counted["input_tokens"] > 1000
        asked["conversation"] = "conv_nowhere"
        assert client.post("/v1/responses/input_tokens", json=asked).status_code == 404
    assert len(texts(served, id)) == 1


def test_it_stays_where_it_was_answered(serve: Serve, scripted: ScriptedBackend) -> None:
    """Whoever changes the endpoint pays for the whole of it again."""
    accounts: list[dict[str, Any]] = [{**provider(scripted), "name": name} for name in "abcd"]
    members = [{"model": f"{name}/m"} for name in "abcd"]
    served = serve(fresh=True, providers=accounts, groups={"all": members}, store=MEMORY)
    found: list[set[str]] = []
    with served.client() as client:
        for _ in range(8):
            id = new(served)
            asked = {"model": "all", "input": "x", "conversation": id}
            replies = [client.post("/v1/responses", json=asked) for _ in range(4)]
            found.append({reply.headers["x-dragoman-model"] for reply in replies})
    assert all(len(targets) == 1 for targets in found)
    assert len(set.union(*found)) > 1
