"""What commands that serve nothing say of a machine without a configuration: little."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli import configuration as cli_configuration
from app.cli.discover import BRIEFLY, BRIEFLY_NOTHING, NEXT_STEPS, discover
from app.cli.main import cli


@pytest.fixture(autouse=True)
def nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log_as_before: None) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DRAGOMAN_CONFIG", "OPENAI_API_KEY", "OPENAI_BASE_URL", "DATABRICKS_HOST", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("app.cli.discover.LOCAL", ())
    monkeypatch.setattr("app.cli.discover.extra_is_installed", lambda: False)


@pytest.mark.parametrize("command", [("models",), ("resolve", "x")])
def test_one_line_before_the_answer(command: tuple[str, ...]) -> None:
    told = CliRunner().invoke(cli, command).stderr
    assert told.splitlines()[0] == BRIEFLY_NOTHING
    assert not set(NEXT_STEPS) & set(told.splitlines())


def test_serve_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    cli_configuration.configuration(None, {})
    assert capsys.readouterr().err.splitlines() == list(NEXT_STEPS)
    cli_configuration.configured(None)
    assert capsys.readouterr().err.splitlines() == [BRIEFLY_NOTHING]


ENVIRONMENTS: list[tuple[dict[str, str], bool, list[str]]] = [
    ({}, True, [BRIEFLY]),
    ({}, False, [BRIEFLY_NOTHING]),
    (
        {"OPENAI_BASE_URL": "http://h/v1"},
        False,
        ["OPENAI_BASE_URL: provider openai at http://h/v1"],
    ),
    (
        {"OLLAMA_HOST": "http://127.0.0.1:1"},
        True,
        ["OLLAMA_HOST: no Ollama answers there; start it with: ollama serve", BRIEFLY],
    ),
]


@pytest.mark.parametrize(("environ", "embedded", "brief"), ENVIRONMENTS)
def test_what_is_found_is_named(environ: Any, embedded: bool, brief: list[str], tmp_path: Path) -> None:
    assert discover(environ, {"port": 0}, tmp_path, (), embedded).brief == brief
