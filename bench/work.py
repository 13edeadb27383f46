"""What is asked: short questions, long histories, large bodies, in both shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Json = dict[str, Any]
Lane = Literal["passed", "translated"]

TURNS = 300
LARGE = 1 << 20


def _chat_history() -> list[Json]:
    """A coding session: every turn calls a tool and reads what it gave."""
    messages: list[Json] = [{"role": "system", "content": "You are a careful engineer. " * 40}]
    for turn in range(TURNS // 3):
        function = {"name": "exec_command", "arguments": '{"cmd":"sed -n 1,80p app/module.py"}'}
        call = {"id": f"call_{turn}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": f"Step {turn}: look at the module and mend what is wrong there."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{turn}", "content": "def answer():\n    return 42\n" * 8},
        ]
    return [*messages, {"role": "user", "content": "Sum it up."}]


def _responses_history() -> list[Json]:
    items: list[Json] = []
    for turn in range(TURNS // 3):
        call = {"type": "function_call", "call_id": f"call_{turn}", "name": "exec_command"}
        output = {"type": "function_call_output", "call_id": f"call_{turn}"}
        items += [
            {"role": "user", "content": f"Step {turn}: look at the module and mend what is wrong there."},
            {**call, "arguments": '{"cmd":"sed -n 1,80p app/module.py"}'},
            {**output, "output": "def answer():\n    return 42\n" * 8},
        ]
    return [*items, {"role": "user", "content": "Sum it up."}]


_TOOLS_PARAMETERS = {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}
_CHAT_TOOLS = [{"type": "function", "function": {"name": "exec_command", "parameters": _TOOLS_PARAMETERS}}]
_TOOLS = [{"type": "function", "name": "exec_command", "parameters": _TOOLS_PARAMETERS}]


def chat(messages: list[Json], **more: Any) -> Json:
    return {"messages": messages, **more}


def responses(given: Any, **more: Any) -> Json:
    """Nothing is stored: the others that are measured keep nothing either."""
    return {"input": given, "store": False, **more}


_SHORT = [{"role": "user", "content": "hi"}]
_LARGE = [{"role": "user", "content": "word " * (LARGE // 5)}]


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of load; `unit` says what its CPU time is divided by."""

    name: str
    lane: Lane
    body: Json
    unit: Literal["replies", "deltas"] = "replies"
    connections: tuple[int, ...] = (16,)

    @property
    def stream(self) -> bool:
        return self.body.get("stream") is True


_ALL = (1, 16, 64)
PASSED_REQUEST = Work("passed request", "passed", chat(_SHORT), connections=_ALL)
PASSED_CHUNK = Work("passed stream", "passed", chat(_SHORT, stream=True), "deltas", _ALL)
TRANSLATED_REQUEST = Work("translated request", "translated", responses("hi"), connections=_ALL)
TRANSLATED_DELTA = Work("translated stream", "translated", responses("hi", stream=True), "deltas", _ALL)
LONG = Work("translated 300-item history", "translated", responses(_responses_history(), tools=_TOOLS))
WORK = (
    PASSED_REQUEST,
    PASSED_CHUNK,
    TRANSLATED_REQUEST,
    TRANSLATED_DELTA,
    Work("passed 1 MiB body", "passed", chat(_LARGE)),
    Work("translated 1 MiB body", "translated", responses(_LARGE)),
    Work("passed 300-message history", "passed", chat(_chat_history(), tools=_CHAT_TOOLS)),
    LONG,
)
QUICK = (PASSED_REQUEST, PASSED_CHUNK, TRANSLATED_REQUEST, TRANSLATED_DELTA)
IDLE: Mapping[Lane, Json] = {
    "passed": chat(_SHORT, stream=True),
    "translated": responses("hi", stream=True),
}
