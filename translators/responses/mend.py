"""Items of a stream that passes, written so that clients read them.

Codex acts on `output_item.done` alone, and drops an item without a word when a key is missing, when
a message has other parts than `output_text`, or when arguments are no text (R, Codex CLI 0.171).
It answers two calls under one id with two results under it, and every backend refuses those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ProxyError, error_in
from ..ir import Json
from .decoder import reply_error
from .flat import text_of
from .ids import made_id
from .tidy import CALLS, tidy_item, written_arguments

ADDED, DONE = "response.output_item.added", "response.output_item.done"
ARGUMENTS_DONE = "response.function_call_arguments.done"
MENDED = frozenset({ADDED, DONE, ARGUMENTS_DONE})
"""Types of the events that are looked at."""
_OPENING: Mapping[str, Json] = {
    "message": {"role": "assistant", "content": [], "status": "in_progress"},
    "reasoning": {"summary": []},
    "function_call": {"arguments": "", "status": "in_progress"},
    "custom_tool_call": {"input": ""},
}
"""Keys that every item of a type has when it is added, and what they are then."""


class ItemMender:
    """What the items of one stream were announced as."""

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}
        """Output index -> the item's id."""
        self._places: dict[str, int] = {}
        """Call id -> output index of the first call that has it."""

    def mend(self, event: Json, place: int) -> bool:
        """Put the item (or the arguments) of an event in order; whether it was not."""
        key = "arguments" if event["type"] == ARGUMENTS_DONE else "item"
        told = event.get(key)
        if key == "arguments":
            event[key] = written_arguments(told)
        elif isinstance(told, dict):
            event[key] = self._called(self._whole(told, place, event["type"] == DONE), place)
        return event.get(key) is not told

    def _whole(self, item: Json, place: int, done: bool) -> Json:
        own = text_of(item.get("id"))
        if own:
            self._ids.setdefault(place, own)
        elif place in self._ids:
            item = {**item, "id": self._ids[place]}
        return tidy_item(item, place) if done else _opened(item)

    def _called(self, item: Json, place: int) -> Json:
        """A call under an id of its own, the same when it is added and when it is done."""
        if text_of(item.get("type")) not in CALLS:
            return item
        told = text_of(item.get("call_id"))
        call_id = told or text_of(item.get("id"))
        if call_id and self._places.setdefault(call_id, place) != place:
            call_id = made_id("call_", call_id, str(place))
        return item if call_id == told else {**item, "call_id": call_id}


def _opened(item: Json) -> Json:
    keys = _OPENING.get(str(item.get("type")), {})
    lacking = {key: value for key, value in keys.items() if not isinstance(item.get(key), type(value))}
    return {**item, **lacking} if lacking else item


def say_refusals(event: Json) -> bool:
    """Turn the refusals of a message that is done into text, for Codex; whether there were any."""
    item = event.get("item")
    content = item.get("content") if isinstance(item, dict) else None
    if not isinstance(content, list):
        return False
    said = [_said(part) for part in content]
    event["item"] = {**event["item"], "content": said}
    return said != content


def _said(part: Any) -> Any:
    if not isinstance(part, dict) or part.get("type") != "refusal":
        return part
    return {"type": "output_text", "text": part.get("refusal") or "", "annotations": [], "logprobs": []}


def error_of(event: Json) -> ProxyError | None:
    """Of `error` events, flat or nested, of error objects of other shapes (`error: null` is none), and of
    `response.cancelled`, which no client knows.
    """
    if event.get("type") == "response.cancelled":
        response = event.get("response")
        return reply_error(response if isinstance(response, dict) else {}, "cancelled")
    return error_in(event) if event.get("type") in (None, "error") or event.get("error") else None


def told_end(event: Json) -> bool:
    """`response.done`, which no client knows, by the name that its status gives it."""
    response = event.get("response")
    status = response.get("status") if isinstance(response, dict) else None
    event["type"] = f"response.{status if status in ('failed', 'incomplete') else 'completed'}"
    return True
