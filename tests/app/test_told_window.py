"""Codex is told of the window that its requests are judged by, so that it compacts before it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from app.routing.models import CONTEXT_WINDOW
from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend


@pytest.mark.parametrize(
    ("rules", "window"), [({}, CONTEXT_WINDOW), ({"request": {"context_window": 32_000}}, 32_000)]
)
@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_the_catalogue_tells_the_configured_window(
    serve: Serve, scripted: ScriptedBackend, wire: str, rules: dict[str, Any], window: int
) -> None:
    served = serve(providers=[provider(scripted, wire=wire, overrides=rules)])
    with served.client() as client:
        entries = client.get("/v1/models").json()["models"]
    assert {entry["slug"]: entry["context_window"] for entry in entries} == {"p/m": window, "m": window}
