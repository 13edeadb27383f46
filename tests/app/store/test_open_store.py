"""Which store a configuration gets, and what happens when what it needs is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.store import MemoryStore, Record, StoreDown, open_store
from app.store.sealed import SealedStore
from app.store.sqlite import SqliteStore
from config.schema import Store


def chosen(environ: dict[str, str], **config: Any) -> Any:
    return open_store(Store.model_validate(config), environ)


def test_off() -> None:
    assert chosen({}, kind="off") is None


def test_memory_is_never_encrypted() -> None:
    assert isinstance(chosen({}, kind="memory", encryption_key="k"), MemoryStore)


async def test_a_file_in_the_state_directory(tmp_path: Path) -> None:
    store = chosen({"XDG_STATE_HOME": str(tmp_path)})
    assert isinstance(store, SqliteStore)
    await store.check()
    await store.aclose()
    assert (tmp_path / "dragoman" / "responses.db").exists()


def test_without_a_home_nothing_outlives_the_process() -> None:
    with capture_logs() as logs:
        assert isinstance(chosen({}), MemoryStore)
    assert [line["event"] for line in logs] == ["store:not_kept"]


def test_encryption(tmp_path: Path) -> None:
    assert isinstance(chosen({}, path=str(tmp_path / "r.db"), encryption_key="k"), SealedStore)


@pytest.mark.parametrize(
    ("config", "extra"),
    [
        ({"kind": "postgres", "url": "postgresql://h/d"}, ".[postgres]"),
        ({"encryption_key": "k"}, ".[encryption]"),
    ],
)
async def test_an_extra_that_is_missing(monkeypatch: pytest.MonkeyPatch, config: Any, extra: str) -> None:
    monkeypatch.setattr("providers.extras.find_spec", lambda _: None)
    with capture_logs() as logs:
        store = chosen({"HOME": "/nowhere"}, **config)
    assert extra in logs[0]["reason"]
    record = Record("o", "a", "c", None, 1, b"", b"")
    asked = [store.check(), store.put(record), store.get("o", "a"), store.chain("o", "a", 1)]
    for one in (*asked, store.holders("o", [], 1), store.delete("o", "a"), store.purge()):
        with pytest.raises(StoreDown, match="pip install"):
            await one
    await store.aclose()
