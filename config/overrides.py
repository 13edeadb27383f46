"""`[providers.overrides]`: the sections and keys of `translators.profile.Profile`, checked.

TOML has no null, so `false` turns off a key that may be none (`reasoning.tags = false`).
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from translators.profile import Profile

from .problems import Place, Problem, did_you_mean

OLLAMA_KEYS: Mapping[str, Any] = {"num_ctx": int, "keep_alive": str | int}
"""Keys beside the sections that an ollama provider takes: context length, time to stay loaded."""


def find_problems(overrides: Mapping[str, Any], kind: str) -> Iterator[Problem]:
    """Unknown keys, with the nearest known one, and values out of range; places begin at the table."""
    sections = {key: value for key, value in overrides.items() if key not in OLLAMA_KEYS}
    for key, expected in OLLAMA_KEYS.items():
        if key in overrides:
            yield from _ollama_problem(key, expected, overrides[key], kind)
    yield from _unknown(sections, Profile, ())
    try:
        _adapter().validate_python(without_false(sections))
    except ValidationError as error:
        for fault in error.errors(include_input=False, include_url=False):
            message = fault["msg"].removeprefix("Input ").replace("valid tuple", "list")
            yield Problem(_without_tags(fault["loc"]), message)


def without_false(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with `false` replaced by None where the profile's key may be none."""
    return _replace_false(overrides, Profile)


def sections() -> tuple[str, ...]:
    return tuple(key for key in _fields(Profile) if key != "name")


def _ollama_problem(key: str, expected: Any, value: object, kind: str) -> Iterator[Problem]:
    if kind != "ollama":
        yield Problem((key,), "is for providers of kind ollama only")
    elif not isinstance(value, expected) or isinstance(value, bool):
        yield Problem((key,), "should be a number" if expected is int else "should be a duration or seconds")


def _unknown(table: Mapping[str, Any], cls: Any, place: Place) -> Iterator[Problem]:
    known = {key: hint for key, hint in _fields(cls).items() if cls is not Profile or key != "name"}
    for key, value in table.items():
        here = (*place, key)
        if key not in known:
            yield Problem(here, "unknown key" + (_moved(key) or did_you_mean(key, known)))
        elif dataclasses.is_dataclass(known[key]) and isinstance(value, Mapping):
            yield from _unknown(value, known[key], here)


def _moved(key: str) -> str:
    """A hint for a key of a section that was written beside the sections."""
    homes = [section for section in sections() if key in _fields(_fields(Profile)[section])]
    return f', did you mean "{homes[0]}.{key}"?' if homes else ""


def _replace_false(table: Mapping[str, Any], cls: Any) -> dict[str, Any]:
    known, out = _fields(cls), dict[str, Any]()
    for key, value in table.items():
        wanted = known.get(key)
        if isinstance(value, Mapping) and dataclasses.is_dataclass(wanted):
            out[key] = _replace_false(value, wanted)
        else:
            out[key] = None if value is False and _may_be_none(wanted) else value
    return out


def _may_be_none(wanted: Any) -> bool:
    return isinstance(wanted, types.UnionType) and types.NoneType in get_args(wanted)


@cache
def _fields(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


@cache
def _adapter() -> TypeAdapter[Profile]:
    return TypeAdapter(Profile)


def _without_tags(place: Place) -> Place:
    """Pydantic adds the branch of a union (`constrained-int`, ...) to a place; keys never hold brackets."""
    return tuple(step for step in place if isinstance(step, int) or "[" not in step)
