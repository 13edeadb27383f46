"""What Codex asks besides its request body: the query it may add, its catalogue, its way of waiting."""

from __future__ import annotations

import orjson
import pytest

from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

CODEX = {"originator": "codex_exec", "user-agent": "codex_exec/0.171.0 (Linux; x86_64)"}
ASKED = {"model": "p/m", "input": "hi", "stream": True}


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_query_params_of_the_provider_stay_here(serve: Serve, scripted: ScriptedBackend, wire: str) -> None:
    """Codex adds `query_params` of its provider table; they are the gateway's, not the backend's."""
    with serve(providers=[provider(scripted, wire=wire)]).client(headers=CODEX) as client:
        reply = client.post("/v1/responses?api-version=1&team=a%2Fb", json=ASKED)
    assert (reply.status_code, "response.completed" in reply.text) == (200, True)
    assert "?" not in scripted.requests[0].path


def test_the_catalogue_as_codex_asks_for_it(serve: Serve, scripted: ScriptedBackend) -> None:
    """`Accept: */*`, and an answer within 5 s that is no redirect and has an ETag to keep."""
    with serve(providers=[provider(scripted, models=["m"])]).client(headers=CODEX) as client:
        reply = client.get("/v1/models?client_version=0.171.0", headers={"accept": "*/*"}, timeout=5)
        answered = client.post("/v1/responses", json=ASKED)
    assert (reply.status_code, reply.headers["content-type"]) == (200, "application/json")
    assert reply.headers["etag"]
    assert "p/m" in [model["slug"] for model in orjson.loads(reply.content)["models"]]
    assert "x-models-etag" not in answered.headers  # another one than the list's has it fetched anew


def test_a_model_that_codex_cannot_have(serve: Serve, scripted: ScriptedBackend) -> None:
    """Any other code of a 404 is asked again five times, and a 422 too."""
    with serve(providers=[provider(scripted)]).client(headers=CODEX) as client:
        missing = client.post("/v1/responses", json={**ASKED, "model": "nowhere/m"})
        wrong = client.post("/v1/responses", json={**ASKED, "input": 4})
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "input")
