"""Tools the backend does not know, said with tools it does know.

`lower_tools` rewrites a call so that only what `profile.tools` takes remains: free-form tools
and client-side tool search become functions, namespaces are flattened, tools that arrive in
the input (additional_tools, tool_search_output) join the list, hosted tools nobody runs are
left out. The history is renamed the same way, also for tools that are no longer offered: a
model copies the names it sees there. `RestoreTools` turns the reply back.

Order and names depend on nothing but the request, and tools found later are put last, so the
list that a backend caches keeps its beginning from turn to turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from .dialect import Loss
from .errors import bad_request, param_at
from .format_tool import format_choice, format_tool, wants_format_tool
from .ir import (
    AdditionalTools,
    AnyTool,
    Call,
    Item,
    Json,
    Namespace,
    Opaque,
    Shape,
    Text,
    Tool,
    ToolCall,
    ToolKind,
    ToolResult,
)
from .params import BY_NAME
from .profile import Profile
from .tool_choice import Offered, lower_choice
from .tool_names import NameTable, Original, ToolKey, aliases, is_legal
from .tools_restore import RestoreTools

__all__ = ["Lowered", "Original", "RestoreTools", "lower_tools"]

INPUT_SCHEMA: Json = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""Parameters of the function that stands for a free-form tool."""
_SEARCH_SCHEMA: Json = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["query"],
}
_RAW_INPUT = "`input` reaches the tool as it is: no JSON and no code fence inside."


@dataclass(slots=True)
class Lowered:
    """`names` maps every name the model may answer with to the client's tool; empty: nothing to restore."""

    call: Call
    names: Mapping[str, Original]
    losses: list[Loss] = field(default_factory=list)


def lower_tools(call: Call, profile: Profile, shape: Shape) -> Lowered:
    """`call` for a backend of `shape`; the same object when nothing had to be changed.

    Raises 400 (`ProxyError`) when `tool_choice` names a tool that is not offered or forces one
    the backend cannot have, and for hosted tools where the profile says `builtin: reject`.
    """
    return _Lowering(call, profile, shape).run()


@dataclass(frozen=True, slots=True)
class _Takes:
    """What the backend takes as it is."""

    custom: bool
    namespaces: bool
    in_input: bool
    """Tools found or given in the input; a backend that has client-side tool_search has both."""
    any_name: bool
    """Names go as they are: client and backend are of one shape, so the pass lane would not touch them."""

    @classmethod
    def of(cls, profile: Profile, call: Call, shape: Shape) -> _Takes:
        types = profile.tools.types
        custom = "custom" in types and profile.tools.custom == "keep"
        namespaces = shape == "responses" and "namespace" in types
        return cls(custom, namespaces, namespaces and custom and "tool_search" in types, shape == call.shape)

    def kind(self, kind: ToolKind) -> bool:
        return kind == "function" or (self.custom if kind == "custom" else self.in_input)

    def namespace(self, namespace: Namespace) -> bool:
        return self.namespaces and all(self.kind(tool.kind) for tool in namespace.tools)


class _Lowering:
    """One call being lowered."""

    def __init__(self, call: Call, profile: Profile, shape: Shape) -> None:
        self._call, self._profile, self._shape = call, profile, shape
        self._takes = _Takes.of(profile, call, shape)
        self._names: dict[str, Original] = {}
        self._losses: list[Loss] = []
        self._offered = Offered()
        self._first: dict[ToolKey, Tool] = {}
        self._kept_alone: set[str] = set()
        self._called: dict[str, str] = {}
        self._table = NameTable()

    def run(self) -> Lowered:
        call = self._call
        declared = [*call.tools, *self._declared_in_input()]
        self._table = NameTable(self._reserved(declared))
        tools = tuple(out for tool in declared for out in self._tool(tool))
        choice = lower_choice(call.tool_choice, self._offered, self._losses)
        items = tuple(out for item in call.items for out in self._item(item))
        if (tools, items, choice) != (call.tools, call.items, call.tool_choice):
            call = replace(call, tools=tools, items=items, tool_choice=choice)
        call = self._with_format_tool(call)
        self._names |= aliases(self._names, self._kept_alone)
        return Lowered(call, self._names, self._losses)

    # --- tools ---------------------------------------------------------------------

    def _declared_in_input(self) -> Iterator[AnyTool]:
        if self._takes.in_input:
            return
        for item in self._call.items:
            if isinstance(item, AdditionalTools | ToolResult):
                yield from item.tools

    def _reserved(self, declared: list[AnyTool]) -> set[str]:
        """Names that stay what they are, so that no flattened one may take them."""
        return {tool.name for tool in declared if isinstance(tool, Tool) and self._keeps_name(tool)}

    def _keeps_name(self, tool: Tool) -> bool:
        return is_legal(tool.name) or (self._takes.any_name and self._takes.kind(tool.kind))

    def _tool(self, tool: AnyTool) -> Iterator[AnyTool]:
        if isinstance(tool, Opaque):
            yield from self._hosted(tool)
        elif isinstance(tool, Tool):
            yield from self._client_tool(tool)
        elif self._takes.namespace(tool):
            self._offered.kept_namespaces.add(tool.name)
            for inner in tool.tools:
                self._offered.wire.setdefault(ToolKey(inner.name, tool.name), (inner.kind, inner.name))
            yield tool
        else:
            for position, inner in enumerate(tool.tools):
                yield from self._client_tool(inner, tool, tells=position == 0)

    def _hosted(self, tool: Opaque) -> Iterator[Opaque]:
        rules = self._profile.tools
        known = rules.builtin == "keep" and tool.type not in rules.unknown
        runs = tool.type in rules.types or (known and tool.shape == self._shape)
        if not runs and rules.builtin == "reject":
            raise bad_request(
                f"this model's backend does not run the hosted tool '{tool.type}'; remove it",
                param_at(tool.at),
            )
        self._offered.hosted[tool.type] = runs or self._offered.hosted.get(tool.type, False)
        if runs:
            yield tool
        else:
            self._losses.append(Loss(tool.at, f"the backend does not run {tool.type}", "feature"))

    def _client_tool(
        self, tool: Tool, namespace: Namespace | None = None, tells: bool = False
    ) -> Iterator[Tool]:
        """`tells`: this tool's description also says what its namespace is."""
        key = ToolKey(tool.name, namespace.name if namespace else None)
        first = self._first.get(key)
        if first is not None:
            if tool.at.startswith("/tools") or not _same(first, tool):
                self._losses.append(Loss(tool.at, f"a second tool named {key.full}", "feature"))
            return
        self._first[key] = tool
        if tool.kind == "custom" and not self._takes.custom and self._profile.tools.custom == "drop":
            self._offered.wire[key] = None
            self._losses.append(Loss(tool.at, "the backend takes no free-form tools", "feature"))
            return
        lowered = self._lowered(_described(tool, namespace) if namespace and tells else tool, key)
        self._offered.wire[key] = (lowered.kind, lowered.name)
        yield lowered

    def _lowered(self, tool: Tool, key: ToolKey) -> Tool:
        """`tool` under its wire name and kind, noted for the way back; itself when both stay."""
        kind: ToolKind = tool.kind if self._takes.kind(tool.kind) else "function"
        name = self._wire_name(tool, key)
        if (kind, name, key.namespace) == (tool.kind, tool.name, None):
            self._kept_alone.add(name)
            return _undeferred(tool) if not self._takes.in_input else tool
        self._note(name, key, tool.kind, (tool.format or {}).get("type") == "grammar")
        if kind == tool.kind:
            return _undeferred(replace(tool, name=name))
        return _as_function(tool, name)

    def _wire_name(self, tool: Tool, key: ToolKey) -> str:
        if key.namespace is None and self._keeps_name(tool):
            return tool.name
        return self._table.give(key)

    def _note(self, name: str, key: ToolKey, kind: ToolKind, verbatim: bool = False) -> None:
        self._names[name] = Original(kind, key.name, key.namespace, verbatim)

    # --- history -------------------------------------------------------------------

    def _item(self, item: Item) -> Iterator[Item]:
        if isinstance(item, ToolCall):
            yield self._tool_call(item)
        elif isinstance(item, ToolResult):
            yield self._tool_result(item)
        elif not isinstance(item, AdditionalTools) or self._takes.in_input:
            yield item

    def _tool_call(self, call: ToolCall) -> ToolCall:
        kind: ToolKind = call.kind if self._takes.kind(call.kind) else "function"
        key = self._offered.find(call.name, call.namespace) or ToolKey(call.name, call.namespace)
        namespace, name = self._wire_call(call, key)
        self._called[call.call_id] = name
        if (kind, name, namespace) == (call.kind, call.name, call.namespace):
            return call
        changed = replace(call, kind=kind, name=name, namespace=namespace)
        if kind == call.kind:
            return changed
        arguments = call.arguments
        if call.kind == "custom":
            arguments = orjson.dumps({"input": arguments}).decode()
        return replace(changed, arguments=arguments, id=None, extra={})

    def _wire_call(self, call: ToolCall, key: ToolKey) -> tuple[str | None, str]:
        """Namespace and name of a call in the history."""
        wire = self._offered.wire.get(key)
        if key.namespace in self._offered.kept_namespaces:
            return call.namespace, call.name
        if wire is not None:
            return None, wire[1]
        if key.namespace is not None and self._takes.namespaces:
            return call.namespace, call.name
        if key.namespace is None and (is_legal(call.name) or self._takes.any_name):
            if not self._takes.kind(call.kind):
                self._note(call.name, key, call.kind)
            return None, call.name
        name = self._table.give(key)
        self._note(name, key, call.kind)
        return None, name

    def _tool_result(self, result: ToolResult) -> ToolResult:
        name = self._called.get(result.call_id, result.name) if result.name else result.name
        if self._takes.kind(result.kind):
            return result if name == result.name else replace(result, name=name)
        parts = result.parts
        if result.kind == "tool_search":
            found = {"tools": [name for tool in result.tools for name in self._wire_names(tool)]}
            parts = (Text(orjson.dumps(found).decode()),)
        return replace(result, kind="function", name=name, parts=parts, tools=(), id=None, extra={})

    def _wire_names(self, tool: AnyTool) -> list[str]:
        if isinstance(tool, Opaque):
            return []
        inner = [ToolKey(tool.name)]
        if isinstance(tool, Namespace):
            inner = [ToolKey(each.name, tool.name) for each in tool.tools]
        return [wire[1] for key in inner if (wire := self._offered.wire[key]) is not None]

    # --- structured answers --------------------------------------------------------

    def _with_format_tool(self, call: Call) -> Call:
        """See `format_tool`; without the format where the client forces its own tools."""
        params = dict(call.params)
        wanted: Json | None = params.get("format")
        if wanted is None or not wants_format_tool(wanted, self._profile):
            return call
        del params["format"]
        choice = call.tool_choice
        thinking = self._is_thinking(params)
        if choice is not None and choice.mode == "required" and not thinking:
            return replace(call, params=params)
        taken = {*self._names, *self._kept_alone}
        name = NameTable(taken).give(ToolKey(str(wanted.get("name") or "answer")))
        tool, wrapped = format_tool(wanted, name, BY_NAME["format"].pointer(call.shape))
        self._names[name] = Original("format", name, wrapped=wrapped)
        asked = None if thinking else format_choice(choice, not call.tools, name)
        return replace(call, params=params, tools=(*call.tools, tool), tool_choice=asked)

    def _is_thinking(self, params: Mapping[str, Any]) -> bool:
        asked = params.get("effort") not in (None, "none")
        return asked and self._profile.tools.choice.with_thinking == "auto"


def _as_function(tool: Tool, name: str) -> Tool:
    """A free-form tool or a tool search as a function. It was never bound to a strict schema."""
    if tool.kind == "custom":
        return Tool(name, _free_form(tool), INPUT_SCHEMA, strict=False, at=tool.at)
    description = tool.description or "Find more tools by what they do; those found become callable."
    return Tool(name, description, tool.schema or _SEARCH_SCHEMA, strict=False, at=tool.at)


def _free_form(tool: Tool) -> str:
    """Description and grammar: all that a model sees of a free-form tool's rules."""
    told = [tool.description] if tool.description else []
    told.append(_RAW_INPUT)
    format = tool.format or {}
    if format.get("type") == "grammar":
        syntax, definition = format.get("syntax"), format.get("definition")
        told.append(f"`input` must match this {syntax} grammar:\n{definition}")
    return "\n\n".join(told)


def _same(first: Tool, second: Tool) -> bool:
    """Whether a tool found again (every search may find it) is told in the same words."""
    return replace(second, at=first.at, extra=first.extra) == first


def _described(tool: Tool, namespace: Namespace) -> Tool:
    """The first tool of a namespace tells what the namespace is; the others would repeat it."""
    if not namespace.description:
        return tool
    told = f"{tool.description or ''}\n\n{namespace.name}: {namespace.description}".strip()
    return replace(tool, description=told)


def _undeferred(tool: Tool) -> Tool:
    """`tool` without `defer_loading`, which means nothing to a backend that does not search."""
    if "defer_loading" not in tool.extra:
        return tool
    return replace(tool, extra={key: value for key, value in tool.extra.items() if key != "defer_loading"})
