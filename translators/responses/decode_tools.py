"""Tools and `tool_choice` of a Responses request.

Tools the client runs are neutral; hosted ones stay whole as `Opaque`. A choice names tools
by the name the client gave them, and may only name what is offered somewhere: in `tools`, in
an `additional_tools` item, by a tool search, inside a namespace.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import ProxyError, bad_request
from ..ir import (
    AdditionalTools,
    AnyTool,
    Item,
    Json,
    Namespace,
    Opaque,
    Tool,
    ToolChoice,
    ToolRef,
    ToolResult,
)
from ..tool_choice import family
from .decode_parts import missing, objects, string, wrong
from .flat import flat_choice, flat_tool, text_of

_MODES: tuple[Literal["auto", "none", "required"], ...] = ("auto", "none", "required")


def decode_tools(value: Any, at: str) -> tuple[AnyTool, ...]:
    """The tools of a list at pointer `at`; raises a 400 naming the one that is no tool."""
    found: list[AnyTool] = []
    for index, raw in enumerate(objects(value, at)):
        found += read_tool(raw, f"{at}/{index}")
    return tuple(found)


def read_tool(raw: Json, at: str) -> list[AnyTool]:
    """One tool, a namespace with what in it has no neutral form after it; raises 400 for what is none."""
    return list(_tool(flat_tool(raw), raw, at))


def _tool(flat: Json, raw: Json, at: str) -> Iterator[AnyTool]:
    kind = string(flat, "type", at)
    if not kind:
        raise missing(f"{at}/type", "the type of the tool, e.g. `function`")
    if kind == "function":
        yield _function(flat, at)
    elif kind == "custom":
        yield _custom(flat, at)
    elif kind == "namespace":
        yield from _namespace(flat, at)
    elif kind == "tool_search" and flat.get("execution") != "server":
        yield _search(flat, at)
    else:
        yield Opaque("responses", raw, at)


def _function(flat: Json, at: str) -> Tool:
    return Tool(
        name=_name(flat, at),
        description=string(flat, "description", at),
        schema=_object(flat, "parameters", at),
        strict=_flag(flat, "strict", at),
        at=at,
        extra=_rest(flat, "parameters", "strict"),
    )


def _custom(flat: Json, at: str) -> Tool:
    return Tool(
        name=_name(flat, at),
        description=string(flat, "description", at),
        kind="custom",
        format=_grammar(flat, at),
        at=at,
        extra=_rest(flat, "format"),
    )


def _grammar(flat: Json, at: str) -> Json | None:
    """The form of a custom tool's input; a grammar has a syntax and a definition."""
    form = _object(flat, "format", at)
    if form is not None and form.get("type") == "grammar":
        for key in ("syntax", "definition"):
            if not string(form, key, f"{at}/format"):
                raise missing(f"{at}/format/{key}", "every grammar has one, a string")
    return form


def _search(flat: Json, at: str) -> Tool:
    return Tool(
        name="tool_search",
        description=string(flat, "description", at),
        schema=_object(flat, "parameters", at),
        kind="tool_search",
        at=at,
        extra=_rest(flat, "parameters"),
    )


def _namespace(flat: Json, at: str) -> Iterator[AnyTool]:
    """The namespace, and after it, whole, whatever in it is no function or custom tool."""
    if flat.get("tools") is None:
        raise missing(f"{at}/tools", "a list of the namespace's tools")
    inner = decode_tools(flat["tools"], f"{at}/tools")
    yield Namespace(
        name=_name(flat, at),
        tools=tuple(tool for tool in inner if isinstance(tool, Tool)),
        description=string(flat, "description", at),
        at=at,
    )
    yield from (tool for tool in inner if not isinstance(tool, Tool))


def _name(flat: Json, at: str) -> str:
    name = string(flat, "name", at)
    if not name:
        raise missing(f"{at}/name", f"every {flat['type']} tool needs a name")
    return name


def _object(holder: Json, key: str, at: str) -> Json | None:
    value = holder.get(key)
    if value is None or isinstance(value, dict):
        return value
    raise wrong(f"{at}/{key}", "an object")


def _flag(holder: Json, key: str, at: str) -> bool | None:
    value = holder.get(key)
    if value is None or isinstance(value, bool):
        return value
    raise wrong(f"{at}/{key}", "true or false")


def _rest(flat: Json, *known: str) -> Json:
    taken = ("type", "name", "description", *known)
    return {key: value for key, value in flat.items() if key not in taken and value is not None}


# --- tool_choice -----------------------------------------------------------------------


def decode_choice(value: Any, offered: Iterable[AnyTool]) -> ToolChoice | None:
    """The choice in neutral form; raises a 400 for an unknown form and for a tool not offered."""
    if value is None:
        return None
    tools = _index(offered)
    if isinstance(value, str):
        return _mode(value, tools)
    choice = flat_choice(value)
    kind = string(choice, "type", "/tool_choice")
    if kind in _MODES:
        return _mode(kind, tools)
    if kind == "allowed_tools":
        return _allowed(choice, tools)
    return ToolChoice("required", (_ref(choice, "/tool_choice", tools),), named=True)


@dataclass(frozen=True, slots=True)
class _Tools:
    """The tools offered, by what a choice calls them: an allowed set may name many."""

    named: Mapping[str, Mapping[str | None, Tool]]
    """By name, and by the namespace it lives in."""
    kinds: frozenset[tuple[str, str | None]]
    """Kinds; names of namespaces; families of hosted tools, with their server's label and without."""

    def __bool__(self) -> bool:
        return bool(self.named or self.kinds)


def _index(offered: Iterable[AnyTool]) -> _Tools:
    named: dict[str, dict[str | None, Tool]] = {}
    kinds: set[tuple[str, str | None]] = set()
    for tool in offered:
        if isinstance(tool, Tool):
            named.setdefault(tool.name, {}).setdefault(None, tool)
            kinds.add((tool.kind, None))
        elif isinstance(tool, Namespace):
            kinds.add(("namespace", tool.name))
            for inner in tool.tools:
                named.setdefault(inner.name, {}).setdefault(tool.name, inner)
        else:
            kinds |= {(family(tool.type), None), (family(tool.type), text_of(tool.raw.get("server_label")))}
    return _Tools(named, frozenset(kinds))


def _mode(value: str, tools: _Tools) -> ToolChoice:
    for mode in _MODES:
        if value == mode:
            if mode == "required" and not tools:
                raise _refused("`tool_choice` is `required`, but no tools are offered.")
            return ToolChoice(mode)
    raise wrong("/tool_choice", "auto, none, required or an object that names tools")


def _allowed(choice: Json, tools: _Tools) -> ToolChoice:
    mode = string(choice, "mode", "/tool_choice") or "auto"
    if mode not in ("auto", "required"):
        raise wrong("/tool_choice/mode", "auto or required")
    refs = objects(choice.get("tools"), "/tool_choice/tools")
    if not refs:
        raise missing("/tool_choice/tools", "the tools that are allowed")
    only = tuple(_ref(ref, f"/tool_choice/tools/{index}", tools) for index, ref in enumerate(refs))
    return ToolChoice("required" if mode == "required" else "auto", only)


def _ref(raw: Json, at: str, tools: _Tools) -> ToolRef:
    kind = string(raw, "type", at)
    if not kind:
        raise missing(f"{at}/type", "the type of the tool")
    if kind in ("function", "custom"):
        return _named(raw, at, tools)
    detail = text_of(raw.get("name") if kind == "namespace" else raw.get("server_label"))
    if (family(kind), detail) not in tools.kinds:
        raise _refused(f"`tool_choice` names {_quoted(kind)}, which is not among the tools offered.")
    return ToolRef(kind, text_of(raw.get("name")), raw=raw)


def _named(raw: Json, at: str, tools: _Tools) -> ToolRef:
    name, namespace = string(raw, "name", at), text_of(raw.get("namespace"))
    if not name:
        raise missing(f"{at}/name", "the name of the tool")
    homes = tools.named.get(name, {})
    found: Collection[str | None] = homes if namespace is None else homes.keys() & {namespace}
    if not found:
        raise _refused(f"`tool_choice` names {_quoted(name)}, which is not among the tools offered.")
    # Bare names first; `functions` is Codex's default namespace, so its tools go by bare names.
    home = min(found, key=lambda each: (each is not None, each != "functions"))
    return ToolRef(homes[home].kind, name, home, raw=raw)


def offered(tools: Iterable[AnyTool], items: Iterable[Item]) -> Iterator[AnyTool]:
    """All tools a request offers: its own, those of its items, those a tool search found."""
    yield from tools
    for item in items:
        if isinstance(item, (AdditionalTools, ToolResult)):
            yield from item.tools


def _refused(message: str) -> ProxyError:
    return bad_request(message, "tool_choice")


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:77] + "...")
