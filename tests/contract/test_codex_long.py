"""A long conversation of a real Codex CLI through Dragoman, over four strict backends.

Sixty tool turns: shell, patches, the plan, three MCP servers (long names, one name twice, odd
schemas, pictures in results), calls in parallel, a picture and an output schema from the
command line, the conversation shortened on the way, and resumed after it. Then what goes wrong
in practice: another model takes over, Codex is killed while tools run, streams are cut.

Runs where the Codex CLI is; DRAGOMAN_REQUIRE_CODEX=1 makes its absence a failure.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.backends.character import FULL, Character
from tests.backends.character_databricks import DatabricksClaude
from tests.backends.character_deepseek import DeepSeek
from tests.backends.character_gemini import Gemini
from tests.backends.character_vllm import OneSystem
from tests.backends.gateway import Gateway
from tests.backends.long_task import (
    DONE,
    JOURNAL,
    NOTES,
    STUCK_PROMPT,
    again_prompt,
    asked_of,
    compact_at,
    journal_after,
    long_prompt,
    notes_after,
)
from tests.backends.workshop import SERVERS, Workshop
from tests.contract.codex_cli import Codex, Said

LONG, SHORT = 60, 16
_SYSTEM_FIRST = "System message must be at the beginning"
NORTH, SOUTH, BENCH = SERVERS
SETTINGS = {"model_auto_compact_token_limit": FULL // 2, "tools": {"update_plan": {"enabled": True}}}
_KILL_S = 20.0


@dataclass(slots=True)
class Run:
    """A Codex in its workshop, behind a gateway."""

    codex: Codex
    workshop: Workshop
    gateway: Gateway

    def long(self, steps: int) -> Said:
        given = ["--output-schema", str(self.workshop.schema), "-i", "pic.png", "--", long_prompt(steps)]
        return self.codex.run("long", given)

    def resume(self, shelf: int, *options: str) -> Said:
        return self.codex.run(f"again{shelf}", [*options, "resume", "--last", again_prompt(shelf)])


@pytest.fixture
def start(codex_binary: Path, tmp_path: Path, start_gateway: Callable[..., Gateway]) -> Callable[..., Run]:
    def started(*backends: Character) -> Run:
        """Providers are named `up0`, `up1`, ...; Codex begins with the first."""
        workshop = Workshop(tmp_path / "workshop")
        workshop.build()
        gateway = start_gateway([{**b.provider(), "name": f"up{at}"} for at, b in enumerate(backends)])
        servers = {name: workshop.command(name) for name in SERVERS}
        folder, model = tmp_path / "codex", f"up0/{backends[0].model}"
        codex = Codex(codex_binary, folder, f"{gateway.base}/v1", model, settings=SETTINGS, servers=servers)
        shutil.copy(workshop.picture, codex.project / "pic.png")
        return Run(codex, workshop, gateway)

    return started


def check_long(run: Run, said: Said, steps: int) -> None:
    """Everything the task was to do has been done, once."""
    told = f"{said.last[:600]} {said.stderr[-800:]} {said.events[-2:]} {run.gateway.log()[-1500:]}"
    assert said.status == 0, told
    assert orjson.loads(said.last) == {"answer": f"{DONE}: long {steps}"}, told
    project = run.codex.project
    assert (project / NOTES).read_text() == notes_after(steps)
    assert (project / JOURNAL).read_text() == journal_after(steps)
    assert {"todo_list", "command_execution", "file_change", "mcp_tool_call"} <= said.kinds()
    assert _asked(run, NORTH, "fetch_") == asked_of("north store", steps)
    assert _asked(run, NORTH, "describe") == asked_of("odd shapes", steps)
    assert _asked(run, SOUTH, "fetch_") == asked_of("south store", steps)
    # Three pictures are asked for in the opening; two of them at once, so in any order.
    assert sorted(map(str, _asked(run, BENCH, "photograph"))) == sorted(
        map(str, asked_of("picture of the bench", steps))
    )


def _asked(run: Run, server: str, tool: str) -> list[dict[str, Any]]:
    return [call["arguments"] for call in run.workshop.calls(server) if call["tool"].startswith(tool)]


def played(steps: int) -> list[int | None]:
    """The turns of the long task: a summary in the middle, a last word."""
    at = compact_at(steps) + 1
    return [*range(at), None, *range(at, steps), None]


CHARACTERS: list[Any] = [DatabricksClaude, DeepSeek, Gemini, OneSystem]


def all_turns() -> Character:
    return DeepSeek(all_turns=True)


def equal_ids() -> Character:
    return Gemini(equal_ids=True)


@pytest.mark.parametrize(
    "make",
    [*CHARACTERS, all_turns, equal_ids],
    ids=lambda make: make.__name__,
)
def test_sixty_tool_turns_and_a_resume(make: Callable[[], Character], start: Callable[..., Run]) -> None:
    with make() as backend:
        run = start(backend)
        said = run.long(LONG)
        assert backend.refusals == []
        check_long(run, said, LONG)
        assert backend.steps == played(LONG)
        again = run.resume(7)
        assert backend.refusals == []
        assert (again.status, again.last) == (0, f"{DONE}: again 7")


@pytest.mark.parametrize(
    "makes",
    [
        (DeepSeek, Gemini, DeepSeek),
        (Gemini, DatabricksClaude, Gemini),
        (DatabricksClaude, DeepSeek, OneSystem),
    ],
    ids=lambda makes: " to ".join(make.__name__ for make in makes),
)
def test_another_model_takes_over(
    makes: tuple[Callable[[], Character], ...], start: Callable[..., Run]
) -> None:
    """What one model sealed is foreign to the next; the conversation goes on, there and back."""
    with ExitStack() as stack:
        known = {make: make() for make in dict.fromkeys(makes)}
        backends = [stack.enter_context(backend) for backend in known.values()]
        run = start(*backends)
        check_long(run, run.long(SHORT), SHORT)
        for shelf, make in enumerate(makes[1:], 1):
            name = f"up{backends.index(known[make])}/{known[make].model}"
            said = run.resume(shelf, "-m", name)
            assert (said.status, said.last) == (0, f"{DONE}: again {shelf}"), said
            # Codex tells of the change in a developer message, which is moved after one refusal.
            assert [said for said in known[make].refusals if _SYSTEM_FIRST not in said] == []
            assert known[make].steps[-2:] == [0, None]


@pytest.mark.parametrize("make", CHARACTERS, ids=lambda make: make.__name__)
def test_killed_while_tools_run_then_resumed(
    make: Callable[[], Character], start: Callable[..., Run]
) -> None:
    with make() as backend:
        run = start(backend)
        process = run.codex.start("killed", [STUCK_PROMPT])
        try:
            _wait_for(run.codex.project / "kettle.txt")
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
        said = run.resume(3)
        assert backend.refusals == []
        assert (said.status, said.last) == (0, f"{DONE}: again 3"), said


@pytest.mark.parametrize("make", [DatabricksClaude, DeepSeek, OneSystem, Gemini])
def test_a_cut_stream_runs_no_tool_twice(make: Callable[..., Character], start: Callable[..., Run]) -> None:
    """Cut after all of a call's arguments: of a patch (step 9), an MCP call (10), a shell line (12)."""
    with make(cuts=frozenset({5, 11, 13, 16})) as backend:
        run = start(backend)
        said = run.long(SHORT)
        assert backend.refusals == []
        check_long(run, said, SHORT)


def _wait_for(path: Path) -> None:
    until = time.monotonic() + _KILL_S
    while not path.exists():
        assert time.monotonic() < until, f"{path.name} did not appear"
        time.sleep(0.05)
