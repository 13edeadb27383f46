"""Where `server.websocket` is off, the 426 names the providers whose backend takes a WebSocket itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

YES = {"overrides": {"wire": {"websocket": True}}}
NO = {"overrides": {"wire": {"websocket": False}}}
PLAIN = "no WebSocket here; POST to this path instead"


@pytest.mark.parametrize(
    ("providers", "told"),
    [
        ([{}], PLAIN),
        ([YES], f"{PLAIN}; the backend of p0 takes one at its own address"),
        ([{"profile": "openai"}], f"{PLAIN}; the backend of p0 takes one at its own address"),
        ([{"profile": "openai", **NO}], PLAIN),
        ([YES, {}, YES], f"{PLAIN}; the backend of p0, p2 takes one at its own address"),
    ],
)
def test_it_says_who_takes_one(
    serve: Serve, scripted: ScriptedBackend, providers: list[dict[str, Any]], told: str
) -> None:
    configured = [provider(scripted, name=f"p{at}", **more) for at, more in enumerate(providers)]
    with serve(providers=configured, server={"websocket": False}).client() as client:
        reply = client.get("/v1/responses", headers={"connection": "upgrade", "upgrade": "websocket"})
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["message"]) == (426, "websocket_not_supported", told)
