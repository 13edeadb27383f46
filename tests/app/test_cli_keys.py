"""`dragoman keys`: the key is shown once, its hash is kept."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest
from click.testing import Result
from typer.testing import CliRunner

from app.cli.main import cli
from config.keys import hash_of, parse_keys

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)
    return tmp_path


def run(arguments: Sequence[str], given: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["keys", *arguments], input=given)


def test_a_key_is_made_listed_and_taken_away(here: Path) -> None:
    path = here / "keys.toml"
    made = run(
        [
            *("add", "ci", "--file", str(path), "--model", "p/*", "--model", "m", "--class", "chat-fast"),
            *("--requests-per-minute", "60", "--tokens-per-minute", "9", "--tokens-per-day", "99"),
            *("--concurrency", "4", "--expires", "2099-01-31", "--owner", "team"),
        ]
    )
    assert made.exit_code == 0, made.output
    key = made.stdout.strip()
    (found,) = parse_keys(path.read_text())
    assert found.hash == hash_of(key)
    assert (found.name, found.owner, found.models, found.classes) == (
        "ci",
        "team",
        ("p/*", "m"),
        ("chat-fast",),
    )
    assert list(found.limits.model_dump().values()) == [60, 9, 99, 4]
    assert key not in path.read_text() + made.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    assert run(["add", "other", "--file", str(path)]).exit_code == 0
    listed = run(["list", "--file", str(path)])
    assert "ci" in listed.stdout
    assert "valid until 2099-01-31" in listed.stdout
    as_json = orjson.loads(run(["list", "--json", "--file", str(path)]).stdout)
    assert [each["name"] for each in as_json] == ["ci", "other"]
    assert "sha256" not in str(as_json)

    assert run(["revoke", "ci", "--file", str(path)]).exit_code == 0
    assert [each.disabled for each in parse_keys(path.read_text())] == [True, False]
    assert "disabled" in run(["list", "--file", str(path)]).stdout


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["add", "A", "--file", "k"], 2, "keys[0].name: may hold only"),
        (["add", "a", "--class", "fast", "--file", "k"], 2, "keys[0].classes[0]"),
        (["add", "a", "--expires", "soon", "--file", "k"], 2, ""),
        (["add", "a", "--expires", "2027-13-45T99:00", "--file", "k"], 2, "--expires must be"),
        (["add", "a", "--concurrency", "0", "--file", "k"], 2, "concurrency"),
        (["add", "a"], 2, "no keys file is configured"),
        (["revoke", "a", "--file", "none"], 2, "no such file"),
        (["list", "--file", "none"], 2, "no such file"),
        (["list", "--config", "none"], 2, "no such file"),
        (["add", "a", "--file", "no/such/folder/k"], 1, "No such file"),
    ],
)
def test_what_cannot_be_done_says_why(here: Path, arguments: list[str], status: int, said: str) -> None:
    done = run(arguments)
    assert done.exit_code == status, done.output
    assert said in done.stderr
    assert not (here / "k").exists()
    assert not done.stdout.startswith("sk-")


def test_the_configuration_names_the_file(here: Path) -> None:
    (here / "dragoman.toml").write_text('[server]\nkeys_file = "mine.toml"\n')
    assert run(["add", "a"]).exit_code == 0
    assert run(["add", "a"]).exit_code == 2, "a name is given once"
    assert [each.name for each in parse_keys((here / "mine.toml").read_text())] == ["a"]


def test_a_link_and_a_mode_stay_what_they_are(here: Path) -> None:
    real, link = here / "real.toml", here / "keys.toml"
    real.write_text("# mine\n")
    real.chmod(0o640)
    link.symlink_to(real)
    assert run(["add", "a", "--file", str(link)]).exit_code == 0
    assert link.is_symlink()
    assert real.read_text().startswith("# mine\n")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_the_hash_of_a_key_of_ones_own() -> None:
    done = run(["hash"], "a-key-of-mine\n")
    assert done.stdout.strip() == hash_of("a-key-of-mine")
    assert "a-key-of-mine" not in done.output
    assert run(["hash"], "\n").exit_code == 2


@pytest.mark.parametrize("state", ["2020-01-01", "2020-01-01T00:00:00+02:00"])
def test_an_expired_key_is_shown_as_such(here: Path, state: str) -> None:
    assert run(["add", "a", "--expires", state, "--file", "k.toml"]).exit_code == 0
    assert "expired" in run(["list", "--file", "k.toml"]).stdout


def test_check_reads_the_keys_file(here: Path) -> None:
    (here / "dragoman.toml").write_text('[server]\nkeys_file = "keys.toml"\nworkers = 2\n')
    (here / "keys.toml").write_text("[[keys]]\nname = 1\n")
    done = CliRunner().invoke(cli, ["check"])
    assert done.exit_code == 2
    assert "keys.toml:2: keys[0].name" in done.stderr
    (here / "keys.toml").write_text("")
    done = CliRunner().invoke(cli, ["check"])
    assert done.exit_code == 0
    assert "each worker counts keys' limits for itself" in done.stderr
