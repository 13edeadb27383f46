"""A real Codex CLI edits a file through Dragoman in front of an Ollama (a contract double of one).

Runs where the Codex CLI is, like `test_codex.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.backends.coding_task import next_turn
from tests.backends.gateway import Gateway
from tests.backends.loopback import Reply
from tests.backends.ollama_double import Model, OllamaDouble, Said, json_reply, lines, ndjson
from tests.contract.codex_cli import Codex, shortcomings

TASK = ["write", "patch", "check", "done"]
NAME = "coder:7b"
THOUGHT = "The task is small; I go step by step."


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    late: bool = False
    old: bool = False
    thought: str = ""
    size: int = 0
    """Bytes of a write; 0: a line each."""
    busy: bool = False
    """The first request finds a full queue."""


CASES = [
    Case("calls as they are read"),
    Case("calls on the last line", late=True),
    Case("an old server, in pieces of 11 bytes", old=True, size=11),
    Case("with thinking", thought=THOUGHT),
    Case("a full queue", busy=True),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_codex_does_its_task_over_ollama(
    case: Case, codex_binary: Path, tmp_path: Path, start_gateway: Callable[..., Gateway]
) -> None:
    steps: list[str] = []
    with OllamaDouble([Model(NAME)], old=case.old) as server:

        def answer(body: dict[str, Any]) -> Reply:
            if case.busy and len(server.chats) == 1:
                return json_reply({"error": "server busy, please try again."}, 503)
            turn = next_turn(body)
            steps.append(turn.step)
            calls = [(call.name, orjson.loads(call.arguments), call.id) for call in turn.calls]
            said = Said(turn.text, calls, case.thought)
            return ndjson(lines(said, case.late, model=NAME), case.size)

        server.answer = answer
        gateway = start_gateway([{"name": "up", "kind": "ollama", "base_url": server.origin}])
        codex = Codex(codex_binary, tmp_path, f"{gateway.base}/v1", f"up/{NAME}", catalogue="url")
        said = codex.task()
        assert not server.refused, gateway.log()[-2000:]
        assert not list(shortcomings(said, codex.project)), gateway.log()[-2000:]
        assert steps == TASK
        assert {body["options"]["num_ctx"] for body in server.chats} == {32768}
    shown = [str(event["item"].get("text", "")) for event in said.events if "item" in event]
    assert any(THOUGHT in text for text in shown) == bool(case.thought)
