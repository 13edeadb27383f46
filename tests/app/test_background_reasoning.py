"""What a backend thought in the background comes back to it word for word in the next turn."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend

from .background_asked import ended
from .conftest import Serve, provider
from .test_reasoning_turns import TOOL, VENDORS


@pytest.mark.parametrize("name", VENDORS)
def test_the_second_turn_holds_what_the_first_gave(
    name: str, serve: Serve, scripted: ScriptedBackend, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    row, message = VENDORS[name]
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "tool_calls"}
    scripted.play(json_reply({"id": "x", "choices": [choice]}))  # whole, though a stream was asked for
    with serve(fresh=True, providers=[provider(scripted, profile=row)]).client() as client:
        ask = {"model": "m", "input": "go", "tools": [TOOL], "background": True}
        first = ended(client, client.post("/v1/responses", json=ask).json()["id"])
        assert first["status"] == "completed"
        result = {"type": "function_call_output", "call_id": "c1", "output": "r"}
        more = {**ask, "input": [result], "previous_response_id": first["id"]}
        second = client.post("/v1/responses", json=more)
        assert "/input" not in second.headers.get("x-dragoman-dropped", "")
        ended(client, second.json()["id"])
    sent = scripted.bodies()[-1]["messages"][1]
    assert {key: sent.get(key) for key in message} == message
