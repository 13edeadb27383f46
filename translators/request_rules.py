"""`profile.request` applied to the top level of a body, whatever its shape."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .dialect import Loss
from .ir import Json, Shape
from .params import PARAMS, idle
from .profile import RequestRules

_NEVER_DROPPED = frozenset({"model", "input", "messages", "instructions", "stream"})
"""Without these a request is none, or another one; no list of keys may take them away."""


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
    return rules.extra_keys is None or key in known or key in rules.extra_keys


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
