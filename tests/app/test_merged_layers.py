"""The layers of a profile together, over HTTP: judged as merged, and the guard counts what is sent."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.app.conftest import Serve, provider
from tests.app.test_recovery import post
from tests.backends.scripted import ScriptedBackend

TABLE = "x-dragoman-overrides"
WINDOW = {"request": {"context_window": 2000}}
WORDS = "word " * 1000
"""5000 characters: 1250 tokens at 4 characters each, 2500 at 2."""
CHAT = {"model": "p/m", "messages": [{"role": "user", "content": WORDS}]}
RESPONSES = {"model": "p/m", "input": WORDS}
EMBEDDINGS = {"model": "p/m", "input": WORDS}
ROUTES = [("/v1/chat/completions", CHAT), ("/v1/responses", RESPONSES), ("/v1/embeddings", EMBEDDINGS)]


def header(**rules: Any) -> dict[str, str]:
    return {TABLE: orjson.dumps({"request": rules}).decode()}


@pytest.mark.parametrize(("route", "body"), ROUTES)
def test_a_header_needs_not_repeat_the_providers_window(
    serve: Serve, scripted: ScriptedBackend, route: str, body: dict[str, Any]
) -> None:
    served = serve(providers=[provider(scripted, overrides=WINDOW)])
    assert post(served, body, route).status_code == 200
    refused = post(served, body, route, **header(chars_per_token=2.0))
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert len(scripted.requests) == 1


@pytest.mark.parametrize(("route", "body"), ROUTES)
@pytest.mark.parametrize(
    ("overrides", "rules"),
    [
        ({}, {"chars_per_token": 2.0}),
        ({"request": {"context_window": 9000, "chars_per_token": 2.0}}, {"context_window": False}),
    ],
)
def test_what_a_header_makes_of_the_layers_below_is_refused(
    serve: Serve,
    scripted: ScriptedBackend,
    route: str,
    body: dict[str, Any],
    overrides: dict[str, Any],
    rules: dict[str, Any],
) -> None:
    served = serve(providers=[provider(scripted, overrides=overrides)])
    reply = post(served, body, route, **header(**rules))
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, TABLE)
    assert "request.chars_per_token: needs `request.context_window` beside it" in error["message"]
    assert not scripted.requests


@pytest.mark.parametrize(("route", "body"), ROUTES[:2])
def test_the_guard_counts_what_extra_body_adds(
    serve: Serve, scripted: ScriptedBackend, route: str, body: dict[str, Any]
) -> None:
    short = {**body, "messages" if "messages" in body else "input": [{"role": "user", "content": "hi"}]}
    tool = {"type": "function", "function": {"name": "f", "description": WORDS * 2}}
    served = serve(fresh=True, providers=[provider(scripted, overrides=WINDOW, extra_body={"tools": [tool]})])
    reply = post(served, short, route)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (400, "context_length_exceeded")
    assert "tools 25" in error["message"]
    assert not scripted.requests


def test_the_guard_does_not_count_what_extra_body_takes_away(serve: Serve, scripted: ScriptedBackend) -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": WORDS * 2}}]
    one = [{"type": "function", "function": {"name": "g"}}]
    served = serve(fresh=True, providers=[provider(scripted, overrides=WINDOW, extra_body={"tools": one})])
    assert post(served, {**CHAT, "tools": tools}).status_code == 200
    assert scripted.bodies()[-1]["tools"] == one
