"""How much the model shall reason: `reasoning.ask`, `efforts`, `map` and `default_effort` of the profile.

Chat says it with `reasoning_effort`; other backends have an object or a switch of their own.
What a client says in the backend's own words goes first and is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..effort import default_effort, nearest_effort
from ..ir import Json
from .edit_draft import Draft

_BUDGETS: Mapping[str, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 20480,
    "max": 24576,
}
"""Tokens of thought for a level. Claude takes 1024 at least, and 32000 in all on older models."""
_ANSWER_TOKENS = 4096
"""Room for the answer beside the thought, when the client set no limit of its own."""

_SAMPLING = ("temperature", "top_p", "top_k")


def ask_reasoning(draft: Draft) -> None:
    """Put the asked effort in the backend's words; report a level it does not have."""
    body, rules = draft.body, draft.profile.reasoning
    pointer = _adopt_object(draft)
    asked = body.get("reasoning_effort")
    if isinstance(asked, str):
        level = nearest_effort(asked, rules)
        honoured = level == asked or (asked == "none" and level is None and rules.ask != "openai")
        if not honoured or (rules.ask == "enable_thinking" and asked != "none"):
            told = f"asked for '{asked}', this model is told '{level}'" if level else _UNKNOWN
            draft.lose(pointer, told)
        _ASKS[rules.ask](draft, level)
    elif rules.default_effort is not None and asked is None and not _says_itself(body):
        _ask_default(draft)
    if rules.ask == "thinking_budget":
        _make_room(draft)
    if rules.drop_sampling and (is_thinking(body) or _thinks_unasked(draft)):
        for key in _SAMPLING:
            if key in body:
                draft.leave_out(key, "this model takes no sampling parameters while it reasons")


def _ask_default(draft: Draft) -> None:
    """The level of the profile: no wish of the client's, so nothing is lost by the nearest one."""
    level = default_effort(draft.profile.reasoning)
    if level is not None:
        draft.body["reasoning_effort"] = level
        _ASKS[draft.profile.reasoning.ask](draft, level)


def _says_itself(body: Json) -> bool:
    """Whether the client speaks of reasoning in some backend's own words."""
    reasoning = body.get("reasoning")
    if isinstance(reasoning, dict) and not _OWN_OBJECT.isdisjoint(reasoning):
        return True
    return any(key in body for key in ("thinking", "output_config", "enable_thinking"))


_OWN_OBJECT = frozenset({"effort", "max_tokens", "enabled"})
"""Keys of OpenRouter's `reasoning` object that say how much."""


def _thinks_unasked(draft: Draft) -> bool:
    """Whether the model reasons though the body does not say so: only an explicit `none` ends that."""
    rule = draft.profile.reasoning.drop_sampling
    return rule == "unless_none" and draft.body.get("reasoning_effort") != "none"


_UNKNOWN = "this model cannot be told so"


def _adopt_object(draft: Draft) -> str:
    """OpenRouter's `reasoning: {effort}`, which clients send to any server, as `reasoning_effort`.

    The pointer to the effort in the client's body.
    """
    reasoning = draft.body.get("reasoning")
    effort = reasoning.get("effort") if isinstance(reasoning, dict) else None
    if not isinstance(effort, str) or draft.profile.reasoning.ask == "reasoning_object":
        return "/reasoning_effort"
    draft.body["reasoning_effort"] = effort
    rest = {key: value for key, value in draft.body.pop("reasoning").items() if key != "effort"}
    if rest:
        draft.body["reasoning"] = rest
    return "/reasoning/effort"


def is_thinking(body: Json) -> bool:
    """Whether the body asks for reasoning, in whatever words."""
    thinking, reasoning = body.get("thinking"), body.get("reasoning")
    if isinstance(thinking, dict):
        return thinking.get("type") in ("enabled", "adaptive")
    if isinstance(reasoning, dict):
        return reasoning.get("enabled") is not False and reasoning.get("effort") != "none"
    if "enable_thinking" in body:
        return body["enable_thinking"] is True
    return body.get("reasoning_effort") not in (None, "none")


# --- one function for each way of asking -----------------------------------------------


def _effort(draft: Draft, level: str | None) -> None:
    if level is None:
        del draft.body["reasoning_effort"]
    else:
        draft.body["reasoning_effort"] = level


def _nothing(draft: Draft, _level: str | None) -> None:
    del draft.body["reasoning_effort"]


def _budget(draft: Draft, level: str | None) -> None:
    del draft.body["reasoning_effort"]
    budget = _BUDGETS.get(level or "none")
    if budget is not None:
        _say(draft, "thinking", {"type": "enabled", "budget_tokens": budget})


def _make_room(draft: Draft) -> None:
    """The limit counts the thought too and must exceed its budget, or the backend answers 400."""
    thinking = draft.body.get("thinking")
    budget = thinking.get("budget_tokens") if isinstance(thinking, dict) else None
    if not isinstance(budget, int):
        return
    key = "max_completion_tokens" if "max_completion_tokens" in draft.body else "max_tokens"
    limit = draft.body.get(key)
    if limit is None:
        draft.body[key] = budget + _ANSWER_TOKENS
    elif isinstance(limit, int | float) and limit <= budget:
        draft.body[key] = budget + limit
        draft.lose(f"/{key}", "raised: the thought counts too, and its budget is larger")


def _adaptive(draft: Draft, level: str | None) -> None:
    del draft.body["reasoning_effort"]
    if level is not None and level != "none":
        _say(draft, "thinking", {"type": "adaptive"})
        _say(draft, "output_config", {"effort": level})


def _toggle(draft: Draft, level: str | None) -> None:
    """On or off, and the level beside it where it is on."""
    off = draft.body["reasoning_effort"] == "none" and level in (None, "none")
    _say(draft, "thinking", {"type": "disabled" if off else "enabled"})
    _effort(draft, None if level == "none" else level)


def _switch(draft: Draft, _level: str | None) -> None:
    _say(draft, "enable_thinking", draft.body.pop("reasoning_effort") != "none")


def _object(draft: Draft, level: str | None) -> None:
    asked = draft.body.pop("reasoning_effort")
    given = draft.body.get("reasoning")
    told = {"effort": level} if level is not None else {"enabled": False} if asked == "none" else {}
    told |= given if isinstance(given, dict) else {}
    if told:
        draft.body["reasoning"] = told


def _say(draft: Draft, key: str, value: Any) -> None:
    """Write a key unless the client has written it."""
    draft.body.setdefault(key, value)


_ASKS: Mapping[str, Callable[[Draft, str | None], None]] = {
    "openai": _effort,
    "none": _nothing,
    "thinking_budget": _budget,
    "thinking_adaptive": _adaptive,
    "thinking_toggle": _toggle,
    "enable_thinking": _switch,
    "reasoning_object": _object,
}
