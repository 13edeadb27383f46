"""Values of profile keys that a type alone cannot judge; whatever has the wrong type is passed over here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .extra_body import is_json
from .problems import Place, Problem

_POSITIVE: tuple[Place, ...] = (
    ("request", "context_window"),
    ("request", "chars_per_token"),
    ("request", "min_output_tokens"),
    ("request", "max_body_bytes"),
    ("request", "id_max_len"),
    ("messages", "tool_call_id", "max"),
    ("tools", "max"),
)
MOST_CONTINUATIONS = 5
_CALL = ("model", "messages", "input", "stream", "stream_options")
"""Keys that the gateway itself goes by: another name or a default for them breaks the reply."""


def value_problems(sections: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with single values; places begin at the table of sections."""
    for place, value in _leaves(sections, ()):
        if not is_json(value):
            yield Problem(place, "holds what JSON cannot (inf, nan, or a number over 64 bits)")
    for place in _POSITIVE:
        value = _at(sections, place)
        if isinstance(value, int | float) and not isinstance(value, bool) and not value > 0:
            yield Problem(place, "should be greater than 0")
    most = _at(sections, ("answer", "continuations"))
    if type(most) is int and not 0 <= most <= MOST_CONTINUATIONS:
        yield Problem(("answer", "continuations"), f"should be from 0 to {MOST_CONTINUATIONS}")
    yield from _pattern(sections)
    tags = _at(sections, ("reasoning", "tags"))
    if isinstance(tags, list | tuple) and "" in tags:
        yield Problem(("reasoning", "tags"), "should hold no empty text")
    yield from _clamps(_at(sections, ("request", "clamp")))
    for key in ("rename", "defaults"):
        table = _at(sections, ("request", key))
        named = [name for name in _CALL if name in table] if isinstance(table, Mapping) else []
        yield from (Problem(("request", key, name), "is the call's own and stays as it is") for name in named)


def _leaves(table: Mapping[str, Any], above: Place) -> Iterator[tuple[Place, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _at(table: Mapping[str, Any], place: Place) -> Any:
    """The value at `place`, None where there is none."""
    value: Any = table
    for step in place:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _pattern(sections: Mapping[str, Any]) -> Iterator[Problem]:
    place = ("messages", "tool_call_id", "pattern")
    pattern = _at(sections, place)
    try:
        re.compile(pattern if isinstance(pattern, str) else "")
    except re.error as error:
        yield Problem(place, f"is no regular expression: {error}")


def _clamps(clamp: Any) -> Iterator[Problem]:
    for key, bounds in clamp.items() if isinstance(clamp, Mapping) else ():
        pair = isinstance(bounds, list) and len(bounds) == 2 and all(map(_is_number, bounds))
        if pair and bounds[0] > bounds[1]:
            yield Problem(("request", "clamp", key), "should be [least, most]")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
