"""Where the key of capsules comes from, and who shares it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from app import seal_key
from app.seal_key import SealKey
from config.schema import Server

PRINT_KEY = """
from app.seal_key import SealKey
from config.schema import Server
print(SealKey(Server())().hex())
"""


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the module warns of."""
    told: list[dict[str, Any]] = []

    class Log:
        def warning(self, event: str, **fields: Any) -> None:
            told.append({"event": event, **fields})

    monkeypatch.setattr(seal_key, "_log", Log())
    return told


def kept(state: Path) -> Path:
    return state / "dragoman" / "seal_key"


def test_it_is_made_once_and_for_its_owner_only(tmp_path: Path, warnings: list[Any]) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    first = SealKey(Server(), environ)()
    assert SealKey(Server(), environ)() == first
    assert len(first) == 32
    file = kept(tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [each.name for each in file.parent.iterdir()] == ["seal_key"]
    assert first != file.read_bytes()
    assert warnings == []


@pytest.mark.parametrize("state", [{}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}])
def test_it_is_kept_below_the_home_directory_else(tmp_path: Path, state: dict[str, str]) -> None:
    key = SealKey(Server(), {"HOME": str(tmp_path), **state})()
    assert kept(tmp_path / ".local" / "state").exists()
    assert SealKey(Server(), {"HOME": str(tmp_path)})() == key


def test_threads_that_make_it_at_once_get_one(tmp_path: Path) -> None:
    for turn in range(10):
        environ, gate = {"XDG_STATE_HOME": str(tmp_path / str(turn))}, threading.Barrier(4)
        keys: list[bytes] = []

        def ask(environ: Any = environ, gate: Any = gate, keys: list[bytes] = keys) -> None:
            key = SealKey(Server(), environ)
            gate.wait()
            keys.append(key())

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(keys) == 4
        assert len(set(keys)) == 1


def test_two_processes_share_it(tmp_path: Path) -> None:
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    running = [
        subprocess.Popen([sys.executable, "-c", PRINT_KEY], env=environ, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    told = [process.communicate(timeout=30)[0] for process in running]
    assert len(told[0].strip()) == 64
    assert told[0] == told[1]


def test_another_process_was_first(tmp_path: Path) -> None:
    """Between the look and the link: its key stays."""
    path = tmp_path / "seal_key"
    path.write_bytes(b"k" * 32)
    seal_key._make(path)
    assert path.read_bytes() == b"k" * 32
    assert list(tmp_path.iterdir()) == [path]


def test_where_nothing_can_be_kept_each_process_has_its_own(tmp_path: Path, warnings: list[Any]) -> None:
    no_folder = tmp_path / "file"
    no_folder.write_text("")
    key = SealKey(Server(), {"XDG_STATE_HOME": str(no_folder)})
    assert key() == key()
    assert SealKey(Server(), {"XDG_STATE_HOME": str(no_folder)})() != key()
    assert [each["event"] for each in warnings] == ["seal_key:not_kept"] * 2
    assert warnings[0]["instead"] == "set server.seal_key"


def test_a_read_only_directory(tmp_path: Path, warnings: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("app.seal_key.tempfile.mkstemp", refused)
    assert len(SealKey(Server(), {"XDG_STATE_HOME": str(tmp_path)})()) == 32
    assert [each["reason"] for each in warnings] == ["Permission denied"]


def test_no_home_and_a_file_cut_short(tmp_path: Path, warnings: list[Any]) -> None:
    SealKey(Server(), {})()
    kept(tmp_path).parent.mkdir()
    kept(tmp_path).write_bytes(b"short")
    SealKey(Server(), {"XDG_STATE_HOME": str(tmp_path)})()
    assert [each["reason"] for each in warnings] == [
        "there is no home directory",
        f"{kept(tmp_path)} does not hold 32 bytes",
    ]


def test_a_key_of_the_configuration_touches_no_file(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    keys = [SealKey(Server.model_validate({"seal_key": word}), environ)() for word in ("one", "one", "two")]
    assert keys[0] == keys[1] != keys[2]
    assert list(tmp_path.iterdir()) == []
    assert b"one" not in keys[0]
