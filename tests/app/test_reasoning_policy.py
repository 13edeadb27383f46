"""Reasoning of earlier turns over HTTP: what the configuration leaves out, and capsules of Chat clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.conftest import Serve, provider
from tests.app.test_reasoning_turns import ASKED, CALL, TOOL, VENDORS
from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend

STRICT = {"x-dragoman-strict": "true"}
USER = {"role": "user", "content": "go"}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "r"}
WORDS = [{"type": "summary_text", "text": "old"}]
SEALED = {"type": "reasoning", "id": "rs_1", "summary": WORDS, "encrypted_content": "gAAAA"}
ANSWER = {
    "type": "message",
    "role": "assistant",
    "id": "msg_1",
    "content": [{"type": "output_text", "text": "so", "annotations": []}],
}
ITEMS = [ASKED, {"type": "reasoning", "summary": WORDS}, ANSWER, ASKED]
MESSAGES = [USER, {"role": "assistant", "content": "so", "reasoning_content": "old"}, USER]
TWO_TRIES = [ASKED, *[{"type": "reasoning", "summary": WORDS}] * 2, ANSWER]


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "an earlier turn, vllm": ("chat", "vllm", {"messages": MESSAGES}, {}),
    "an earlier turn, zai": ("chat", "zai-glm", {"messages": MESSAGES}, {}),
    "an earlier turn, mistral": ("chat", "mistral", {"messages": MESSAGES}, {}),
    "a turn without calls, deepseek": ("chat", "deepseek", {"messages": MESSAGES}, {}),
    "switched off": ("chat", "base", {"messages": MESSAGES}, {"mode": "off"}),
    "of no turn": ("chat", "vllm", {"messages": MESSAGES}, {"scope": "none"}),
    "an earlier turn, translated": ("chat", "vllm", {"input": ITEMS}, {}),
    "a cut try, translated": ("chat", "vllm", {"input": TWO_TRIES}, {"scope": "all"}),
    "an earlier turn, responses": (
        "responses",
        "base",
        {"input": [ASKED, SEALED, ANSWER, ASKED]},
        {"scope": "turn"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_strict_client_may_have_a_history(name: str, serve: Serve, scripted: ScriptedBackend) -> None:
    wire, row, asked, rules = CASES[name]
    route = "/v1/chat/completions" if "messages" in asked else "/v1/responses"
    served = serve(
        fresh=True, providers=[provider(scripted, wire=wire, profile=row, overrides={"reasoning": rules})]
    )
    body = {"model": "p/m", **asked} if "messages" in asked else {"model": "p/m", "store": False, **asked}
    with served.client() as client:
        reply = client.post(route, json=body, headers=STRICT)
        metrics = client.get("/metrics").text
    assert reply.status_code == 200, reply.text
    assert "x-dragoman-dropped" not in reply.headers
    assert (b"old" in scripted.requests[-1].body) is (name == "a cut try, translated")
    assert 'dragoman_dropped_total{kind="policy",provider="p"} 1.0' in metrics
    assert "bookkeeping" not in metrics


def test_items_of_an_earlier_turn_are_tied_to_nothing(serve: Serve, scripted: ScriptedBackend) -> None:
    overrides = {"reasoning": {"scope": "turn"}}
    served = serve(providers=[provider(scripted, wire="responses", overrides=overrides)])
    body = {"model": "p/m", "store": False, "input": [ASKED, SEALED, ANSWER, ASKED]}
    with served.client() as client:
        assert client.post("/v1/responses", json=body).status_code == 200
    sent = scripted.bodies()[-1]["input"]
    assert sent == [ASKED, {key: value for key, value in ANSWER.items() if key != "id"}, ASKED]


# --- capsules of Chat clients ----------------------------------------------------------

CUSTOM = {"type": "custom", "custom": {"name": "p"}}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
CHAT = {"model": "p/m", "messages": [USER], "tools": [FUNCTION, CUSTOM]}


def chat(served: Any, body: Any) -> httpx.Response:
    with served.client() as client:
        reply: httpx.Response = client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    return reply


def first_turn(serve: Serve, scripted: ScriptedBackend, vendor: str) -> tuple[Any, dict[str, Any]]:
    """The gateway, and the message of a reply that had to be translated (a custom tool is offered)."""
    row, message = VENDORS[vendor]
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "tool_calls"}
    scripted.play(json_reply({"id": "x", "choices": [choice]}))
    served = serve(fresh=True, providers=[provider(scripted, wire="chat", profile=row)])
    held = chat(served, CHAT).json()["choices"][0]["message"]
    return served, held


@pytest.mark.parametrize("tools", [[FUNCTION, CUSTOM], [FUNCTION], None])
@pytest.mark.parametrize("vendor", ["databricks-claude", "openrouter"])
def test_a_capsule_is_opened_whatever_else_is_asked(
    vendor: str, tools: Any, serve: Serve, scripted: ScriptedBackend
) -> None:
    served, held = first_turn(serve, scripted, vendor)
    asked = {**CHAT, "messages": [USER, held, RESULT], **({"tools": tools} if tools else {})}
    reply = chat(served, {key: value for key, value in asked.items() if value or tools})
    sent, message = scripted.bodies()[-1]["messages"][1], VENDORS[vendor][1]
    assert {key: sent.get(key) for key in message} == message
    assert b"dgm1." not in scripted.requests[-1].body
    assert "x-dragoman-dropped" not in reply.headers


@pytest.mark.parametrize("kept", ["whole", "without its format"])
def test_another_backend_gets_no_capsule(kept: str, serve: Serve, scripted: ScriptedBackend) -> None:
    _, held = first_turn(serve, scripted, "databricks-claude")
    if kept != "whole":
        for entry in held["reasoning_details"]:
            del entry["format"]
    assert held["reasoning_details"][0]["data"].startswith("dgm1.")
    scripted.clear()
    other = serve(fresh=True, providers=[provider(scripted, wire="chat", profile="openrouter", name="q")])
    reply = chat(other, {"model": "q/m", "messages": [USER, held, RESULT], "tools": [FUNCTION]})
    sent = scripted.requests[-1].body
    assert (b"dgm1." in sent, b'"SIG"' in sent) == (False, False)
    assert scripted.bodies()[-1]["messages"][1]["tool_calls"] == [CALL]
    assert "/messages/1/reasoning_details/0" in reply.headers["x-dragoman-dropped"].split(",")


def test_what_only_looks_like_a_capsule_is_left_to_the_backend(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    """The bytes of one in a text, or details that are no list, change nothing."""
    odd: list[Any] = [{"role": "assistant", "content": '"dgm1.x"', "reasoning_details": "dgm1.x"}, USER]
    served = serve(providers=[provider(scripted, wire="chat", profile="openrouter")])
    body = {"model": "p/m", "messages": [USER, *odd], "user": "dgm1.y"}
    chat(served, body)
    assert scripted.bodies()[-1]["messages"][1]["content"] == '"dgm1.x"'


# --- two fields ------------------------------------------------------------------------


def test_two_fields_are_two_items_and_go_back(serve: Serve, scripted: ScriptedBackend) -> None:
    message = {"content": None, "reasoning": "a", "reasoning_content": "x", "tool_calls": [CALL]}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "tool_calls"}
    scripted.play(json_reply({"id": "x", "choices": [choice]}))
    served = serve(fresh=True, providers=[provider(scripted, wire="chat", profile="vllm")])
    body = {"model": "p/m", "input": [ASKED], "tools": [TOOL], "store": False}
    result = {"type": "function_call_output", "call_id": "c1", "output": "r"}
    with served.client() as client:
        output = client.post("/v1/responses", json=body).json()["output"]
        reply = client.post("/v1/responses", json={**body, "input": [ASKED, *output, result]}, headers=STRICT)
    assert [item["summary"][0]["text"] for item in output if item["type"] == "reasoning"] == ["a", "x"]
    assert reply.status_code == 200
    sent = scripted.bodies()[-1]["messages"][1]
    assert {key: sent.get(key) for key in message} == message
