"""Conversations that the gateway sums up: what clients get, what backends see of it afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest

from tests.app.test_state import events_of
from tests.backends.loopback import Reply, Request
from tests.backends.replies import chat_completion, json_reply, response_items, response_object
from tests.backends.scripted import ScriptedBackend
from translators.compaction import INSTRUCTIONS

from .conftest import Serve, Served, provider

Json = dict[str, Any]
SUMMARY = "They want two files; the first is written."
HISTORY: list[Json] = [
    {"role": "developer", "content": "D"},
    {"role": "user", "content": "Write two files."},
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
    {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"cmd": "touch a"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "done-a"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "One is there."}]},
]
TRIGGER: Json = {"type": "compaction_trigger"}
JSON = {"content-type": "application/json"}
CODEX = {"originator": "codex_exec", "user-agent": "codex_exec/0.171.0"}


def sums_up(request: Request) -> Reply | None:
    """A backend that writes a summary when it is asked for one."""
    if b"The record of the conversation" not in request.body:
        return None
    if request.path.endswith("responses"):
        return json_reply(response_object(response_items(SUMMARY)))
    return json_reply(chat_completion(SUMMARY))


@pytest.fixture(params=["chat", "responses"])
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend, wire: str) -> Served:
    scripted.play(sums_up)
    return serve(providers=[provider(scripted, wire)], store={"kind": "memory"})


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client(headers=CODEX) as client:
        yield client


def compacted(client: httpx.Client, stream: bool = False, **more: Any) -> Json:
    """The response to a trigger at the end of HISTORY."""
    body = {"model": "p/m", "input": [*HISTORY, TRIGGER], "stream": stream, **more}
    reply = client.post("/v1/responses", json=body)
    assert reply.status_code == 200, reply.text
    found: Json = events_of(reply)[-1]["response"] if stream else reply.json()
    return found


def words(sent: Json) -> str:
    """All that a body says to the model."""
    return str(sent.get("messages", sent.get("input")))


@pytest.mark.parametrize("stream", [False, True])
def test_a_trigger_gives_a_compaction_alone(
    client: httpx.Client, scripted: ScriptedBackend, stream: bool
) -> None:
    made = compacted(client, stream, store=False)
    (item,) = made["output"]
    assert item.keys() == {"type", "id", "encrypted_content"}
    assert (item["type"], made["status"]) == ("compaction", "completed")
    assert SUMMARY not in item["encrypted_content"]
    assert made["usage"]["total_tokens"] > 0
    (sent,) = scripted.bodies()
    assert INSTRUCTIONS.split("\n")[0] in str(sent)
    for said in ("Write two files.", "[assistant calls shell]", "touch a", "done-a", "One is there."):
        assert said in words(sent)
    assert "tools" not in sent
    assert "hm" not in words(sent).split()


def test_the_stream_is_one_codex_reads(client: httpx.Client) -> None:
    reply = client.post(
        "/v1/responses", json={"model": "p/m", "input": [*HISTORY, TRIGGER], "stream": True, "store": False}
    )
    events = events_of(reply)
    assert [each["type"] for each in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.output_item.done",
        "response.completed",
    ]
    assert [each["sequence_number"] for each in events] == list(range(5))
    assert events[3]["item"] == events[4]["response"]["output"][0]


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary"])
def test_it_comes_back_in_words(client: httpx.Client, scripted: ScriptedBackend, kind: str) -> None:
    (item,) = compacted(client, store=False)["output"]
    given = [HISTORY[0], HISTORY[1], {**item, "type": kind}, {"role": "user", "content": "Go on."}]
    reply = client.post("/v1/responses", json={"model": "p/m", "input": given, "store": False})
    assert reply.status_code == 200
    assert "x-dragoman-dropped" not in reply.headers
    sent = scripted.bodies()[-1]
    assert SUMMARY in words(sent)
    assert "dgc1." not in str(sent)
    told = words(sent)
    assert told.index("Write two files.") < told.index(SUMMARY) < told.index("Go on.")


@pytest.mark.parametrize("spoil", ["x", "", "A.A"])
def test_one_that_was_changed_is_refused(client: httpx.Client, scripted: ScriptedBackend, spoil: str) -> None:
    (item,) = compacted(client, store=False)["output"]
    sealed = item["encrypted_content"]
    changed = sealed[:-4] + spoil
    asked = len(scripted.requests)
    reply = client.post(
        "/v1/responses", json={"model": "p/m", "input": [{**item, "encrypted_content": changed}, HISTORY[1]]}
    )
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, "input[0].encrypted_content")
    assert "changed" in error["message"]
    assert len(scripted.requests) == asked


def test_a_chain_goes_on_from_it(client: httpx.Client, scripted: ScriptedBackend) -> None:
    first = client.post("/v1/responses", json={"model": "p/m", "input": HISTORY}).json()
    asked = {"model": "p/m", "input": [TRIGGER], "previous_response_id": first["id"]}
    made = client.post("/v1/responses", json=asked).json()
    assert [item["type"] for item in made["output"]] == ["compaction"]
    assert client.get(f"/v1/responses/{made['id']}").json() == made
    asked = {"model": "p/m", "input": "Go on.", "previous_response_id": made["id"]}
    assert client.post("/v1/responses", json=asked).status_code == 200
    told = words(scripted.bodies()[-1])
    assert "done-a" not in told
    assert "Hello from the backend." not in told
    assert told.index("Write two files.") < told.index(SUMMARY) < told.index("Go on.")


def test_a_stream_is_stored(client: httpx.Client) -> None:
    made = compacted(client, True)
    assert client.get(f"/v1/responses/{made['id']}").json() == made


def test_the_compact_route(client: httpx.Client, scripted: ScriptedBackend) -> None:
    reply = client.post("/v1/responses/compact", json={"model": "p/m", "input": HISTORY})
    made = reply.json()
    assert made.keys() == {"id", "object", "created_at", "output", "usage"}
    assert made["object"] == "response.compaction"
    *before, item = made["output"]
    assert [(each["role"], each["content"][0]["text"]) for each in before] == [
        ("developer", "D"),
        ("user", "Write two files."),
    ]
    assert reply.headers["x-dragoman-model"] == "p/m"
    again = client.post("/responses/compact", json={"model": "p/m", "input": made["output"]}).json()
    assert [each["type"] for each in again["output"]] == ["message", "message", "compaction"]
    assert SUMMARY in words(scripted.bodies()[-1])
    assert again["output"][-1] != item or again["usage"] == made["usage"]


@pytest.mark.parametrize("route", ["compact", "input_tokens"])
def test_a_trigger_says_nothing_more_there(client: httpx.Client, route: str) -> None:
    replies = [
        client.post(f"/v1/responses/{route}", json={"model": "p/m", "input": [*HISTORY, *more]}).json()
        for more in ([], [TRIGGER])
    ]
    counts = [each.get("input_tokens") or each["usage"]["input_tokens"] for each in replies]
    assert counts[0] == counts[1]


def test_a_text_is_compacted_too(client: httpx.Client) -> None:
    made = client.post("/v1/responses/compact", json={"model": "p/m", "input": "Hi."}).json()
    assert [each["content"][0] for each in made["output"][:-1]] == [{"type": "input_text", "text": "Hi."}]


def test_a_stored_conversation_is_compacted(client: httpx.Client, scripted: ScriptedBackend) -> None:
    first = client.post("/v1/responses", json={"model": "p/m", "input": HISTORY}).json()
    body = {"model": "p/m", "input": "And?", "previous_response_id": first["id"]}
    made = client.post("/v1/responses/compact", json=body).json()
    texts = [each["content"][0]["text"] for each in made["output"][:-1]]
    assert texts == ["D", "Write two files.", "And?"]
    assert "done-a" in words(scripted.bodies()[-1])


@pytest.mark.parametrize("route", ["/v1/responses/compact", "/v1/responses/input_tokens"])
@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"input": "x"}, 400, "model"),
        ({"model": "p/m"}, 400, "input"),
        ({"model": "nowhere/m", "input": "x"}, 404, "model"),
        ({"model": "p/m", "input": [{"type": "item_reference", "id": "i"}]}, 400, "input[0]"),
        ({"model": "p/m", "input": "x", "previous_response_id": "resp_0"}, 400, "previous_response_id"),
        ({"model": "p/m", "input": "x", "temperature": "hot"}, 400, "temperature"),
    ],
    ids=str,
)
def test_errors_are_those_of_an_answer(
    serve: Serve, scripted: ScriptedBackend, route: str, body: Json, status: int, param: str
) -> None:
    served = serve(providers=[provider(scripted)], store={"kind": "memory"})
    with served.client() as client:
        reply, answer = client.post(route, json=body), client.post("/v1/responses", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (status, param)
    assert reply.json() == answer.json()


def test_a_trigger_must_be_last(serve: Serve, scripted: ScriptedBackend) -> None:
    """What passes is its backend's business."""
    with serve(providers=[provider(scripted)]).client() as client:
        reply = client.post("/v1/responses", json={"model": "p/m", "input": [TRIGGER, HISTORY[1]]})
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, "input[0]")
    assert "last item" in error["message"]


@pytest.mark.parametrize("stream", [False, True])
def test_another_model_may_write_it(serve: Serve, scripted: ScriptedBackend, stream: bool) -> None:
    scripted.play(sums_up)
    served = serve(
        providers=[provider(scripted), {**provider(scripted), "name": "q", "models": ["small"]}],
        compaction={"model": "q/small"},
    )
    with served.client() as client:
        body = {"model": "p/m", "input": [*HISTORY, TRIGGER], "stream": stream, "store": False}
        reply = client.post("/v1/responses", json=body)
    made = events_of(reply)[-1]["response"] if stream else reply.json()
    assert made["model"] == "p/m"
    assert reply.headers["x-dragoman-model"] == "q/small" or stream
    assert [sent["model"] for sent in scripted.bodies()] == ["small"]
    (line,) = served.log()
    assert (line["model"], line["target"], line["stream"]) == ("p/m", "q/small", stream)


def test_no_summary_is_no_compaction(client: httpx.Client, scripted: ScriptedBackend, wire: str) -> None:
    empty = response_object([]) if wire == "responses" else chat_completion("")
    scripted.play(json_reply(empty))
    for stream in (False, True):
        body = {"model": "p/m", "input": [*HISTORY, TRIGGER], "stream": stream}
        reply = client.post("/v1/responses", json=body)
        assert reply.status_code == 502
        assert "no summary" in reply.json()["error"]["message"]


TOO_LONG = json_reply({"error": {"message": "too long", "code": "context_length_exceeded"}}, 400)


def test_a_refusal_of_the_backend_is_told(client: httpx.Client, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply({"error": {"message": "not today", "code": "odd"}}, 400))
    reply = client.post("/v1/responses", json={"model": "p/m", "input": [*HISTORY, TRIGGER]})
    assert (reply.status_code, reply.json()["error"]["message"]) == (400, "not today")
    assert len(scripted.requests) == 1


def test_of_a_record_that_is_too_long_the_middle_goes(
    client: httpx.Client, scripted: ScriptedBackend
) -> None:
    def answer(request: Request) -> Reply | None:
        return TOO_LONG if len(request.body) > 5000 else sums_up(request)

    scripted.play(answer)
    given = [
        HISTORY[1],
        *[{"role": "assistant", "content": "x" * 3000}] * 4,
        {"role": "user", "content": "LAST"},
    ]
    made = client.post("/v1/responses/compact", json={"model": "p/m", "input": given})
    assert made.status_code == 200
    assert len(scripted.requests) == 3
    told = words(scripted.bodies()[-1])
    assert "Write two files." in told
    assert "LAST" in told
    assert "characters ...]" in told
    scripted.play(TOO_LONG)
    made = client.post("/v1/responses/compact", json={"model": "p/m", "input": given})
    assert (made.status_code, made.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert len(scripted.requests) == 3 + 4


OWN = {"wire": {"compact": "/responses/compact"}}


def test_a_backend_that_compacts_gets_the_trigger(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted, "responses", overrides=OWN)])
    given = [*HISTORY, {"type": "compaction", "encrypted_content": "theirs"}, TRIGGER]
    with served.client() as client:
        assert client.post("/v1/responses", json={"model": "p/m", "input": given}).status_code == 200
    assert scripted.bodies()[-1]["input"][-2:] == given[-2:]


def test_of_a_stored_conversation_it_gets_none(serve: Serve, scripted: ScriptedBackend) -> None:
    """Its reply would not name what it continues."""
    scripted.play(sums_up)
    served = serve(providers=[provider(scripted, "responses", overrides=OWN)], store={"kind": "memory"})
    with served.client() as client:
        first = client.post("/v1/responses", json={"model": "p/m", "input": "hi"}).json()
        asked = {"model": "p/m", "input": [TRIGGER], "previous_response_id": first["id"]}
        made = client.post("/v1/responses", json=asked).json()
    assert [item["type"] for item in made["output"]] == ["compaction"]
    assert made["previous_response_id"] == first["id"]


def test_a_backend_that_compacts_is_asked_at_its_door(serve: Serve, scripted: ScriptedBackend) -> None:
    theirs = {"id": "resp_1", "object": "response.compaction", "created_at": 1, "output": [], "usage": None}
    scripted.play(json_reply(theirs))
    served = serve(providers=[provider(scripted, "responses", overrides=OWN)])
    with served.client() as client:
        body = {"model": "p/m", "input": "x", "temperature": 1, "instructions": "I"}
        assert client.post("/v1/responses/compact", json=body).json() == theirs
        (sent,) = scripted.requests
        assert sent.path == "/v1/responses/compact"
        assert sent.json == {"model": "m", "input": "x", "instructions": "I"}
        scripted.play(json_reply({"error": {"message": "slow down"}}, 429, {"retry-after": "7"}))
        refused = client.post("/v1/responses/compact", json=body)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "7")


def test_a_door_that_is_not_there(serve: Serve, scripted: ScriptedBackend) -> None:
    def answer(request: Request) -> Reply | None:
        if request.path.endswith("compact"):
            return json_reply({"detail": "Not Found"}, 404)
        return sums_up(request)

    scripted.play(answer)
    served = serve(providers=[provider(scripted, "responses", overrides=OWN)])
    with served.client() as client:
        made = client.post("/v1/responses/compact", json={"model": "p/m", "input": "x"}).json()
    assert made["output"][-1]["encrypted_content"].startswith("dgc1.")


def test_silence_is_filled(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(Reply(200, JSON, [0.4, orjson.dumps(chat_completion(SUMMARY))]))
    served = serve(providers=[provider(scripted)], server={"keepalive_s": 0.1})
    with served.client() as client:
        body = {"model": "p/m", "input": [*HISTORY, TRIGGER], "stream": True, "store": False}
        kinds = [each["type"] for each in events_of(client.post("/v1/responses", json=body))]
    assert kinds.count("response.in_progress") > 1
    assert kinds[-2:] == ["response.output_item.done", "response.completed"]


@pytest.mark.parametrize("route", ["", "/compact", "/input_tokens"])
def test_a_provider_that_cannot_be_asked(serve: Serve, monkeypatch: pytest.MonkeyPatch, route: str) -> None:
    monkeypatch.setattr("providers.registry.extra_is_installed", lambda: False)
    served = serve(fresh=True, providers=[{"name": "off", "kind": "onnx", "path": "models"}])
    with served.client() as client:
        reply = client.post(f"/v1/responses{route}", json={"model": "off/m", "input": [HISTORY[1], TRIGGER]})
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "provider_unavailable")


def test_in_the_background(client: httpx.Client) -> None:
    body = {"model": "p/m", "input": [*HISTORY, TRIGGER], "background": True}
    made = client.post("/v1/responses", json=body).json()
    deadline = time.monotonic() + 5
    while made["status"] in ("queued", "in_progress"):
        assert time.monotonic() < deadline
        made = client.get(f"/v1/responses/{made['id']}").json()
    assert [item["type"] for item in made["output"]] == ["compaction"]


def test_a_conversation_goes_on_from_it(client: httpx.Client, scripted: ScriptedBackend) -> None:
    id = client.post("/v1/conversations", json={"items": HISTORY}).json()["id"]
    asked = {"model": "p/m", "conversation": id}
    made = client.post("/v1/responses", json={**asked, "input": [TRIGGER]}).json()
    assert [item["type"] for item in made["output"]] == ["compaction"]
    assert client.post("/v1/responses", json={**asked, "input": "Go on."}).status_code == 200
    told = words(scripted.bodies()[-1])
    assert "done-a" not in told
    assert told.index("Write two files.") < told.index(SUMMARY) < told.index("Go on.")
