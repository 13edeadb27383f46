"""Tools for a model that takes none: refused before the network, where that is known for certain."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from providers.databricks import takes_no_tools
from tests.app.conftest import Serve, Served
from tests.app.test_recovery import post
from tests.backends.loopback import Reply, Request
from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend

FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
ENDPOINTS = [
    {"name": name, "task": "llm/v1/chat", **({} if says is None else {"capabilities": says})}
    for name, says in (
        ("plain", {"function_calling": False}),
        ("able", {"function_calling": True}),
        ("silent", None),
    )
]


class Workspace(ScriptedBackend):
    """Lists endpoints, answers like any backend."""

    def _answer(self, request: Request) -> Reply:
        if request.method != "POST":
            return json_reply({"endpoints": ENDPOINTS})
        return super()._answer(request)


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace() as backend:
        yield backend


def serving(serve: Serve, workspace: Workspace, **more: Any) -> Served:
    account = {"name": "d", "kind": "databricks", "base_url": workspace.origin, **more}
    served = serve(fresh=True, providers=[account])
    deadline = time.monotonic() + 5
    with served.client() as client:
        while time.monotonic() < deadline:
            if "d/plain" in client.get("/v1/models").text:
                return served
            time.sleep(0.02)
    raise AssertionError("the workspace's list was not read")


def chat(model: str, **more: Any) -> dict[str, Any]:
    return {"model": f"d/{model}", "messages": [{"role": "user", "content": "hi"}], **more}


@pytest.mark.parametrize(
    ("route", "body", "param"),
    [
        ("/v1/chat/completions", chat("plain", tools=[TOOL]), "tools"),
        ("/v1/chat/completions", chat("plain", functions=[TOOL["function"]]), "functions"),
        ("/v1/responses", {"model": "d/plain", "input": "hi", "tools": [FUNCTION]}, "tools"),
    ],
)
def test_an_explicit_no_is_believed(
    serve: Serve, workspace: Workspace, route: str, body: Any, param: str
) -> None:
    reply = post(serving(serve, workspace), body, route)
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, param)
    assert error["message"].startswith("model d/plain does not support function tools")
    assert not workspace.requests


@pytest.mark.parametrize(
    "body",
    [
        chat("plain"),
        chat("plain", tools=[]),
        chat("able", tools=[TOOL]),
        chat("silent", tools=[TOOL]),
        chat("unlisted", tools=[TOOL]),
    ],
)
def test_everything_else_is_sent(serve: Serve, workspace: Workspace, body: Any) -> None:
    assert post(serving(serve, workspace), body).status_code == 200
    assert len(workspace.requests) == 1


def test_the_configuration_wins_over_the_listing(serve: Serve, workspace: Workspace) -> None:
    served = serving(serve, workspace, overrides={"tools": {"supported": True}})
    assert post(served, chat("plain", tools=[TOOL])).status_code == 200


def test_the_configuration_may_say_no(serve: Serve, workspace: Workspace) -> None:
    served = serving(serve, workspace, overrides={"tools": {"supported": False}})
    assert post(served, chat("able", tools=[TOOL])).status_code == 400
    assert not workspace.requests


def _held(word: object) -> dict[str, Any]:
    entity = {"foundation_model": {"capabilities": {"function_calling": word}}}
    return {"config": {"served_entities": [entity]}}


@pytest.mark.parametrize(
    ("facts", "none"),
    [
        ({}, False),
        ({"capabilities": None}, False),
        ({"capabilities": {"function_calling": None}}, False),
        ({"capabilities": {"function_calling": False}}, True),
        (_held(False), True),
        (_held(True), False),
        (_held("false"), False),
    ],
)
def test_only_false_says_so(facts: dict[str, Any], none: bool) -> None:
    assert takes_no_tools(facts) is none
