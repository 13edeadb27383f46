"""kill -9 while 200 clients wait: what they were told is there afterwards, and nothing is there by half."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import signal
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.backends.scripted import ScriptedBackend

from .processes import Told, asked_at_once, gateway, is_whole

ASKED, ENOUGH = 200, 60
SELECT = "SELECT id FROM responses"


def _ids(store: dict[str, Any]) -> list[str]:
    """Of all responses in the store, straight from its table."""
    if store["kind"] == "sqlite":
        db = sqlite3.connect(store["path"])
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        ids = [row[0] for row in db.execute(SELECT)]
        db.close()
        return ids
    return asyncio.run(_selected(store["url"]))


async def _selected(url: str) -> list[str]:
    import asyncpg

    db = await asyncpg.connect(url)
    rows = await db.fetch(SELECT)
    await db.close()
    return [row["id"] for row in rows]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_clients_were_told_survives(
    request: pytest.FixtureRequest, scripted: ScriptedBackend, tmp_path: Path, kind: str
) -> None:
    store: dict[str, Any] = {"kind": kind, "timeout_s": 20}  # this machine may be busy
    if kind == "postgres":
        store["url"] = request.getfixturevalue("postgres").new_database()
    else:
        store["path"] = str(tmp_path / "store" / "r.db")
    with (
        gateway(tmp_path / "first", scripted, store) as first,
        concurrent.futures.ThreadPoolExecutor(ASKED) as pool,
    ):
        pending = asked_at_once(pool, first.base, map(str, range(ASKED)))
        told = 0
        for future in concurrent.futures.as_completed(pending):
            told += future.result().id is not None
            if told == ENOUGH:
                os.kill(first.process.pid, signal.SIGKILL)
                break
        heard: list[Told] = [future.result() for future in pending]
    ended = {each.id: each.text for each in heard if each.id is not None}
    assert ENOUGH <= len(ended) < ASKED, Counter((each.status, each.failed) for each in heard)
    kept = _ids(store)
    assert set(kept) >= set(ended)
    with gateway(tmp_path / "second", scripted, store) as second, second.client() as client:
        for id in kept:
            is_whole(client, id, ended.get(id))
        body = {"model": "m", "input": "go on", "previous_response_id": next(iter(ended))}
        assert client.post("/v1/responses", json=body).status_code == 200
