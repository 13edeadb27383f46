"""`[providers.overrides]`: the sections and keys of `translators.profile.Profile`, checked.

TOML has no null, so `false` turns off a key that may be none (`reasoning.tags = false`).
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import Field, TypeAdapter, ValidationError

from translators.profile import Profile

from .problems import Place, Problem, did_you_mean
from .values import value_problems

OWN_KEYS: Mapping[str, Mapping[str, Any]] = {
    "ollama": {"num_ctx": int, "keep_alive": str | int},
    "onnx": {
        "threads": Annotated[int, Field(ge=1)],
        "num_ctx": Annotated[int, Field(ge=1)],
        "devices": list[str],
        "variant": str,
        "max_loaded": Annotated[int, Field(ge=1)],
        "idle_unload_s": Annotated[float, Field(ge=0, allow_inf_nan=False)],
        "max_queue": Annotated[int, Field(ge=0)],
    },
}
"""Keys beside the sections that providers of a kind take.

Both: `num_ctx`, tokens of context. Ollama: `keep_alive`, how long a model stays loaded, a duration or
seconds. ONNX: `threads` of the processor for each model; `devices`, execution providers in place of the
folder's own; `variant` of the files of an `onnx-community` folder (`q4`, `int8`, ...); `max_loaded` models in
memory, the one used longest ago makes way; `idle_unload_s`, 0 for never; `max_queue` requests that wait for
one model.
"""
_WORDS: Mapping[Any, str] = {int: "a number", str | int: "a duration or seconds"}


def find_problems(overrides: Mapping[str, Any], kind: str) -> Iterator[Problem]:
    """Unknown keys, with the nearest known one, and values out of range; places begin at the table."""
    own = {key: value for key, value in overrides.items() if any(key in keys for keys in OWN_KEYS.values())}
    sections = {key: value for key, value in overrides.items() if key not in own}
    for key, value in own.items():
        yield from _own_problems(key, value, kind)
    yield from _unknown(sections, Profile, ())
    yield from value_problems(sections)
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


def _own_problems(key: str, value: object, kind: str) -> Iterator[Problem]:
    expected = OWN_KEYS.get(kind, {}).get(key)
    if expected is None:
        kinds = " and ".join(each for each, keys in OWN_KEYS.items() if key in keys)
        yield Problem((key,), f"is for providers of kind {kinds} only")
    elif expected in _WORDS:
        if not isinstance(value, expected) or isinstance(value, bool):
            yield Problem((key,), f"should be {_WORDS[expected]}")
    else:
        yield from _type_problems(key, value, expected)


def _type_problems(key: str, value: object, expected: Any) -> Iterator[Problem]:
    if isinstance(value, bool):
        yield Problem((key,), "must not be true or false")
        return
    try:
        TypeAdapter(expected).validate_python(value, strict=True)
    except ValidationError as error:
        for fault in error.errors(include_input=False, include_url=False):
            yield Problem((key, *fault["loc"]), fault["msg"].removeprefix("Input "))


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
        elif isinstance(value, Mapping):  # free in its keys
            holds = get_args(wanted)[-1:]
            out[key] = {name: _or_none(each, *holds) for name, each in value.items()}
        else:
            out[key] = _or_none(value, wanted)
    return out


def _or_none(value: Any, wanted: Any = None) -> Any:
    return None if value is False and _may_be_none(wanted) else value


def _may_be_none(wanted: Any) -> bool:
    """Whether `false` says so; where it is a value itself, nothing does."""
    accepted = get_args(wanted)
    named = (value for each in accepted for value in get_args(each))
    return types.NoneType in accepted and not any(value is False for value in named)


@cache
def _fields(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls)


@cache
def _adapter() -> TypeAdapter[Profile]:
    return TypeAdapter(Profile)


def _without_tags(place: Place) -> Place:
    """Pydantic adds the branch of a union (`constrained-int`, ...) to a place; keys never hold brackets."""
    return tuple(step for step in place if isinstance(step, int) or "[" not in step)
