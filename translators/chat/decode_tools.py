"""Tools and `tool_choice` of a Chat request.

    {"type": "function", "function": {"name", "description", "parameters", "strict"}}
    {"type": "custom", "custom": {"name", "description", "format"}}

The flat Responses form of both is read as well, and the `functions` and `function_call` of
before tools. Every other type is a hosted tool: kept whole, for a backend that runs it.
"""

from __future__ import annotations

from typing import Any, Literal

from ..errors import ProxyError, bad_request
from ..ir import AnyTool, Json, Opaque, Tool, ToolChoice, ToolRef

MODES: dict[str, Literal["auto", "none", "required"]] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "any": "required",  # Mistral's and Anthropic's word
}


def decode_tools(body: Json) -> tuple[AnyTool, ...]:
    """The tools of `tools`, then those of `functions`: lists, as `check` has seen."""
    tools = [read_tool(raw, i) for i, raw in enumerate(body.get("tools") or ())]
    old = [
        read_function(raw, f"functions[{i}]", f"/functions/{i}")
        for i, raw in enumerate(body.get("functions") or ())
    ]
    return (*tools, *old)


def read_tool(raw: Any, i: int) -> AnyTool:
    """The tool at place `i`; raises 400 (`ProxyError`) for what is none."""
    if not isinstance(raw, dict):
        raise bad_request(f"`tools[{i}]` must be an object.", f"tools[{i}]")
    kind = raw.get("type") or "function"
    if not isinstance(kind, str):
        raise bad_request(f"`tools[{i}].type` must be a string.", f"tools[{i}].type")
    if kind not in ("function", "custom"):
        return Opaque("chat", raw, f"/tools/{i}")
    spec = raw.get(kind, raw)
    extra = {key: value for key, value in raw.items() if key not in ("type", kind)} if spec is not raw else {}
    read = read_function if kind == "function" else _custom
    return read(spec, f"tools[{i}].{kind}", f"/tools/{i}", extra)


def read_function(raw: Any, param: str, at: str, extra: Json | None = None) -> Tool:
    """A function's own object; raises 400 (`ProxyError`) for what is none."""
    name = _name(raw, param)
    schema = raw.get("parameters")
    if schema is not None and not isinstance(schema, dict):
        raise bad_request(f"`{param}.parameters` must be a JSON Schema object.", f"{param}.parameters")
    strict = raw.get("strict")
    return Tool(
        name=name,
        description=_description(raw, param),
        schema=schema,
        strict=strict if isinstance(strict, bool) else None,
        at=at,
        extra=extra or {},
    )


def _custom(raw: Any, param: str, at: str, extra: Json) -> Tool:
    return Tool(
        name=_name(raw, param),
        description=_description(raw, param),
        kind="custom",
        format=_grammar(raw.get("format"), f"{param}.format"),
        at=at,
        extra=extra,
    )


def _grammar(raw: Any, param: str) -> Json | None:
    """Chat nests `{grammar: {syntax, definition}}`; the neutral form has them flat."""
    if raw is None:
        return None
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise bad_request(f"`{param}` must be an object with a `type`.", param)
    nested = raw.get("grammar")
    flat = {"type": raw["type"], **nested} if isinstance(nested, dict) else dict(raw)
    if raw["type"] == "grammar":
        _check_grammar(flat, f"{param}.grammar" if nested is not None else param)
    return flat


def _check_grammar(flat: Json, param: str) -> None:
    for key in ("syntax", "definition"):
        if not isinstance(flat.get(key), str) or not flat[key]:
            raise bad_request(
                f"`{param}.{key}` is required: a string, as for every grammar.", f"{param}.{key}"
            )


def _name(raw: Any, param: str) -> str:
    if not isinstance(raw, dict):
        raise bad_request(f"`{param}` must be an object.", param)
    name = raw.get("name")
    if not isinstance(name, str) or not name:
        raise bad_request(f"`{param}.name` is required: give the tool a name.", f"{param}.name")
    return name


def _description(raw: Json, param: str) -> str | None:
    value = raw.get("description")
    if value is not None and not isinstance(value, str):
        raise bad_request(f"`{param}.description` must be a string.", f"{param}.description")
    return value


# --- tool_choice -----------------------------------------------------------------------


def decode_choice(body: Json) -> ToolChoice | None:
    """`tool_choice`, or the older `function_call`; None when the client left it open."""
    raw = body.get("tool_choice")
    if raw is not None:
        return _choice(raw)
    old = body.get("function_call")
    if isinstance(old, dict):
        return _named(_ref({"type": "function", "function": old}, "function_call"))
    return None if old is None else _mode(old, "function_call")


def _choice(raw: Any) -> ToolChoice:
    if not isinstance(raw, dict):
        return _mode(raw, "tool_choice")
    kind = raw.get("type")
    if kind == "allowed_tools":
        return _allowed(raw)
    if isinstance(kind, str) and kind in MODES and "function" not in raw:
        return ToolChoice(MODES[kind])  # Anthropic's {"type": "auto"}
    return _named(_ref(raw, "tool_choice"))


def _mode(raw: Any, param: str) -> ToolChoice:
    if not isinstance(raw, str) or raw not in MODES:
        raise bad_request(f"`{param}` must be none, auto, required, or an object naming a tool.", param)
    return ToolChoice(MODES[raw])


def _named(ref: ToolRef) -> ToolChoice:
    return ToolChoice("required", (ref,), named=True)


def _allowed(raw: Json) -> ToolChoice:
    spec = raw.get("allowed_tools", raw)
    tools = spec.get("tools") if isinstance(spec, dict) else None
    if not isinstance(tools, list) or not tools:
        raise bad_request("`tool_choice.allowed_tools.tools` must list tools.", "tool_choice")
    mode = spec.get("mode", "auto")
    if mode not in ("auto", "required"):
        raise bad_request("`tool_choice.allowed_tools.mode` must be auto or required.", "tool_choice")
    return ToolChoice(mode, tuple(_ref(tool, "tool_choice") for tool in tools))


def _ref(raw: Any, param: str) -> ToolRef:
    kind = raw.get("type", "function") if isinstance(raw, dict) else None
    if not isinstance(kind, str):
        raise bad_request(f"`{param}` must name a tool: {{type, function: {{name}}}}.", param)
    spec = raw.get(kind, raw)
    name = spec.get("name") if isinstance(spec, dict) else None
    if kind in ("function", "custom") and (not isinstance(name, str) or not name):
        raise bad_request(f"`{param}` must name a tool: {{type, {kind}: {{name}}}}.", param)
    return ToolRef(kind, name if isinstance(name, str) else None, raw=raw)


def check_offered(choice: ToolChoice | None, tools: tuple[AnyTool, ...]) -> None:
    """Contract: a choice naming a tool that is not offered is a 400; so is `required` without tools."""
    if choice is not None and choice.mode == "required" and not tools:
        raise bad_request(
            "`tool_choice` needs `tools` to choose from: send some, or leave it out.", "tool_choice"
        )
    for ref in (choice.only if choice else None) or ():
        if not any(_matches(ref, tool) for tool in tools):
            raise _not_offered(ref)


def _matches(ref: ToolRef, tool: AnyTool) -> bool:
    if isinstance(tool, Tool):
        return ref.type == tool.kind and ref.name == tool.name
    return isinstance(tool, Opaque) and ref.type == tool.type


def _not_offered(ref: ToolRef) -> ProxyError:
    what = f"the {ref.type} tool `{ref.name}`" if ref.name else f"a `{ref.type}` tool"
    return bad_request(f"`tool_choice` names {what}, which is not in `tools`.", "tool_choice")
