"""Responses over a WebSocket: what comes back, what is remembered, and what is told of mistakes."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from app.state.state import State
from app.store.missing import MissingStore
from tests.app.conftest import Serve, Served, provider
from tests.app.sockets import Talk, frame, logged, upgraded
from tests.backends.loopback import Reply
from tests.backends.replies import chat_chunk, frame_bytes, json_reply
from tests.backends.scripted import ScriptedBackend

MEMORY = {"kind": "memory"}


@pytest.fixture(params=["memory", "off"])
def served(request: pytest.FixtureRequest, serve: Serve, scripted: ScriptedBackend) -> Served:
    return serve(providers=[provider(scripted)], store={"kind": request.param})


def alike(event: Any) -> Any:
    """An event without what differs from one answer to the next."""
    if isinstance(event, dict):
        fresh = ("id", "item_id", "created_at", "completed_at")
        return {key: alike(value) for key, value in event.items() if key not in fresh}
    return [alike(each) for each in event] if isinstance(event, list) else event


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("path", ["/v1/responses", "/responses?a=b"])
def test_the_events_are_those_of_a_post(
    serve: Serve, scripted: ScriptedBackend, wire: str, path: str
) -> None:
    served = serve(providers=[provider(scripted, wire)], store=MEMORY)
    with served.client() as client:
        body = {"model": "p/m", "input": "hi", "store": False, "stream": True}
        text = client.post("/v1/responses", json=body).text
    posted = [orjson.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    with Talk(served, path) as talk:
        assert alike(talk.turn(input="hi", store=False)) == alike(posted)
    first, second = logged(served, 2)
    assert (first["lane"], first["status"]) == (second["lane"], second["status"])
    assert second["route"] == f"WEBSOCKET {path.partition('?')[0]}"


def test_what_is_no_part_of_the_request_is_not_sent_on(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted, "responses")], store={"kind": "off"})
    with Talk(served) as talk:
        events = talk.turn(input="hi", stream_id="a", background=True, stream=False, generate=True)
    assert {event["stream_id"] for event in events} == {"a"}
    sent = scripted.bodies()[-1]
    assert sent["stream"] is True
    assert not {"type", "stream_id", "generate", "background"} & sent.keys()


def test_a_response_that_is_not_stored_is_continued(served: Served, scripted: ScriptedBackend) -> None:
    with Talk(served) as talk:
        one = talk.answer(input="one", store=False)
        two = talk.answer(input="two", store=False, previous_response_id=one["id"])
        talk.answer(input="three", store=False, previous_response_id=two["id"])
        branch = talk.answer(input="four", store=False, previous_response_id=one["id"])
    assert (one["store"], two["previous_response_id"]) == (False, one["id"])
    assert branch["previous_response_id"] == one["id"]
    said = [[message["content"] for message in body["messages"]][::2] for body in scripted.bodies()]
    assert said == [["one"], ["one", "two"], ["one", "two", "three"], ["one", "four"]]


def test_it_is_gone_with_its_connection(served: Served) -> None:
    with Talk(served) as talk:
        id = talk.answer(input="one", store=False)["id"]
    with Talk(served) as talk:
        event = talk.error(input="two", previous_response_id=id)
        assert (event["status"], event["error"]["code"]) == (400, "previous_response_not_found")
        assert event["error"]["param"] == "previous_response_id"
        talk.answer(input="one, two", store=False)


def test_nothing_of_it_is_stored(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], store=MEMORY)
    with Talk(served) as talk, served.client() as client:
        id = talk.answer(input="one", store=False)["id"]
        assert client.get(f"/v1/responses/{id}").status_code == 404


def test_what_is_stored_is_the_same_by_either_way(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], store=MEMORY)
    with Talk(served) as talk, served.client() as client:
        one = talk.answer(input="one")
        body = {"model": "p/m", "input": "two", "previous_response_id": one["id"]}
        two = client.post("/v1/responses", json=body).json()
        three = talk.answer(input="three", previous_response_id=two["id"])
        assert (one["store"], three["store"]) == (True, True)
        assert client.get(f"/v1/responses/{three['id']}").json() == three
    assert len(scripted.bodies()[-1]["messages"]) == 5


def test_a_stored_response_holds_what_only_the_connection_remembered(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    served = serve(providers=[provider(scripted)], store=MEMORY)
    with Talk(served) as talk:
        zero = talk.answer(input="zero")
        one = talk.answer(input="one", store=False, previous_response_id=zero["id"])
        two = talk.answer(input="two", previous_response_id=one["id"])
    assert two["previous_response_id"] == one["id"]
    with Talk(served) as talk:
        talk.answer(input="three", previous_response_id=two["id"])
    said = [message["content"] for message in scripted.bodies()[-1]["messages"]][::2]
    assert said == ["zero", "one", "two", "three"]


def test_an_item_that_only_the_connection_remembers_is_found(
    served: Served, scripted: ScriptedBackend
) -> None:
    with Talk(served) as talk:
        item = talk.answer(input="one", store=False)["output"][0]
        given = [{"type": "item_reference", "id": item["id"]}, {"role": "user", "content": "more"}]
        talk.answer(input=given, store=False)
    assert scripted.bodies()[-1]["messages"][0]["content"] == item["content"][0]["text"]


@pytest.mark.parametrize("store", [True, False])
def test_a_turn_of_a_conversation(serve: Serve, scripted: ScriptedBackend, store: bool) -> None:
    served = serve(providers=[provider(scripted)], store=MEMORY)
    with served.client() as client, Talk(served) as talk:
        id = client.post("/v1/conversations", json={}).json()["id"]
        for words in ("one", "two"):
            talk.answer(input=words, conversation=id, store=store)
        items = client.get(f"/v1/conversations/{id}/items", params={"order": "asc"}).json()["data"]
    assert [item["role"] for item in items] == ["user", "assistant"] * 2
    assert len(scripted.bodies()[-1]["messages"]) == 3


def test_without_a_store_nothing_says_that_it_is_stored(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], store={"kind": "off"})
    with Talk(served) as talk:
        one = talk.answer(input="one")
        two = talk.answer(input="two", previous_response_id=one["id"])
    assert (one["store"], two["store"]) == (False, False)


def test_a_warm_up_asks_no_backend(served: Served, scripted: ScriptedBackend) -> None:
    with Talk(served) as talk:
        events = talk.turn(input="before", generate=False, store=False)
        response = events[-1]["response"]
        kinds = [event["type"].removeprefix("response.") for event in events]
        assert kinds == ["created", "in_progress", "completed"]
        assert [event["sequence_number"] for event in events] == [0, 1, 2]
        assert (response["output"], response["usage"]["total_tokens"]) == ([], 0)
        assert not scripted.requests
        talk.answer(input="after", store=False, previous_response_id=response["id"])
    assert [message["content"] for message in scripted.bodies()[-1]["messages"]] == ["before", "after"]


def test_a_warm_up_can_be_stored(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], store=MEMORY)
    with Talk(served) as talk:
        id = talk.answer(input="before", generate=False)["id"]
    with Talk(served) as talk:
        talk.answer(input="after", previous_response_id=id)
    assert len(scripted.bodies()[-1]["messages"]) == 2


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"model": "p/m", "input": "x", "temperature": "hot"}, None, "temperature"),
        ({"model": "nothing-like-it/m", "input": "x"}, "model_not_found", "model"),
        ({"model": "p/m", "input": "x", "previous_response_id": "r"}, "previous_response_not_found", None),
        ({"model": "", "input": "x"}, None, "model"),
    ],
)
def test_a_warm_up_finds_what_is_wrong(
    served: Served, scripted: ScriptedBackend, fields: dict[str, Any], code: str | None, param: str | None
) -> None:
    with Talk(served) as talk:
        error = talk.error(generate=False, **fields)["error"]
    assert code is None or error["code"] == code
    assert param is None or error["param"] == param
    assert not scripted.requests


MISTAKES: dict[str, tuple[str | bytes, str | None, str | None]] = {
    "binary": (b'{"type":"response.create"}', "invalid_message", None),
    "no JSON": ("hello", "invalid_json", None),
    "nothing": ("", "invalid_json", None),
    "a list": ("[]", "invalid_json", None),
    "deep": ("[" * 5000 + "]" * 5000, "invalid_json", None),
    "no type": ("{}", "unknown_event", "type"),
    "another type": ('{"type":"session.update"}', "unknown_event", "type"),
    "an odd type": ('{"type":["response.create"]}', "unknown_event", "type"),
    "no model": ('{"type":"response.create","input":"x"}', None, "model"),
    "no name": ('{"type":"response.create","model":"p/m","stream_id":""}', None, "stream_id"),
    "an odd name": ('{"type":"response.create","model":"p/m","stream_id":1}', None, "stream_id"),
    "an odd warm-up": ('{"type":"response.create","model":"p/m","generate":"no"}', None, "generate"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_and_the_connection_lives_on(served: Served, name: str) -> None:
    sent, code, param = MISTAKES[name]
    with Talk(served) as talk:
        talk.socket.send(sent)
        event = talk.event()
        assert (event["type"], event["status"]) == ("error", 400)
        assert event["error"]["type"] == "invalid_request_error"
        assert code is None or event["error"]["code"] == code
        assert event["error"]["param"] == param
        talk.answer(input="hi")


def test_steering_is_given_back(served: Served) -> None:
    steer = {"type": "response.steer", "previous_response_id": "resp_1", "input": "faster"}
    with Talk(served) as talk:
        talk.socket.send(orjson.dumps(steer).decode())
        event = talk.event()
        talk.answer(input="hi")
    assert (event["type"], event["error"]["code"]) == ("response.steer.failed", "steering_not_supported")
    assert event["steer"] == {"previous_response_id": "resp_1", "input": "faster"}


def test_a_backends_refusal_is_an_error_frame(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], server={"retry_budget_s": 0})
    headers = {"retry-after": "7", "x-ratelimit-limit-requests": "3"}
    scripted.play(json_reply({"error": {"message": "slow down"}}, 429, headers))
    with Talk(served) as talk:
        event = talk.error(input="hi", stream_id="a")
    (line,) = logged(served)
    told = event["headers"]
    assert (event["status"], event["stream_id"]) == (429, "a")
    assert (told["retry-after"], told["x-ratelimit-limit-requests"]) == ("7", "3")
    assert (told["x-request-id"], told["x-dragoman-model"]) == (line["request_id"], "p/m")
    assert event["error"]["headers"] == told
    assert "slow down" in event["error"]["message"]


def test_errors_one_after_another_are_told_apart(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    scripted.play(json_reply({"error": {"message": "not so"}}, 400))
    with Talk(served) as talk:
        for _ in range(3):  # the second waits in the lane of the first
            talk.send(input="hi")
        assert ["not so" in talk.event()["error"]["message"] for _ in range(3)] == [True] * 3


def test_a_failure_on_the_way_is_an_event(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], server={"retry_budget_s": 0})
    first = frame_bytes(chat_chunk({"role": "assistant", "content": "a"}))
    scripted.play(Reply(200, {"content-type": "text/event-stream"}, [first], "cut"))
    with Talk(served) as talk:
        events = talk.turn(input="hi")
        assert events[0]["type"] == "response.created"
        assert events[-1]["type"] == "response.failed"


@pytest.mark.parametrize("fields", [{"input": "hi"}, {"input": "hi", "generate": False}])
def test_a_store_that_is_gone(serve: Serve, scripted: ScriptedBackend, fields: dict[str, Any]) -> None:
    served = serve(fresh=True, providers=[provider(scripted)], store=MEMORY)
    served.gateway.state = State(MissingStore("gone"), 1 << 20)
    with Talk(served) as talk:
        last = talk.turn(**fields)[-1]
        assert (last["type"], "cannot be stored" in str(last)) == ("response.failed", True)
        event = talk.error(**fields)
        assert (event["status"], event["error"]["code"]) == (503, "store_unavailable")
        assert event["headers"]["retry-after"]
        id = talk.answer(store=False, **fields)["id"]  # the connection still remembers
        talk.answer(input="more", store=False, previous_response_id=id)
    assert [line["error_code"] for line in logged(served, 4)][:2] == ["store_unavailable"] * 2


def test_an_item_that_is_stored_is_found(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], store=MEMORY)
    with Talk(served) as talk:
        items = [talk.answer(input="one", store=store)["output"][0]["id"] for store in (True, False)]
        talk.answer(input=[{"type": "item_reference", "id": id} for id in items], store=False)
    assert [each["role"] for each in scripted.bodies()[-1]["messages"]].count("assistant") >= 1


def test_every_response_is_logged_and_counted(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(fresh=True, providers=[provider(scripted)])
    with Talk(served, additional_headers={"x-request-id": "mine"}) as talk:
        assert talk.socket.response is not None
        assert talk.socket.response.headers["x-request-id"] == "mine"
        talk.answer(input="hi")
        talk.error(input="hi", temperature="hot")
    lines = logged(served, 2)
    assert [(line["request_id"], line["status"]) for line in lines] == [("mine-1", 200), ("mine-2", 400)]
    with served.client() as client:
        text = client.get("/metrics").text
    assert 'dragoman_requests_total{lane="translate",route="/responses",status="200"} 1.0' in text


def test_a_message_in_fragments_between_pings(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    message = orjson.dumps({"type": "response.create", "model": "p/m", "input": "hé"})
    with upgraded(served) as raw:
        for at, byte in enumerate(message):
            last = at == len(message) - 1
            raw.sendall(frame(bytes([byte]), 1 if at == 0 else 0, final=last))
            if at % 40 == 0:
                raw.sendall(frame(b"still there?", 9))
        read = b""
        while b"response.completed" not in read:
            read += raw.recv(1 << 16)
    assert read.count(b"still there?") == len(message) // 40 + 1
    assert scripted.bodies()[-1]["messages"][0]["content"] == "hé"
