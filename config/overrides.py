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
    yield from _request_problems(sections.get("request"))
    reasoning = sections.get("reasoning")
    tags = reasoning.get("tags") if isinstance(reasoning, Mapping) else None
    if isinstance(tags, list | tuple) and "" in tags:
        yield Problem(("reasoning", "tags"), "should hold no empty text")
    try:
        _adapter().validate_python(without_false(sections))
    except ValidationError as error:
        for fault in error.errors(include_input=False, include_url=False):
            message = fault["msg"].removeprefix("Input ").replace("valid tuple", "list")
            yield Problem(_without_tags(fault["loc"]), message)


_THE_CALL = ("model", "messages", "input", "stream", "stream_options")
"""Keys that the gateway itself goes by: another name or a default for them breaks the reply."""


def _request_problems(rules: Any) -> Iterator[Problem]:
    """What takes more than a type to judge of the section `request`."""
    if not isinstance(rules, Mapping):
        return
    for key in ("context_window", "chars_per_token"):
        value = rules.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and not value > 0:
            yield Problem(("request", key), "should be greater than 0")
    ratio, window = rules.get("chars_per_token"), rules.get("context_window")
    if ratio not in (None, False) and (window is None or window is False):
        yield Problem(("request", "chars_per_token"), "needs `request.context_window` beside it")
    yield from _clamp_problems(rules.get("clamp"))
    for key in ("rename", "defaults"):
        table = rules.get(key)
        named = [name for name in _THE_CALL if name in table] if isinstance(table, Mapping) else []
        yield from (Problem(("request", key, name), "is the call's own and stays as it is") for name in named)


def _clamp_problems(clamp: Any) -> Iterator[Problem]:
    for key, bounds in clamp.items() if isinstance(clamp, Mapping) else ():
        pair = isinstance(bounds, list) and len(bounds) == 2 and all(map(_is_number, bounds))
        if pair and bounds[0] > bounds[1]:
            yield Problem(("request", "clamp", key), "should be [least, most]")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
    return types.NoneType in get_args(wanted)


@cache
def _fields(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


@cache
def _adapter() -> TypeAdapter[Profile]:
    return TypeAdapter(Profile)


def _without_tags(place: Place) -> Place:
    """Pydantic adds the branch of a union (`constrained-int`, ...) to a place; keys never hold brackets."""
    return tuple(step for step in place if isinstance(step, int) or "[" not in step)
