"""`dragoman models` and `dragoman resolve`: what there is, what a name means, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from app.cli.model_table import print_table
from tests.app.conftest import Serve
from tests.backends.gateway import config_text
from tests.backends.scripted import ScriptedBackend

OPUS, SONNET, HAIKU = "claude-opus-4-8", "claude-sonnet-4-6", "claude-haiku-4-5"
LISTED = (HAIKU, "text-embedding-3-small", OPUS, "plain", SONNET)
NAMES = """
[aliases]
best = "b/claude-opus-4-8"
words = "claude sonnet"

[groups]
pair = [{model = "b/claude-opus-4-8", weight = 3}, {model = "b/claude-haiku-4-5"}]

[fallbacks]
"b/plain" = ["chat-fast"]
"""
DOWN = {"name": "down", "kind": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key": "sk-of-the-other"}


@pytest.fixture(scope="module")
def backend() -> Iterator[ScriptedBackend]:
    with ScriptedBackend(LISTED) as backend:
        yield backend


def provider(backend: ScriptedBackend) -> dict[str, Any]:
    return {"name": "b", "kind": "openai", "base_url": f"{backend.origin}/v1", "api_key": "sk-of-the-one"}


@pytest.fixture(autouse=True)
def folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, backend: ScriptedBackend, log_as_before: None
) -> Path:
    """A folder with a configuration, and nothing of the developer's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DRAGOMAN_CONFIG", "OPENAI_API_KEY", "OPENAI_BASE_URL", "DATABRICKS_HOST", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("app.cli.discover.LOCAL", ())
    monkeypatch.setattr("app.cli.discover.extra_is_installed", lambda: False)
    Path("dragoman.toml").write_text(config_text([provider(backend)]) + NAMES)
    return tmp_path


def run(*arguments: str, status: int = 0) -> Any:
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == status, done.output
    return done


def ids(output: str) -> list[str]:
    """The models of a table."""
    head, *lines = output.splitlines()
    assert head.split() == ["#", "MODEL", "CLASS", "SCORE", "CONTEXT", "CAN", "WHY"]
    return [line.split()[1] for line in lines]


def test_a_table_in_the_order_in_which_they_are_asked() -> None:
    done = run("models")
    assert ids(done.stdout) == [f"b/{name}" for name in (OPUS, SONNET, HAIKU, "plain")]
    assert "family 'opus'" in done.stdout.splitlines()[1]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["--search", "sonet"], [SONNET]),
        (["--search", "sonet", "--threshold", "0.1"], []),
        (["--class", "balanced"], [SONNET, HAIKU]),
        (["--class", "embedding"], ["text-embedding-3-small"]),
        (["--limit", "2"], [OPUS, SONNET]),
        (["--no-tools"], []),
        (["--tools", "--limit", "1"], [OPUS]),
        (["--no-vision", "--search", "haiku"], [HAIKU]),
        (["--no-reasoning", "--search", "haiku"], [HAIKU]),
    ],
    ids=" ".join,
)
def test_filters(filters: list[str], found: list[str]) -> None:
    done = run("models", "--json", *filters)
    assert [each["id"] for each in orjson.loads(done.stdout)["data"]] == [f"b/{name}" for name in found]
    assert done.stderr == ("" if found else "no model fits\n")


def test_no_table_where_no_model_fits() -> None:
    assert run("models", "--search", "zzz").stdout == ""


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (["--class", "medium"], "`class` must be one of chat-thinking"),
        (["--limit", "0"], "`limit` must be a whole number from 1 to 50"),
        (["--limit", "51"], "`limit` must be a whole number from 1 to 50"),
        (["--limit", "many"], "--limit"),
        (["--threshold", "1.5"], "`threshold` must be a number from 0"),
        (["--threshold", "nan"], "`threshold` must be a number from 0"),
    ],
    ids=" ".join,
)
def test_a_filter_that_is_wrong(filters: list[str], said: str) -> None:
    done = run("models", *filters, status=2)
    assert said in done.stderr
    assert done.stdout == ""


def test_as_json_it_says_what_the_gateway_says(backend: ScriptedBackend, serve: Serve) -> None:
    Path("dragoman.toml").write_text(config_text([{**provider(backend), "models": list(LISTED)}]))
    served = serve(fresh=True, providers=[{**provider(backend), "models": list(LISTED)}])
    with served.client() as client:
        theirs = client.get("/models", params={"search": "claude", "limit": 2}).json()["data"]
    ours = orjson.loads(run("models", "--search", "claude", "--limit", "2", "--json").stdout)
    assert ours == {"object": "list", "data": theirs}


def test_a_provider_that_does_not_list_is_named(backend: ScriptedBackend) -> None:
    Path("dragoman.toml").write_text(config_text([DOWN, provider(backend)]))
    done = run("models", "--json")
    assert done.stderr == "warning: down: the model list could not be read (ConnectError)\n"
    assert len(orjson.loads(done.stdout)["data"]) == 4
    assert run("resolve", "claude sonnet").stderr == done.stderr
    assert "sk-of" not in done.output


def test_when_none_lists_there_is_nothing_to_show() -> None:
    Path("dragoman.toml").write_text(config_text([DOWN]))
    done = run("models", status=1)
    assert done.stderr.startswith("warning: down: ")
    assert done.stdout == ""


def test_without_a_file_what_there_is(monkeypatch: pytest.MonkeyPatch, backend: ScriptedBackend) -> None:
    Path("dragoman.toml").unlink()
    monkeypatch.setenv("OPENAI_BASE_URL", f"{backend.origin}/v1")
    done = run("models", "--limit", "1")
    assert ids(done.stdout) == [f"openai/{OPUS}"]
    assert done.stderr == f"OPENAI_BASE_URL: provider openai at {backend.origin}/v1\n"


@pytest.mark.parametrize("command", [["models"], ["resolve", "x"]], ids=" ".join)
def test_with_nothing_it_says_who_says_what_to_do(command: list[str]) -> None:
    Path("dragoman.toml").unlink()
    assert "dragoman serve says what to do" in run(*command, status=1).stderr


@pytest.mark.parametrize("command", [["models"], ["resolve", "x"]], ids=" ".join)
def test_a_faulty_configuration_is_told(command: list[str]) -> None:
    Path("other.toml").write_text("[server]\nprot = 1\n")
    assert "other.toml:2: server.prot" in run(*command, "--config", "other.toml", status=2).stderr


@pytest.mark.parametrize(
    ("name", "source", "order", "found"),
    [
        (f"b/{OPUS}", "exact", "fixed", [OPUS]),
        (OPUS, "exact", "fixed", [OPUS]),
        ("b/unlisted", "exact", "fixed", ["unlisted"]),
        ("best", "alias", "fixed", [OPUS]),
        ("words", "alias", "by what suits the request", [SONNET]),
        ("pair", "group", "by what suits the request", [OPUS, HAIKU]),
        ("fast", "class", "by what suits the request", [HAIKU]),
        ("claude sonet", "search", "by what suits the request", [SONNET]),
        ("plain", "exact", "fixed", ["plain", HAIKU]),
    ],
)
def test_how_a_name_is_read(name: str, source: str, order: str, found: list[str]) -> None:
    first, rest = run("resolve", name).stdout.split("\n", 1)
    assert first == f"{name}: {source}, order: {order}"
    assert ids(rest) == [f"b/{each}" for each in found]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("b/unlisted", "its model is in no list"),
        ("pair", "weight 3 in its group; class chat-thinking"),
        ("plain", "a fallback; class chat-fast"),
        ("sonet", "all words of the search fit (score 0.200, 0 is exact); class chat-balanced"),
        ("fast", "  class chat-fast: family 'haiku'"),
    ],
)
def test_why(name: str, words: str) -> None:
    assert words in run("resolve", name).stdout


def test_how_a_name_is_read_as_json() -> None:
    said = orjson.loads(run("resolve", "sonet", "--json").stdout)
    (choice,) = said.pop("choices")
    assert said == {"name": "sonet", "source": "search", "order": "by what suits the request"}
    assert (choice["id"], choice["class"], choice["score"]) == (f"b/{SONNET}", "chat-balanced", 0.2)
    assert choice["reasons"][0].startswith("all words of the search fit")
    assert (choice["fallback"], choice["weight"]) == (False, None)


@pytest.mark.parametrize("more", [[], ["--json"]], ids=str)
def test_a_name_that_means_nothing(more: list[str]) -> None:
    done = run("resolve", "claude-opus-4-9", *more, status=1)
    assert done.stdout == ""
    assert done.stderr.startswith("model 'claude-opus-4-9' is not known; did you mean claude-opus-4-8, ")


def test_what_is_known_of_a_model_stands_in_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    known = {"class": "chat-fast", "breakdown": {"total": 0.954}, "tools": True, "reasoning": True}
    rows = [
        {"id": "p/[red]x[/]", **known, "context_window": 200_000, "reasons": ["found", "why"], "score": 0.1},
        {
            "id": "p/y",
            "vision": True,
            "context_window": 1_048_576,
            "reasons": ["found", "why"],
            "score": None,
        },
    ]
    print_table(rows)
    _, *lines = capsys.readouterr().out.splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "1 p/[red]x[/] chat-fast 0.95 200k tools reasoning found; why",
        "2 p/y - - 1.05M vision why",
    ]
