"""The coding task for a Responses backend: its request read, and its turns written, in that shape.

Such a backend knows Codex's own tools as they are, so freeform and namespaced calls must come
through a gateway untouched, both ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from .coding_task import Turn
from .replies import Json, ToolUse, call_item, message_item


def as_chat(body: Mapping[str, Any]) -> Json:
    """As much of the request as the task looks at, in the Chat shape."""
    names = _tools(body)
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"messages": list(_messages(body["input"])), "tools": tools}


def items_of(turn: Turn, body: Mapping[str, Any]) -> list[Json]:
    """The output items of a turn; calls have the kind of the tool that they call."""
    tools = _tools(body)
    said = [message_item(turn.text)] if turn.text else []
    return said + [_call(call, at, tools[call.name]) for at, call in enumerate(turn.calls)]


def _messages(items: Any) -> Iterator[Json]:
    for item in items:
        kind = item.get("type", "message")
        if kind == "message" and item["role"] == "user":
            yield {"role": "user", "content": _text(item["content"])}
        elif kind in ("function_call_output", "custom_tool_call_output"):
            yield {"role": "tool", "tool_call_id": item["call_id"], "content": _text(item["output"])}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _tools(body: Mapping[str, Any]) -> dict[str, Json]:
    """Every callable tool: its type, name and namespace, under one flat name."""
    found: dict[str, Json] = {}
    for tool in body.get("tools") or []:
        if tool["type"] == "namespace":
            for inner in tool["tools"]:
                found[f"{tool['name']}__{inner['name']}"] = {**inner, "namespace": tool["name"]}
        elif "name" in tool:
            found[tool["name"]] = tool
    return found


def _call(call: ToolUse, at: int, tool: Json) -> Json:
    if tool["type"] == "custom":
        told = orjson.loads(call.arguments)["input"]
        whole = {"type": "custom_tool_call", "status": "completed", "call_id": call.id}
        return {**whole, "id": f"ctc_scripted{at}", "name": tool["name"], "input": told}
    space = {"namespace": tool["namespace"]} if "namespace" in tool else {}
    return {**call_item(call, at), "name": tool["name"], **space}
