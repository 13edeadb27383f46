"""From stored records to the input of a request: pure, nothing waits here.

A conversation's items in their order: for each record its own input, then its output. What is dropped on the
way back says nothing of the conversation; instructions and tools belong to one request and are not inherited.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import orjson

from translators.ir import Json

from ..store import Record, is_id

_PREFIX: Mapping[str, str] = {
    "message": "msg_",
    "reasoning": "rs_",
    "function_call": "fc_",
    "function_call_output": "fco_",
    "custom_tool_call": "ctc_",
    "custom_tool_call_output": "ctco_",
}
"""Of ids of input items that came without one."""
_TEXT: Mapping[str, str] = {"assistant": "output_text"}
"""The type of a text by the role of who says it, where that is not `input_text`."""


def own_items(given: Any) -> list[Any]:
    """The `input` of a request as items; raises nothing: what is no list of items is judged later."""
    if isinstance(given, str):
        text = {"type": "input_text", "text": given}
        return [{"type": "message", "role": "user", "content": [text]}]
    return given if isinstance(given, list) else []


def history(records: Iterable[Record]) -> list[Any]:
    """The items of a chain, the oldest first."""
    items: list[Any] = []
    for record in records:
        items += orjson.loads(record.input)
        items += output_of(record)
    return items


def unbroken(records: list[Record]) -> list[Record]:
    """The last of `records` and those of its own conversation that stand before it without a gap.

    Some backends give an id twice (Ollama's are below a million): then another conversation is in its place.
    """
    own = records[-1].chain if records else ""
    for place in range(len(records) - 1, -1, -1):
        if records[place].chain != own:
            return records[place + 1 :]
    return records


def output_of(record: Record) -> list[Any]:
    output = orjson.loads(record.response).get("output")
    return output if isinstance(output, list) else []


def joined(before: list[Any], own: list[Any]) -> list[Any]:
    """The history and what is new: an item of the history that was sent again stands there once."""
    known = {item["id"] for item in before if isinstance(item, dict) and isinstance(item.get("id"), str)}
    return before + unknown(own, known)


def unknown(items: list[Any], known: Container[str]) -> list[Any]:
    """Those without one of the ids that are `known`."""
    return [item for item in items if (id := _id_of(item)) is None or id not in known]


def _id_of(item: Any) -> str | None:
    id = item.get("id") if isinstance(item, dict) else None
    return id if isinstance(id, str) else None


def references(items: Sequence[Any]) -> list[str]:
    """The ids that items of an input refer to."""
    return [item["id"] for item in items if _is_reference(item)]


def resolved(items: list[Any], found: Mapping[str, Any]) -> list[Any]:
    """With the items themselves in the place of references to them; those not `found` stay."""
    return [found.get(item["id"], item) if _is_reference(item) else item for item in items]


def _is_reference(item: Any) -> bool:
    if type(item) is not dict or item.get("type") not in ("item_reference", None):
        return False
    return isinstance(item.get("id"), str) and "role" not in item and "content" not in item


def by_id(items: Iterable[Any]) -> dict[str, Any]:
    """Items by their ids."""
    return {id: item for item in items if (id := _id_of(item)) is not None}


def names(items: Iterable[Any]) -> tuple[str, ...]:
    """The ids under which later requests may refer to these items."""
    return tuple(id for id in by_id(items) if is_id(id))


def listed(records: Sequence[Record]) -> list[Json]:
    """The input of the last of `records` with all that it stood after, as typed clients read items."""
    out: list[Json] = []
    for record in records:
        own = orjson.loads(record.input)
        within = record.id.removeprefix("resp_")
        out += [
            shown(item, f"{prefix_of(item)}{within}_{place}")
            for place, item in enumerate(own)
            if isinstance(item, dict)
        ]
        if record is not records[-1]:
            out += [item for item in output_of(record) if isinstance(item, dict)]
    return out


def prefix_of(item: Json) -> str:
    """What the id of an item begins with that is made here."""
    return _PREFIX.get(item.get("type") or "message", "item_")


def shown(item: Json, id: str) -> Json:
    """An input item with its text as parts, and with `id` where it has none."""
    kind = item.get("type") or "message"
    shown = {**item, "type": kind, "id": item.get("id") or id}
    if kind != "message":
        return shown
    role, content = shown.setdefault("role", "user"), item.get("content")
    if isinstance(content, str):
        part: Json = {"type": _TEXT.get(role, "input_text"), "text": content}
        shown["content"] = [{**part, "annotations": []} if role == "assistant" else part]
    return {"status": "completed", **shown}
