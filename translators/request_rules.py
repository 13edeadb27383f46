"""`profile.request` applied to the top level of a body, whatever its shape."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .dialect import Loss
from .errors import bad_request
from .ir import Json, Shape
from .params import PARAMS, idle
from .profile import RequestRules

_NEVER_DROPPED = frozenset({"model", "input", "messages", "instructions", "stream"})
"""Without these a request is none, or another one; no list of keys may take them away."""


_ONE_THING = (
    frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens"}),
    frozenset({"reasoning", "reasoning_effort", "thinking", "enable_thinking"}),
)
"""Keys that say the same: a body with one of them has said it."""


def set_defaults(body: Json, rules: RequestRules) -> frozenset[str]:
    """`rules.defaults` in place, where `body` says nothing and they are not left out; gives their keys."""
    found = [key for key in rules.defaults if _is_free(key, body) and key not in rules.drop]
    for key in found:
        body[key] = rules.defaults[key]
    return frozenset(found)


def of_client(losses: list[Loss], defaults: frozenset[str]) -> list[Loss]:
    """`losses` without those of the defaults, which no client asked for."""
    return [loss for loss in losses if loss.pointer[1:].partition("/")[0] not in defaults]


def _is_free(key: str, body: Json) -> bool:
    same = next((names for names in _ONE_THING if key in names), (key,))
    return all(body.get(name) in (None, "") for name in same)


def check_cache_options(options: Json) -> None:
    """Refuse (400) a mode of the prompt cache that no backend has; its `ttl` is theirs to judge."""
    mode = options.get("mode")
    if mode not in (None, "implicit", "explicit"):
        raise bad_request(
            "`prompt_cache_options.mode` must be `implicit` or `explicit`.", "prompt_cache_options.mode"
        )


def apply_request_rules(
    body: Json, rules: RequestRules, shape: Shape, known: Collection[str], losses: list[Loss]
) -> None:
    """Rename, drop and clamp top-level keys in place; values are replaced, never changed.

    `rules.drop` may name nested keys (`text.verbosity`). `known` are the keys of the shape,
    for profiles that let no others through.
    """
    names = _parameters(shape)
    for key in [key for key, value in body.items() if value == "" and key in names]:
        del body[key]  # set to nothing is not set
    for old, new in rules.rename.items():
        if old in body:
            value = body.pop(old)
            body.setdefault(new, value)
    for path in rules.drop:
        _drop(body, path, names, losses)
    for key, values in rules.drop_values.items():
        if key in body and body[key] in values:
            del body[key]
            losses.append(Loss(f"/{key}", "this model does not take that value"))
    for key in [key for key in body if not _passes(key, rules, known)]:
        _drop(body, key, names, losses)
    if rules.stream_options == "drop":
        body.pop("stream_options", None)  # it asks for nothing in the answer itself
    for key, (low, high) in rules.clamp.items():
        _clamp(body, key, low, high, losses)


def _parameters(shape: Shape) -> dict[str, str]:
    """Path in a body of `shape` -> neutral name."""
    return {path: param.name for param in PARAMS if (path := param.path(shape))}


def _passes(key: str, rules: RequestRules, known: Collection[str]) -> bool:
    if rules.allow is not None and key not in rules.allow:
        return False
    if rules.extra_keys is None or key in known:
        return True
    return key in rules.extra_keys or key in rules.defaults


def _drop(body: Json, path: str, names: dict[str, str], losses: list[Loss]) -> None:
    if path in _NEVER_DROPPED:
        return
    value = _removed(body, path.split("."))
    name = names.get(path)
    if value is not None and not (name and idle(name, value)):
        losses.append(Loss("/" + path.replace(".", "/"), f"the backend takes no {path}"))


def _removed(body: Json, steps: list[str]) -> Any:
    """Take the value at `steps` out of `body` (copying what is nested) and give it."""
    first, *rest = steps
    if not rest:
        return body.pop(first, None)
    inner = body.get(first)
    if not isinstance(inner, dict):
        return None
    body[first] = inner = dict(inner)
    value = _removed(inner, rest)
    if not inner:
        del body[first]
    return value


def _clamp(body: Json, key: str, low: float, high: float, losses: list[Loss]) -> None:
    value = body.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or low <= value <= high:
        return
    body[key] = low if value < low else high
    losses.append(Loss(f"/{key}", f"the backend takes {low} to {high}"))
