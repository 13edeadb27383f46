"""`profile.tools` applied to the tools and the choice of a Responses body.

Free-form tools, namespaces and tool search that a backend does not take are lowered before
(`translators.tools`); here hosted tools nobody runs are left out, function tools get the form
the backend wants, and the choice is said in a form it knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..dialect import Loss
from ..errors import ProxyError, bad_request, param_at
from ..ir import AnyTool, Json, Opaque, Tool, ToolChoice, ToolRef
from ..profile import Profile, ToolRules
from ..schema import edit_schema
from ..tool_choice import Offered, lower_choice
from ..tool_names import ToolKey
from .decode_tools import decode_choice, decode_tools
from .flat import text_of
from .keys import TOOLS, only_known

CLIENT_TYPES = frozenset({"function", "custom", "namespace"})
"""Tools the client runs; `tool_search` is one too unless its `execution` is `server`."""


def is_hosted(tool: Json) -> bool:
    kind = tool.get("type")
    if kind == "tool_search":
        return tool.get("execution") == "server"
    return kind not in CLIENT_TYPES


def edit_tools(body: Json, profile: Profile, losses: list[Loss]) -> None:
    """Edit `tools`, `tool_choice` and `parallel_tool_calls` in place; values are replaced.

    Raises 400 for a function without a name, a choice that names a tool not offered or one
    left out, a hosted tool where the profile rejects them, and more tools than it allows.
    """
    tools, choice = body.get("tools"), body.get("tool_choice")
    if isinstance(tools, list):
        body["tools"] = [
            kept for index, tool in enumerate(tools) for kept in _tool(tool, index, profile, losses)
        ]
        if profile.tools.max is not None and len(body["tools"]) > profile.tools.max:
            raise bad_request(f"this model takes at most {profile.tools.max} tools", "tools")
    if isinstance(choice, dict) and "prompt" not in body:  # a stored prompt may bring tools of its own
        _check_choice(body, tools if isinstance(tools, list) else [], profile, losses)
    if not body.get("tools") and not any(_found_in_input(body)) and "prompt" not in body:
        _drop_all(body, losses)
    elif body.get("tool_choice") is not None:
        _say_choice(body, profile, losses)
    _edit_parallel_flag(body, profile.tools, losses)


def _edit_parallel_flag(body: Json, rules: ToolRules, losses: list[Loss]) -> None:
    """`true` is every wire's default and never sent; `false` is, where the backend knows it."""
    flag = body.get("parallel_tool_calls")
    if flag is True or rules.parallel_flag == "drop":
        body.pop("parallel_tool_calls", None)
        if flag is False:
            losses.append(Loss("/parallel_tool_calls", "the backend takes no parallel_tool_calls"))


def _drop_all(body: Json, losses: list[Loss]) -> None:
    """No tool left: what speaks of tools goes too (OpenAI, vLLM and others answer 400 to the rest)."""
    for key in ("tools", "parallel_tool_calls"):
        body.pop(key, None)
    if body.pop("tool_choice", None) == "required":
        losses.append(Loss("/tool_choice", "no tool is left to choose from", "feature"))


# --- one tool --------------------------------------------------------------------------


def runs(kind: str, rules: ToolRules) -> bool:
    """Whether the backend runs this type of hosted tool."""
    return kind in rules.types or (rules.builtin == "keep" and kind not in rules.unknown)


def _tool(tool: Any, index: int, profile: Profile, losses: list[Loss]) -> Iterator[Any]:
    at = f"/tools/{index}"
    if not isinstance(tool, dict):
        raise bad_request(f"`tools[{index}]` must be an object", param_at(at))
    if is_hosted(tool):
        yield from _hosted(tool, at, profile, losses)
        return
    if profile.request.extra_keys is not None:
        tool = only_known(tool, TOOLS, profile.request.extra_keys)
    yield _function(tool, at, profile.tools, losses) if tool.get("type") == "function" else tool


def _hosted(tool: Json, at: str, profile: Profile, losses: list[Loss]) -> Iterator[Json]:
    kind = str(tool.get("type"))
    if runs(kind, profile.tools):
        yield tool
    elif profile.tools.builtin == "reject":
        raise bad_request(
            f"this model's backend does not run the hosted tool '{kind}'; remove it", param_at(at)
        )
    else:
        losses.append(Loss(at, f"the backend does not run {kind}", "feature"))


def _function(tool: Json, at: str, rules: ToolRules, losses: list[Loss]) -> Json:
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        raise bad_request("every function tool needs a name", param_at(f"{at}/name"))
    edited = dict(tool)
    if rules.strict == "drop" and edited.pop("strict", None) is True:
        losses.append(Loss(f"{at}/strict", "the backend takes no strict tools"))
    try:
        schema = edit_schema(tool.get("parameters"), rules.schema)
    except ProxyError as error:
        raise bad_request(error.message, param_at(f"{at}/parameters")) from None
    if schema is not None:
        edited["parameters"] = schema
    return edited


# --- the choice ------------------------------------------------------------------------


def _found_in_input(body: Json) -> Iterator[tuple[Json, str]]:
    """The items that bring tools, with their pointers."""
    items = body.get("input")
    for index, item in enumerate(items if isinstance(items, list) else []):
        if isinstance(item, dict) and isinstance(item.get("tools"), list) and item["tools"]:
            yield item, f"/input/{index}/tools"


def _check_choice(body: Json, given: list[Any], profile: Profile, losses: list[Loss]) -> None:
    tools = [*decode_tools(given, "/tools")]
    for item, at in _found_in_input(body):
        tools += decode_tools(item["tools"], at)
    asked = decode_choice(body["tool_choice"], tools)
    left = lower_choice(asked, _offered(tools, profile.tools), losses)
    if left is None:
        del body["tool_choice"]
    elif (written := write_choice(left)) != body["tool_choice"]:
        body["tool_choice"] = written


def _offered(tools: list[AnyTool], rules: ToolRules) -> Offered:
    found = Offered()
    for tool in tools:
        if isinstance(tool, Opaque):
            found.hosted[tool.type] = runs(tool.type, rules)
        elif isinstance(tool, Tool):
            found.wire[ToolKey(tool.name)] = (tool.kind, tool.name)
        else:
            found.kept_namespaces.add(tool.name)
            found.wire |= {ToolKey(inner.name, tool.name): (inner.kind, inner.name) for inner in tool.tools}
    return found


def write_choice(choice: ToolChoice) -> Any:
    """The choice in this shape's form."""
    if choice.only is None:
        return choice.mode
    refs = [_write_ref(ref) for ref in choice.only]
    return refs[0] if choice.named else {"type": "allowed_tools", "mode": choice.mode, "tools": refs}


def _write_ref(ref: ToolRef) -> Json:
    named = {"type": ref.type}
    if ref.name is not None:
        named["name"] = ref.name
    if ref.namespace is not None:
        named["namespace"] = ref.namespace
    return {**ref.raw, **named} if ref.type not in ("function", "custom", "tool_search") else named


def _say_choice(body: Json, profile: Profile, losses: list[Loss]) -> None:
    """Forms of the choice that the backend lacks, said otherwise."""
    choice, rules = body["tool_choice"], profile.tools.choice
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools" and rules.allowed_tools == "filter":
        choice = _filtered(body, choice.get("tools"), str(choice.get("mode") or "auto"))
    named = isinstance(choice, dict) and choice.get("type") != "allowed_tools"
    if named and rules.named == "required_single":
        choice, named = _filtered(body, [choice], "required"), False
    weak = rules.named if named else rules.required if choice == "required" else "keep"
    if rules.with_thinking == "auto" and (named or choice == "required") and _thinks(body):
        weak = "auto"
    if weak == "auto":
        losses.append(Loss("/tool_choice", "the backend cannot be made to call a tool"))
    body["tool_choice"] = weak if weak in ("auto", "any") else choice


def _filtered(body: Json, refs: Any, mode: str) -> str:
    """Leave only the tools that `refs` name, so that `mode` says the same."""
    wanted = [ref for ref in refs or () if isinstance(ref, dict)]
    keys = {_key(ref) for ref in wanted}
    names = {text_of(ref.get("name")) for ref in wanted} - {None}
    spaces = {text_of(ref.get("namespace")) for ref in wanted} - {None}
    if body.get("tools"):
        body["tools"] = [tool for tool in body["tools"] if _key(tool) in keys or _holds(tool, names, spaces)]
    return mode


def _key(tool: Json) -> tuple[str | None, ...]:
    return tuple(text_of(tool.get(key)) for key in ("type", "name", "server_label"))


def _holds(tool: Json, names: set[str | None], spaces: set[str | None]) -> bool:
    """Whether a namespace is meant, or one of its tools."""
    if tool.get("type") != "namespace":
        return False
    inner = {each.get("name") for each in tool.get("tools") or ()}
    return tool.get("name") in spaces or not names.isdisjoint({tool.get("name"), *inner})


def _thinks(body: Json) -> bool:
    asked = body.get("reasoning")
    return isinstance(asked, dict) and asked.get("effort") not in (None, "none")
