"""The commands as a person runs them: exit status, and what is said where."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from config.schema import Config

GOOD = '[[providers]]\nname = "a"\nkind = "openai"\nbase_url = "http://h/v1"\n\n[aliases]\nx = "a/m"\n'
OFF = '[[providers]]\nname = "o"\nkind = "onnx"\npath = "x"\n'
BAD = '[server]\nprt = 1\n[[providers]]\nname = "a"\nkind = "openai"\nbase_url = "h"\napi_key = "sk-secret"\n'


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the developer's own may be found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (
        "DRAGOMAN_CONFIG",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "DATABRICKS_HOST",
        "DATABRICKS_TOKEN",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """The configurations that would have been served; no local server is there to be found."""
    configs: list[Config] = []
    monkeypatch.setattr("app.server.run", lambda config, _origin: configs.append(config))
    monkeypatch.setattr("app.cli.discover.LOCAL", ())
    return configs


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli, arguments)


def test_a_good_file_is_summed_up() -> None:
    Path("c.toml").write_text(GOOD)
    result = run("check", "--config", "c.toml")
    assert result.exit_code == 0
    assert result.stdout == "c.toml: ok, 1 provider, 1 alias\n  a: openai http://h/v1\n"
    assert result.stderr == ""


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("command", ["check", "serve"])
def test_one_user_for_all_requests_is_a_warning(command: str) -> None:
    tables = "{defaults = {safety_identifier = 's'}, force = {user = 'u', seed = 1}}"
    Path("dragoman.toml").write_text(GOOD.replace("\n[aliases]", f"overrides.request = {tables}\n[aliases]"))
    result = run(command)
    assert result.exit_code == 0
    assert [line.split(" names")[0] for line in result.stderr.splitlines() if "end user" in line] == [
        "warning: a: overrides.request.defaults.safety_identifier",
        "warning: a: overrides.request.force.user",
    ]


@pytest.fixture
def no_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.configuration.extra_is_installed", lambda: False)


@pytest.mark.usefixtures("no_extras")
def test_a_kind_whose_engine_is_not_installed_is_a_warning() -> None:
    Path("dragoman.toml").write_text(OFF)
    result = run("check")
    assert result.exit_code == 0
    assert "warning: o: the engine for ONNX models is not installed: pip install" in result.stderr
    assert "answer 503" in result.stderr


def test_every_error_goes_to_stderr_with_status_2() -> None:
    Path("c.toml").write_text(BAD)
    result = run("check", "--config", "c.toml")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        'c.toml:2: server.prt: unknown key, did you mean "port"?',
        "c.toml:6: providers[0].base_url: must begin with http:// or https://",
    ]


def test_no_file_is_fine() -> None:
    result = run("check")
    assert (result.exit_code, result.stderr) == (0, "")
    first, second = result.stdout.splitlines()
    assert first == "no file, built-in defaults: ok, 0 providers, 0 aliases"
    assert "serve then looks for keys" in second


def test_the_variable_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_CONFIG", "nope.toml")
    result = run("check")
    assert (result.exit_code, result.stderr) == (2, "nope.toml: no such file\n")


def test_serve_refuses_a_bad_file_in_the_same_way(served: list[Config]) -> None:
    Path("c.toml").write_text(BAD)
    result = run("serve", "--config", "c.toml")
    assert result.exit_code == 2
    assert "did you mean" in result.stderr
    assert "sk-secret" not in result.output
    assert served == []


def test_serve_hands_over_what_file_and_options_say(served: list[Config]) -> None:
    Path("dragoman.toml").write_text(GOOD + "[server]\nport = 1\nworkers = 3\n")
    assert run("serve", "--port", "0", "--host", "localhost").exit_code == 0
    (config,) = served
    assert (config.server.host, config.server.port, config.server.workers) == ("localhost", 0, 3)


@pytest.mark.usefixtures("no_extras")
@pytest.mark.parametrize(
    ("text", "said"), [("", "no provider is configured"), (OFF, "warning: o: the engine"), (GOOD, "")]
)
def test_serve_warns_of_what_will_not_work(text: str, said: str, served: list[Config]) -> None:
    Path("dragoman.toml").write_text(text)
    result = run("serve")
    assert len(served) == 1
    assert said in result.stderr
    assert bool(result.stderr) is bool(said)


def test_serve_without_a_file_looks_around(monkeypatch: pytest.MonkeyPatch, served: list[Config]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    result = run("serve", "--port", "4321")
    assert result.exit_code == 0
    assert "OPENAI_API_KEY: provider openai at https://api.openai.com/v1" in result.stderr
    assert "http://127.0.0.1:4321/v1" in result.stderr
    assert "sk-secret" not in result.output
    assert served[0].providers[0].name == "openai"


def test_serve_with_nothing_says_what_to_do(served: list[Config]) -> None:
    result = run("serve")
    assert len(served) == 1
    assert "export OPENAI_API_KEY" in result.stderr


def test_serve_to_others_without_a_key_is_an_error(served: list[Config]) -> None:
    result = run("serve", "--host", "0.0.0.0")
    assert (result.exit_code, served) == (2, [])
    assert "server.api_keys: required" in result.stderr


def test_version_and_help() -> None:
    assert run("--version").stdout.startswith("dragoman 0.")
    assert "check" in run("--help").stdout
    assert run("serve", "--prot", "1").exit_code == 2


def test_the_installed_command_answers_fast() -> None:
    """Without the server's imports; 0.2 s on an idle machine, the bound leaves room for a busy one."""
    Path("c.toml").write_text(BAD)
    command = Path(sys.executable).with_name("dragoman")
    began = time.monotonic()
    done = subprocess.run(
        [command, "check", "--config", "c.toml"], capture_output=True, text=True, timeout=20
    )
    assert time.monotonic() - began < 5
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 2)
    heavy = "{'aiohttp', 'httpx', 'fastapi', 'uvicorn'}"
    code = f"import app.cli.main, sys; sys.exit(bool({heavy} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0
