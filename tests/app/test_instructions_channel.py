"""Where system messages go on the Responses wire, over HTTP: both clients, both lanes, one header."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import Serve, provider
from tests.app.test_recovery import post
from tests.backends.scripted import ScriptedBackend

ROLES = {"developer-item": "developer", "system-item": "system"}
CHAT = {"messages": [{"role": "system", "content": c} for c in "AB"] + [{"role": "user", "content": "hi"}]}
RESPONSES = {"instructions": "A\n\nB", "input": "hi"}
ASKED = [("/v1/chat/completions", CHAT), ("/v1/responses", RESPONSES)]


@pytest.mark.parametrize("channel", ROLES)
@pytest.mark.parametrize(("route", "asked"), ASKED)
def test_the_first_item_and_no_instructions(
    serve: Serve, scripted: ScriptedBackend, route: str, asked: dict[str, Any], channel: str
) -> None:
    rules = {"messages": {"system_channel": channel}}
    served = serve(providers=[provider(scripted, wire="responses", overrides=rules)])
    reply = post(served, {"model": "p/m", **asked}, route)
    assert (reply.status_code, reply.headers.get("x-dragoman-dropped")) == (200, None)
    (sent,) = scripted.bodies()
    assert "instructions" not in sent
    first, second = sent["input"]
    assert first["role"] == ROLES[channel]
    assert first["content"] == [{"type": "input_text", "text": "A\n\nB"}]
    assert second["role"] == "user"


@pytest.mark.parametrize(("route", "asked"), ASKED)
def test_a_header_asks_for_it(
    serve: Serve, scripted: ScriptedBackend, route: str, asked: dict[str, Any]
) -> None:
    served = serve(providers=[provider(scripted, wire="responses")])
    headers = {"x-dragoman-overrides": '{"messages":{"system_channel":"system-item"}}'}
    with served.client() as client:
        for more in (headers, {}):
            assert client.post(route, json={"model": "p/m", **asked}, headers=more).status_code == 200
    moved, plain = scripted.bodies()
    assert ("instructions" in moved, "instructions" in plain) == (False, True)
