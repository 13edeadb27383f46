"""Backends that store responses too (`wire.chaining`): what they are sent, and when they cannot go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from config.overrides import find_problems
from tests.app.background_asked import create, ended
from tests.app.conftest import Serve, Served, provider
from tests.app.sockets import Talk
from tests.backends.loopback import Reply, Request
from tests.backends.replies import json_reply, response_object, sse_reply
from tests.backends.scripted import ScriptedBackend

THOUGHT = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "sealed"}
WORDS = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "yes", "annotations": []}],
}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
ASK = {"model": "p/m"}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}


class Storing:
    """A backend that stores: every answer has an id of its own, `up_1`, `up_2`, ..."""

    def __init__(self, *output: Mapping[str, Any]) -> None:
        self.output = [dict(item) for item in output or (THOUGHT, WORDS)]
        self.refusals: list[Reply] = []
        """Given to requests that go on from a response."""
        self.count = 0

    def __call__(self, request: Request) -> Reply:
        body = request.json
        if body.get("previous_response_id") and self.refusals:
            return self.refusals.pop(0)
        self.count += 1
        response = {**response_object(self.output), "id": f"up_{self.count}"}
        if not body.get("stream"):
            return json_reply(response)
        begun = {**response, "status": "in_progress", "output": []}
        events: list[Any] = [{"type": "response.created", "response": begun}]
        for index, item in enumerate(self.output):
            place = {"output_index": index, "item": item}
            events += [{"type": f"response.output_item.{kind}", **place} for kind in ("added", "done")]
        events.append({"type": "response.completed", "response": response})
        return sse_reply([{**event, "sequence_number": at} for at, event in enumerate(events)])


def chaining(
    serve: Serve, scripted: ScriptedBackend, value: Any = True, backend: Storing | None = None, **more: Any
) -> Served:
    overrides = {"wire": {"chaining": value}, **more}
    scripted.play(backend or Storing())
    configured = provider(scripted, "responses", overrides=overrides)
    return serve(fresh=True, providers=[configured], store={"kind": "memory"}, server={"retry_budget_s": 0})


def ask(served: Served, **fields: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The response and the headers it came with, streamed or not."""
    with served.client() as client:
        reply = client.post("/v1/responses", json={**ASK, **fields})
    assert reply.status_code == 200, reply.text
    if not fields.get("stream"):
        return reply.json(), dict(reply.headers)
    events = [orjson.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]
    assert events[-1]["type"] == "response.completed"
    return events[-1]["response"], dict(reply.headers)


def types(items: Sequence[Mapping[str, Any]]) -> list[str]:
    return [item.get("role") or item["type"] for item in items]


@pytest.mark.parametrize("stream", [False, True])
def test_it_is_sent_what_is_new(serve: Serve, scripted: ScriptedBackend, stream: bool) -> None:
    served = chaining(serve, scripted)
    id = None
    for words in ("one", "two", "three"):
        response, _ = ask(served, input=words, previous_response_id=id, stream=stream, instructions=words)
        assert response.get("previous_response_id") == id
        id = response["id"]
    first, *others = scripted.bodies()
    assert "previous_response_id" not in first
    assert [body["previous_response_id"] for body in others] == ["up_1", "up_2"]
    assert [types(body["input"]) for body in others] == [["user"], ["user"]]
    assert [body["input"][0]["content"] for body in others] == [
        [{"type": "input_text", "text": words}] for words in ("two", "three")
    ]
    assert [body["store"] for body in scripted.bodies()] == [True] * 3
    assert [body["instructions"] for body in scripted.bodies()] == ["one", "two", "three"]
    assert served.log()[-1]["lane"] == "translate"


def test_what_the_client_reads_is_the_whole_conversation(serve: Serve, scripted: ScriptedBackend) -> None:
    served = chaining(serve, scripted)
    one, _ = ask(served, input="one")
    two, _ = ask(served, input="two", previous_response_id=one["id"])
    with served.client() as client:
        listed = client.get(f"/v1/responses/{two['id']}/input_items", params={"order": "asc"}).json()
    assert types(listed["data"]) == ["user", "reasoning", "assistant", "user"]


@pytest.mark.parametrize(
    ("value", "reasons", "linked", "stored"),
    [
        (None, True, False, [None, False]),
        (False, True, False, [False, False]),
        (True, False, True, [True, True]),
        ("auto", True, True, [True, True]),
        ("auto", False, False, [None, False]),
    ],
)
def test_when_it_is_done(
    serve: Serve, scripted: ScriptedBackend, value: Any, reasons: bool, linked: bool, stored: list[Any]
) -> None:
    more: dict[str, Any] = {} if reasons else {"reasoning": {"ask": "none", "efforts": []}}
    served = chaining(serve, scripted, value, **more)
    one, _ = ask(served, input="one")
    ask(served, input="two", previous_response_id=one["id"])
    bodies = scripted.bodies()
    assert [body.get("store") for body in bodies] == stored
    assert ("previous_response_id" in bodies[1]) is linked
    assert (len(bodies[1]["input"]) == 1) is linked


def test_never_is_the_last_word(serve: Serve, scripted: ScriptedBackend) -> None:
    asked = {"extra_body": {"store": True}}
    rules = {"wire": {"chaining": False}, "request": {"defaults": {"store": True}, "force": {"store": True}}}
    scripted.play(Storing())
    configured = provider(scripted, "responses", overrides=rules, **asked)
    served = serve(fresh=True, providers=[configured], store={"kind": "memory"})
    ask(served, input="one")
    assert scripted.bodies()[0]["store"] is False


def test_a_word_against_it_is_warned_of(tmp_path: Path) -> None:
    config = tmp_path / "dragoman.toml"
    config.write_text(
        '[[providers]]\nname = "a"\nkind = "openai"\nbase_url = "http://h/v1"\nextra_body = {store = true}\n'
        "[providers.overrides]\nwire = {chaining = false}\nrequest = {force = {store = true}}\n"
    )
    told = CliRunner().invoke(cli, ["check", "--config", str(config)])
    assert told.exit_code == 0, told.stderr
    for place in ("extra_body.store", "overrides.request.force.store"):
        assert f"warning: a: {place} has no effect" in told.stderr
    assert "defaults" not in told.stderr


@pytest.mark.parametrize("value", ["always", 2, "true", "false"])
def test_it_is_one_of_three(value: object) -> None:
    (problem, *_) = find_problems({"wire": {"chaining": value}}, "openai")
    assert problem.place[:2] == ("wire", "chaining")


@pytest.mark.parametrize("store", [True, None])
def test_never_means_that_nothing_is_stored_there(
    serve: Serve, scripted: ScriptedBackend, store: bool | None
) -> None:
    served = chaining(serve, scripted, False)
    ask(served, input="one", store=store)
    with served.client() as client:
        chat = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}], "store": True}
        assert client.post("/v1/chat/completions", json=chat).status_code == 200
    assert [body["store"] for body in scripted.bodies()] == [False, False]


def test_what_the_client_does_not_want_stored_is_not(serve: Serve, scripted: ScriptedBackend) -> None:
    served = chaining(serve, scripted)
    ask(served, input="one", store=False)
    assert scripted.bodies()[0]["store"] is False


def test_a_backend_that_takes_no_such_fields_gets_everything(serve: Serve, scripted: ScriptedBackend) -> None:
    served = chaining(serve, scripted, request={"drop": ["store", "previous_response_id"]})
    one, _ = ask(served, input="one")
    ask(served, input="two", previous_response_id=one["id"])
    body = scripted.bodies()[1]
    assert not {"store", "previous_response_id"} & body.keys()
    assert types(body["input"])[-1] == "user"
    assert len(body["input"]) > 1


def test_another_backend_gets_everything(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(Storing())
    overrides = {"wire": {"chaining": True}}
    both = [provider(scripted, "responses", overrides=overrides) | {"name": name} for name in ("p", "q")]
    served = serve(fresh=True, providers=both, store={"kind": "memory"})
    one, _ = ask(served, input="one")
    two, _ = ask(served, input="two", previous_response_id=one["id"], model="q/m")
    ask(served, input="three", previous_response_id=two["id"], model="q/m")
    bodies = scripted.bodies()
    assert [body.get("previous_response_id") for body in bodies] == [None, None, "up_2"]
    assert [len(body["input"]) > 1 for body in bodies[1:]] == [True, False]


@pytest.mark.parametrize(
    ("own", "sent", "repairs"),
    [
        ([RESULT], ["function_call_output"], None),
        ([RESULT, {"role": "user", "content": "x"}], ["function_call_output", "user"], None),
        ([{"role": "user", "content": "x"}], ["function_call_output", "user"], "1"),
        ([{**RESULT, "call_id": "fc_1"}], ["function_call_output"], "1"),
        ([RESULT, {**RESULT, "call_id": "call_9"}], ["function_call_output", "user"], "1"),
        ([THOUGHT, RESULT], ["function_call_output"], None),
    ],
)
def test_calls_it_knows_are_answered(
    serve: Serve, scripted: ScriptedBackend, own: list[Any], sent: list[str], repairs: str | None
) -> None:
    served = chaining(serve, scripted, backend=Storing(THOUGHT, CALL))
    one, _ = ask(served, input="one", tools=[TOOL])
    _, headers = ask(served, input=own, previous_response_id=one["id"], tools=[TOOL])
    body = scripted.bodies()[1]
    assert types(body["input"]) == sent
    assert body["input"][0]["call_id"] == "call_1"
    assert body["previous_response_id"] == "up_1"
    assert headers.get("x-dragoman-repairs") == repairs


def refusal(status: int, code: str | None, message: str = "no", param: str | None = None) -> Reply:
    error = {"message": message, "type": "invalid_request_error", "code": code, "param": param}
    return json_reply({"error": error}, status)


BROKEN = {
    "gone": refusal(404, "response_not_found"),
    "gone, the other code": refusal(404, "previous_response_not_found"),
    "gone, as OpenAI says it": refusal(
        400, "previous_response_not_found", "Previous response with id 'up_1' not found."
    ),
    "gone, in words": refusal(404, None, "previous_response_id 'up_1' does not exist"),
    "refused as a field": refusal(400, "unknown_parameter", "Unknown parameter", "previous_response_id"),
    "too long": refusal(400, "context_length_exceeded", "Your input exceeds the context window"),
    "gone, within a 200": refusal(200, "previous_response_not_found"),
    "gone, in a response": json_reply(
        {
            **response_object([], status="failed"),
            "error": {"code": "previous_response_not_found", "message": "not found"},
        }
    ),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", BROKEN)
def test_where_it_cannot_go_on_it_is_sent_everything_once(
    serve: Serve, scripted: ScriptedBackend, name: str, stream: bool
) -> None:
    backend = Storing()
    served = chaining(serve, scripted, backend=backend)
    one, _ = ask(served, input="one")
    backend.refusals = [BROKEN[name]]
    two, headers = ask(served, input="two", previous_response_id=one["id"], stream=stream)
    assert headers["x-dragoman-chain-invalidated"] == "1"
    _, refused, whole = scripted.bodies()
    assert (refused["previous_response_id"], len(refused["input"])) == ("up_1", 1)
    assert "previous_response_id" not in whole
    assert types(whole["input"]) == ["user", "reasoning", "assistant", "user"]  # reasoning and all
    assert whole["store"] is True
    (event,) = served.log("provider:response_chain_invalidated")
    assert (event["provider"], event["model"], event["invalidated_id"]) == ("p", "m", "up_1")
    assert event["error_code"]
    _, headers = ask(served, input="three", previous_response_id=two["id"])
    assert scripted.bodies()[-1]["previous_response_id"] == "up_2"
    assert "x-dragoman-chain-invalidated" not in headers


def test_a_second_failure_is_told(serve: Serve, scripted: ScriptedBackend) -> None:
    backend = Storing()
    served = chaining(serve, scripted, backend=backend)
    one, _ = ask(served, input="one")

    def failing(request: Request) -> Reply:
        return BROKEN["too long"]

    scripted.play(failing)
    with served.client() as client:
        reply = client.post("/v1/responses", json={**ASK, "input": "x", "previous_response_id": one["id"]})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert reply.headers["x-dragoman-chain-invalidated"] == "1"
    assert len(scripted.requests) == 3


@pytest.mark.parametrize(
    ("answer", "status"),
    [(refusal(404, "model_not_found", "no such model"), 404), (refusal(401, None), 502)],
)
def test_other_failures_are_not_swallowed(
    serve: Serve, scripted: ScriptedBackend, answer: Reply, status: int
) -> None:
    backend = Storing()
    served = chaining(serve, scripted, backend=backend)
    one, _ = ask(served, input="one")
    backend.refusals = [answer] * 9
    with served.client() as client:
        reply = client.post("/v1/responses", json={**ASK, "input": "x", "previous_response_id": one["id"]})
    assert reply.status_code == status
    assert "x-dragoman-chain-invalidated" not in reply.headers
    assert len(scripted.requests) == 2
    assert not served.log("provider:response_chain_invalidated")


def test_over_a_websocket(serve: Serve, scripted: ScriptedBackend) -> None:
    served = chaining(serve, scripted)
    with Talk(served) as talk:
        one = talk.answer(input="one")
        two = talk.answer(input="two", previous_response_id=one["id"])
        three = talk.answer(input="three", previous_response_id=two["id"], store=False)
        talk.answer(input="four", previous_response_id=three["id"])
    bodies = scripted.bodies()
    assert [body.get("previous_response_id") for body in bodies] == [None, "up_1", None, None]
    assert [body["store"] for body in bodies] == [True, True, False, True]


def test_after_a_response_of_the_background(serve: Serve, scripted: ScriptedBackend) -> None:
    served = chaining(serve, scripted)
    with served.client() as client:
        made = create(client, **ASK, input="one")
        assert ended(client, made["id"])["status"] == "completed"
        made = create(client, **ASK, input="two", previous_response_id=made["id"])
        assert ended(client, made["id"])["status"] == "completed"
    ask(served, input="three", previous_response_id=made["id"])
    _, second, third = scripted.bodies()
    for sent, before in ((second, "up_1"), (third, "up_2")):
        assert (sent["previous_response_id"], types(sent["input"])) == (before, ["user"])


def test_calls_of_one_id_are_told_whole(serve: Serve, scripted: ScriptedBackend) -> None:
    twice = [CALL, {**CALL, "id": "fc_2"}]
    served = chaining(serve, scripted, backend=Storing(*twice), answer={"exact": True})
    one, _ = ask(served, input="one", tools=[TOOL])
    ask(served, input=[RESULT, RESULT], previous_response_id=one["id"], tools=[TOOL])
    assert "previous_response_id" not in scripted.bodies()[1]
