"""`dragoman codex`: what Codex is told of the gateway, and that its own arguments stay its own.

A real Codex: tests/contract/test_codex_command.py.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from app.cli import launch
from app.cli.main import cli
from config.schema import Config
from tests.app.conftest import provider
from tests.backends.gateway import config_text
from tests.backends.scripted import ScriptedBackend

OURS = ("OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_KEY", "DRAGOMAN_BASE_URL")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log_as_before: None) -> Path:
    """An empty folder, nothing of the developer's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("DRAGOMAN_CONFIG", *OURS):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def codex(folder: Path, monkeypatch: pytest.MonkeyPatch, scripted: ScriptedBackend) -> Callable[..., Any]:
    """A `codex` that tells how it was called, run by the command line."""
    script = folder / "bin" / "codex"
    script.parent.mkdir()
    code = (
        "import json, os, sys; json.dump([sys.argv[1:], dict(os.environ)], open('called', 'w')); sys.exit(3)"
    )
    script.write_text(f"#!{sys.executable}\n{code}\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    more = {"models": ["plain", "claude-opus-4-8", "claude-haiku-4-5"]}
    Path("dragoman.toml").write_text(config_text([provider(scripted, **more)]))

    def run(*arguments: str) -> Any:
        done = CliRunner().invoke(cli, ["codex", *arguments])
        assert done.exit_code == 3, done.output
        assert done.stdout == ""
        return done.stderr, *orjson.loads(Path("called").read_bytes())

    return run


def test_codex_is_told_by_its_own_options(codex: Callable[..., Any]) -> None:
    said, arguments, environ = codex("exec", "do it")
    assert said.startswith("dragoman: Codex uses p/claude-opus-4-8; ")
    assert arguments[::2] == ["-c", "-c", "-c", "exec"]
    assert arguments[7:] == ["do it"]
    settings = tomllib.loads("\n".join(arguments[1:6:2]))
    table = settings["model_providers"]["dragoman"]
    assert (settings["model"], settings["model_provider"]) == ("p/claude-opus-4-8", "dragoman")
    assert table["model_catalog_url"] == f"{table['base_url']}/models"
    assert table["base_url"].startswith("http://127.0.0.1:")
    assert (table["wire_api"], environ[table["env_key"]]) == ("responses", "dragoman")
    assert not set(OURS) & environ.keys()


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ([], []),
        (["--", "--help"], ["--help"]),
        (["exec", "--help"], ["exec", "--help"]),
        (["--search", "--", "--config"], ["--search", "--", "--config"]),
        (["--log", "a", "--log=b", "-C", "x", "--log", "c"], ["-C", "x", "--log", "c"]),
        (["--config", "dragoman.toml", "--", "--config", "x=1"], ["--config", "x=1"]),
        (["", "two words", "ü"], ["", "two words", "ü"]),
    ],
    ids=str,
)
def test_what_is_codexs_is_passed_as_it_is(
    given: list[str], passed: list[str], codex: Callable[..., Any]
) -> None:
    assert codex(*given)[1][6:] == passed


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("exec -m x", True),
        ("-mx", True),
        ("--model x", True),
        ("exec --model=x", True),
        ("-p mine", True),
        ("--profile=mine", True),
        ("-c model=x", True),
        ("-cmodel=x", True),
        ("-c=model=x", True),
        ("--config model=x", True),
        ("--config=model=x", True),
        ("-c model_provider=x", False),
        ("exec model=x", False),
        ("exec -- -m x", False),
        ("--model-of x", False),
        ("resume --last", False),
    ],
)
def test_a_model_that_is_named_is_kept(arguments: str, named: bool) -> None:
    assert launch.names_model(arguments.split()) is named


def test_no_model_is_chosen_over_one_that_is_named(codex: Callable[..., Any]) -> None:
    said, arguments, _ = codex("-m", "p/plain")
    assert said == ""
    assert arguments[::2][:2] == ["-c", "-c"]
    assert arguments[4:] == ["-m", "p/plain"]


def test_codex_is_started_without_a_model_too(codex: Callable[..., Any]) -> None:
    Path("dragoman.toml").write_text(
        config_text([{"name": "o", "kind": "openai", "base_url": "http://127.0.0.1:9/v1"}])
    )
    said, arguments, _ = codex("login")
    assert said == "dragoman: no model is listed; name one: dragoman codex -m NAME\n"
    assert arguments[4:] == ["login"]


def test_a_list_that_is_long_in_coming_is_not_waited_for(
    codex: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        Path("dragoman.toml").write_text(
            config_text([{"name": "o", "kind": "openai", "base_url": f"http://127.0.0.1:{port}/v1"}])
        )
        monkeypatch.setattr(launch, "LISTED_S", 0.1)
        began = time.monotonic()
        assert codex()[0].startswith("dragoman: no model is listed")
        assert time.monotonic() - began < 5


def test_a_model_without_tools_is_not_chosen(
    scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config.model_validate({"providers": [provider(scripted)]})
    cards = [SimpleNamespace(target=f"p/{tools}", tools=tools) for tools in (False, None, True)]
    monkeypatch.setattr(launch, "ranked", lambda *_: [SimpleNamespace(card=card) for card in cards])
    with launch.running(config, None) as gateway:
        assert launch.first_model(gateway) == "p/None"


def test_the_name_of_a_model_is_toml() -> None:
    name = 'p/a "b" \\c'
    assert tomllib.loads(launch.codex_options("http://h/v1", name)[-1])["model"] == name


def test_without_codex_it_is_said_how_to_get_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    done = CliRunner().invoke(cli, ["codex", "exec", "x"])
    assert done.exit_code == 127
    assert done.stderr == (
        "dragoman: codex: command not found; install it with: npm install --global @openai/codex\n"
    )
