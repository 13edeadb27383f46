"""A profile applied to a Responses body: the whole of the pass lane, the last step of a translation.

A body that needs nothing comes back with `changed` False, so that the client's own bytes are
sent. The input is never mutated, and editing twice is editing once.
"""

from __future__ import annotations

from typing import Any

import orjson

from ..dialect import Encoded, Loss, Repair
from ..effort import default_effort, nearest_effort
from ..ir import Json
from ..profile import OutputFormat, Profile, ReasoningRules, merge
from ..request_rules import apply_request_rules, of_client, set_defaults
from .edit_input import edit_input
from .edit_system import move_instructions
from .edit_tools import edit_tools, is_hosted
from .keys import BODY
from .plain import is_plain

_SAMPLING = ("temperature", "top_p", "top_logprobs")
_SEALED = "reasoning.encrypted_content"
_NUDGE = "Respond with a JSON object."


def edit_request(body: Json, profile: Profile) -> Encoded:
    """The body as this backend takes it; losses point into `body`.

    Raises 400 (`ProxyError`) for what the profile rejects and for a `tool_choice` naming a
    tool that is not offered.
    """
    # A null says what an absent key says, and strict backends refuse it.
    exact = profile.answer.exact
    out = {key: value for key, value in body.items() if exact or value is not None}
    losses: list[Loss] = []
    defaults = set_defaults(out, profile.request) if profile.request.defaults else None
    apply_request_rules(out, profile.request, "responses", BODY, losses)
    _raise_limit(out, profile.request.min_output_tokens, losses)
    _edit_reasoning(out, profile, losses)
    edit_tools(out, profile, losses)
    repairs = edit_input(out, profile, losses)
    repairs += _edit_format(out, profile.output_format, losses)
    move_instructions(out, profile.messages)
    out = merge(out, profile.request.force) if profile.request.force else out
    losses = of_client(losses, defaults) if defaults else losses
    return Encoded(out, losses, repairs, changed=out != body)


def _raise_limit(body: Json, least: int | None, losses: list[Loss]) -> None:
    limit = body.get("max_output_tokens")
    if least is not None and isinstance(limit, int | float) and 0 < limit < least:
        body["max_output_tokens"] = least
        losses.append(Loss("/max_output_tokens", f"raised to {least}, the least that the backend takes"))


# --- whether edits are enough ----------------------------------------------------------


def passes(body: Json, profile: Profile) -> bool:
    """Whether this body needs edits only; False: something must be lowered, or read and written anew."""
    form = _format(body)
    if form.get("type") == "json_schema" and profile.output_format.json_schema == "tool":
        return False
    rules = profile.tools
    custom = "custom" in rules.types and rules.custom == "keep"
    spaces = "namespace" in rules.types
    search = spaces and custom and "tool_search" in rules.types
    tools, items = body.get("tools"), body.get("input")
    return all(_tool_passes(tool, custom, spaces, search) for tool in _dicts(tools)) and all(
        _item_passes(item, custom, spaces, search) for item in _dicts(items)
    )


def _tool_passes(tool: Json, custom: bool, spaces: bool, search: bool) -> bool:
    kind = tool.get("type")
    if kind == "custom":
        return custom and "name" in tool
    if kind == "namespace":
        inner = _dicts(tool.get("tools"))
        return spaces and all(_tool_passes(each, custom, spaces, search) for each in inner)
    if kind == "tool_search":
        return search or is_hosted(tool)
    return kind is not None and "function" not in tool  # the Chat spelling, which decoding reads


def _item_passes(item: Json, custom: bool, spaces: bool, search: bool) -> bool:
    kind = item.get("type")
    if kind in ("custom_tool_call", "custom_tool_call_output"):
        return custom and (spaces or not item.get("namespace")) and is_plain(item)
    if kind == "function_call":
        return (spaces or not item.get("namespace")) and is_plain(item)
    if kind in ("tool_search_call", "tool_search_output"):
        return search or item.get("execution") == "server"
    return is_plain(item) if kind != "additional_tools" else search


def _dicts(value: Any) -> list[Json]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


# --- reasoning -------------------------------------------------------------------------


def _edit_reasoning(body: Json, profile: Profile, losses: list[Loss]) -> None:
    rules = profile.reasoning
    included = body.get("include") or []
    if rules.mode == "encrypted" and isinstance(included, list) and _SEALED not in included:
        body["include"] = [*included, _SEALED]
    pointer = _adopt_effort(body)
    asked = body.get("reasoning")
    effort = asked.get("effort") if isinstance(asked, dict) else None
    if isinstance(asked, dict) and isinstance(effort, str):
        _set_effort(body, asked, nearest_effort(effort, rules), pointer, losses)
    elif effort is None and isinstance(asked, dict | None):
        _ask_default(body, rules)
    if rules.ask == "none":
        body.pop("reasoning", None)
    elif rules.drop_sampling and _thinks(body, rules):
        given = [key for key in _SAMPLING if body.pop(key, None) is not None]
        losses += [Loss(f"/{key}", "no sampling parameters while the model reasons") for key in given]


def _adopt_effort(body: Json) -> str:
    """Chat's `reasoning_effort`, where the object names no level; the pointer to the level."""
    effort, asked = body.get("reasoning_effort"), body.get("reasoning")
    if not isinstance(effort, str):
        return "/reasoning/effort"
    del body["reasoning_effort"]
    if isinstance(asked, dict) and asked.get("effort") is not None:
        return "/reasoning/effort"
    body["reasoning"] = {**(asked if isinstance(asked, dict) else {}), "effort": effort}
    return "/reasoning_effort"


def _ask_default(body: Json, rules: ReasoningRules) -> None:
    level = default_effort(rules)
    if level is not None:
        body["reasoning"] = {**(body.get("reasoning") or {}), "effort": level}


def _thinks(body: Json, rules: ReasoningRules) -> bool:
    asked = body.get("reasoning")
    effort = asked.get("effort") if isinstance(asked, dict) else None
    return effort != "none" and (effort is not None or rules.drop_sampling == "unless_none")


def _set_effort(body: Json, asked: Json, level: str | None, pointer: str, losses: list[Loss]) -> None:
    """Write `level` for the level in `asked`; one that is not the client's is reported."""
    if level == asked["effort"]:
        return
    rest = {key: value for key, value in asked.items() if key != "effort"}
    if level is not None:
        rest["effort"] = level
    if rest:
        body["reasoning"] = rest
    else:
        del body["reasoning"]
    told = f"asked for '{asked['effort']}', this model is told '{level}'" if level else _UNKNOWN
    losses.append(Loss(pointer, told))


_UNKNOWN = "this model cannot be told so"


# --- output format ---------------------------------------------------------------------


def _format(body: Json) -> Json:
    text = body.get("text")
    form = text.get("format") if isinstance(text, dict) else None
    return form if isinstance(form, dict) else {}


def _edit_format(body: Json, rules: OutputFormat, losses: list[Loss]) -> list[Repair]:
    """Say the format as the backend takes it; gives the repairs."""
    form = _format(body)
    kind = form.get("type")
    if kind not in ("json_schema", "json_object"):
        return []
    wanted = rules.json_schema if kind == "json_schema" else rules.json_object
    if wanted == "prompt":
        _tell(body, form)
        _drop_format(body)
    elif wanted == "drop" or not _combines(body, rules):
        _drop_format(body)
        losses.append(Loss("/text/format", f"the backend takes no {kind} here", "feature"))
    elif kind == "json_object" and rules.needs_json_word:
        return _nudge(body)
    return []


def _combines(body: Json, rules: OutputFormat) -> bool:
    with_tools = rules.with_tools or not body.get("tools")
    return with_tools and (rules.with_stream or not body.get("stream"))


def _drop_format(body: Json) -> None:
    rest = {key: value for key, value in body["text"].items() if key != "format"}
    if rest:
        body["text"] = rest
    else:
        del body["text"]


def _tell(body: Json, form: Json) -> None:
    schema = orjson.dumps(form.get("schema")).decode()
    told = f"Answer with JSON that matches this JSON Schema, and with nothing else:\n{schema}"
    own = body.get("instructions")
    body["instructions"] = f"{own}\n\n{told}" if isinstance(own, str) and own else told


def _nudge(body: Json) -> list[Repair]:
    """OpenAI and Databricks refuse json_object unless the input (not the instructions) says "json"."""
    given = body.get("input")
    if isinstance(given, str):
        if "json" in given.lower():
            return []
        body["input"] = f"{given} {_NUDGE}"
        return [Repair("request", "json_word")]
    items = given if isinstance(given, list) else []
    if any(_says_json(item) for item in _dicts(items)):
        return []
    body["input"] = _nudged(items)
    return [Repair("request", "json_word")]


def _nudged(items: list[Any]) -> list[Any]:
    """The word at the end of the last user message; a message of its own where there is none."""
    for i in reversed(range(len(items))):
        if isinstance(items[i], dict) and items[i].get("role") == "user":
            content = items[i].get("content")
            told = (
                [*content, _text(_NUDGE)]
                if isinstance(content, list)
                else f"{content} {_NUDGE}"
                if content
                else _NUDGE
            )
            return [*items[:i], {**items[i], "content": told}, *items[i + 1 :]]
    return [*items, {"type": "message", "role": "user", "content": [_text(_NUDGE)]}]


def _says_json(item: Json) -> bool:
    if item.get("role") in ("system", "developer"):
        return False
    content = item.get("content") if "content" in item else item.get("output")
    texts = [content] if isinstance(content, str) else [part.get("text") for part in _dicts(content)]
    return any(isinstance(text, str) and "json" in text.lower() for text in texts)


def _text(text: str) -> Json:
    return {"type": "input_text", "text": text}
