"""The keys file and who may read it: `dragoman keys` leaves that alone, and a gateway that cannot says so."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

import app.access.keys_file
from app.cli.main import cli
from config.keys import Key, load_keys
from config.problems import ConfigErrors, Problem
from tests.app.conftest import Serve, Served, provider
from tests.app.keyed import entry, signed, written
from tests.app.test_keys_reload import status, until
from tests.backends.scripted import ScriptedBackend

DAEMON = 7713
IS_ROOT = os.geteuid() == 0


def keys(*arguments: str) -> str:
    done = CliRunner().invoke(cli, ["keys", *arguments])
    assert done.exit_code == 0, done.output
    return done.stderr


@pytest.mark.skipif(not IS_ROOT, reason="only root may give files away")
def test_root_leaves_the_file_to_whom_it_belongs(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    written(path, entry("a"))
    os.chown(path, DAEMON, DAEMON + 1)
    path.chmod(0o640)
    for command in ("add", "revoke"):
        said = keys(command, "b", "--file", str(path))
        found = path.stat()
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (DAEMON, DAEMON + 1, 0o640)
        assert "warning" not in said


@pytest.mark.parametrize(("group_too", "mode"), [(False, 0o640), (True, 0o600)])
def test_who_may_not_give_it_away_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group_too: bool, mode: int
) -> None:
    """The group is kept where that is allowed; a group that it never was for may not read it."""
    path = tmp_path / "keys.toml"
    written(path, entry("a"))
    path.chmod(0o640)
    asked: list[tuple[int, int]] = []

    def may_not(_handle: int, owner: int, group: int) -> None:
        asked.append((owner, group))
        if owner != -1 or group_too:
            raise PermissionError

    real = os.fstat

    def seen(handle: int) -> os.stat_result:
        found = list(real(handle))
        found[stat.ST_UID] = DAEMON
        found[stat.ST_GID] += group_too
        return os.stat_result(found)

    monkeypatch.setattr("app.cli.keys.os.fchown", may_not)
    monkeypatch.setattr("app.cli.keys.os.fstat", seen)
    said = keys("add", "b", "--file", str(path))
    before = path.stat()
    assert asked == [(before.st_uid, before.st_gid), (-1, before.st_gid)]
    assert "can the gateway still read it?" in said
    assert stat.S_IMODE(before.st_mode) == mode


def test_where_the_file_is_and_that_it_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "dragoman.toml").write_text('[server]\nkeys_file = "keys.toml"\n')
    monkeypatch.chdir(tmp_path)
    made = keys("add", "a", "--config", "elsewhere/dragoman.toml")
    assert f"is in {tmp_path}/keys.toml, a new file" in made
    more = keys("add", "b", "--file", "keys.toml")
    assert f"is in {tmp_path}/keys.toml, as one more" in more
    assert f"disabled in {tmp_path}/keys.toml" in keys("revoke", "b", "--file", "keys.toml")


class Unreadable:
    """The file, as far as its rights let it be read."""

    def __init__(self) -> None:
        self.is_so, self.asked = False, 0

    def __call__(self, path: Path) -> tuple[Key, ...]:
        if not self.is_so:
            return load_keys(path)
        self.asked += 1
        cause = PermissionError(13, "Permission denied")
        raise ConfigErrors([Problem((), "cannot be read: Permission denied")], path) from cause


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> Unreadable:
    monkeypatch.setattr("app.access.keys_file.LOOK_S", 0.05)
    file = Unreadable()
    monkeypatch.setattr(app.access.keys_file, "load_keys", file)
    return file


def ready(gateway: Served) -> dict[str, object]:
    with gateway.client() as client:
        reply = client.get("/ready")
    assert reply.status_code == 200
    told: dict[str, object] = reply.json()
    return told


def test_a_file_that_cannot_be_read_is_tried_again(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, unreadable: Unreadable
) -> None:
    """Nothing of the file changes when a folder above it is opened again."""
    path = tmp_path / "keys.toml"
    server = {"keys_file": written(path, entry("a"))}
    gateway = serve(fresh=True, server=server, providers=[provider(scripted)], store={"kind": "off"})
    assert ready(gateway) == {"status": "ready"}
    unreadable.is_so = True
    written(path, entry("a", disabled=True))
    until(lambda: unreadable.asked > 3)
    assert status(gateway, "a") == 200, "its keys stay as they were"
    told = ready(gateway)
    assert told["status"] == "degraded"
    assert list(told["not_ready"]) == ["keys_file"]  # type: ignore[call-overload]
    assert "cannot be read: Permission denied; " in str(told)
    assert str(tmp_path) not in str(told)
    assert len(gateway.log("keys_not_loaded")) == 1, "said once, not at each try"
    unreadable.is_so = False
    until(lambda: status(gateway, "a") == 401)
    assert ready(gateway) == {"status": "ready"}


def test_a_file_with_faults_is_named_too(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text("[[keys]]\nname = 'secretive'\nhash = 'sk-my-own'\n")
    gateway = serve(
        fresh=True, server={"keys_file": str(path)}, providers=[provider(scripted)], store={"kind": "off"}
    )
    told = str(ready(gateway))
    assert "'keys_file': 'it has faults; " in told
    assert "sk-my-own" not in told


@pytest.mark.skipif(not IS_ROOT, reason="only root may give files away")
def test_a_change_of_owner_is_a_change(tmp_path: Path) -> None:
    from app.reload import stamp_of

    path = tmp_path / "keys.toml"
    written(path, entry("a"))
    before = stamp_of(path)
    os.chown(path, DAEMON, DAEMON)
    assert stamp_of(path) != before


def test_the_log_says_whose_a_refused_key_was(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path
) -> None:
    file = written(
        tmp_path / "keys.toml", entry("a", disabled=True), entry("b", expires="2020-01-01T00:00:00Z")
    )
    gateway = serve(fresh=True, server={"keys_file": file}, providers=[provider(scripted)])
    for name in ("a", "b", "nobody"):
        assert status(gateway, name) == 401
        with gateway.client(headers=signed(name)) as client:
            assert client.get("/v1/models").status_code == 401
    gateway.settled()
    assert [line.get("key") for line in gateway.log()] == ["a", "a", "b", "b", None, None]
