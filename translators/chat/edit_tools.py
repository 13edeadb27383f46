"""`tools` of a Chat body: `tools.*` of the profile.

{"type": "function", "function": {"name", "description", "parameters", "strict"}}
{"type": "custom", "custom": {"name", "description", "format"}}
"""

from __future__ import annotations

from typing import Any

from ..errors import ProxyError, bad_request
from ..ir import Json
from ..schema import edit_schema, has_union
from .content import string
from .edit_draft import Draft
from .edit_keys import TOOL_KEYS, known_only


def edit_tools(draft: Draft) -> None:
    """Every tool in its official form, with the schemas and keys this backend takes.

    Raises 400 (`ProxyError`) for a tool without a name and for more tools than it takes.
    """
    tools = draft.body.get("tools")
    if not tools:
        for key in ("tools", "parallel_tool_calls"):
            draft.body.pop(key, None)
        return
    if not isinstance(tools, list):
        raise bad_request("`tools` must be a list.", "tools")
    limit = draft.profile.tools.max
    if limit is not None and len(tools) > limit:
        raise bad_request(f"This model takes {limit} tools at most, the request has {len(tools)}.", "tools")
    edited = [_tool(draft, tool, i) for i, tool in enumerate(tools)]
    if any(new is not old for new, old in zip(edited, tools, strict=True)):
        draft.body["tools"] = edited
    _parallel_flag(draft)


def _parallel_flag(draft: Draft) -> None:
    """`true` is every wire's default and never sent; `false` is, where the backend knows it."""
    flag = draft.body.get("parallel_tool_calls")
    if flag is True:
        del draft.body["parallel_tool_calls"]
    elif flag is not None and draft.profile.tools.parallel_flag == "drop":
        draft.leave_out("parallel_tool_calls", "this backend cannot be told to make one call at a time")


def _tool(draft: Draft, tool: Any, i: int) -> Json:
    if not isinstance(tool, dict):
        raise bad_request(f"`tools[{i}]` must be an object.", f"tools[{i}]")
    kind = string(tool.get("type")) or "function"
    if kind not in TOOL_KEYS:
        return tool
    nested = _nested(tool, kind)
    if not draft.profile.answer.exact and None in nested[kind].values():
        nested = {**nested, kind: {key: value for key, value in nested[kind].items() if value is not None}}
    spec = nested[kind]
    if not isinstance(spec.get("name"), str) or not spec["name"]:
        param = f"tools[{i}].{kind}.name"
        raise bad_request(f"`{param}` is required: give the tool a name.", param)
    edited = _function(draft, spec, i) if kind == "function" else spec
    if draft.profile.request.extra_keys is not None:
        edited = known_only(draft, edited, TOOL_KEYS[kind], f"/tools/{i}/{kind}")
        nested = known_only(draft, nested, ("type", kind), f"/tools/{i}")
    return nested if edited is spec else {**nested, kind: edited}


def _nested(tool: Json, kind: str) -> Json:
    """The flat form of the Responses shape (Databricks: "Missing 'function' in the tool specification")."""
    if isinstance(tool.get(kind), dict):
        return tool if tool.get("type") == kind else {**tool, "type": kind}
    return {"type": kind, kind: {key: tool[key] for key in TOOL_KEYS[kind] if key in tool}}


def _function(draft: Draft, spec: Json, i: int) -> Json:
    spec = _strictness(draft, spec, f"/tools/{i}/function/strict")
    given = spec.get("parameters")
    try:
        schema = edit_schema(given, draft.profile.tools.schema)
    except ProxyError as error:
        error.param = f"tools[{i}].function.parameters"
        raise
    if has_union(given) and not has_union(schema):
        pointer = f"/tools/{i}/function/parameters"
        draft.lose(pointer, "this backend takes no union at the top of a schema: its branches are merged")
    return spec if schema is given else {**spec, "parameters": schema}


def _strictness(draft: Draft, spec: Json, pointer: str) -> Json:
    """`strict` without nulls, and left out for backends that refuse it or choke on it.

    Databricks Claude first refused the key, then compiled it to a grammar that is too large.
    """
    if "strict" not in spec or (spec["strict"] is not None and draft.profile.tools.strict == "keep"):
        return spec
    if spec["strict"]:
        draft.lose(pointer, "this backend cannot hold the model to the schema")
    return {key: value for key, value in spec.items() if key != "strict"}
