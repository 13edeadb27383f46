"""`tool_choice` of a Chat body: `tools.choice.*` of the profile.

    "auto" | "none" | "required"
    {"type": "function", "function": {"name"}}, {"type": "custom", "custom": {"name"}}
    {"type": "allowed_tools", "allowed_tools": {"mode", "tools": [<as above>]}}

An allowed set is policy: it is never widened. Where the backend lacks the form, the tools
outside of it are not offered, which says the same.
"""

from __future__ import annotations

from typing import Any

from ..errors import ProxyError, bad_request
from ..ir import Json
from .edit_draft import Draft
from .edit_reasoning import is_thinking

_NAMED = ("function", "custom")


def edit_choice(draft: Draft) -> None:
    """The choice in a form this backend takes.

    Raises 400 (`ProxyError`) for one that names a tool which is not offered.
    """
    given = draft.body.get("tool_choice")
    if given is None:
        return
    choice = _nested(given)
    offered = {_key(tool) for tool in draft.body.get("tools") or ()}
    for ref in _refs(choice):
        if _key(ref) not in offered:
            raise _not_offered(ref)
    if "tools" not in draft.body:
        del draft.body["tool_choice"]
        if given == "required":
            draft.lose("/tool_choice", "there is no tool to choose", "feature")
        return
    choice = _forced(draft, _named(draft, _allowed(draft, choice)))
    if choice != given:
        draft.body["tool_choice"] = choice


# --- reading ---------------------------------------------------------------------------


def _nested(choice: Any) -> Any:
    """The Chat form of a choice in the flat Responses form, or in Mistral's word."""
    if choice == "any":
        return "required"
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind == "allowed_tools":
        spec = choice.get("allowed_tools")
        spec = spec if isinstance(spec, dict) else {key: choice.get(key) for key in ("mode", "tools")}
        tools = spec.get("tools")
        if not isinstance(tools, list):
            raise bad_request("`tool_choice.allowed_tools.tools` must be a list of tools.", "tool_choice")
        allowed = {"mode": spec.get("mode") or "auto", "tools": [_nested(tool) for tool in tools]}
        return {"type": kind, "allowed_tools": allowed}
    if kind in _NAMED and not isinstance(choice.get(kind), dict):
        return {"type": kind, kind: {"name": choice.get("name")}}
    return choice


def _refs(choice: Any) -> list[Json]:
    """The tools a choice names, whatever its form."""
    if not isinstance(choice, dict):
        return []
    if choice.get("type") == "allowed_tools":
        return [ref for ref in choice["allowed_tools"]["tools"] if isinstance(ref, dict)]
    return [choice] if choice.get("type") in _NAMED else []


def _key(tool: Json) -> tuple[str, str | None]:
    kind = str(tool.get("type"))
    spec = tool.get(kind)
    name = spec.get("name") if isinstance(spec, dict) else None
    return kind, None if name is None else str(name)


def _not_offered(ref: Json) -> ProxyError:
    kind, name = _key(ref)
    what = f"`{name}`" if name else f"a tool of type `{kind}`"
    return bad_request(f"`tool_choice` names {what}, which is not in `tools`.", "tool_choice")


# --- saying it otherwise ---------------------------------------------------------------


def _allowed(draft: Draft, choice: Any) -> Any:
    """An allowed set as the only tools there are, for backends without that form."""
    is_set = isinstance(choice, dict) and choice.get("type") == "allowed_tools"
    if not is_set or draft.profile.tools.choice.allowed_tools == "keep":
        return choice
    refs = _refs(choice)
    if not refs:
        return "none"
    _offer_only(draft, refs)
    return choice["allowed_tools"]["mode"]


def _offer_only(draft: Draft, refs: list[Json]) -> None:
    tools = draft.body["tools"]
    wanted = {_key(ref) for ref in refs}
    offered = [tool for tool in tools if _key(tool) in wanted]
    if len(offered) < len(tools):
        draft.body["tools"] = offered


def _named(draft: Draft, choice: Any) -> Any:
    """One named tool: as the only one offered and `required`, or left to the model."""
    rule = draft.profile.tools.choice.named
    if rule == "keep" or not isinstance(choice, dict) or choice.get("type") not in _NAMED:
        return choice
    if rule == "auto":
        draft.lose("/tool_choice", "this backend cannot be made to call one tool", "feature")
        return "auto"
    _offer_only(draft, [choice])
    return "required"


def _forced(draft: Draft, choice: Any) -> Any:
    """A forced call, in the backend's word for it or left to the model."""
    rules = draft.profile.tools.choice
    if not _is_forced(choice):
        return choice
    if rules.with_thinking == "auto" and is_thinking(draft.body):
        draft.lose("/tool_choice", "this model takes no forced call while it reasons", "feature")
        return "auto"
    if choice != "required" or rules.required == "keep":
        return choice
    if rules.required == "auto":
        draft.lose("/tool_choice", "this backend cannot be made to call a tool", "feature")
    return rules.required


def _is_forced(choice: Any) -> bool:
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        return bool(choice["allowed_tools"]["mode"] == "required")
    return choice not in ("auto", "none")
