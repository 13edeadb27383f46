"""`x-dragoman-strict: true` over HTTP: what would be left out or told otherwise is a 400; nothing is sent."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import Serve
from tests.app.test_pipeline import provider
from tests.backends.scripted import ScriptedBackend

PICTURE = "data:image/png;base64,iVBORw0KGgo="
HI = {"role": "user", "content": "hi"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "so"}]}
ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]}
ORPHAN = {"type": "function_call_output", "call_id": "c9", "output": "r"}
DESCRIBE = {"messages": {"media": {"image": "describe"}}}

CASES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], str]] = {
    "a hosted tool": ("responses", "chat", {"tools": [{"type": "web_search"}]}, {}, "tools[0]"),
    "an effort the model does not have": (
        "responses",
        "chat",
        {"reasoning": {"effort": "minimal"}},
        {"reasoning": {"efforts": ["low", "high"]}},
        "reasoning.effort",
    ),
    "reasoning that cannot go back": (
        "responses",
        "chat",
        {"input": [HI, THOUGHT, ANSWER, HI]},
        {},
        "input[1]",
    ),
    "a picture told in words": (
        "responses",
        "chat",
        {"input": [{**HI, "content": [{"type": "input_image", "image_url": PICTURE}]}]},
        DESCRIBE,
        "input[0].content[0]",
    ),
    "a picture told in words, its own shape": (
        "chat/completions",
        "chat",
        {"messages": [{**HI, "content": [{"type": "image_url", "image_url": {"url": PICTURE}}]}]},
        DESCRIBE,
        "messages[0].content[0]",
    ),
    "a result without its call": ("responses", "chat", {"input": [HI, ORPHAN]}, {}, "input[1]"),
    "a result without its call, its own shape": (
        "responses",
        "responses",
        {"input": [HI, ORPHAN]},
        {},
        "input[1]",
    ),
    "a tool message without its call": (
        "chat/completions",
        "chat",
        {"messages": [HI, {"role": "tool", "tool_call_id": "c9", "content": "r"}]},
        {},
        "messages[1]",
    ),
    "a tool message without its call, translated": (
        "chat/completions",
        "responses",
        {"messages": [HI, {"role": "tool", "tool_call_id": "c9", "content": "r"}]},
        {},
        "messages[1]",
    ),
}


@pytest.mark.parametrize(("route", "wire", "asked", "overrides", "param"), CASES.values(), ids=CASES)
def test_a_strict_client_is_refused_before_anything_is_sent(
    serve: Serve,
    scripted: ScriptedBackend,
    route: str,
    wire: str,
    asked: dict[str, Any],
    overrides: dict[str, Any],
    param: str,
) -> None:
    said = {"messages": [HI]} if route == "chat/completions" else {"input": [HI]}
    body = {"model": "p/m", **said, **asked}
    served = serve(providers=[provider(scripted, wire=wire, overrides=overrides)])
    with served.client() as client:
        refused = client.post(f"/v1/{route}", json=body, headers={"x-dragoman-strict": "true"})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
        assert param in refused.json()["error"]["message"]
        assert scripted.requests == []
        assert client.post(f"/v1/{route}", json=body).status_code == 200
    assert len(scripted.requests) == 1
