"""The `input` of a Responses request: 33 item types, of which a few mean something elsewhere.

Messages, reasoning, calls with their results and tools become neutral items. The rest
(hosted tools' calls, compaction, programs, whatever comes next) stays whole as `Opaque`: a
backend of this shape gets it back, another one does without and the loss is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from ..errors import bad_request, param_at
from ..ir import (
    AdditionalTools,
    Item,
    Json,
    Message,
    Opaque,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolKind,
    ToolResult,
)
from .decode_parts import decode_content, decode_output, missing, objects, string, wrong
from .decode_tools import decode_tools
from .flat import text_of
from .ids import split_id

NewId = Callable[[str], str]

_ROLES: Mapping[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
}

_CALLS: Mapping[str, tuple[ToolKind, str]] = {
    "function_call": ("function", "arguments"),
    "custom_tool_call": ("custom", "input"),
    "tool_search_call": ("tool_search", "arguments"),
}
"""Call item -> kind of tool, and the key of what the model wrote."""

RESULTS: Mapping[str, ToolKind] = {
    "function_call_output": "function",
    "custom_tool_call_output": "custom",
    "tool_search_output": "tool_search",
}


def decode_input(value: Any, new_id: NewId) -> tuple[Item, ...]:
    """The items of `input`, whose form `check` has seen; raises `ProxyError` naming the
    item that cannot be understood.
    """
    if isinstance(value, str):
        return (Message("user", (Text(value),), at="/input"),)
    ids = _CallIds(new_id)
    return tuple(_item(raw, f"/input/{index}", ids) for index, raw in enumerate(value))


class _CallIds:
    """Finds the call id of every call and result, also where a client left some out.

    Calls and results are paired by `call_id`. Some clients send only the item's `id`, with
    both or with the result alone, and some send no id at all: then a result belongs to the
    first call that is still without one.
    """

    def __init__(self, new_id: NewId) -> None:
        self._new_id = new_id
        self._of_item: dict[str, str] = {}
        self.calls: set[str] = set()
        self._nameless: list[str] = []

    def of_call(self, raw: Json, at: str) -> tuple[str, str | None]:
        """The call's id, and its item's own if it has one."""
        call_id, item_id = _ids(raw, at)
        found = call_id or item_id
        if not found:
            found = self._new_id("call_")
            self._nameless.append(found)
        self.calls.add(found)
        if item_id:
            self._of_item[item_id] = found
        return found, item_id

    def of_result(self, raw: Json, at: str) -> str:
        """Empty when the client gave nothing to go by."""
        call_id, item_id = _ids(raw, at)
        if call_id:
            return call_id if call_id in self.calls else self._of_item.get(call_id, call_id)
        if item_id and item_id in self._of_item:
            return self._of_item[item_id]
        return self._nameless.pop(0) if self._nameless else ""


def _ids(raw: Json, at: str) -> tuple[str | None, str | None]:
    """The call's id and the item's own, also where a gateway put both into the former."""
    call_id, own = string(raw, "call_id", at), string(raw, "id", at) or None
    if call_id and "|" in call_id:
        call_id, joined = split_id(call_id)
        own = own or joined
    return call_id, own


def _item(raw: Json, at: str, ids: _CallIds) -> Item:
    kind = raw.get("type")
    if not kind:
        kind = untyped(raw, at)
    if kind in ("tool_search_call", "tool_search_output") and raw.get("execution") == "server":
        return Opaque("responses", raw, at)
    if kind in _CALLS:
        return _call(raw, at, ids, *_CALLS[kind])
    if kind in RESULTS:
        return _result(raw, at, ids, RESULTS[kind])
    if kind.endswith("_call_output") and raw.get("call_id") in ids.calls:
        # A tool of the backend's own answers what was called as a function: all that the call has got.
        return _result(raw, at, ids, "function")
    read = _READERS.get(kind)
    return read(raw, at) if read else Opaque("responses", raw, at)


def untyped(raw: Json, at: str) -> str:
    """What an item without a `type` is: messages and references need none; raises 400 for any other."""
    if "role" in raw or "content" in raw:
        return "message"
    if "id" in raw:
        return "item_reference"
    raise missing(f"{at}/type", "the type of the input item, e.g. `message`")


def _message(raw: Json, at: str) -> Message:
    role = _ROLES.get(string(raw, "role", at) or "user")
    if role is None:
        raise wrong(f"{at}/role", "user, assistant, system or developer")
    return Message(
        role=role,
        parts=decode_content(raw.get("content"), f"{at}/content"),
        name=text_of(raw.get("name")),
        id=text_of(raw.get("id")),
        phase=text_of(raw.get("phase")),
        at=at,
        extra=_rest(raw, "role", "content", "name", "phase"),
    )


def _call(raw: Json, at: str, ids: _CallIds, kind: ToolKind, key: str) -> ToolCall:
    name = "tool_search" if kind == "tool_search" else raw["name"]
    call_id, own = ids.of_call(raw, at)
    return ToolCall(
        call_id=call_id,
        name=name,
        arguments=_written(raw.get(key)),
        kind=kind,
        namespace=string(raw, "namespace", at) or None,
        id=own,
        at=at,
        extra=_rest(raw, "call_id", "name", "namespace", key),
    )


def _written(value: Any) -> str:
    """What the model wrote for the tool; an object is the JSON text it stands for."""
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value).decode()


def _result(raw: Json, at: str, ids: _CallIds, kind: ToolKind) -> ToolResult:
    found = decode_tools(raw.get("tools"), f"{at}/tools") if kind == "tool_search" else ()
    return ToolResult(
        call_id=ids.of_result(raw, at),
        parts=() if kind == "tool_search" else decode_output(raw.get("output"), f"{at}/output"),
        kind=kind,
        name=text_of(raw.get("name")),
        tools=found,
        id=text_of(raw.get("id")),
        at=at,
        extra=_rest(raw, "call_id", "output", "name", "tools"),
    )


def _reasoning(raw: Json, at: str) -> Reasoning:
    return Reasoning(
        summary=read_thoughts(raw.get("summary"), f"{at}/summary"),
        content=read_thoughts(raw.get("content"), f"{at}/content"),
        sealed=string(raw, "encrypted_content", at) or None,
        id=text_of(raw.get("id")),
        at=at,
        extra=_rest(raw, "summary", "content", "encrypted_content"),
    )


def read_thoughts(value: Any, at: str) -> tuple[str, ...]:
    """The texts of `summary_text` or `reasoning_text` parts; a bare string is one."""
    if isinstance(value, str):
        return (value,)
    return tuple(string(part, "text", f"{at}/{index}") or "" for index, part in enumerate(objects(value, at)))


def _additional_tools(raw: Json, at: str) -> AdditionalTools:
    return AdditionalTools(
        tools=decode_tools(raw.get("tools"), f"{at}/tools"),
        role=string(raw, "role", at) or "developer",
        id=text_of(raw.get("id")),
        at=at,
    )


def _reference(raw: Json, at: str) -> Item:
    raise bad_request(
        f"`{param_at(at)}` refers to item {str(raw.get('id'))[:80]!r}, which is not stored here: "
        "send the item itself.",
        param_at(at),
    )


def _trigger(raw: Json, at: str) -> Item:
    """Where it may stand it has been answered by now, and an ordinary answer is none to it."""
    raise bad_request(
        f"`{param_at(at)}`: a compaction_trigger must be the last item of `input`.", param_at(at)
    )


_READERS: Mapping[str, Callable[[Json, str], Item]] = {
    "message": _message,
    "reasoning": _reasoning,
    "additional_tools": _additional_tools,
    "item_reference": _reference,
    "compaction_trigger": _trigger,
}


def _rest(raw: Json, *known: str) -> Json:
    """What of an item has no neutral name; null is the same as absent."""
    taken = ("type", "id", *known)
    return {key: value for key, value in raw.items() if key not in taken and value is not None}
