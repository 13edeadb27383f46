"""The effort over HTTP: per-model sets, strictness before the network, defaults and their warning."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.app.conftest import Serve
from tests.backends.scripted import ScriptedBackend


def provider(backend: ScriptedBackend, wire: str, **more: Any) -> dict[str, Any]:
    url = f"{backend.origin}/v1"
    return {"name": "p", "kind": "openai", "base_url": url, "wire": wire, "profile": "openai", **more}


def body(client: str, model: str, effort: str | None) -> dict[str, Any]:
    if client == "chat/completions":
        asked: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
        return {"model": f"p/{model}", **asked, **({"reasoning_effort": effort} if effort else {})}
    return {"model": f"p/{model}", "input": "hi", **({"reasoning": {"effort": effort}} if effort else {})}


def level(sent: bytes) -> str | None:
    told = orjson.loads(sent)
    inner: str | None = told.get("reasoning", {}).get("effort")
    return told.get("reasoning_effort") or inner


LANES = [(client, wire) for client in ("chat/completions", "responses") for wire in ("chat", "responses")]


@pytest.mark.parametrize(("client", "wire"), LANES)
@pytest.mark.parametrize(
    ("model", "asked", "told"),
    [
        ("gpt-5.5-pro", "low", "medium"),
        ("gpt-5.5-pro", "high", "high"),
        ("gpt-5.5", "none", "none"),
        ("gpt-4o", "high", None),
    ],
)
def test_a_model_is_asked_for_a_level_it_has(
    serve: Serve, scripted: ScriptedBackend, client: str, wire: str, model: str, asked: str, told: str | None
) -> None:
    with serve(providers=[provider(scripted, wire)]).client() as http:
        reply = http.post(f"/v1/{client}", json=body(client, model, asked))
    assert reply.status_code == 200
    assert level(scripted.requests[-1].body) == told
    pointer = "/reasoning_effort" if client == "chat/completions" else "/reasoning/effort"
    assert reply.headers.get("x-dragoman-dropped", "") == ("" if asked == told else pointer)


@pytest.mark.parametrize(("client", "wire"), LANES)
def test_a_strict_client_is_refused_before_the_network(
    serve: Serve, scripted: ScriptedBackend, client: str, wire: str
) -> None:
    with serve(providers=[provider(scripted, wire)]).client() as http:
        asked = body(client, "gpt-5.5-pro", "low")
        reply = http.post(f"/v1/{client}", json=asked, headers={"x-dragoman-strict": "true"})
    param = "reasoning_effort" if client == "chat/completions" else "reasoning.effort"
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)
    assert scripted.requests == []


@pytest.mark.parametrize(("client", "wire"), LANES)
def test_a_configured_level_is_asked_for_and_never_overrides(
    serve: Serve, scripted: ScriptedBackend, client: str, wire: str
) -> None:
    overrides = {"reasoning": {"default_effort": "high"}}
    with serve(providers=[provider(scripted, wire, overrides=overrides)]).client() as http:
        for effort in (None, "low", "none"):
            reply = http.post(f"/v1/{client}", json=body(client, "gpt-5.5", effort))
            assert "x-dragoman-dropped" not in reply.headers
    assert [level(sent.body) for sent in scripted.requests] == ["high", "low", "none"]


def test_a_configured_level_for_a_model_without_reasoning_is_warned_of_once(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    overrides = {"reasoning": {"default_effort": "high"}}
    served = serve(fresh=True, providers=[provider(scripted, "auto", overrides=overrides)])
    with served.client() as http:
        for client in ("responses", "chat/completions", "responses"):
            assert http.post(f"/v1/{client}", json=body(client, "gpt-4o", None)).status_code == 200
    assert [level(sent.body) for sent in scripted.requests] == [None] * 3
    lines = served.log("default_effort_not_sent")
    assert [(line["provider"], line["model"], line["effort"]) for line in lines] == [("p", "gpt-4o", "high")]


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize(("model", "kept"), [("gpt-5.5", False), ("gpt-5.6-sol", False), ("gpt-5.4", True)])
def test_a_cache_in_memory_is_asked_for_only_where_there_is_one(
    serve: Serve, scripted: ScriptedBackend, wire: str, model: str, kept: bool
) -> None:
    asked = {**body("responses", model, None), "prompt_cache_retention": "in_memory"}
    with serve(providers=[provider(scripted, wire)]).client() as http:
        reply = http.post("/v1/responses", json=asked)
    assert ("prompt_cache_retention" in orjson.loads(scripted.requests[-1].body)) is kept
    assert reply.headers.get("x-dragoman-dropped") == (None if kept else "/prompt_cache_retention")


def test_a_mode_that_is_none_is_refused(serve: Serve, scripted: ScriptedBackend) -> None:
    for wire in ("chat", "responses"):
        with serve(providers=[provider(scripted, wire)]).client() as http:
            reply = http.post(
                "/v1/responses", json={**body("responses", "m", None), "reasoning": {"mode": "x"}}
            )
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, "reasoning.mode")
    assert scripted.requests == []
