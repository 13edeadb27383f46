"""A real Codex CLI in front of a gateway with nothing configured: the model of the package answers it.

That model knows a few sentences and has room for 8,192 tokens, so no task is done here. What counts is that
every turn ends as Codex expects: with an answer, or with words that Codex knows.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.discover import EMBEDDED_MODEL
from tests.backends.gateway import Gateway
from tests.contract.codex_cli import Codex

SLIM = {"features": {"multi_agent": False, "goals": False}}
"""Without these tools Codex's first request has some 5,000 of the model's tokens, with them 12,600."""
NO_ROOM = "ran out of room in the model's context window"


def asked(gateway: Gateway) -> list[str]:
    return [line for line in gateway.log().splitlines() if '"POST /v1/responses"' in line]


@pytest.mark.parametrize("question", ["Say hello.", "What is 2 plus 3?"])
def test_a_turn_ends_with_an_answer(codex_binary: Path, tmp_path: Path, question: str) -> None:
    with Gateway(tmp_path, env={"OLLAMA_HOST": "127.0.0.1:9"}) as gateway:
        base = f"{gateway.base}/v1"
        codex = Codex(codex_binary, tmp_path, base, EMBEDDED_MODEL, catalogue="url", settings=SLIM)
        said = codex.run("slim", [question])
        assert said.status == 0, said.events
        assert "turn.completed" in said.kinds()
        assert "turn.failed" not in said.kinds()
        assert all('"status":200' in line for line in asked(gateway))
        again = codex.run("again", ["resume", "--last", question])
        assert "turn.completed" in again.kinds(), again.events
        assert all('"stream_violations":0' in line for line in asked(gateway))


def test_what_has_no_room_is_told_once_in_words_that_codex_knows(codex_binary: Path, tmp_path: Path) -> None:
    with Gateway(tmp_path, env={"OLLAMA_HOST": "127.0.0.1:9"}) as gateway:
        codex = Codex(codex_binary, tmp_path, f"{gateway.base}/v1", EMBEDDED_MODEL, catalogue="url")
        said = codex.run("whole", ["Say hello."])
        assert NO_ROOM in str(said.events[-1])
        (line,) = asked(gateway)
        assert '"error_code":"context_length_exceeded"' in line
