"""Neutral tools in the Responses form."""

from __future__ import annotations

from ..ir import AnyTool, Json, Namespace, Opaque, Tool


def write_tool(tool: AnyTool, same_shape: bool) -> Json:
    """`same_shape`: the client speaks Responses too, so what it left open stays open."""
    if isinstance(tool, Opaque):
        return tool.raw
    if isinstance(tool, Namespace):
        inner = [write_tool(each, same_shape) for each in tool.tools]
        return {
            "type": "namespace",
            "name": tool.name,
            "description": tool.description or "",
            "tools": inner,
        }
    written = _function(tool, same_shape) if tool.kind == "function" else _other(tool)
    return {**tool.extra, **written} if same_shape else written


def _function(tool: Tool, same_shape: bool) -> Json:
    """Left out, `strict` means true here and false in Chat: a Chat client's silence is said."""
    written: Json = {"type": "function", "name": tool.name}
    if tool.description is not None:
        written["description"] = tool.description
    written["parameters"] = tool.schema or {"type": "object", "properties": {}}
    strict = tool.strict if tool.strict is not None or same_shape else False
    return written if strict is None else {**written, "strict": strict}


def _other(tool: Tool) -> Json:
    """A free-form tool, or the client's own tool search (which has no name here)."""
    custom = tool.kind == "custom"
    written: Json = (
        {"type": "custom", "name": tool.name} if custom else {"type": "tool_search", "execution": "client"}
    )
    if tool.description is not None:
        written["description"] = tool.description
    if custom and tool.format is not None:
        written["format"] = tool.format
    if not custom and tool.schema is not None:
        written["parameters"] = tool.schema
    return written
