"""A real Codex CLI that speaks to Dragoman over a WebSocket (`supports_websockets = true`).

Runs where the Codex CLI is; DRAGOMAN_REQUIRE_CODEX=1 makes its absence a failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.backends.coding_backend import MODEL, CodingBackend, Plan
from tests.backends.coding_task import STILL_DONE
from tests.backends.gateway import Gateway, config_text
from tests.contract.codex_cli import KEY, Codex, shortcomings

TASK = ("write", "patch", "check", "done")
WEBSOCKETS = {"supports_websockets": True}


@dataclass(frozen=True, slots=True)
class Case:
    """One run of the task. `steps`: what the backend must have played, retries included."""

    name: str
    plan: Plan = field(default_factory=Plan)
    server: dict[str, Any] = field(default_factory=dict)
    provider: dict[str, Any] = field(default_factory=dict)
    steps: tuple[str, ...] = TASK
    route: str = "WEBSOCKET /v1/responses"
    """What every answer came by."""


CASES = [
    Case("a Chat backend", Plan(errors="openai")),
    Case("a Responses backend", Plan(shape="responses"), provider={"wire": "responses"}),
    Case("with a key", Plan("reasoning_content"), server={"api_keys": [KEY]}),
    Case("a stream is cut", Plan(cuts=frozenset({2})), steps=("write", "patch", "patch", "check", "done")),
    Case("a rate limit with Retry-After", Plan(faults={1: (429, 1)})),
    Case("turned off: POST", server={"websocket": False}, route="POST /v1/responses"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_codex_does_its_task_over_a_websocket(case: Case, codex_binary: Path, tmp_path: Path) -> None:
    with CodingBackend(case.plan) as backend, started(case, backend, tmp_path) as gateway:
        codex = Codex(codex_binary, tmp_path, f"{gateway.base}/v1", f"up/{MODEL}", provider=WEBSOCKETS)
        said = codex.task()
        assert not backend.refused, gateway.log()[-2000:]
        assert not list(shortcomings(said, codex.project)), gateway.log()[-2000:]
        assert tuple(backend.steps) == case.steps
        assert routes(gateway) == {case.route}


def test_codex_resumes_over_a_websocket(codex_binary: Path, tmp_path: Path) -> None:
    case = Case("resumed", Plan("reasoning_content"))
    with CodingBackend(case.plan) as backend, started(case, backend, tmp_path) as gateway:
        codex = Codex(codex_binary, tmp_path, f"{gateway.base}/v1", f"up/{MODEL}", provider=WEBSOCKETS)
        assert not list(shortcomings(codex.task(), codex.project)), gateway.log()[-2000:]
        said = codex.again()
        assert not backend.refused
        assert said.last.startswith(STILL_DONE), said
        assert tuple(backend.steps) == (*TASK, "again")
        assert routes(gateway) == {case.route}


def test_codexs_own_provider_at_another_address(codex_binary: Path, tmp_path: Path) -> None:
    """`openai_base_url` is all that is set: Codex speaks to it as it does to OpenAI, over a WebSocket."""
    case = Case("its own", server={"api_keys": [KEY]})
    with CodingBackend(case.plan) as backend, started(case, backend, tmp_path) as gateway:
        codex = Codex(codex_binary, tmp_path, f"{gateway.base}/v1", f"up/{MODEL}")
        home = codex.home / ".codex"
        (home / "config.toml").write_text(
            f'model = "up/{MODEL}"\nopenai_base_url = "{gateway.base}/v1"\n'
            f'model_catalog_json = "{home / "catalogue.json"}"\n'
        )
        said = codex.task({"CODEX_API_KEY": KEY})
        assert not list(shortcomings(said, codex.project)), gateway.log()[-2000:]
        assert tuple(backend.steps) == case.steps
        assert routes(gateway) == {case.route}


def started(case: Case, backend: CodingBackend, folder: Path) -> Gateway:
    up = {"name": "up", "kind": "openai", "base_url": f"{backend.origin}/v1", "api_key": "k"}
    config = config_text([{**up, "models": [MODEL], **case.provider}], server=case.server)
    return Gateway(folder, config)


def routes(gateway: Gateway) -> set[str]:
    """By which routes a model was asked, as the log tells."""
    lines = [orjson.loads(line) for line in gateway.log().splitlines() if line.startswith("{")]
    return {line["route"] for line in lines if line["event"] == "request" and line["model"]}
