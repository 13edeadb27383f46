"""The task's turns follow from the conversation, and a wrong output ends it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backends.coding_task import (
    AFTER,
    AGAIN,
    BEFORE,
    DONE,
    FAILED,
    PROMPT,
    STILL_DONE,
    SUMMARY,
    next_turn,
)

Json = dict[str, Any]
NAMES = ("exec_command", "apply_patch", "agents__close_agent")
OUTPUTS = {
    "call_write": BEFORE,
    "call_patch": "Success. Updated the following files",
    "call_read": AFTER,
    "call_count": "1",
    "call_spaced": "agent not found",
}


def request(outputs: dict[str, str], names: tuple[str, ...] = NAMES, asked: str = PROMPT) -> Json:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    results = [{"role": "tool", "tool_call_id": call, "content": text} for call, text in outputs.items()]
    return {"messages": [{"role": "user", "content": asked}, *results], "tools": tools}


def played(outputs: dict[str, str], names: tuple[str, ...] = NAMES) -> tuple[list[str], str]:
    """Steps and last words of a whole run in which the calls have these outputs."""
    known: dict[str, str] = {}
    steps = []
    while True:
        turn = next_turn(request(known, names))
        steps.append(turn.step)
        if not turn.calls:
            return steps, turn.text
        known |= {call.id: outputs[call.id] for call in turn.calls}


def test_the_whole_task() -> None:
    steps, last = played(OUTPUTS)
    assert steps == ["write", "patch", "check", "done"]
    assert last.startswith(DONE)


def test_without_a_patch_tool() -> None:
    steps, last = played(OUTPUTS, ("exec_command",))
    assert steps == ["write", "patch-in-shell", "check", "done"]
    assert last.startswith(DONE)


@pytest.mark.parametrize(
    ("call", "output"),
    [
        ("call_write", "command not found"),
        ("call_patch", "aborted"),
        ("call_read", BEFORE),
        ("call_count", "0"),
        ("call_spaced", "unsupported call: agents__close_agent"),
    ],
)
def test_a_wrong_output_ends_it(call: str, output: str) -> None:
    steps, last = played({**OUTPUTS, call: output})
    assert steps[-1] == "failed"
    assert last.startswith(FAILED)


def test_other_turns() -> None:
    assert next_turn(request(OUTPUTS, asked=AGAIN)).text == STILL_DONE
    assert next_turn(request({}, ())).text == SUMMARY
    assert next_turn(request({}, ("other",))).step == "failed"
