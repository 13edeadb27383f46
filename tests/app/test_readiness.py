"""What `/ready` says is not as it should be."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from app.store import StoreDown
from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend


def test_all_is_well(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(fresh=True, providers=[provider(scripted)], store={"kind": "memory"})
    with served.client() as client:
        reply = client.get("/ready")
    assert (reply.status_code, reply.json()) == (200, {"status": "ready"})


def test_a_provider_whose_models_cannot_be_listed(serve: Serve, scripted: ScriptedBackend) -> None:
    broken = {**provider(scripted), "base_url": "http://127.0.0.1:9/v1", "name": "off", "models": None}
    served = serve(fresh=True, providers=[provider(scripted), broken], store={"kind": "off"})
    with served.client() as client:
        client.get("/v1/models?refresh=1")
        reply = client.get("/ready")
        assert client.get("/health").json() == {"status": "ok"}
    assert reply.status_code == 200
    told = reply.json()
    assert told["status"] == "degraded"
    assert list(told["not_ready"]) == ["providers"]
    assert told["not_ready"]["providers"]["off"].startswith("its list of models: ")


def test_a_store_that_is_down_leaves_the_rest_serving(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve(fresh=True, providers=[provider(scripted)], store={"kind": "memory"})
    assert served.gateway.state is not None
    store: Any = served.gateway.state._store

    async def down() -> None:
        raise StoreDown("postgresql://user:password@inner.host is gone")

    with served.client() as client:
        monkeypatch.setattr(store, "check", down)
        told = client.get("/ready")
        chat = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
        assert client.post("/v1/chat/completions", json=chat).status_code == 200
        monkeypatch.undo()
        assert client.get("/ready").json() == {"status": "ready"}
    assert (told.status_code, told.json()["status"]) == (200, "degraded")
    assert told.json()["not_ready"] == {"store": "it cannot be used; requests that need it get 503"}


def test_a_store_that_hangs_does_not_hold_up_the_answer(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve(fresh=True, providers=[provider(scripted)], store={"kind": "memory"})
    assert served.gateway.state is not None

    async def hang() -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(served.gateway.state._store, "check", hang)
    with served.client() as client:
        reply = client.get("/ready")
    assert reply.elapsed.total_seconds() < 2
    assert reply.json()["not_ready"] == {"store": "it gives no answer within 0.5 s"}


def test_nobody_can_answer(serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve(fresh=True, providers=[provider(scripted)], store={"kind": "off"})
    for each in served.gateway.catalog.providers:
        monkeypatch.setattr(each, "unavailable", "no extra")
    with served.client() as client:
        reply = client.get("/ready")
    assert reply.status_code == 503
    told = reply.json()
    assert (told["status"], told["error"]["code"]) == ("not_ready", "not_ready")
    assert told["not_ready"] == {"providers": {"p": "no extra"}}
    assert "no extra" in told["error"]["message"]
    while served.gateway.serving:
        time.sleep(0.005)
    (line,) = served.log()
    assert (line["status"], line["level"], line["error_code"]) == (503, "warning", "not_ready")


def test_a_process_that_is_about_to_end(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(fresh=True, providers=[provider(scripted)], store={"kind": "off"})
    served.gateway.closing = True
    with served.client() as client:
        reply = client.get("/ready")
    assert (reply.status_code, reply.json()["not_ready"]) == (503, {})
    assert "about to end" in reply.json()["error"]["message"]


class Silent:
    """Telemetry that reaches nobody."""

    trouble = "the receiver takes no traces"

    async def aclose(self) -> None: ...


def test_telemetry_that_reaches_nobody(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(fresh=True, providers=[provider(scripted)], store={"kind": "off"})
    served.gateway.telemetry = Silent()  # type: ignore[assignment]
    with served.client() as client:
        reply = client.get("/ready")
    assert (reply.status_code, reply.json()["not_ready"]) == (200, {"telemetry": Silent.trouble})
