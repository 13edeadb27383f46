"""Stored responses over HTTP: what is kept, who may have it, what a backend sees of a conversation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import orjson
import pytest

from tests.backends.replies import ToolUse, chat_completion, json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend

from .conftest import Serve, Served, provider

Ask = Callable[..., dict[str, Any]]
KEYS = {"api_keys": ["alice-key", "bob-key"]}
WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}


def events_of(reply: httpx.Response) -> list[dict[str, Any]]:
    datas = [
        line[6:] for line in reply.text.split("\n") if line.startswith("data: ") and line != "data: [DONE]"
    ]
    return [orjson.loads(data) for data in datas]


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend, store: dict[str, Any]) -> Served:
    return serve(providers=[provider(scripted)], store=store)


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as client:
        yield client


@pytest.fixture
def ask(client: httpx.Client) -> Ask:
    """The response to a request, whole or streamed."""

    def ask(stream: bool = False, **body: Any) -> dict[str, Any]:
        reply = client.post("/v1/responses", json={"model": "m", "stream": stream, **body})
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = events_of(reply)[-1]["response"] if stream else reply.json()
        return found

    return ask


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_can_be_had_again_and_deleted(client: httpx.Client, ask: Ask, stream: bool) -> None:
    made = ask(stream, input="hi")
    assert made["store"] is True
    assert client.get(f"/v1/responses/{made['id']}").json() == made
    gone = client.delete(f"/v1/responses/{made['id']}")
    assert gone.json() == {"id": made["id"], "object": "response", "deleted": True}
    for method in ("GET", "DELETE"):
        reply = client.request(method, f"/v1/responses/{made['id']}")
        assert reply.status_code == 404
        assert reply.json()["error"] == {
            "message": f"Response with id '{made['id']}' not found.",
            "type": "invalid_request_error",
            "param": None,
            "code": "response_not_found",
        }


def test_what_shall_not_be_stored_is_not(client: httpx.Client, ask: Ask) -> None:
    made = ask(input="hi", store=False)
    assert made["store"] is False
    assert client.get(f"/v1/responses/{made['id']}").status_code == 404
    reply = client.post(
        "/v1/responses", json={"model": "m", "input": "x", "previous_response_id": made["id"]}
    )
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "previous_response_not_found")


@pytest.mark.parametrize("stream", [False, True])
def test_the_backend_sees_the_whole_conversation(ask: Ask, scripted: ScriptedBackend, stream: bool) -> None:
    first = ask(stream, input="one", instructions="SPEAK LATIN")
    second = ask(stream, input=[{"role": "user", "content": "two"}], previous_response_id=first["id"])
    third = ask(stream, input="three", previous_response_id=second["id"])
    assert (second["previous_response_id"], third["previous_response_id"]) == (first["id"], second["id"])
    told = [(each["role"], each["content"]) for each in scripted.bodies()[-1]["messages"]]
    said = ("assistant", "Hello from the backend.")
    assert told == [("user", "one"), said, ("user", "two"), said, ("user", "three")]
    assert "previous_response_id" not in scripted.bodies()[-1]


def test_branches_do_not_see_each_other(ask: Ask, scripted: ScriptedBackend) -> None:
    root = ask(input="root")
    for side in ("left", "right"):
        ask(input=side, previous_response_id=root["id"])
        words = [each["content"] for each in scripted.bodies()[-1]["messages"]]
        assert words == ["root", "Hello from the backend.", side]


def test_a_call_comes_back_as_a_call_with_its_result(ask: Ask, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply(chat_completion(None, [ToolUse("call_1", "weather", "{}")])))
    first = ask(input="weather?", tools=[WEATHER])
    (call,) = [item for item in first["output"] if item["type"] == "function_call"]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "64F"}
    ask(input=[result], previous_response_id=first["id"])
    _, called, answered = scripted.bodies()[-1]["messages"]
    assert called["tool_calls"][0]["id"] == answered["tool_call_id"] == "call_1"
    assert answered["content"] == "64F"


def test_an_item_that_is_sent_again_is_there_once(ask: Ask, scripted: ScriptedBackend) -> None:
    first = ask(input="one")
    ask(input=[*first["output"], {"role": "user", "content": "two"}], previous_response_id=first["id"])
    assert len(scripted.bodies()[-1]["messages"]) == 3


@pytest.mark.parametrize("typed", [{"type": "item_reference"}, {}])
def test_items_may_be_referred_to(ask: Ask, scripted: ScriptedBackend, typed: dict[str, str]) -> None:
    first = ask(input="one")
    given = [{"role": "user", "content": "one"}, {**typed, "id": first["output"][0]["id"]}]
    for more in ({}, {"previous_response_id": first["id"]}):
        ask(input=[*given, {"role": "user", "content": "two"}], **more)
        assert "Hello from the backend." in [each["content"] for each in scripted.bodies()[-1]["messages"]]


def test_an_unknown_reference_is_refused(client: httpx.Client) -> None:
    given = [{"type": "item_reference", "id": "msg_nowhere"}]
    reply = client.post("/v1/responses", json={"model": "m", "input": given})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "input[0]")


@pytest.mark.parametrize("previous", ["resp_nowhere", "", 7, ["x"]])
def test_an_unknown_previous_response(client: httpx.Client, scripted: ScriptedBackend, previous: Any) -> None:
    reply = client.post("/v1/responses", json={"model": "m", "input": "x", "previous_response_id": previous})
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, "previous_response_id")
    assert error["code"] == "previous_response_not_found"
    assert not scripted.bodies()


def test_a_chain_with_a_hole_is_refused(client: httpx.Client, ask: Ask) -> None:
    first = ask(input="one")
    second = ask(input="two", previous_response_id=first["id"])
    client.delete(f"/v1/responses/{first['id']}")
    assert client.get(f"/v1/responses/{second['id']}").status_code == 200
    asked = {"model": "m", "input": "x", "previous_response_id": second["id"]}
    error = client.post("/v1/responses", json=asked).json()["error"]
    assert error["code"] == "previous_response_not_found"
    assert "deleted" in error["message"]


def test_input_items(client: httpx.Client, ask: Ask) -> None:
    given = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    first = ask(input=given)
    second = ask(input="three", previous_response_id=first["id"])
    items = client.get(f"/v1/responses/{second['id']}/input_items", params={"order": "asc"}).json()
    assert [each["role"] for each in items["data"]] == ["user", "assistant", "assistant", "user"]
    assert [each["content"][0]["text"] for each in items["data"]][::3] == ["one", "three"]
    ids = [each["id"] for each in items["data"]]
    assert len(set(ids)) == 4
    assert (items["first_id"], items["last_id"], items["has_more"]) == (ids[0], ids[-1], False)
    page = client.get(f"/responses/{second['id']}/input_items?limit=2&after={ids[3]}&include=x").json()
    assert [each["id"] for each in page["data"]] == ids[2:0:-1]
    assert page["has_more"] is True


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=x", "limit=", "order=up", "order=", "after=nowhere"]
)
def test_a_page_that_cannot_be(client: httpx.Client, ask: Ask, query: str) -> None:
    made = ask(input="x")
    reply = client.get(f"/v1/responses/{made['id']}/input_items?{query}")
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, query.partition("=")[0])


@pytest.mark.parametrize("path", ["resp_x", "resp_x/input_items"])
def test_what_was_never_there(client: httpx.Client, path: str) -> None:
    assert client.get(f"/v1/responses/{path}").status_code == 404


@pytest.mark.parametrize("stream", [False, True])
def test_a_passed_response_is_stored_under_its_own_id(
    serve: Serve, scripted: ScriptedBackend, store: dict[str, Any], stream: bool
) -> None:
    served = serve(providers=[provider(scripted, "responses")], store=store)
    with served.client() as client:
        reply = client.post("/v1/responses", json={"model": "m", "input": "one", "stream": stream})
        made = events_of(reply)[-1]["response"] if stream else reply.json()
        assert client.get(f"/v1/responses/{made['id']}").json() == made
        asked = {"model": "m", "input": "two", "previous_response_id": made["id"]}
        again = client.post("/v1/responses", json=asked).json()
        assert again["previous_response_id"] == made["id"] != again["id"]
        body = scripted.bodies()[-1]
        assert len(body["input"]) == 3
        assert "previous_response_id" not in body
        assert body["store"] is False


def test_an_id_that_a_backend_gives_twice_mixes_no_conversations(
    serve: Serve, scripted: ScriptedBackend, store: dict[str, Any]
) -> None:
    served = serve(fresh=True, providers=[provider(scripted, "responses")], store=store)
    with served.client() as client:
        one = client.post("/v1/responses", json={"model": "m", "input": "one"}).json()
        two = client.post(
            "/v1/responses", json={"model": "m", "input": "two", "previous_response_id": one["id"]}
        ).json()
        other = client.post("/v1/responses", json={"model": "m", "input": "another matter"}).json()
        assert other["id"] == one["id"]
        asked = {"model": "m", "input": "three", "previous_response_id": two["id"]}
        reply = client.post("/v1/responses", json=asked)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "previous_response_not_found")
        page = client.get(f"/v1/responses/{two['id']}/input_items").json()
        assert [item["content"][0]["text"] for item in page["data"]] == ["two"]


def test_nobody_sees_what_another_key_stored(serve: Serve, scripted: ScriptedBackend, store: Any) -> None:
    served = serve(providers=[provider(scripted)], store=store, server=KEYS)
    alice, bob = ({"authorization": f"Bearer {key}"} for key in KEYS["api_keys"])
    with served.client() as client:
        made = client.post("/v1/responses", json={"model": "m", "input": "x"}, headers=alice).json()
        at = f"/v1/responses/{made['id']}"
        for method, path in (("GET", at), ("DELETE", at), ("GET", f"{at}/input_items")):
            assert client.request(method, path, headers=bob).status_code == 404
        asked = {"model": "m", "input": "x", "previous_response_id": made["id"]}
        assert client.post("/v1/responses", json=asked, headers=bob).status_code == 400
        given = [{"type": "item_reference", "id": made["output"][0]["id"]}]
        assert (
            client.post("/v1/responses", json={"model": "m", "input": given}, headers=bob).status_code == 400
        )
        assert client.get(at).status_code == 401
        assert client.post("/v1/responses", json=asked, headers=alice).status_code == 200


def test_a_store_that_is_off(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], store={"kind": "off"})
    with served.client() as client:
        made = client.post("/v1/responses", json={"model": "m", "input": "x"}).json()
        assert made["store"] is False
        assert client.get(f"/v1/responses/{made['id']}").status_code == 404
        asked = {"model": "m", "input": "x", "previous_response_id": made["id"]}
        assert (
            client.post("/v1/responses", json=asked).json()["error"]["code"] == "previous_response_not_found"
        )


def test_storing_is_no_loss(client: httpx.Client) -> None:
    reply = client.post(
        "/v1/responses",
        json={"model": "m", "input": "x", "store": True},
        headers={"x-dragoman-strict": "true"},
    )
    assert reply.status_code == 200
    assert "x-dragoman-dropped" not in reply.headers


def test_a_failed_stream_is_stored_too(client: httpx.Client, ask: Ask, scripted: ScriptedBackend) -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    started = {**chunk, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hel"}}]}
    scripted.play(sse_reply([started]))
    made = ask(True, input="x")
    assert made["status"] == "failed"
    assert client.get(f"/v1/responses/{made['id']}").json() == made


@pytest.mark.parametrize(("path", "status"), [("resp_1", 405), ("resp_1/other", 404), ("resp_1/", 404)])
def test_what_is_not_asked_of_a_response(client: httpx.Client, path: str, status: int) -> None:
    assert client.post(f"/v1/responses/{path}", json={}).status_code == status


def test_a_call_that_was_never_answered_gets_a_result(
    client: httpx.Client, ask: Ask, scripted: ScriptedBackend
) -> None:
    scripted.play(json_reply(chat_completion(None, [ToolUse("call_1", "weather", "{}")])))
    first = ask(input="weather?", tools=[WEATHER])
    scripted.play(json_reply(chat_completion("ok")))
    asked = {"model": "m", "input": "never mind", "previous_response_id": first["id"]}
    reply = client.post("/v1/responses", json=asked)
    assert (reply.status_code, reply.headers["x-dragoman-repairs"]) == (200, "1")
    roles = [each["role"] for each in scripted.bodies()[-1]["messages"]]
    assert roles[:3] == ["user", "assistant", "tool"]
    again = ask(input="and now?", previous_response_id=reply.json()["id"])
    assert again["status"] == "completed"


def test_a_body_that_is_played_as_a_stream_is_stored(
    client: httpx.Client, ask: Ask, scripted: ScriptedBackend
) -> None:
    scripted.play(json_reply(chat_completion("whole")))
    made = ask(True, input="x")
    assert client.get(f"/v1/responses/{made['id']}").json() == made


@pytest.mark.parametrize("given", [7, {"role": "user"}])
def test_an_input_that_is_none(client: httpx.Client, ask: Ask, given: Any) -> None:
    made = ask(input="x")
    for more in ({}, {"previous_response_id": made["id"]}):
        reply = client.post("/v1/responses", json={"model": "m", "input": given, **more})
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, "input")


def test_a_history_that_is_too_large(serve: Serve, scripted: ScriptedBackend, store: dict[str, Any]) -> None:
    served = serve(providers=[provider(scripted)], store=store, server={"max_body_bytes": 5000})
    with served.client() as client:
        previous: dict[str, Any] = {}
        for _ in range(9):
            reply = client.post("/v1/responses", json={"model": "m", "input": "x" * 1000, **previous})
            if reply.status_code != 200:
                break
            previous = {"previous_response_id": reply.json()["id"]}
        error = reply.json()["error"]
        assert (reply.status_code, error["code"]) == (400, "context_length_exceeded")
        assert error["param"] == "previous_response_id"


def test_a_request_that_keeps_nothing_never_asks_the_store(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve(providers=[provider(scripted)], store={"kind": "memory", "ttl_s": 77})
    assert served.gateway.state is not None
    monkeypatch.setattr(served.gateway.state, "prepare", None)
    with served.client() as client:
        asked = {"model": "m", "input": "x", "store": False}
        assert client.post("/v1/responses", json=asked).status_code == 200


def test_a_conversation_of_500_turns_goes_on(client: httpx.Client, ask: Ask, served: Served) -> None:
    """Each turn is written once: what 500 of them cost to read is read once."""
    made = ask(input="turn 0")
    state = served.gateway.state
    assert state is not None
    first = state._store
    done, previous = threading.Event(), made["id"]

    async def write() -> None:
        nonlocal previous
        record = (await first.chain("local", previous, 10**9))[-1]
        for turn in range(1, 500):
            next_id = f"resp_turn{turn}_{previous[-8:]}"
            await first.put(replace(record, id=next_id, previous=previous))
            previous = next_id
        done.set()

    served.call_soon(lambda: asyncio.ensure_future(write()))
    assert done.wait(30)
    last = ask(input="the last", previous_response_id=previous)
    assert last["status"] == "completed"
    page = client.get(f"/v1/responses/{last['id']}/input_items?limit=1").json()
    assert page["data"][0]["content"][0]["text"] == "the last"
