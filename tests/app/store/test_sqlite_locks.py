"""The locks that SQLite has on its file stay: nobody else may take itself for the last who uses it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from app.store import Record
from app.store.sqlite import SqliteStore

LOOK = (
    "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); "
    "print(db.execute({!r}).fetchone()[0]); db.close()"
)
COUNT = "SELECT count(*) FROM responses"


def record(number: int) -> Record:
    return Record("local", f"resp_{number}", f"chain_{number}", None, 1, b"[]", b"{}")


def elsewhere(path: Path, query: str = COUNT) -> str:
    """What another process reads that opens the file and closes it again, as a backup does."""
    argv = [sys.executable, "-c", LOOK.format(query), str(path)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("again", [False, True], ids=["opened", "opened again"])
async def test_whoever_looks_at_the_file_takes_nothing_away(tmp_path: Path, again: bool) -> None:
    path = tmp_path / "r.db"
    store = SqliteStore(path, 3600, 1 << 30, 5)
    await store.put(record(0))
    await store.get("local", "resp_0")  # the lane for reading opens the file too
    if again:
        store._writer._drop()  # as after an error
        await store.put(record(0))
    for seen in range(1, 6):
        assert elsewhere(path) == str(seen)
        assert (tmp_path / "r.db-wal").exists()
        await store.put(record(seen))
    assert elsewhere(path) == "6"
    await store.aclose()
    with sqlite3.connect(path) as db:
        assert db.execute(COUNT).fetchone() == (6,)
    db.close()


ANOTHER = """
import asyncio, sys
from pathlib import Path
from app.store.sqlite import SqliteStore
async def main():
    store = SqliteStore(Path(sys.argv[1]), 3600, 1 << 30, 5)
    await store.check()
    await store.get("local", "resp_0")
    print("open", flush=True)
    sys.stdin.readline()
    await store.aclose()
asyncio.run(main())
"""


def another(path: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", ANOTHER, str(path)]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def test_two_gateways_on_one_file_of_which_one_ends(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    store = SqliteStore(path, 3600, 1 << 30, 5)
    with another(path) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        await store.put(record(0))
        await store.get("local", "resp_0")
        other.communicate("end\n", timeout=20)
    await store.put(record(1))
    assert (tmp_path / "r.db-wal").exists()
    assert elsewhere(path) == "2"
    assert elsewhere(path, "PRAGMA integrity_check") == "ok"
    await store.aclose()


async def test_a_new_file_is_its_owner_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "r.db"
    store = SqliteStore(path, 3600, 1 << 30, 5)
    await store.put(record(0))
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    await store.aclose()
