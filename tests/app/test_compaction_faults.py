"""Compactions that cannot be made, and what none may replace.

A model that is not there, what is no whole summary, items that came while it was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.backends.loopback import Reply, Request
from tests.backends.replies import (
    CHAT_USAGE,
    chat_completion,
    json_reply,
    response_items,
    response_object,
)
from tests.backends.scripted import ScriptedBackend

from .conftest import Serve, provider
from .keyed import entry, signed, written
from .test_compaction import CODEX, HISTORY, SUMMARY, TRIGGER, sums_up, words
from .test_state import events_of

Json = dict[str, Any]
REFUSAL = "I cannot help with that."


@pytest.fixture(params=["chat", "responses"])
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["trigger", "stream", "route"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def compact(client: httpx.Client, way: str, model: str = "p/m") -> httpx.Response:
    if way == "route":
        return client.post("/v1/responses/compact", json={"model": model, "input": HISTORY})
    body = {"model": model, "input": [*HISTORY, TRIGGER], "stream": way == "stream"}
    return client.post("/v1/responses", json=body)


def summary(wire: str, text: str, cut: str | None = None) -> Json:
    """A reply with a summary that `cut` ended: a reason of the Responses API."""
    if wire == "responses":
        status = "completed" if cut is None else "incomplete"
        details = None if cut is None else {"reason": cut}
        made = response_object(response_items(text), status=status)
        return {**made, "incomplete_details": details}
    made = chat_completion(text)
    finish = {None: "stop", "max_output_tokens": "length", "content_filter": "content_filter"}[cut]
    made["choices"][0]["finish_reason"] = finish
    return made


def refused(wire: str) -> Json:
    if wire == "responses":
        message = response_items("x")[0]
        part = {"type": "refusal", "refusal": REFUSAL}
        return response_object([{**message, "content": [part]}])
    made = chat_completion(None)
    made["choices"][0]["message"]["refusal"] = REFUSAL
    return made


def calling(wire: str) -> Json:
    """Words before a call, as agents say them."""
    words, arguments = "Let me look at the file first.", '{"path": "a"}'
    if wire == "responses":
        call = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c1",
            "name": "read",
            "arguments": arguments,
        }
        return response_object([*response_items(words), call])
    made = chat_completion(words)
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": arguments}}
    made["choices"][0]["message"]["tool_calls"] = [call]
    made["choices"][0]["finish_reason"] = "tool_calls"
    return made


@pytest.mark.parametrize("model", ["gone-by-another-name", "p/gone"])
def test_a_configured_model_that_is_not_there_is_the_operators(
    serve: Serve, scripted: ScriptedBackend, wire: str, way: str, model: str
) -> None:
    def answer(request: Request) -> Reply | None:
        gone = {"error": {"message": "The model `gone` does not exist", "code": "model_not_found"}}
        return json_reply(gone, 404) if b'"gone"' in request.body else sums_up(request)

    scripted.play(answer)
    served = serve(fresh=True, providers=[provider(scripted, wire)], compaction={"model": model})
    with served.client() as client:
        reply = compact(client, way)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["param"]) == (500, "compaction_model_unusable", None)
    assert "compaction.model" in error["message"]
    (line,) = served.log("compaction:model_unusable")
    assert line["model"] == model


def test_a_configured_model_that_the_key_may_not_use(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, way: str
) -> None:
    scripted.play(sums_up)
    keys = written(tmp_path / "keys.toml", entry("one", models=["p/m"]))
    served = serve(
        fresh=True,
        server={"keys_file": keys},
        providers=[provider(scripted)],
        compaction={"model": "p/small"},
    )
    with served.client(headers=signed("one")) as client:
        reply = compact(client, way)
    assert (reply.status_code, reply.json()["error"]["code"]) == (500, "compaction_model_unusable")


def test_a_model_that_the_client_named_is_its_own(serve: Serve, scripted: ScriptedBackend, way: str) -> None:
    scripted.play(json_reply({"error": {"message": "no such model", "code": "model_not_found"}}, 404))
    with serve(providers=[provider(scripted)]).client() as client:
        reply = compact(client, way, "p/none")
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "model_not_found")


def test_a_summary_that_was_cut_is_asked_for_once_more(
    serve: Serve, scripted: ScriptedBackend, wire: str, way: str
) -> None:
    """Shorter; what both took is told."""
    half = "They want " + "x" * 4000

    def answer(request: Request) -> Reply:
        again = b"Write no more than 2005 characters" in request.body
        return json_reply(summary(wire, SUMMARY) if again else summary(wire, half, "max_output_tokens"))

    scripted.play(answer)
    with serve(providers=[provider(scripted, wire)], store={"kind": "memory"}).client() as client:
        reply = compact(client, way)
        assert reply.status_code == 200, reply.text
        made = events_of(reply)[-1]["response"] if way == "stream" else reply.json()
        item = made["output"][-1]
        assert len(scripted.bodies()) == 2
        told = CHAT_USAGE["total_tokens"]
        assert made["usage"]["total_tokens"] == told * 2 if wire == "chat" else made["usage"]
        asked = {"model": "p/m", "input": [item, HISTORY[1]], "store": False}
        client.post("/v1/responses", json=asked)
        sent = str(scripted.bodies()[-1])
        assert SUMMARY in sent
        assert "xxxx" not in sent


def test_an_answer_with_a_call_is_asked_for_once_more(
    serve: Serve, scripted: ScriptedBackend, wire: str, way: str
) -> None:
    def answer(request: Request) -> Reply:
        again = b"There are no tools here" in request.body
        return json_reply(summary(wire, SUMMARY) if again else calling(wire))

    scripted.play(answer)
    with serve(providers=[provider(scripted, wire)], store={"kind": "memory"}).client() as client:
        reply = compact(client, way)
        assert reply.status_code == 200, reply.text
        made = events_of(reply)[-1]["response"] if way == "stream" else reply.json()
        assert len(scripted.bodies()) == 2
        asked = {"model": "p/m", "input": [made["output"][-1], HISTORY[1]], "store": False}
        client.post("/v1/responses", json=asked)
        sent = str(scripted.bodies()[-1])
        assert SUMMARY in sent
        assert "Let me look" not in sent


def test_a_search_that_the_backend_ran_is_no_call_of_a_tool(
    serve: Serve, scripted: ScriptedBackend, way: str
) -> None:
    searches = [{"type": kind, "id": kind, "status": "completed"} for kind in ("web_search_call", "mcp_call")]
    found = {"type": "tool_search_call", "id": "ts_1", "execution": "server", "arguments": {}}
    scripted.play(json_reply(response_object([*searches, found, *response_items(SUMMARY)])))
    with serve(providers=[provider(scripted, "responses")]).client() as client:
        assert compact(client, way).status_code == 200
    assert len(scripted.requests) == 1


NOT_WHOLE = {
    "calls": (calling, "called a tool", 2),
    "cut": (lambda wire: summary(wire, "They", "max_output_tokens"), "token limit", 2),
    "all thoughts": (lambda wire: summary(wire, "", "max_output_tokens"), "token limit", 2),
    "filtered": (lambda wire: summary(wire, "They", "content_filter"), "content filter", 1),
    "refused": (refused, REFUSAL, 1),
    "empty": (lambda wire: summary(wire, ""), "no summary", 1),
    "blank": (lambda wire: summary(wire, " \n"), "no summary", 1),
}


@pytest.mark.parametrize("case", NOT_WHOLE)
def test_what_is_no_whole_summary_replaces_nothing(
    serve: Serve, scripted: ScriptedBackend, wire: str, way: str, case: str
) -> None:
    made, words, asked = NOT_WHOLE[case]
    scripted.play(json_reply(made(wire)))
    with serve(providers=[provider(scripted, wire)]).client(headers=CODEX) as client:
        reply = compact(client, way)
    assert reply.status_code == 502, reply.text
    message = reply.json()["error"]["message"]
    assert words in message
    assert "p/m" in message
    assert len(scripted.requests) == asked


@pytest.fixture
def client(serve: Serve, scripted: ScriptedBackend) -> Iterator[httpx.Client]:
    with serve(providers=[provider(scripted)], store={"kind": "memory"}).client() as client:
        yield client


def test_what_a_conversation_got_meanwhile_stays(client: httpx.Client, scripted: ScriptedBackend) -> None:
    """Also where an item was taken out of it, so that there are as many as were summed up."""
    id = client.post("/v1/conversations", json={"items": HISTORY}).json()["id"]
    at = f"/v1/conversations/{id}/items"
    first = client.get(at, params={"order": "asc"}).json()["data"][0]["id"]

    def answer(request: Request) -> Reply | None:
        if (reply := sums_up(request)) is not None:
            assert client.delete(f"{at}/{first}").status_code == 200
            later = {"role": "assistant", "content": [{"type": "output_text", "text": "Two are there."}]}
            assert client.post(at, json={"items": [later]}).status_code == 200
        return reply

    scripted.play(answer)
    asked = {"model": "p/m", "conversation": id}
    assert client.post("/v1/responses", json={**asked, "input": [TRIGGER]}).status_code == 200
    scripted.play(sums_up)
    assert client.post("/v1/responses", json={**asked, "input": "Go on."}).status_code == 200
    told = words(scripted.bodies()[-1])
    assert told.index("Two are there.") < told.index(SUMMARY) < told.index("Go on.")
