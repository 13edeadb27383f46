"""Summaries of a conversation among the items that are written to one."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.app.conftest import Serve, provider
from tests.app.test_compaction import HISTORY, SUMMARY, sums_up
from tests.backends.scripted import ScriptedBackend

ONE = {"role": "user", "content": "one"}


def sealed(client: httpx.Client) -> dict[str, Any]:
    item: dict[str, Any] = client.post(
        "/v1/responses/compact", json={"model": "p/m", "input": HISTORY}
    ).json()["output"][-1]
    return item


@pytest.fixture
def asked(serve: Serve, scripted: ScriptedBackend, store: dict[str, Any]) -> Any:
    scripted.play(sums_up)
    with serve(providers=[provider(scripted)], store=store).client() as client:
        yield client


@pytest.mark.parametrize("spoil", ["x", "", "A.A"])
@pytest.mark.parametrize("kind", ["compaction", "compaction_summary"])
def test_one_that_was_changed_is_refused(asked: httpx.Client, spoil: str, kind: str) -> None:
    item = sealed(asked)
    item = {**item, "type": kind, "encrypted_content": item["encrypted_content"][:-4] + spoil}
    made = asked.post("/v1/conversations", json={}).json()
    for path in ("", f"/{made['id']}/items"):
        reply = asked.post(f"/v1/conversations{path}", json={"items": [ONE, item]})
        error = reply.json()["error"]
        assert (reply.status_code, error["param"]) == (400, "items[1].encrypted_content")
        assert "`items[1].encrypted_content`" in error["message"]
        assert "changed" in error["message"]
    assert asked.get(f"/v1/conversations/{made['id']}/items").json()["data"] == []
    turn = {"model": "p/m", "input": "Go on.", "conversation": made["id"]}
    assert asked.post("/v1/responses", json=turn).status_code == 200


def test_a_good_one_and_others_own_are_taken(asked: httpx.Client, scripted: ScriptedBackend) -> None:
    theirs = {"type": "compaction", "id": "cmp_theirs", "encrypted_content": "gAAAAA"}
    item = sealed(asked)
    made = asked.post("/v1/conversations", json={"items": [*HISTORY, item]}).json()
    assert asked.post(f"/v1/conversations/{made['id']}/items", json={"items": [theirs]}).status_code == 200
    kept = asked.get(f"/v1/conversations/{made['id']}/items").json()["data"]
    assert item["encrypted_content"] in [each.get("encrypted_content") for each in kept]
    turn = {"model": "p/m", "input": "Go on.", "conversation": made["id"]}
    assert asked.post("/v1/responses", json=turn).status_code == 200
    assert SUMMARY in str(scripted.bodies()[-1])
