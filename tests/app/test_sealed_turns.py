"""Capsules over HTTP: a changed history, other gateways, other backends, and backends that refuse them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.app.conftest import Serve, Served
from tests.app.test_pipeline import provider
from tests.app.test_reasoning_turns import ASKED, CALL, TOOL, VENDORS
from tests.backends.loopback import Reply, Request
from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend
from tests.conftest import StartGateway

BODY = {"model": "p/m", "instructions": "brief", "input": [ASKED], "tools": [TOOL], "store": False}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "r"}


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def reply_of(vendor: str) -> Reply:
    message = {"role": "assistant", **VENDORS[vendor][1]}
    return json_reply(
        {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    )


def gateway(
    serve: Serve, scripted: ScriptedBackend, vendor: str = "databricks-claude", **server: Any
) -> Served:
    backend = provider(scripted, wire="chat", profile=VENDORS[vendor][0])
    return serve(fresh=True, providers=[backend], server=server)


def post(served: Served, body: Any, route: str = "/v1/responses") -> httpx.Response:
    with served.client() as client:
        return client.post(route, json=body)


def first_turn(served: Served) -> list[Any]:
    reply = post(served, BODY)
    assert reply.status_code == 200
    output: list[Any] = reply.json()["output"]
    return output


def second_body(output: list[Any], **changes: Any) -> dict[str, Any]:
    return {**BODY, "input": [ASKED, *output, RESULT], **changes}


def test_a_changed_history_leaves_thoughts_out(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(reply_of("databricks-claude"))
    served = gateway(serve, scripted)
    output = first_turn(served)
    same = post(served, second_body(output, tools=[]))
    assert b"SIG" in scripted.requests[-1].body
    assert "x-dragoman-dropped" not in same.headers
    changed = post(served, second_body(output, instructions="long"))
    assert changed.status_code == 200
    assert b"SIG" not in scripted.requests[-1].body
    assert "/input/1" in changed.headers["x-dragoman-dropped"].split(",")


@pytest.mark.parametrize("vendor", ["databricks-gemini", "gemini-openai"])
def test_a_changed_history_keeps_the_signatures_of_calls(
    vendor: str, serve: Serve, scripted: ScriptedBackend
) -> None:
    scripted.play(reply_of(vendor))
    served = gateway(serve, scripted, vendor)
    reply = post(served, second_body(first_turn(served), instructions="long"))
    sent = next(m for m in scripted.bodies()[-1]["messages"] if m["role"] == "assistant")
    assert sent["tool_calls"] == VENDORS[vendor][1]["tool_calls"]
    assert "x-dragoman-dropped" not in reply.headers


@pytest.mark.parametrize(("other", "opened"), [("shared", True), ("another", False)])
def test_gateways_with_one_key_open_each_others(
    other: str, opened: bool, serve: Serve, scripted: ScriptedBackend
) -> None:
    scripted.play(reply_of("databricks-claude"))
    output = first_turn(gateway(serve, scripted, seal_key="shared"))
    reply = post(gateway(serve, scripted, seal_key=other), second_body(output))
    assert reply.status_code == 200
    assert (b"SIG" in scripted.requests[-1].body) is opened
    assert ("x-dragoman-dropped" in reply.headers) is not opened


def test_the_workers_of_one_gateway_share_a_key(
    start_gateway: StartGateway, scripted: ScriptedBackend
) -> None:
    """Every connection may come to another worker."""
    scripted.play(reply_of("databricks-claude"))
    backend = provider(scripted, wire="chat", profile="databricks-claude")
    running = start_gateway([backend], server={"workers": 2})
    for _ in range(6):
        with running.client() as client:
            output = client.post("/v1/responses", json=BODY).json()["output"]
        with running.client() as client:
            second = client.post("/v1/responses", json=second_body(output))
        assert second.status_code == 200
        assert b"SIG" in scripted.requests[-1].body
    assert "seal_key:not_kept" not in running.log()


def test_a_responses_backend_is_sent_no_capsule(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(reply_of("databricks-claude"))
    output = first_turn(gateway(serve, scripted))
    scripted.clear()
    served = serve(fresh=True, providers=[provider(scripted, wire="responses")])
    reply = post(served, second_body(output))
    assert reply.status_code == 200
    assert b"dgm1." not in scripted.requests[-1].body
    assert "/input/1" in reply.headers["x-dragoman-dropped"].split(",")


# --- a Chat backend that refuses them --------------------------------------------------

REFUSALS = [
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "messages.1.content.0: Invalid `data` in `redacted_thinking` block",
    "messages.1.content.0: `thinking` or `redacted_thinking` blocks cannot be modified.",
]


def refusing(words: str, needle: bytes) -> Any:
    def answer(request: Request) -> Reply | None:
        return json_reply({"error": {"message": words}}, 400) if needle in request.body else None

    return answer


@pytest.mark.parametrize("words", REFUSALS)
def test_a_refused_thought_is_left_out_once(words: str, serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(reply_of("databricks-claude"))
    served = gateway(serve, scripted)
    output = first_turn(served)
    scripted.play(refusing(words, b"SIG"))
    reply = post(served, second_body(output))
    assert (reply.status_code, len(scripted.requests)) == (200, 3)
    assert reply.headers["x-dragoman-repairs"] == "1"
    assert reply.headers["x-dragoman-dropped"].split(",")[0] == "/input/1"
    scripted.play(json_reply({"error": {"message": words}}, 400))
    twice = post(served, second_body(output))
    assert (twice.status_code, twice.json()["error"]["message"]) == (400, words)
    assert len(scripted.requests) == 5


def test_a_chat_clients_own_signatures(serve: Serve, scripted: ScriptedBackend) -> None:
    words = "Thought signature is not valid"
    scripted.play(refusing(words, b"thought_signature"))
    served = gateway(serve, scripted, "gemini-openai")
    call = {**CALL, "extra_content": {"google": {"thought_signature": "G"}}}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
    ]
    reply = post(served, {"model": "p/m", "messages": messages}, "/v1/chat/completions")
    assert (reply.status_code, reply.headers["x-dragoman-dropped"]) == (200, "/messages/1")
    assert [orjson.loads(r.body)["messages"][1]["tool_calls"] for r in scripted.requests] == [[call], [CALL]]
