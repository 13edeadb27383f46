"""Tools of a client, and what becomes of them for a backend that takes functions only."""

from __future__ import annotations

from typing import Any

from translators.ir import Call, Item, Namespace, Opaque, Tool, ToolChoice, ToolRef
from translators.profile import Profile, ToolRules
from translators.tools import Lowered, lower_tools

BASE = Profile()
RICH = Profile(
    tools=ToolRules(
        types=("function", "custom", "namespace", "tool_search"), custom="keep", builtin="keep", strict="keep"
    )
)
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
PATCH = Tool(
    "apply_patch",
    "Edit files.",
    kind="custom",
    format={"type": "grammar", "syntax": "lark", "definition": "start: /x/"},
    at="/tools/0",
)
SHELL = Tool("shell", "Run.", SCHEMA, at="/tools/1")
DOCS = Namespace("mcp__docs", (Tool("search", "Find.", SCHEMA),), "The docs server.", at="/tools/2")
SEARCH = Tool("tool_search", "Find tools.", SCHEMA, kind="tool_search", at="/tools/3")
WEB = Opaque("responses", {"type": "web_search"}, "/tools/4")


def call(*tools: Any, items: tuple[Item, ...] = (), **fields: Any) -> Call:
    return Call("responses", "m", items, tools, **fields)


def lowered(*tools: Any, profile: Profile = BASE, **fields: Any) -> Lowered:
    return lower_tools(call(*tools, **fields), profile, "chat")


def names(result: Lowered) -> list[str]:
    return [tool.name for tool in result.call.tools if isinstance(tool, Tool)]


def only(*refs: ToolRef, mode: Any = "required", named: bool = False) -> ToolChoice:
    return ToolChoice(mode, refs, named)
