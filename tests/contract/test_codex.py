"""The main job: a real Codex CLI edits a file through Dragoman, in front of a strict backend.

Runs where the Codex CLI is; DRAGOMAN_REQUIRE_CODEX=1 (set by .ci/run) makes its absence a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.backends.coding_backend import MODEL, THOUGHT, CodingBackend, Plan
from tests.backends.coding_task import STILL_DONE
from tests.backends.gateway import Gateway
from tests.contract.codex_cli import Catalogue, Codex, Said, shortcomings

TASK = ["write", "patch", "check", "done"]


def openai(origin: str) -> dict[str, Any]:
    return {"name": "up", "kind": "openai", "base_url": f"{origin}/v1", "api_key": "k", "models": [MODEL]}


def responses(origin: str) -> dict[str, Any]:
    return {**openai(origin), "wire": "responses"}


def databricks(origin: str) -> dict[str, Any]:
    return {"name": "up", "kind": "databricks", "base_url": origin, "api_key": "k", "models": [MODEL]}


@dataclass(frozen=True, slots=True)
class Case:
    """One run of the task. `steps` is what the backend must have played, retries included."""

    name: str
    provider: Callable[[str], dict[str, Any]] = openai
    plan: Plan = field(default_factory=Plan)
    catalogue: Catalogue = "json"
    steps: tuple[str, ...] = tuple(TASK)


CASES = [
    Case("openai, catalogue from a file", openai, Plan(errors="openai")),
    Case("databricks, catalogue from a url", databricks, catalogue="url"),
    Case("openai, reasoning_content", openai, Plan("reasoning_content")),
    Case("databricks, reasoning parts", databricks, Plan("databricks")),
    Case("a Responses backend", responses, Plan(shape="responses")),
    Case(
        "a stream is cut",
        databricks,
        Plan(cuts=frozenset({2})),
        steps=("write", "patch", "patch", "check", "done"),
    ),
    Case("a rate limit with Retry-After", openai, Plan(faults={1: (429, 1)})),
    Case(
        "no catalogue: patched through the shell",
        openai,
        catalogue="none",
        steps=("write", "patch-in-shell", "check", "done"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_codex_does_its_task(
    case: Case, codex_binary: Path, tmp_path: Path, start_gateway: Callable[..., Gateway]
) -> None:
    with CodingBackend(case.plan) as backend:
        gateway = start_gateway([case.provider(backend.origin)])
        codex = Codex(codex_binary, tmp_path, f"{gateway.base}/v1", f"up/{MODEL}", catalogue=case.catalogue)
        said = codex.task()
        assert not backend.refused, gateway.log()[-2000:]
        assert not list(shortcomings(said, codex.project)), gateway.log()[-2000:]
        assert tuple(backend.steps) == case.steps
    assert _thoughts(said) == (case.plan.reasoning != "none")


def test_codex_resumes_a_conversation(
    codex_binary: Path, tmp_path: Path, start_gateway: Callable[..., Gateway]
) -> None:
    """The whole history comes back, reasoning items and calls of every kind included."""
    with CodingBackend(Plan("databricks")) as backend:
        gateway = start_gateway([databricks(backend.origin)])
        codex = Codex(codex_binary, tmp_path, f"{gateway.base}/v1", f"up/{MODEL}", catalogue="url")
        assert not list(shortcomings(codex.task(), codex.project)), gateway.log()[-2000:]
        said = codex.again()
        assert not backend.refused
        assert said.last.startswith(STILL_DONE), said
        assert backend.steps == [*TASK, "again"]


def _thoughts(said: Said) -> bool:
    """Whether Codex showed the model's reasoning."""
    shown = [event["item"].get("text", "") for event in said.events if "item" in event]
    return any(THOUGHT in str(text) for text in shown)
