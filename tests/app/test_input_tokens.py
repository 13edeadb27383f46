"""`POST /v1/responses/input_tokens`: counted by the backend where it counts, else estimated and said so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend

from .conftest import Serve, provider
from .onnx_served import FLAT, MODEL, started

Json = dict[str, Any]
OWN = {"wire": {"input_tokens": "/responses/input_tokens"}}
TOOL: Json = {
    "type": "function",
    "name": "weather",
    "description": "d" * 400,
    "parameters": {"type": "object"},
}
FORMAT: Json = {"format": {"type": "json_schema", "name": "n", "schema": {"description": "s" * 400}}}
ROUTE = "/v1/responses/input_tokens"


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize(
    ("more", "least"), [({"instructions": "i" * 400}, 100), ({"tools": [TOOL]}, 100), ({"text": FORMAT}, 100)]
)
def test_everything_counts(
    serve: Serve, scripted: ScriptedBackend, wire: str, more: Json, least: int
) -> None:
    served = serve(providers=[provider(scripted, wire)])
    with served.client() as client:
        plain = client.post(ROUTE, json={"model": "p/m", "input": "x" * 400})
        richer = client.post(ROUTE, json={"model": "p/m", "input": "x" * 400, **more, "stream": True}).json()
    assert plain.json().keys() == {"object", "input_tokens"}
    assert plain.json()["object"] == "response.input_tokens"
    assert 100 <= plain.json()["input_tokens"] < 110
    assert richer["input_tokens"] - plain.json()["input_tokens"] >= least
    assert plain.headers["x-dragoman-estimated"] == "true"
    assert plain.headers["x-dragoman-model"] == "p/m"
    assert not scripted.requests


def test_the_profiles_ratio_counts(serve: Serve, scripted: ScriptedBackend) -> None:
    rules = {"request": {"context_window": 100_000, "chars_per_token": 2}}
    served = serve(providers=[provider(scripted, overrides=rules)])
    with served.client() as client:
        made = client.post("/responses/input_tokens", json={"model": "p/m", "input": "x" * 400}).json()
    assert made["input_tokens"] >= 200


def test_what_it_continues_counts(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], store={"kind": "memory"})
    with served.client() as client:
        first = client.post("/v1/responses", json={"model": "p/m", "input": "x" * 4000}).json()
        body = {"model": "p/m", "input": "y", "previous_response_id": first["id"]}
        made = client.post(ROUTE, json=body).json()
        assert made["input_tokens"] > 1000
        assert client.get(f"/v1/responses/{first['id']}").status_code == 200


def test_a_backend_that_counts_is_asked(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply({"object": "response.input_tokens", "input_tokens": 7}))
    served = serve(providers=[provider(scripted, "responses", overrides=OWN)])
    with served.client() as client:
        body = {"model": "p/m", "input": "x", "temperature": 1, "stream": True, "tools": [TOOL]}
        reply = client.post(ROUTE, json=body)
    assert reply.json() == {"object": "response.input_tokens", "input_tokens": 7}
    assert "x-dragoman-estimated" not in reply.headers
    (sent,) = scripted.requests
    assert sent.path == ROUTE
    assert sent.json.keys() == {"model", "input", "tools"}


@pytest.mark.parametrize(
    "answer",
    [json_reply({"detail": "Not Found"}, 404), json_reply(["odd"]), json_reply({"input_tokens": "many"})],
    ids=["absent", "list", "word"],
)
def test_one_that_does_not_count_after_all(serve: Serve, scripted: ScriptedBackend, answer: Any) -> None:
    scripted.play(answer)
    served = serve(providers=[provider(scripted, "responses", overrides=OWN)])
    with served.client() as client:
        reply = client.post(ROUTE, json={"model": "p/m", "input": "x" * 40})
    assert (reply.status_code, reply.json()["input_tokens"]) == (200, 10)
    assert reply.headers["x-dragoman-estimated"] == "true"


def test_its_refusal_is_told(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply({"error": {"message": "bad tool", "param": "tools"}}, 400))
    served = serve(providers=[provider(scripted, "responses", overrides=OWN)])
    with served.client() as client:
        reply = client.post(ROUTE, json={"model": "p/m", "input": "x"})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "tools")


def test_what_the_backend_cannot_carry_is_refused(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted, overrides={"tools": {"supported": False}})])
    with served.client() as client:
        reply = client.post(ROUTE, json={"model": "p/m", "input": "x", "tools": [TOOL]})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "tools")


def test_other_methods(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    with served.client() as client:
        assert client.get(ROUTE).status_code == 405


def test_a_model_on_this_machine_is_counted_by_its_own_tokenizer(serve: Serve) -> None:
    served = started(serve)
    with served.client() as client:
        asked = {"model": MODEL, "input": "Say hello.", "tools": [FLAT]}
        counted = client.post(ROUTE, json=asked)
        answered = client.post("/v1/responses", json=asked).json()
    assert "x-dragoman-estimated" not in counted.headers
    assert counted.json()["input_tokens"] == answered["usage"]["input_tokens"]
