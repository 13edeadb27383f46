"""`dragoman codex` as somebody types it: a real Codex edits a file, and keeps the configuration it had."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from tests.backends.coding_backend import MODEL, CodingBackend, Plan
from tests.backends.coding_task import AGAIN, PROMPT, STILL_DONE
from tests.backends.gateway import COMMAND, config_text
from tests.contract.codex_cli import Said, shortcomings

THEIRS = """
model = "gpt-of-mine"
model_provider = "dragoman"

[model_providers.dragoman]
name = "dragoman"
base_url = "http://127.0.0.1:9/v1"
wire_api = "responses"
model_catalog_url = "http://127.0.0.1:9/v1/models"
experimental_bearer_token = "none"
"""
"""What a person has who uses a gateway that always runs: the same provider, elsewhere."""
TASK = ["write", "patch", "check", "done"]
KEY = "gateway-key-of-the-test"


@dataclass(frozen=True, slots=True)
class Person:
    """A home with a Codex of its own, a project, and the configuration of a gateway."""

    folder: Path
    binary: Path

    @property
    def theirs(self) -> Path:
        return self.folder / "home/.codex/config.toml"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def prepare(self, origin: str, theirs: str | None) -> None:
        self.theirs.parent.mkdir(parents=True)
        self.project.mkdir()
        (self.folder / "tmp").mkdir()
        if theirs is not None:
            self.theirs.write_text(theirs)
        provider = {"name": "up", "kind": "openai", "base_url": f"{origin}/v1", "api_key": "k"}
        text = config_text([provider], server={"api_keys": [KEY]})
        (self.folder / "dragoman.toml").write_text(text)

    def types(self, name: str, *arguments: str) -> Said:
        """`dragoman codex ...exec`, in the project; `name` is for its files."""
        home, last = self.folder / "home", self.folder / f"{name}.txt"
        env = {
            "PATH": f"{self.binary.parent}:{os.environ['PATH']}",
            "HOME": str(home),
            "CODEX_HOME": str(home / ".codex"),
            "TMPDIR": str(self.folder / "tmp"),
        }
        ours = ["--config", str(self.folder / "dragoman.toml"), "--log", str(self.folder / "gateway.log")]
        codex = ["exec", "--skip-git-repo-check", "--json", "-o", str(last)]
        argv = [
            str(COMMAND),
            "codex",
            *ours,
            *codex,
            "--dangerously-bypass-approvals-and-sandbox",
            *arguments,
        ]
        ran = subprocess.run(
            argv, cwd=self.project, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=90
        )
        events = [orjson.loads(line) for line in ran.stdout.splitlines()]
        text = last.read_text() if last.exists() else ""
        return Said(ran.returncode, events, text, ran.stderr.decode(errors="replace"))


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    plan: Plan
    theirs: str | None
    """Codex's own configuration; None: there is no file."""
    arguments: Sequence[str] = ()
    says: str = "dragoman: Codex uses up/coder; "


CASES = [
    Case("a Codex that was never configured", Plan(), None),
    Case("a Codex with the same provider elsewhere", Plan("reasoning_content"), THEIRS),
    Case("a model that is named", Plan(), THEIRS, ["-m", MODEL], says=""),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_codex_does_its_task(case: Case, codex_binary: Path, tmp_path: Path) -> None:
    person = Person(tmp_path, codex_binary)
    with CodingBackend(case.plan) as backend:
        person.prepare(backend.origin, case.theirs)
        said = person.types("first", *case.arguments, PROMPT)
        assert not backend.refused
        assert not list(shortcomings(said, person.project))
        assert backend.steps == TASK
    assert said.stderr.startswith(case.says)
    assert ("dragoman:" in said.stderr) is bool(case.says)
    assert KEY not in said.stderr
    assert (person.theirs.read_text() if person.theirs.exists() else None) == case.theirs
    log = (tmp_path / "gateway.log").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    assert ("GET /v1/models", 200) in [(each.get("route"), each.get("status")) for each in lines]
    assert KEY not in log


def test_the_conversation_goes_on_with_the_next_gateway(codex_binary: Path, tmp_path: Path) -> None:
    """It has another port then."""
    person = Person(tmp_path, codex_binary)
    with CodingBackend() as backend:
        person.prepare(backend.origin, None)
        assert not list(shortcomings(person.types("first", PROMPT), person.project))
        said = person.types("again", "resume", "--last", AGAIN)
        assert said.last.startswith(STILL_DONE), said
        assert not backend.refused
        assert backend.steps == [*TASK, "again"]


def test_codex_s_failure_is_ours(codex_binary: Path, tmp_path: Path) -> None:
    person = Person(tmp_path, codex_binary)
    with CodingBackend() as backend:
        person.prepare(backend.origin, THEIRS)
        said = person.types("first", "-m", "no-such-model", PROMPT)
    assert said.status == 1
    assert "no-such-model" in str(said.events)
