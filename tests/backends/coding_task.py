"""The model's side of one small coding task, decided from the conversation alone.

No state is kept, so a repeated request gets the same turn again. The turns are what a real
model does to a coding agent: text and a shell call; a patch through the freeform tool; three
calls at once (one of them of a namespaced tool); a last word. Each turn looks at the outputs
of the one before, and a wrong one ends the task with `TASK FAILED` and the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from .replies import ToolUse

PROMPT = "Write greeting.txt with the shell, correct it with apply_patch, check it, and report."
AGAIN = "Say that once more."
FILE, BEFORE, AFTER = "greeting.txt", "good morning", "good evening"
DONE, FAILED, STILL_DONE, SUMMARY = "TASK DONE", "TASK FAILED", "STILL DONE", "TASK SUMMARY"
PATCH = f"*** Begin Patch\n*** Update File: {FILE}\n@@\n-{BEFORE}\n+{AFTER}\n*** End Patch\n"
SHELL = "exec_command"

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model; `step` names it for the test."""

    step: str
    text: str
    calls: tuple[ToolUse, ...] = ()


def next_turn(body: Json) -> Turn:
    """What the model says to this (legal) Chat request."""
    names = [tool["function"]["name"] for tool in body.get("tools") or []]
    asked = [_text(message["content"]) for message in body["messages"] if message["role"] == "user"]
    if asked and asked[-1].endswith(AGAIN):
        return Turn("again", STILL_DONE)
    if not names:
        return Turn("summary", SUMMARY)
    if SHELL not in names:
        return Turn("failed", f"{FAILED}: {SHELL} is not offered")
    outputs = {
        message["tool_call_id"]: _text(message["content"])
        for message in body["messages"]
        if message["role"] == "tool"
    }
    return _after(outputs, names)


def _after(outputs: Mapping[str, str], names: Sequence[str]) -> Turn:
    if "call_write" not in outputs:
        command = f"echo '{BEFORE}' > {FILE} && cat {FILE}"
        return Turn("write", "First I write the file.", (_call("call_write", SHELL, cmd=command),))
    if BEFORE not in outputs["call_write"]:
        return Turn("failed", f"{FAILED}: the shell said {outputs['call_write'][:300]}")
    if "call_patch" not in outputs:
        return _patch(names)
    if "Success" not in outputs["call_patch"]:
        return Turn("failed", f"{FAILED}: the patch said {outputs['call_patch'][:300]}")
    if "call_read" not in outputs:
        return _check(names)
    return _verdict(outputs)


def _patch(names: Sequence[str]) -> Turn:
    """Through apply_patch where it is offered; without a model catalogue Codex only has the shell."""
    if "apply_patch" in names:
        return Turn("patch", "", (_call("call_patch", "apply_patch", input=PATCH),))
    command = f"apply_patch <<'EOF'\n{PATCH}EOF\n"
    return Turn("patch-in-shell", "", (_call("call_patch", SHELL, cmd=command),))


def _check(names: Sequence[str]) -> Turn:
    calls = [
        _call("call_read", SHELL, cmd=f"cat {FILE}"),
        _call("call_count", SHELL, cmd=f"grep -c . {FILE}"),
    ]
    spaced = [name for name in names if name.endswith("close_agent")]
    if spaced:
        calls.append(_call("call_spaced", spaced[0], target="nobody"))
    return Turn("check", "Now I check it.", tuple(calls))


def _verdict(outputs: Mapping[str, str]) -> Turn:
    if AFTER not in outputs["call_read"]:
        return Turn("failed", f"{FAILED}: the file holds {outputs['call_read'][:300]}")
    if "1" not in outputs.get("call_count", ""):
        return Turn("failed", f"{FAILED}: the second call of three has no answer")
    if "unsupported call" in outputs.get("call_spaced", ""):
        return Turn("failed", f"{FAILED}: the namespaced call lost its namespace")
    return Turn("done", f"{DONE}: the greeting is right.")


def _call(call_id: str, name: str, **arguments: str) -> ToolUse:
    return ToolUse(call_id, name, orjson.dumps(arguments).decode())


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])
