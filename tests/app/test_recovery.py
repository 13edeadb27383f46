"""A backend refuses a field: it is left out, told, and remembered once the backend has answered."""

from __future__ import annotations

import time
from typing import Any

import httpx
import orjson
import pytest

from app.recovery import MAX_ROUNDS
from tests.app.conftest import Serve, Served
from tests.app.test_pipeline import provider
from tests.backends.loopback import Reply, Request
from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend

CHAT = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}


def extra(field: str) -> str:
    return f"{field}: Extra inputs are not permitted"


def refusing(*fields: str, status: int = 400, words: Any = extra) -> Any:
    """A backend that names the first of `fields` (by its last key) that it finds."""

    def answer(request: Request) -> Reply | None:
        for field in fields:
            if f'"{field.split(".")[-1]}"'.encode() in request.body:
                error = {"message": words(field), "type": "invalid_request_error"}
                return json_reply({"error": error}, status)
        return None

    return answer


def post(served: Served, body: Any, route: str = "/v1/chat/completions", **headers: str) -> httpx.Response:
    """The reply; its line is in the log then, which the server writes after the last byte."""
    with served.client() as client:
        reply = client.post(route, json=body, headers=headers)
    deadline = time.monotonic() + 5
    while served.gateway.serving and time.monotonic() < deadline:
        time.sleep(0.002)
    return reply


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("stream", [True, False])
def test_a_refused_field_is_left_out_and_remembered(
    serve: Serve, scripted: ScriptedBackend, stream: bool, status: int
) -> None:
    scripted.play(refusing("temperature", "tools.0.custom.strict", status=status))
    served = serve(fresh=True, providers=[provider(scripted, overrides={"tools": {"strict": "keep"}})])
    tool = {
        "type": "function",
        "name": "f",
        "parameters": {"type": "object", "properties": {}},
        "strict": True,
    }
    body = {"model": "p/m", "input": "hi", "temperature": 0.5, "tools": [tool], "stream": stream}
    first = post(served, body, "/v1/responses")
    assert first.status_code == 200
    assert first.headers["x-dragoman-dropped"] == "/temperature,/tools/0/strict"
    again = post(served, body, "/v1/responses")
    assert again.headers["x-dragoman-dropped"] == "/temperature,/tools/0/strict"
    assert len(scripted.requests) == 4
    sent = scripted.bodies()[-1]
    assert "temperature" not in sent
    assert sent["tools"][0]["function"].keys() == {"name", "parameters"}
    assert [line["attempts"] for line in served.log()] == [3, 1]
    rejected = served.log("provider:field_rejected")
    assert [line["field"] for line in rejected] == ["temperature", "tools.*.function.strict"]
    assert {"request_id", "target", "surface", "reason"} <= rejected[0].keys()


def test_a_client_that_wants_no_loss_gets_the_backends_words(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(refusing("temperature"))
    served = serve(fresh=True, providers=[provider(scripted)])
    body = {**CHAT, "temperature": 0}
    strict = {"x-dragoman-strict": "true"}
    assert post(served, body, **strict).json()["error"]["message"] == extra("temperature")
    assert post(served, body).status_code == 200
    known = post(served, body, **strict)
    assert (known.status_code, known.json()["error"]["message"]) == (400, extra("temperature"))
    assert "x-dragoman-dropped" not in known.headers


def test_the_switch_turns_it_off(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(refusing("temperature"))
    off = provider(scripted, overrides={"request": {"learn_rejections": False}})
    reply = post(serve(fresh=True, providers=[off]), {**CHAT, "temperature": 0})
    assert (reply.status_code, len(scripted.requests)) == (400, 1)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({}, "messages.0.content"),
    ],
)
def test_what_changes_the_meaning_is_the_clients_to_hear(
    serve: Serve, scripted: ScriptedBackend, more: Any, field: str
) -> None:
    scripted.play(refusing(field))
    reply = post(serve(fresh=True, providers=[provider(scripted)]), {**CHAT, **more})
    assert (reply.status_code, len(scripted.requests)) == (400, 1)
    assert reply.json()["error"]["message"] == extra(field)


def test_the_rounds_are_limited(serve: Serve, scripted: ScriptedBackend) -> None:
    fields = [f"field_{at}" for at in range(MAX_ROUNDS + 1)]
    scripted.play(refusing(*fields))
    served = serve(fresh=True, providers=[provider(scripted)])
    reply = post(served, {**CHAT, **dict.fromkeys(fields, 1)})
    assert (reply.status_code, len(scripted.requests)) == (400, 1 + MAX_ROUNDS)
    assert reply.json()["error"]["message"] == extra(fields[-1])
    scripted.clear()  # nothing came of it, so nothing is remembered
    assert post(served, {**CHAT, fields[0]: 1}).status_code == 200
    assert fields[0] in scripted.bodies()[0]


def test_rounds_take_nothing_from_the_retries(serve: Serve, scripted: ScriptedBackend) -> None:
    busy = [json_reply({"error": {"message": "busy"}}, 503, {"retry-after": "0"})]

    def answer(request: Request) -> Reply | None:
        return refusing("temperature")(request) or (busy.pop() if busy else None)

    scripted.play(answer)
    reply = post(serve(fresh=True, providers=[provider(scripted)]), {**CHAT, "temperature": 0})
    assert (reply.status_code, len(scripted.requests)) == (200, 3)


def test_the_limit_on_tokens_goes_out_by_its_other_name(serve: Serve, scripted: ScriptedBackend) -> None:
    def words(field: str) -> str:
        return f"Unsupported parameter: '{field}' is not supported with this model. Use another one instead."

    scripted.play(refusing("max_tokens", words=words))
    served = serve(fresh=True, providers=[provider(scripted)])
    for _ in range(2):
        reply = post(served, {**CHAT, "max_tokens": 7})
        assert reply.status_code == 200
        assert "x-dragoman-dropped" not in reply.headers
    assert [body.get("max_completion_tokens") for body in scripted.bodies()] == [None, 7, 7]


def test_an_effort_goes_to_the_nearest_that_the_backend_names(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    def words(field: str) -> str:
        return (
            f"Unsupported value: '{field}' does not support 'high' with this model. "
            "Supported values are: 'low' and 'medium'."
        )

    def answer(request: Request) -> Reply | None:
        asked = request.json.get("reasoning_effort") == "high"
        return json_reply({"error": {"message": words("reasoning_effort")}}, 400) if asked else None

    scripted.play(answer)
    served = serve(fresh=True, providers=[provider(scripted)])
    for _ in range(2):
        body = {"model": "p/m", "input": "hi", "reasoning": {"effort": "high"}}
        assert post(served, body, "/v1/responses").headers["x-dragoman-dropped"] == "/reasoning/effort"
    assert [body["reasoning_effort"] for body in scripted.bodies()] == ["high", "medium", "medium"]


def test_one_field_after_the_other_though_the_words_stay_the_same(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    """Newer Claude endpoints speak of the temperature when it is top_p that they refuse."""
    message = orjson.dumps({"message": "Model does not support the temperature parameter"}).decode()
    error = {"error_code": "BAD_REQUEST", "message": message}

    def answer(request: Request) -> Reply | None:
        return json_reply(error, 400) if {"temperature", "top_p"} & request.json.keys() else None

    scripted.play(answer)
    account = {"name": "d", "kind": "databricks", "base_url": scripted.origin, "wire": "chat"}
    served = serve(fresh=True, providers=[account])
    body = {**CHAT, "model": "d/databricks-claude-sonnet-4-5", "temperature": 0, "top_p": 1}
    reply = post(served, body)
    assert (reply.status_code, reply.headers["x-dragoman-dropped"]) == (200, "/temperature,/top_p")
    assert len(scripted.requests) == 3


def test_a_surface_is_kept_when_a_field_was_all_it_refused(serve: Serve, scripted: ScriptedBackend) -> None:
    """The words are also those of a missing surface; a field that is there to be left out goes first."""

    def words(field: str) -> str:
        return f"This model does not support the '{field}' parameter for the Open Responses API."

    scripted.play(refusing("parallel_tool_calls", words=words))
    account = {"name": "d", "kind": "databricks", "base_url": scripted.origin}
    tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    body = {"model": "d/databricks-gpt-5-5", "input": "hi", "tools": [tool], "parallel_tool_calls": False}
    reply = post(serve(fresh=True, providers=[account]), body, "/v1/responses")
    assert (reply.status_code, reply.headers["x-dragoman-dropped"]) == (200, "/parallel_tool_calls")
    assert len({request.path for request in scripted.requests}) == 1


def test_embeddings_pass_as_they_are(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(refusing("dimensions"))
    body = {"model": "p/m", "input": "hi", "dimensions": 8}
    reply = post(serve(fresh=True, providers=[provider(scripted)]), body, "/v1/embeddings")
    assert (reply.status_code, len(scripted.requests)) == (400, 1)


def test_after_the_first_byte_there_is_no_other_try(serve: Serve, scripted: ScriptedBackend) -> None:
    def late(request: Request) -> Reply | None:
        reply = refusing("temperature")(request)
        if reply is not None:
            reply.pieces = [0.6, *reply.pieces]
        return reply

    scripted.play(late)
    served = serve(fresh=True, providers=[provider(scripted)], server={"keepalive_s": 0.2})
    body = {"model": "p/m", "input": "hi", "temperature": 0, "stream": True}
    reply = post(served, body, "/v1/responses")
    assert "event: response.failed" in reply.text
    assert len(scripted.requests) == 1
    assert served.log()[0]["dropped"] == []


# --- reasoning that the backend cannot use ---------------------------------------------

SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "made-elsewhere"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
DONE = {"type": "function_call_output", "call_id": "c", "output": "ok"}
ASKED = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "It could not be verified.", "code": "invalid_encrypted_content"}),
        (
            400,
            {"message": "Item 'rs_1' of type 'reasoning' was provided without its required following item."},
        ),
        (400, {"message": "'fc_1' was provided without its required preceding item of type 'reasoning'."}),
        (404, {"message": "Item 'rs_1' not found. Items are not persisted when `store` is set to false."}),
    ],
)
def test_reasoning_is_left_out_once(serve: Serve, scripted: ScriptedBackend, status: int, error: Any) -> None:
    def answer(request: Request) -> Reply | None:
        return json_reply({"error": error}, status) if b'"rs_1"' in request.body else None

    scripted.play(answer)
    served = serve(fresh=True, providers=[provider(scripted, wire="responses")])
    body = {"model": "p/m", "input": [ASKED, SEALED, CALL, DONE], "store": False}
    reply = post(served, body, "/v1/responses")
    assert (reply.status_code, reply.headers["x-dragoman-dropped"]) == (200, "/input/1")
    assert reply.headers["x-dragoman-repairs"] == "1"
    bare = {key: value for key, value in CALL.items() if key != "id"}
    assert scripted.bodies()[-1]["input"] == [ASKED, bare, DONE]
    strict = post(served, body, "/v1/responses", **{"x-dragoman-strict": "true"})
    assert (strict.status_code, strict.json()["error"]["message"]) == (status, error["message"])


def test_reasoning_is_left_out_no_second_time(serve: Serve, scripted: ScriptedBackend) -> None:
    error = {"message": "It could not be verified.", "code": "invalid_encrypted_content"}
    scripted.play(json_reply({"error": error}, 400))
    served = serve(fresh=True, providers=[provider(scripted, wire="responses")])
    asked = {"model": "p/m", "input": [ASKED, SEALED, CALL, DONE], "store": False}
    reply = post(served, asked, "/v1/responses")
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid_encrypted_content")
    assert len(scripted.requests) == 2
    nothing = post(served, {"model": "p/m", "input": [ASKED]}, "/v1/responses")
    assert (nothing.status_code, len(scripted.requests)) == (400, 3)
