"""A background run that is ended by its client at the moment at which it ends: one of the two, not both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from app.state.conversations import Conversations
from app.state.runs import cancelled
from app.store.runs import Step
from tests.app.background_asked import ended
from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

Ask = dict[str, Any]


def test_a_turn_that_was_cancelled_at_its_end_adds_nothing(
    serve: Serve, scripted: ScriptedBackend, store: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Conversations.end_turn
    cancels = [True]

    async def end_turn(self: Conversations, id: str, items: Sequence[Any], step: Step) -> bool:
        if cancels.pop():
            await cancelled(self._state, await self._state.record(step.owner, step.id))
        return await before(self, id, items, step)

    monkeypatch.setattr(Conversations, "end_turn", end_turn)
    with serve(fresh=True, providers=[provider(scripted)], store=store).client() as client:
        id = client.post("/v1/conversations", json={}).json()["id"]
        asked: Ask = {"model": "m", "input": "hi", "background": True, "conversation": id}
        made = client.post("/v1/responses", json=asked).json()
        assert ended(client, made["id"])["status"] == "cancelled"
        assert client.get(f"/v1/conversations/{id}/items").json()["data"] == []
        cancels.append(False)
        made = client.post("/v1/responses", json=asked).json()
        assert ended(client, made["id"])["status"] == "completed"
        assert len(client.get(f"/v1/conversations/{id}/items").json()["data"]) == 2
        reply = client.post(f"/v1/responses/{made['id']}/cancel")
        assert reply.status_code == 400


def test_turns_of_a_backend_that_repeats_its_ids(
    serve: Serve, scripted: ScriptedBackend, store: dict[str, Any]
) -> None:
    with serve(fresh=True, providers=[provider(scripted, "responses")], store=store).client() as client:
        id = client.post("/v1/conversations", json={}).json()["id"]
        asked: Ask = {"model": "p/m", "input": "hi", "background": True, "conversation": id}
        for count in (1, 2, 3):
            made = client.post("/v1/responses", json=asked).json()
            assert ended(client, made["id"])["status"] == "completed"
            items = client.get(f"/v1/conversations/{id}/items").json()["data"]
            assert len({each["id"] for each in items}) == 2 * count
