"""Paths that clients of other servers know: the refusal says what is served instead."""

from __future__ import annotations

import pytest

from app.missing_routes import instead_of
from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

PATHS = [
    *("/v1/completions", "/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/audio/speech"),
    *("/v1/images/generations", "/v1/files", "/v1/files/f-1", "/v1/batches", "/v1/moderations"),
    *("/api/chat", "/api/tags"),
]


@pytest.mark.parametrize("path", PATHS)
def test_a_known_path_has_a_word_more(path: str) -> None:
    said = instead_of(path)
    assert said.startswith("; ")
    assert len(said) < 140


@pytest.mark.parametrize("path", ["/v1/nothing", "/x", "/v1/complete", "/apiary", "/v1/filesystem", "/"])
def test_any_other_path_has_none(path: str) -> None:
    assert instead_of(path) == ""


def test_it_is_in_the_answer(serve: Serve, scripted: ScriptedBackend) -> None:
    with serve(providers=[provider(scripted)]).client() as client:
        reply = client.post("/v1/completions", json={"model": "m", "prompt": "hi"})
    assert reply.status_code == 404
    error = reply.json()["error"]
    assert error["code"] == "unknown_route"
    assert error["message"].startswith("unsupported route POST /v1/completions; prompts without roles")
    assert "POST /v1/chat/completions" in error["message"]
