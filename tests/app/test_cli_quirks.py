"""`dragoman quirks`: what was learned, shown, exported, forgotten."""

from __future__ import annotations

import os
import time
import tomllib
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from config.load import check
from providers.profiles import BY_NAME, resolve
from providers.quirks_file import Learned, QuirksFile, host_of
from translators.rejections import Rejection

CLAUDE = "databricks-claude-sonnet-4-6"
UNTIL = time.time() + 3600
LEARNED = [
    Learned("h:443", "m", "chat", Rejection(("seed",)), UNTIL),
    Learned("h:443", "m", "chat", Rejection(("temperature",), bounds=(0, 1)), UNTIL),
    Learned("h:443", "m", "chat", Rejection(("reasoning_effort",), value="max", instead="high"), UNTIL),
    Learned("h:443", "m", "chat", Rejection(("service_tier",), value="flex"), UNTIL),
    Learned("h:443", "m", "chat", Rejection(("max_tokens",), name="max_completion_tokens"), UNTIL),
    Learned("h:443", "m", "chat", Rejection(("tools", "*", "function", "strict")), UNTIL),
    Learned("h:443", "n", "chat", Rejection(("messages", "*", "name")), UNTIL),
    Learned("h:443", "n", "chat", Rejection(("messages", "*", "x-y")), UNTIL),
    Learned("h:443", "n", "responses", Rejection(("text", "verbosity")), UNTIL),
    Learned("w:443", CLAUDE, "chat", Rejection(("stop",)), UNTIL),
    Learned("10.0.0.1:8000", "o", "chat", Rejection(("stop",)), UNTIL),
    Learned("z:1", "z", "chat", Rejection(("messages", "*", "x")), UNTIL),
    Learned("h:443", "m", "chat", Rejection(("stop",)), time.time() - 1),
]
CONFIG = f"""
[[providers]]
name = "mine"
kind = "openai"
base_url = "https://h/v1"
overrides = {{request = {{drop = ["user"]}}}}

[[providers]]
name = "dbx"
kind = "databricks"
base_url = "https://w"

[aliases]
claude = "dbx/{CLAUDE}"
"""


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QuirksFile:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)
    found = QuirksFile(tmp_path / "dragoman" / "quirks.json")
    found.update(lambda _: LEARNED)
    return found


def run(*arguments: str, status: int = 0) -> str:
    done = CliRunner().invoke(cli, ["quirks", *arguments])
    assert done.exit_code == status, done.output
    return done.output


def test_a_table_of_what_still_holds() -> None:
    lines = run().splitlines()
    assert lines[0].split() == ["HOST", "MODEL", "SURFACE", "FIELD", "DONE", "UNTIL"]
    assert len(lines) == len(LEARNED)
    shown = "\n".join(lines)
    for words in (
        "seed                     left out ",
        "moved into 0 to 1",
        '"max" sent as high',
        '"flex" left out',
        "sent as max_completion_tokens",
        "tools.*.function.strict",
    ):
        assert words in shown


@pytest.mark.parametrize("name", ["n", "mine/n", "h:443/n"])
def test_of_one_model(name: str) -> None:
    assert len(run(name).splitlines()) == 4


def test_as_json() -> None:
    found = orjson.loads(run("--json"))
    assert found[1] == {
        "host": "h:443",
        "model": "m",
        "surface": "chat",
        "path": ["temperature"],
        "bounds": [0, 1],
        "until": UNTIL,
    }
    assert len(found) == len(LEARNED) - 1


def test_as_overrides_of_the_configured_providers() -> None:
    Path("dragoman.toml").write_text(CONFIG)
    text = run("--toml")
    exported = tomllib.loads(text)["providers"]
    assert [each["name"] for each in exported if "overrides" not in each] == ["unknown"]
    providers = {each["name"]: each["overrides"] for each in exported if "overrides" in each}
    drop = {"seed", "text.verbosity", "user"}
    assert set(providers["mine"]["request"].pop("drop")) == drop
    assert providers["mine"] == {
        "request": {
            "clamp": {"temperature": [0, 1]},
            "rename": {"max_tokens": "max_completion_tokens"},
        },
        "reasoning": {"map": {"max": "high"}},
        "tools": {"strict": "drop"},
        "messages": {"user_name": "drop"},
    }
    built_in = resolve(kind="databricks", host="w", model=CLAUDE, surface="chat").request.drop
    assert set(providers["dbx"]["request"]["drop"]) == {*built_in, "stop"}
    assert providers["unknown"] == {"request": {"drop": ["stop"]}}
    assert "# n on chat: messages.*.x-y left out (no setting says so)" in text
    assert '# m on chat: service_tier "flex" left out (no setting says so)' in text


def test_the_export_is_configuration_that_is_taken() -> None:
    exported = tomllib.loads(run("--toml"))
    for each in exported["providers"]:
        each |= {"kind": "openai", "base_url": "http://127.0.0.1/v1", "name": f"p{id(each)}"}
    problems, config = check(exported, {}, BY_NAME)
    assert problems == []
    assert config is not None


def test_forgetting(file: QuirksFile) -> None:
    assert run("--forget", "n") == "forgotten: 3\n"
    assert {each.model for each in file.read()} == {"m", CLAUDE, "o", "z"}
    assert run("--forget") == "forgotten: 9\n"
    assert run() == "nothing is learned\n"
    assert "providers" not in tomllib.loads(run("--toml"))


def test_without_a_place_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    assert run() == "nothing is learned\n"
    assert run("--forget") == "forgotten: 0\n"


def test_what_cannot_be_read_is_said(file: QuirksFile) -> None:
    file.path.write_text("{")
    assert "quirks.json: it is not a file of learned quirks" in run(status=1)


def test_what_cannot_be_changed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "quirks.json")

    monkeypatch.setattr(os, "replace", full)
    assert "quirks.json: No space left on device" in run("--forget", status=1)


def test_a_faulty_configuration_is_told() -> None:
    Path("dragoman.toml").write_text("[server]\nprot = 1\n")
    assert "port" in run("--toml", status=2)


@pytest.mark.parametrize(
    ("base_url", "host"),
    [
        ("https://H.example/v1", "h.example:443"),
        ("http://127.0.0.1:8000/v1", "127.0.0.1:8000"),
        ("http://[::1]/v1", "::1:80"),
        ("", "None:None"),
    ],
)
def test_hosts_are_named_with_their_port(base_url: str, host: str) -> None:
    assert host_of(base_url) == host
