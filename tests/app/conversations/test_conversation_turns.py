"""Requests that are made in a conversation: what the backend sees, and what is added."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.app.conftest import Serve, provider
from tests.backends.loopback import Reply, Request
from tests.backends.replies import ToolUse, chat_completion, json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend

from .conftest import ONE, SAID, Ask, Items, New, last_response, texts, words

WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_sees_what_was_said_and_is_added(
    client: httpx.Client, new: New, ask: Ask, items: Items, scripted: ScriptedBackend, stream: bool
) -> None:
    id = new(items=[{"role": "user", "content": "zero"}])
    first = ask(id, "one", stream)
    second = ask({"id": id}, [{"role": "user", "content": "two"}], stream)
    assert words(scripted) == ["zero", "one", SAID, "two"]
    assert texts(items(id)) == ["zero", "one", SAID, "two", SAID]
    assert items(id)[2] == first["output"][0]
    for made in (first, second):
        assert (made["conversation"], made["previous_response_id"]) == ({"id": id}, None)
        assert made["store"] is True
        assert client.get(f"/v1/responses/{made['id']}").json() == made


def test_instructions_are_of_one_turn(new: New, ask: Ask, scripted: ScriptedBackend) -> None:
    id = new()
    ask(id, "one", instructions="SPEAK LATIN")
    ask(id, "two")
    assert words(scripted) == ["one", SAID, "two"]


def test_a_response_need_not_be_stored_to_be_said(
    client: httpx.Client, new: New, ask: Ask, items: Items
) -> None:
    """OpenAI's `store` is about the response; its items are added to the conversation in any case."""
    id = new()
    made = ask(id, "one", store=False)
    assert made["store"] is False
    assert client.get(f"/v1/responses/{made['id']}").status_code == 404
    assert texts(items(id)) == ["one", SAID]


@pytest.mark.parametrize("conversation", ["conv_nowhere", {"id": "conv_nowhere"}, "", "\0", "x" * 900])
def test_a_conversation_that_is_not_there(
    client: httpx.Client, scripted: ScriptedBackend, conversation: Any
) -> None:
    for more in ({}, {"store": False}, {"stream": True}):
        asked = {"model": "m", "input": "x", "conversation": conversation, **more}
        reply = client.post("/v1/responses", json=asked)
        error = reply.json()["error"]
        assert (reply.status_code, error["param"]) == (404, "conversation")
        assert error["message"].endswith("' not found.")
    assert not scripted.bodies()


@pytest.mark.parametrize("conversation", [7, [], {}, {"id": 7}, True])
def test_what_names_no_conversation(client: httpx.Client, conversation: Any) -> None:
    reply = client.post("/v1/responses", json={"model": "m", "input": "x", "conversation": conversation})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "conversation")


def test_not_together_with_a_previous_response(client: httpx.Client, new: New) -> None:
    asked = {"model": "m", "input": "x", "conversation": new(), "previous_response_id": "resp_1"}
    reply = client.post("/v1/responses", json=asked)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "mutually_exclusive_parameters")


@pytest.mark.parametrize("given", [7, {"role": "user"}])
def test_an_input_that_is_none(client: httpx.Client, new: New, given: Any) -> None:
    reply = client.post("/v1/responses", json={"model": "m", "input": given, "conversation": new()})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "input")


def test_nothing_need_be_added_to_be_answered(new: New, ask: Ask, items: Items) -> None:
    id = new(items=[ONE])
    ask(id, [])
    assert texts(items(id)) == ["one", SAID]


@pytest.mark.parametrize("stream", [False, True])
def test_a_failed_turn_adds_nothing(
    client: httpx.Client, new: New, items: Items, scripted: ScriptedBackend, stream: bool
) -> None:
    id = new(items=[ONE])
    asked = {"model": "m", "input": "two", "conversation": id, "stream": stream}
    scripted.play(json_reply({"error": {"message": "no"}}, 400))
    assert client.post("/v1/responses", json=asked).status_code == 400
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    scripted.play(sse_reply([{**chunk, "choices": [{"index": 0, "delta": {"content": "Hel"}}]}]))
    reply = client.post("/v1/responses", json=asked)
    if stream:
        made = last_response(reply)
        assert made["status"] == "failed"
        assert client.get(f"/v1/responses/{made['id']}").json() == made
    assert texts(items(id)) == ["one"]


def test_a_turn_that_was_cut_is_said(new: New, ask: Ask, items: Items, scripted: ScriptedBackend) -> None:
    cut = chat_completion("Hel")
    cut["choices"][0]["finish_reason"] = "length"
    scripted.play(json_reply(cut))
    id = new()
    assert ask(id, "one")["status"] == "incomplete"
    assert texts(items(id)) == ["one", "Hel"]


def test_a_call_and_its_result(
    client: httpx.Client, new: New, ask: Ask, items: Items, scripted: ScriptedBackend
) -> None:
    scripted.play(json_reply(chat_completion(None, [ToolUse("call_1", "weather", "{}")])))
    id = new()
    ask(id, "weather?", tools=[WEATHER])
    scripted.play(json_reply(chat_completion("64F it is")))
    ask(id, [{"type": "function_call_output", "call_id": "call_1", "output": "64F"}])
    _, called, answered = scripted.bodies()[-1]["messages"]
    assert called["tool_calls"][0]["id"] == answered["tool_call_id"] == "call_1"
    kinds = [(each["type"], each["status"]) for each in items(id)]
    assert kinds == [
        (kind, "completed") for kind in ("message", "function_call", "function_call_output", "message")
    ]
    assert len({each["id"] for each in items(id)}) == 4


def test_a_call_that_was_never_answered_gets_a_result(
    client: httpx.Client, new: New, ask: Ask, items: Items, scripted: ScriptedBackend
) -> None:
    scripted.play(json_reply(chat_completion(None, [ToolUse("call_1", "weather", "{}")])))
    id = new()
    ask(id, "weather?", tools=[WEATHER])
    scripted.play(json_reply(chat_completion("ok")))
    asked = {"model": "m", "input": "never mind", "conversation": id}
    reply = client.post("/v1/responses", json=asked)
    assert (reply.status_code, reply.headers["x-dragoman-repairs"]) == (200, "1")
    roles = [each["role"] for each in scripted.bodies()[-1]["messages"]]
    assert roles[:3] == ["user", "assistant", "tool"]
    assert [each["type"] for each in items(id)] == ["message", "function_call", "message", "message"]


def test_an_item_that_is_sent_again_is_there_once(
    new: New, ask: Ask, items: Items, scripted: ScriptedBackend
) -> None:
    id = new(items=[ONE])
    first = ask(id, "two")
    reference = {"type": "item_reference", "id": items(id)[1]["id"]}
    ask(id, [items(id)[0], reference, *first["output"], {"role": "user", "content": "three"}])
    assert words(scripted) == ["one", "two", SAID, "three"]
    assert texts(items(id)) == ["one", "two", SAID, "three", SAID]


def test_items_are_referred_to_from_elsewhere(
    client: httpx.Client, new: New, ask: Ask, items: Items, scripted: ScriptedBackend
) -> None:
    id = new(items=[ONE])
    ask(id, "two", store=False)
    given = [{"type": "item_reference", "id": each["id"]} for each in items(id)]
    client.post("/v1/responses", json={"model": "m", "input": given, "store": False})
    assert words(scripted) == ["one", "two", SAID]
    other = new(items=given[:2])
    assert texts(items(other)) == ["one", "two"]
    ask(other, given[2:])
    assert words(scripted) == ["one", "two", SAID]


def test_an_item_that_was_taken_out_is_not_said(
    client: httpx.Client, new: New, ask: Ask, items: Items, scripted: ScriptedBackend
) -> None:
    id = new(items=[ONE, {"role": "user", "content": "SECRET"}])
    client.delete(f"/v1/conversations/{id}/items/{items(id)[1]['id']}")
    ask(id, "two")
    assert words(scripted) == ["one", "two"]


def test_a_response_in_it_can_be_continued_by_its_id(
    client: httpx.Client, new: New, ask: Ask, items: Items, scripted: ScriptedBackend
) -> None:
    """What the conversation held when the response was asked for is before it, and nothing later."""
    id = new(items=[ONE])
    made = ask(id, "two")
    ask(id, "LATER")
    for more in ({}, {"store": False}):
        asked = {"model": "m", "input": "three", "previous_response_id": made["id"], **more}
        assert client.post("/v1/responses", json=asked).status_code == 200
        assert words(scripted) == ["one", "two", SAID, "three"]
    assert texts(items(id)) == ["one", "two", SAID, "LATER", SAID]
    found = client.get(f"/v1/responses/{made['id']}/input_items", params={"order": "asc"}).json()["data"]
    assert texts(found) == ["one", "two"]
    first = ask(new(), "first")
    asked = {"model": "m", "input": "second", "previous_response_id": first["id"]}
    assert client.post("/v1/responses", json=asked).json().get("conversation") is None
    assert words(scripted) == ["first", SAID, "second"]


@pytest.mark.parametrize("path", ["", "/items/msg_one"])
def test_a_response_in_it_cannot_be_continued_when_what_it_stood_after_is_gone(
    client: httpx.Client, new: New, ask: Ask, path: str
) -> None:
    id = new(items=[{**ONE, "id": "msg_one"}])
    made = ask(id, "two")
    assert client.delete(f"/v1/conversations/{id}{path}").status_code == 200
    asked = {"model": "m", "input": "x", "previous_response_id": made["id"]}
    error = client.post("/v1/responses", json=asked).json()["error"]
    assert error["code"] == "previous_response_not_found"
    found = client.get(f"/v1/responses/{made['id']}/input_items").json()["data"]
    assert texts(found) == ["two"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_in_the_background(
    client: httpx.Client, new: New, ask: Ask, items: Items, stream: bool
) -> None:
    id = new(items=[ONE])
    made = ask(id, "two", stream, background=True)
    assert made["conversation"] == {"id": id}
    for _ in range(200):
        found = client.get(f"/v1/responses/{made['id']}").json()
        if found["status"] not in ("queued", "in_progress"):
            break
        time.sleep(0.05)
    assert found["status"] == "completed"
    assert texts(items(id)) == ["one", "two", SAID]
    asked = {"model": "m", "input": "x", "conversation": id, "background": True, "store": False}
    reply = client.post("/v1/responses", json=asked)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "background")


def test_deleting_it_leaves_its_responses(client: httpx.Client, new: New, ask: Ask) -> None:
    id = new()
    made = ask(id, "one")
    assert client.delete(f"/v1/conversations/{id}").status_code == 200
    assert client.get(f"/v1/responses/{made['id']}").json() == made
    reply = client.post("/v1/responses", json={"model": "m", "input": "two", "conversation": id})
    assert reply.status_code == 404


def test_one_that_is_deleted_while_it_is_answered(
    client: httpx.Client, new: New, ask: Ask, scripted: ScriptedBackend
) -> None:
    id = new()

    def delete(request: Request) -> Reply | None:
        client.delete(f"/v1/conversations/{id}")
        return None

    scripted.play(delete)
    made = ask(id, "one")
    assert client.get(f"/v1/responses/{made['id']}").json() == made
    assert client.get(f"/v1/conversations/{id}").status_code == 404


@pytest.mark.parametrize("stream", [False, True])
def test_a_backend_that_gives_the_same_ids_again(
    serve: Serve, scripted: ScriptedBackend, store: dict[str, Any], stream: bool
) -> None:
    served = serve(providers=[provider(scripted, "responses")], store=store)
    with served.client() as client:
        id = client.post("/v1/conversations", json={}).json()["id"]
        for given in ("one", "two", "three"):
            asked = {"model": "m", "input": given, "conversation": id, "stream": stream}
            assert client.post("/v1/responses", json=asked).status_code == 200
        body = scripted.bodies()[-1]
        assert (len(body["input"]), body["store"]) == (5, False)
        assert "conversation" not in body
        found = client.get(f"/v1/conversations/{id}/items", params={"order": "asc"}).json()["data"]
        assert texts(found) == ["one", SAID, "two", SAID, "three", SAID]
        assert len({each["id"] for each in found}) == 6


def test_turns_at_once_are_all_there_and_whole(new: New, ask: Ask, items: Items) -> None:
    id = new()
    given = [f"turn {number}" for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda text: ask(id, text, stream=text[-1] in "02468"), given))
    found = texts(items(id))
    assert sorted(found[::2]) == sorted(given)
    assert found[1::2] == [SAID] * len(given)


def test_one_that_is_too_large(serve: Serve, scripted: ScriptedBackend, store: dict[str, Any]) -> None:
    served = serve(providers=[provider(scripted)], store=store, server={"max_body_bytes": 5000})
    with served.client() as client:
        id = client.post("/v1/conversations", json={}).json()["id"]
        for _ in range(9):
            asked = {"model": "m", "input": "x" * 1000, "conversation": id}
            reply = client.post("/v1/responses", json=asked)
            if reply.status_code != 200:
                break
        error = reply.json()["error"]
        assert (reply.status_code, error["code"]) == (400, "context_length_exceeded")
        assert error["param"] == "conversation"
        page = client.get(f"/v1/conversations/{id}/items?limit=100").json()
        assert page["has_more"] is True
        assert len(page["data"]) < 10
