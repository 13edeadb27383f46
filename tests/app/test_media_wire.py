"""Media, cache marks and the word JSON, from a client's request to what the backend gets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

Json = dict[str, Any]
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
ROUTES = {"chat": CHAT, "responses": RESPONSES}
AUDIO = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
EPHEMERAL = {"cache_control": {"type": "ephemeral"}}


def media(**rules: str) -> Json:
    return {"overrides": {"messages": {"media": rules}}}


def user(*parts: Any) -> Json:
    return {"role": "user", "content": list(parts)}


def hearing(shape: str) -> Json:
    return {"model": "p/m", "messages" if shape == "chat" else "input": [user(AUDIO)]}


def content(body: Any) -> Any:
    return (body.get("messages") or body["input"])[-1]["content"]


# --- media -----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ROUTES)
def test_sound_for_a_responses_backend_is_refused_by_name_and_place(
    serve: Serve, scripted: ScriptedBackend, shape: str
) -> None:
    account = provider(scripted, "responses", **media(audio="refuse"))
    with serve(providers=[account]).client() as client:
        reply = client.post(ROUTES[shape], json=hearing(shape))
    error = reply.json()["error"]
    place = "messages" if shape == "chat" else "input"
    assert (reply.status_code, error["param"]) == (400, f"{place}[0].content[0]")
    assert "audio" in error["message"]
    assert scripted.requests == []


def test_sound_has_no_form_on_the_responses_wire(serve: Serve, scripted: ScriptedBackend) -> None:
    with serve(providers=[provider(scripted, "responses")]).client() as client:
        reply = client.post(CHAT, json=hearing("chat"))
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, "messages[0].content[0]")
    assert "audio" in error["message"]
    assert scripted.requests == []


@pytest.mark.parametrize("shape", ROUTES)
def test_ollama_hears_nothing(serve: Serve, scripted: ScriptedBackend, shape: str) -> None:
    with serve(providers=[provider(scripted, profile="ollama-openai")]).client() as client:
        reply = client.post(ROUTES[shape], json=hearing(shape))
    assert reply.status_code == 400
    assert "audio" in reply.json()["error"]["message"]
    assert scripted.requests == []


@pytest.mark.parametrize("wire", ROUTES)
@pytest.mark.parametrize("shape", ROUTES)
def test_sound_told_in_words(serve: Serve, scripted: ScriptedBackend, shape: str, wire: str) -> None:
    account = provider(scripted, wire, **media(audio="describe", unsupported="describe"))
    with serve(providers=[account]).client() as client:
        reply = client.post(ROUTES[shape], json=hearing(shape))
    assert reply.status_code == 200
    place = "messages" if shape == "chat" else "input"
    assert reply.headers["x-dragoman-dropped"] == f"/{place}/0/content/0"
    assert "[audio: audio/wav, 4 B]" in str(content(scripted.bodies()[-1]))
    assert "UklGRg" not in str(scripted.bodies()[-1])


def called(picture: Json) -> list[Json]:
    call = {"id": "c1", "type": "function", "function": {"name": "shot", "arguments": "{}"}}
    return [
        user({"type": "text", "text": "look"}),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "done"}, picture]},
    ]


@pytest.mark.parametrize("rule", ["lift", "keep"])
def test_a_picture_in_the_result_of_a_tool(serve: Serve, scripted: ScriptedBackend, rule: str) -> None:
    account = provider(scripted, **media(tool_results=rule))
    with serve(providers=[account]).client() as client:
        reply = client.post(CHAT, json={"model": "p/m", "messages": called(PICTURE)})
    assert reply.status_code == 200
    result, *after = scripted.bodies()[-1]["messages"][2:]
    if rule == "keep":
        assert PICTURE in result["content"]
        assert after == []
    else:
        assert isinstance(result["content"], str)
        assert (after[0]["role"], after[0]["content"][-1]) == ("user", PICTURE)


# --- cache -----------------------------------------------------------------------------


@pytest.mark.parametrize("wire", ROUTES)
@pytest.mark.parametrize("shape", ROUTES)
def test_an_empty_cache_key_is_none(serve: Serve, scripted: ScriptedBackend, shape: str, wire: str) -> None:
    body = {"model": "p/m", "prompt_cache_key": "", "messages": [user({"type": "text", "text": "x"})]}
    if shape == "responses":
        body = {"model": "p/m", "prompt_cache_key": "", "input": "x"}
    with serve(providers=[provider(scripted, wire)]).client() as client:
        reply = client.post(ROUTES[shape], json=body)
    assert reply.status_code == 200
    assert "prompt_cache_key" not in scripted.bodies()[-1]
    assert reply.headers.get("x-dragoman-dropped") is None


TURNS = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
]


@pytest.mark.parametrize("shape", ROUTES)
def test_claude_gets_two_marks_where_the_configuration_asks(
    serve: Serve, scripted: ScriptedBackend, shape: str
) -> None:
    more = {"profile": "databricks-claude", "overrides": {"messages": {"cache_marks": True}}}
    with serve(providers=[provider(scripted, **more)]).client() as client:
        key = "messages" if shape == "chat" else "input"
        assert client.post(ROUTES[shape], json={"model": "p/m", key: TURNS}).status_code == 200
        sent = scripted.bodies()[-1]["messages"]
        assert client.post(CHAT, json={"model": "p/m", "messages": sent}).status_code == 200
    marked = [{"type": "text", "text": text, **EPHEMERAL} for text in ("be brief", "two")]
    assert [sent[0]["content"], sent[2]["content"]] == [[mark] for mark in marked]
    assert str(sent).count("cache_control") == 2
    assert scripted.bodies()[-1]["messages"] == sent


def test_marks_are_asked_for(serve: Serve, scripted: ScriptedBackend) -> None:
    with serve(providers=[provider(scripted, profile="databricks-claude")]).client() as client:
        assert client.post(CHAT, json={"model": "p/m", "messages": TURNS}).status_code == 200
    assert scripted.bodies()[-1]["messages"] == TURNS


def test_a_clients_marks_survive_a_translation(serve: Serve, scripted: ScriptedBackend) -> None:
    marked = user({"type": "text", "text": "long", **EPHEMERAL}, {"type": "text", "text": "short"})
    spec = {"name": "n", "schema": {"type": "object", "properties": {}}}
    asked = {"response_format": {"type": "json_schema", "json_schema": spec}}
    more = {"profile": "databricks-claude", "overrides": {"messages": {"cache_marks": True}}}
    with serve(providers=[provider(scripted, **more)]).client() as client:
        reply = client.post(CHAT, json={"model": "p/m", "messages": [marked, TURNS[3]], **asked})
    assert "tools" in scripted.bodies()[-1], "the schema has become a tool"
    assert scripted.bodies()[-1]["messages"][0] == marked
    assert "cache_control" not in reply.headers.get("x-dragoman-dropped", "")


# --- the word JSON ---------------------------------------------------------------------


def wanting_json(shape: str, words: str) -> Json:
    turns = [{"role": "system", "content": "Answer in JSON."}, {"role": "user", "content": words}]
    if shape == "chat":
        return {"model": "p/m", "messages": turns, "response_format": {"type": "json_object"}}
    return {"model": "p/m", "input": turns, "text": {"format": {"type": "json_object"}}}


@pytest.mark.parametrize("profile", ["databricks-gpt", "databricks-oss"])
@pytest.mark.parametrize("wire", ROUTES)
@pytest.mark.parametrize("shape", ROUTES)
def test_the_user_says_json_where_only_the_system_did(
    serve: Serve, scripted: ScriptedBackend, shape: str, wire: str, profile: str
) -> None:
    with serve(providers=[provider(scripted, wire, profile=profile)]).client() as client:
        reply = client.post(ROUTES[shape], json=wanting_json(shape, "list them"))
        assert (reply.status_code, reply.headers["x-dragoman-repairs"]) == (200, "1")
        sent = scripted.bodies()[-1]
        assert "Respond with a JSON object." in str((sent.get("messages") or sent["input"])[-1])
        reply = client.post(ROUTES[shape], json=wanting_json(shape, "as Json"))
        assert reply.headers.get("x-dragoman-repairs") is None
        assert "Respond with" not in str(scripted.bodies()[-1])


# --- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize("path", ROUTES.values())
def test_a_body_that_is_no_json(serve: Serve, scripted: ScriptedBackend, path: str) -> None:
    with serve(providers=[provider(scripted)]).client() as client:
        reply = client.post(path, content=b"{bad", headers={"content-type": "application/json"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid_json")
    assert scripted.requests == []
