"""Two turns over HTTP: what the backend gave comes back to it word for word, for each vendor's form."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.app.conftest import Serve
from tests.app.test_pipeline import provider
from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "why", "signature": "SIG"}]}
DETAILS = [{"type": "reasoning.encrypted", "data": "E", "id": "r", "format": "x", "index": 0}]
ASKED = {"type": "message", "role": "user", "content": "go"}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}

VENDORS: dict[str, tuple[str, dict[str, Any]]] = {
    "deepseek": ("deepseek", {"content": None, "reasoning_content": "why", "tool_calls": [CALL]}),
    "databricks-claude": (
        "databricks-claude",
        {"content": [THOUGHT, {"type": "text", "text": "so"}], "tool_calls": [CALL]},
    ),
    "databricks-gemini": (
        "databricks-gemini",
        {"content": None, "tool_calls": [{**CALL, "thoughtSignature": "G"}]},
    ),
    "gemini-openai": (
        "gemini-openai",
        {
            "content": None,
            "tool_calls": [{**CALL, "extra_content": {"google": {"thought_signature": "G"}}}],
        },
    ),
    "openrouter": ("openrouter", {"content": None, "reasoning_details": DETAILS, "tool_calls": [CALL]}),
}


@pytest.mark.parametrize("name", VENDORS)
def test_the_second_turn_holds_what_the_first_gave(
    name: str, serve: Serve, scripted: ScriptedBackend, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    row, message = VENDORS[name]
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "tool_calls"}
    scripted.play(json_reply({"id": "x", "choices": [choice]}))
    backend = provider(scripted, wire="chat", profile=row)
    served = serve(fresh=True, providers=[backend])
    body = {"model": "p/m", "input": [ASKED], "tools": [TOOL], "store": False}
    with served.client() as client:
        first = client.post("/v1/responses", json=body)
        output = first.json()["output"]
        result = {"type": "function_call_output", "call_id": "c1", "output": "r"}
        second: httpx.Response = client.post(
            "/v1/responses", json={**body, "input": [ASKED, *output, result]}
        )
    assert (first.status_code, second.status_code) == (200, 200)
    sent = scripted.requests[-1].json["messages"][1]
    assert {key: sent.get(key) for key in message} == message
    assert "x-dragoman-dropped" not in second.headers or "/input" not in second.headers["x-dragoman-dropped"]
