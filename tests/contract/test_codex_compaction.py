"""A real Codex that has its conversation compacted by the gateway, as it does with OpenAI.

A provider named "OpenAI" is sent a `compaction_trigger`; what it answers comes back in every later request.

Runs where the Codex CLI is; DRAGOMAN_REQUIRE_CODEX=1 makes its absence a failure.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.backends import replies
from tests.backends.character import FULL
from tests.backends.character_vllm import OneSystem
from tests.backends.gateway import Gateway
from tests.backends.long_task import DONE, NOTES, again_prompt, compact_at, long_prompt, notes_after, text_of
from tests.backends.loopback import Reply, Request
from tests.backends.workshop import SERVERS, Workshop
from tests.contract.codex_cli import Codex

STEPS = 16
SETTINGS = {"model_auto_compact_token_limit": FULL // 2, "tools": {"update_plan": {"enabled": True}}}
SUMMARY = f"Where we are: [[long {STEPS} done {compact_at(STEPS) + 1}]]"


class Summing(OneSystem):
    """Also sums up a conversation when it is given the record of one."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[str] = []

    def _answer(self, request: Request) -> Reply:
        said = text_of(request.json["messages"][-1]["content"]) if request.method == "POST" else ""
        if not said.startswith("The record of the conversation"):
            return super()._answer(request)
        self.records.append(said)
        return replies.json_reply(replies.chat_completion(SUMMARY, model=self.model))


@pytest.mark.parametrize("websocket", [False, True])
def test_a_compaction_by_trigger_and_a_resume(
    codex_binary: Path, tmp_path: Path, start_gateway: Callable[..., Gateway], websocket: bool
) -> None:
    workshop = Workshop(tmp_path / "workshop")
    workshop.build()
    with Summing() as backend:
        gateway = start_gateway([backend.provider()])
        codex = Codex(
            codex_binary,
            tmp_path / "codex",
            f"{gateway.base}/v1",
            f"up/{backend.model}",
            settings=SETTINGS,
            servers={name: workshop.command(name) for name in SERVERS},
            provider={"name": "OpenAI", "supports_websockets": websocket},
        )
        shutil.copy(workshop.picture, codex.project / "pic.png")
        given = ["--output-schema", str(workshop.schema), "-i", "pic.png", "--", long_prompt(STEPS)]
        said = codex.run("long", given)
        told = f"{said.last[:600]} {said.stderr[-800:]} {said.events[-2:]} {gateway.log()[-1500:]}"
        assert said.status == 0, told
        assert orjson.loads(said.last) == {"answer": f"{DONE}: long {STEPS}"}, told
        assert backend.refusals == []
        assert (codex.project / NOTES).read_text() == notes_after(STEPS)
        (record,) = backend.records
        assert "[assistant calls" in record
        assert long_prompt(STEPS) in record
        after = [each.body["messages"] for each in backend.exchanges if SUMMARY in str(each.body)]
        assert len(after) == STEPS - compact_at(STEPS)
        assert not any(record in str(messages) for messages in after)
        again = codex.run("again", ["resume", "--last", again_prompt(7)])
        assert (again.status, again.last) == (0, f"{DONE}: again 7")
        assert SUMMARY in str(backend.exchanges[-1].body)
