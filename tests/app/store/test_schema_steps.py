"""A SQLite file of an earlier version is brought up to date with what it holds."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from app.store.base import Record
from app.store.schema import NEWEST, steps_after
from app.store.sqlite import SqliteStore

OLD = Record("o", "a", "c", None, 1, b"[]", b"{}")
LINKS = 4
"""The step that says where else a response is stored."""


async def test_responses_from_before_links(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    db = sqlite3.connect(path)
    before = len(steps_after(0, "sqlite")) - len(steps_after(LINKS - 1, "sqlite"))
    for statement in steps_after(0, "sqlite")[:before]:
        db.execute(statement)
    db.execute(f"PRAGMA user_version={LINKS - 1}")
    db.execute("INSERT INTO chains VALUES ('c', 9999999999)")
    db.execute(
        "INSERT INTO responses (owner, id, chain, previous, created, bytes, input, response) "
        "VALUES ('o', 'a', 'c', NULL, 1, 4, x'5b5d', x'7b7d')"
    )
    db.commit()
    db.close()
    store = SqliteStore(path, 3600, 1 << 30, 5)
    assert await store.get("o", "a") == OLD
    await store.put(Record("o", "b", "c", "a", 1, b"[]", b"{}", target="p/m", upstream="up"))
    assert [each.upstream for each in await store.chain("o", "b", 999)] == ["", "up"]
    await store.aclose()
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA user_version").fetchone() == (NEWEST,)
    db.close()
