"""What happens to the turns of a conversation when their store fails, or the process is killed."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tests.app.conftest import Serve, provider
from tests.backends.gateway import Gateway, config_text, toml
from tests.backends.scripted import ScriptedBackend

ROOT = Path(__file__).parents[3]
SAID = "Hello from the backend."
TERMINAL = b"event: response.completed\n"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("store", [False, True])
def test_a_turn_that_cannot_be_added_is_not_told(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, stream: bool, store: bool
) -> None:
    path = tmp_path / "r.db"
    config: dict[str, Any] = {"kind": "sqlite", "path": str(path), "timeout_s": 0.3}
    served = serve(fresh=True, providers=[provider(scripted)], store=config)
    with served.client() as client:
        id = client.post("/v1/conversations", json={}).json()["id"]
        client.get(f"/v1/conversations/{id}")  # a reader that is open goes on reading
        lock = sqlite3.connect(path, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        asked = {"model": "m", "input": "x", "conversation": id, "stream": stream, "store": store}
        reply = client.post("/v1/responses", json=asked)
        if stream:
            assert TERMINAL not in reply.content
            assert b"event: response.failed\n" in reply.content
        else:
            assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
        asked_of_backend = len(scripted.bodies())
        assert client.post("/v1/responses", json=asked).status_code == 503
        assert len(scripted.bodies()) == asked_of_backend, "the backend is spared once it is known"
        lock.execute("ROLLBACK")
        lock.close()
        assert client.get(f"/v1/conversations/{id}/items").json()["data"] == []
        assert client.post("/v1/responses", json=asked).status_code == 200
        assert len(client.get(f"/v1/conversations/{id}/items").json()["data"]) == 2


def _text(scripted: ScriptedBackend, path: Path) -> str:
    store = f'\n[store]\nkind = "sqlite"\npath = {toml(str(path))}\n'
    return config_text([provider(scripted)]) + store


def _is_told(base: str, conversation: str, text: str) -> bool:
    """Whether the last event of a turn reached this client."""
    got = b""
    asked = {"model": "m", "input": text, "conversation": conversation, "stream": True}
    try:
        with httpx.stream("POST", f"{base}/v1/responses", json=asked, trust_env=False, timeout=20) as reply:
            for chunk in reply.iter_raw():
                got += chunk
    except httpx.HTTPError:
        pass
    return b"\n\n" in got.partition(TERMINAL)[2]


def _said(base: str, id: str) -> list[str]:
    found: list[str] = []
    after: dict[str, Any] = {}
    while True:
        query = {"order": "asc", "limit": 100, **after}
        at = f"{base}/v1/conversations/{id}/items"
        page = orjson.loads(httpx.get(at, params=query, trust_env=False).content)
        found += [each["content"][0]["text"] for each in page["data"]]
        if not page["has_more"]:
            return found
        after = {"after": page["last_id"]}


def test_turns_that_a_client_was_told_survive_a_kill(scripted: ScriptedBackend, tmp_path: Path) -> None:
    """Every turn whose last event was received is there with both its items, and none is half there."""
    path, env = tmp_path / "store" / "r.db", {"PYTHONPATH": str(ROOT)}
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    with (
        Gateway(folders[0], _text(scripted, path), env=env) as gateway,
        gateway.client() as client,
        concurrent.futures.ThreadPoolExecutor(20) as pool,
    ):
        id = client.post("/v1/conversations", json={}).json()["id"]
        texts = [f"turn {number}" for number in range(100)]
        pending = {pool.submit(_is_told, gateway.base, id, text): text for text in texts}
        done = 0
        for future in concurrent.futures.as_completed(pending):
            done += future.result()
            if done == 30:
                os.kill(gateway.process.pid, signal.SIGKILL)
                break
        told = {text for future, text in pending.items() if future.result()}
    assert 30 <= len(told) < 100
    with Gateway(folders[1], _text(scripted, path), env=env) as gateway:
        found = _said(gateway.base, id)
    assert told <= set(found[::2])
    assert found[1::2] == [SAID] * (len(found) // 2)
    assert len(set(found[::2])) == len(found) // 2
