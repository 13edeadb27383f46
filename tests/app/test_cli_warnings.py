"""What the command line says of secrets, options and files that will not do what was hoped for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from config.schema import Config

LONG = "0123456789abcdef"
PROVIDER = '[[providers]]\nname = "a"\nkind = "openai"\nbase_url = "http://h/v1"\napi_key = "${NOT_SET}"\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DRAGOMAN_CONFIG", "DRAGOMAN_API_KEY", "NOT_SET", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The configurations that would have been served; no local server is there to be found."""
    configs: list[Config] = []
    monkeypatch.setattr("app.server.run", lambda config, _origin: configs.append(config))
    monkeypatch.setattr("app.cli.discover.LOCAL", ())
    return configs


def run(*arguments: str, given: str | None = None) -> Any:
    return CliRunner().invoke(cli, arguments, input=given)


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("command", ["check", "serve"])
def test_short_secrets_are_a_warning(here: Path, command: str) -> None:
    (here / "dragoman.toml").write_text(
        f'[server]\napi_keys = ["{LONG}", "k-short"]\nseal_key = "s-short"\n'
        '[store]\nencryption_key = "e-short"\n'
    )
    done = run(command)
    assert done.exit_code == 0
    short = [line.split()[1] for line in done.stderr.splitlines() if "fewer than 16 characters" in line]
    assert short == ["server.api_keys[1]", "server.seal_key", "store.encryption_key"]
    assert "-short" not in done.output


def test_a_short_key_of_ones_own_is_a_warning() -> None:
    done = run("keys", "hash", given="abc\n")
    assert done.exit_code == 0
    assert "warning: this key has fewer than 16 characters" in done.stderr
    assert run("keys", "hash", given=LONG + "\n").stderr == ""


@pytest.mark.parametrize(
    ("text", "environ", "warned"),
    [
        ("", {"DRAGOMAN_API_KEY": LONG}, True),
        ("", {}, False),
        (f'[server]\napi_keys = ["{LONG}"]\n', {"DRAGOMAN_API_KEY": LONG}, False),
        ('[server]\nkeys_file = "keys.toml"\n', {"DRAGOMAN_API_KEY": LONG}, False),
        (None, {"DRAGOMAN_API_KEY": LONG}, True),
    ],
)
def test_a_key_that_nobody_is_asked_for(
    here: Path,
    served: list[Config],
    monkeypatch: pytest.MonkeyPatch,
    text: str | None,
    environ: dict[str, str],
    warned: bool,
) -> None:
    """On loopback it is not asked without a file: whoever set it may think that it is."""
    if text is not None:
        (here / "dragoman.toml").write_text(text)
    (here / "keys.toml").write_text("")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    done = run("serve")
    assert len(served) == 1
    lines = [line for line in done.stderr.splitlines() if "DRAGOMAN_API_KEY is set" in line]
    assert len(lines) == warned
    assert LONG not in done.output


@pytest.mark.parametrize(("option", "value"), [("--workers", "0"), ("--port", "65536"), ("--port", "-1")])
def test_an_option_is_blamed_for_itself(here: Path, served: list[Config], option: str, value: str) -> None:
    (here / "dragoman.toml").write_text("[server]\nworkers = 1\n")
    done = run("serve", option, value)
    assert (done.exit_code, served) == (2, [])
    assert option in done.stderr
    assert "dragoman.toml" not in done.stderr


def test_a_missing_keys_file_is_told_with_the_rest(here: Path) -> None:
    (here / "dragoman.toml").write_text('[server]\nprt = 1\nkeys_file = "keys.toml"\n' + PROVIDER)
    done = run("check")
    assert done.exit_code == 2
    assert [line.partition(": ")[2] for line in done.stderr.splitlines()] == [
        'server.prt: unknown key, did you mean "port"?',
        "providers[0].api_key: environment variable NOT_SET is not set",
        "no such file; `dragoman keys add NAME` makes it",
    ]
    assert done.stderr.splitlines()[-1].startswith(f"{here}/keys.toml: ")


def test_keys_need_nothing_else_of_the_configuration(here: Path) -> None:
    (here / "dragoman.toml").write_text('[server]\nkeys_file = "keys.toml"\n' + PROVIDER)
    assert run("keys", "add", "a").exit_code == 0
    listed = run("keys", "list")
    assert (listed.exit_code, "a" in listed.stdout) == (0, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[server]\nkeys_file = "${NOT_SET}"\n', "dragoman.toml:2: server.keys_file: environment variable"),
        ("[server]\nkeys_file = 3\n", "dragoman.toml:2: server.keys_file: "),
        ("[server\n", "dragoman.toml:1: "),
        ("server = 3\n", "no keys file is configured"),
        ("", "no keys file is configured"),
    ],
)
def test_a_keys_file_that_is_not_named_well(here: Path, text: str, said: str) -> None:
    (here / "dragoman.toml").write_text(text)
    done = run("keys", "add", "a")
    assert done.exit_code == 2
    assert said in done.stderr


def test_a_name_that_was_given_is_not_given_again() -> None:
    assert run("keys", "add", "lim", "--owner", "team", "--file", "k").exit_code == 0
    taken = run("keys", "add", "lim", "--file", "k").stderr
    assert "there is a key 'lim' already; choose another name" in taken
    assert run("keys", "revoke", "lim", "--file", "k").exit_code == 0
    revoked = run("keys", "add", "lim", "--file", "k").stderr
    assert "is that of a revoked key" in revoked
    assert "--owner team" in revoked
    assert "revoke that one" not in revoked
