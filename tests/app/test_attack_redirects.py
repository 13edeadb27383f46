"""A backend that moved: the client is told what to set, and nothing goes where the redirect leads."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import Serve, provider
from tests.backends.loopback import Reply
from tests.backends.scripted import ScriptedBackend

ASKS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
    ("/v1/responses", {"input": "hi"}),
]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize(("route", "body"), ASKS)
def test_a_redirect_is_explained_and_not_followed(
    serve: Serve, scripted: ScriptedBackend, route: str, body: dict[str, Any], status: int
) -> None:
    page = b"<html><head><title>Moved Permanently</title></head></html>"
    headers = {"location": f"{scripted.origin}/elsewhere?key=sk-nobody", "content-type": "text/html"}
    scripted.play(Reply(status, headers=headers, pieces=[page]))
    served = serve(providers=[provider(scripted)])
    with served.client() as client:
        told = client.post(route, json={"model": "p/m", **body})
    assert told.status_code == 502
    assert "base_url" in told.json()["error"]["message"]
    assert "sk-nobody" not in told.text
    assert {each.path for each in scripted.requests} == {"/v1/chat/completions"}
