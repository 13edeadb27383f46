"""What a backend thought comes back to it word for word when its response is continued by its id."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend

from .conftest import Serve, provider
from .test_reasoning_turns import TOOL, VENDORS


@pytest.mark.parametrize("name", VENDORS)
def test_the_second_turn_holds_what_the_first_gave(
    name: str, serve: Serve, scripted: ScriptedBackend, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    row, message = VENDORS[name]
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "tool_calls"}
    scripted.play(json_reply({"id": "x", "choices": [choice]}))
    served = serve(fresh=True, providers=[provider(scripted, profile=row)])
    with served.client() as client:
        first = client.post("/v1/responses", json={"model": "m", "input": "go", "tools": [TOOL]})
        result = {"type": "function_call_output", "call_id": "c1", "output": "r"}
        asked = {"model": "m", "input": [result], "tools": [TOOL], "previous_response_id": first.json()["id"]}
        second = client.post("/v1/responses", json=asked)
    assert second.status_code == 200, second.text
    sent = scripted.bodies()[-1]["messages"][1]
    assert {key: sent.get(key) for key in message} == message
    assert "/input" not in second.headers.get("x-dragoman-dropped", "")
