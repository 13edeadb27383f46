"""WebSockets of a gateway with several workers: each by whichever took it, and one store behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from websockets.sync.client import connect

from tests.backends.gateway import Gateway, config_text
from tests.backends.scripted import ScriptedBackend

CONNECTIONS = 12


def turn(gateway: Gateway, **fields: Any) -> dict[str, Any]:
    """The response of one turn over a connection of its own."""
    url = gateway.base.replace("http", "ws", 1) + "/v1/responses"
    with connect(url, proxy=None) as socket:
        socket.send(orjson.dumps({"type": "response.create", "model": "p/m", **fields}).decode())
        event: dict[str, Any] = {"type": ""}
        while event["type"] != "response.completed":
            event = orjson.loads(socket.recv(timeout=10))
            assert event["type"] != "error", event
    response: dict[str, Any] = event["response"]
    return response


def test_a_conversation_over_connections_to_any_worker(scripted: ScriptedBackend, tmp_path: Path) -> None:
    up = {"name": "p", "kind": "openai", "base_url": f"{scripted.origin}/v1", "models": ["m"]}
    config = config_text([up], server={"workers": 2})
    previous = None
    with Gateway(tmp_path, config) as gateway:
        for at in range(CONNECTIONS):
            previous = turn(gateway, input=str(at), previous_response_id=previous)["id"]
        with gateway.client() as client:
            text = client.get("/metrics").text
        assert gateway.stop() == 0
    said = [message["content"] for message in scripted.bodies()[-1]["messages"]][::2]
    assert said == [str(at) for at in range(CONNECTIONS)]
    counted = f'dragoman_requests_total{{lane="translate",route="/responses",status="200"}} {CONNECTIONS}.0'
    assert counted in text
