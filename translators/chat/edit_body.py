"""Top-level keys of a Chat body: `request.*` of the profile."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ..errors import bad_request
from ..profile import Profile
from .edit_draft import PARAM_OF, Draft

OFFICIAL = frozenset(
    {
        *("model", "messages", "tools", "tool_choice", "functions", "function_call"),
        *("stream", "stream_options", *PARAM_OF),
    }
)
"""Every key of the OpenAI SDK's create call (3.57.0); `tests` pin that."""

_ASK_KEYS: Mapping[str, tuple[str, ...]] = {
    "thinking_budget": ("thinking",),
    "thinking_adaptive": ("thinking", "output_config"),
    "thinking_toggle": ("thinking",),
    "enable_thinking": ("enable_thinking",),
    "reasoning_object": ("reasoning",),
}
"""Keys that `reasoning.ask` writes, so that no list of known keys removes them again."""


def rename_keys(draft: Draft) -> None:
    """What is set to nothing goes out (strict backends refuse a null), then keys are renamed."""
    body, profile = draft.body, draft.profile
    exact = profile.answer.exact
    for key in [key for key, value in body.items() if _is_unset(key, value, exact)]:
        del body[key]
    if not exact and "max_output_tokens" in body:
        _adopt_limit(draft)
    for old, new in profile.request.rename.items():
        if old not in body:
            continue
        value = body.pop(old)
        # Both given: OpenAI renamed the limit, so the new name is the one meant.
        if new not in body or old == "max_completion_tokens":
            body[new] = value
            draft.renamed[new] = old


def _is_unset(key: str, value: Any, exact: bool) -> bool:
    return (value == "" and key in PARAM_OF) or (value is None and not exact)


def _adopt_limit(draft: Draft) -> None:
    """The Responses name of the limit, which no Chat backend knows; whoever sends it means it."""
    limit = draft.body["max_output_tokens"]
    for name in ("max_output_tokens", "max_completion_tokens", "max_tokens"):
        draft.body.pop(name, None)
    key = draft.profile.request.max_tokens_key
    draft.body[key] = limit
    draft.renamed[key] = "max_output_tokens"


def drop_keys(draft: Draft) -> None:
    """Keys the backend refuses: a list of those, or all but a list."""
    rules = draft.profile.request
    for key in rules.drop:
        if key in draft.body:
            draft.leave_out(key, "this backend does not take it")
    for key, values in rules.drop_values.items():
        if key in draft.body and draft.body[key] in values:
            draft.leave_out(key, "this model does not take that value")
    allowed = _allowed(draft.profile)
    if allowed is not None:
        for key in [key for key in draft.body if key not in allowed]:
            draft.leave_out(key, "this backend takes only fields it knows")


def _allowed(profile: Profile) -> frozenset[str] | None:
    rules, ask = profile.request, profile.reasoning.ask
    if rules.allow is None and rules.extra_keys is None:
        return None
    own = (*rules.force, *rules.defaults, *rules.rename.values(), *_ASK_KEYS.get(ask, ()))
    return _allowed_keys(rules.allow, rules.extra_keys, own)


@cache
def _allowed_keys(
    allow: tuple[str, ...] | None, extra: tuple[str, ...] | None, own: tuple[str, ...]
) -> frozenset[str]:
    official = OFFICIAL if allow is None else frozenset(allow)
    return official.union(extra or (), own)


def clamp_numbers(draft: Draft) -> None:
    """Numbers into the backend's range; `n` is a feature, and one answer for two is a 400."""
    for key, (low, high) in draft.profile.request.clamp.items():
        value = draft.body.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or low <= value <= high:
            continue
        param = PARAM_OF.get(key)
        if param is not None and param.kind == "feature":
            raise bad_request(f"This model takes `{key}` from {low} to {high} only.", key)
        draft.body[key] = min(max(value, low), high)
        draft.lose(f"/{key}", f"moved into {low} to {high}, which this backend takes")


def finish_body(draft: Draft) -> None:
    """What the gateway itself asks of the backend: usage in every stream, forced keys."""
    _stream_options(draft)
    for key, value in draft.profile.request.force.items():
        draft.body[key] = value


def _stream_options(draft: Draft) -> None:
    body, rules = draft.body, draft.profile.request
    refused = rules.stream_options == "drop" or "stream_options" in rules.drop
    unlisted = rules.allow is not None and "stream_options" not in rules.allow
    if body.get("stream") is not True or refused or unlisted:
        body.pop("stream_options", None)
        return
    given: Any = body.get("stream_options")
    options = given if isinstance(given, dict) else {}
    if rules.extra_keys is not None:
        options = {}
    if options.get("include_usage") is not True:
        options = {**options, "include_usage": True}
    if options != given:
        body["stream_options"] = options
