"""Calls and their results on the `input` of a Responses body.

This wire pairs them by `call_id` wherever they stand, so nothing moves. But a result without
its call ("No tool call found for function call output ...") and a call that a message follows
and nothing answers ("No tool output found for function call ...") are 400 each, and since the
history is sent again every turn, for good. The first becomes a user message, the second gets
a result saying that there was none. Calls at the very end stay open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from ..ir import Json

_RESULT_OF = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
"""The calls that need a result. Others may get one of these too: Codex answers `local_shell_call` so."""
_RESULTS = frozenset(_RESULT_OF.values())


@dataclass(slots=True)
class Placed:
    """An item, and its pointer in the body that is being edited."""

    item: Any
    at: str

    @property
    def type(self) -> str:
        """`message` where the client left the type out."""
        kind = self.item.get("type") if isinstance(self.item, dict) else None
        return kind if isinstance(kind, str) else "message"


def repair_owners(placed: list[Placed]) -> int:
    """Give results that name the item of their call, not its `call_id`, the latter, in place.

    (OpenAI answers 400 to `fc_...` there.) Gives the number of repairs.
    """
    repairs = 0
    items = [
        one.item for one in placed if one.type in _RESULT_OF and isinstance(one.item.get("call_id"), str)
    ]
    called = {item["call_id"] for item in items}
    owners = {item["id"]: item["call_id"] for item in items if isinstance(item.get("id"), str)}
    for index, one in enumerate(placed):
        named = one.item.get("call_id") if one.type in _RESULTS else None
        if isinstance(named, str) and named not in called and named in owners:
            placed[index] = Placed({**one.item, "call_id": owners[named]}, one.at)
            repairs += 1
    return repairs


def repair_pairs(placed: list[Placed]) -> tuple[list[Placed], int]:
    """The items with every call and result paired, and how many repairs that took."""
    called = {one.item.get("call_id") for one in placed if one.type.endswith("_call")}
    answered = {one.item.get("call_id") for one in placed if one.type.endswith("_output")}
    if called == answered:
        return placed, 0
    repaired = list(_repaired(placed, called, answered))
    changed = {id(one) for one in repaired} - {id(one) for one in placed}
    return repaired, len(changed)


def _repaired(placed: list[Placed], called: set[Any], answered: set[Any]) -> Iterator[Placed]:
    open_calls: list[Placed] = []
    for one in placed:
        if one.type in _RESULTS and isinstance(one.item.get("call_id"), str):
            one = one if one.item["call_id"] in called else _as_words(one)
        if one.type == "message":
            yield from (_missing(call) for call in open_calls)
            open_calls.clear()
        if one.type in _RESULT_OF and one.item.get("call_id") not in answered:
            open_calls.append(one)
        yield one


def _missing(call: Placed) -> Placed:
    words = f"[No result: the call of {call.item.get('name')} was never answered. It may not have run.]"
    item = {"type": _RESULT_OF[call.type], "call_id": call.item.get("call_id"), "output": words}
    return Placed(item, call.at)


def _as_words(result: Placed) -> Placed:
    """A result whose call is unknown, told as a user message so that what it says survives."""
    label = f"[Tool result {result.item['call_id']}]:".replace(" ]", "]")
    content = [{"type": "input_text", "text": label}, *_told(result.item.get("output"))]
    return Placed({"type": "message", "role": "user", "content": content}, result.at)


def _told(output: Any) -> list[Json]:
    """The parts of an output; any other JSON value is told as its text."""
    if isinstance(output, list) and all(isinstance(part, dict) and "type" in part for part in output):
        return output
    text = output or "" if isinstance(output, str | None) else orjson.dumps(output).decode()
    return [{"type": "input_text", "text": text}] if text.strip() else []
