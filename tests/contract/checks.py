"""Checks as data: `[path, operator, value]` over a JSON-like value.

A path is dotted; a number (also negative) indexes a list, `*` goes over all entries of one,
`?` over those that have the rest of the path. The empty path is the whole value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson

MISSING = object()


def failures(checks: Sequence[Sequence[Any]], value: Any) -> list[str]:
    """What does not hold, in words."""
    found = []
    for path, operator, *wanted in checks:
        got = dig(value, path)
        expected = wanted[0] if wanted else None
        if not OPERATORS[operator](got, expected):
            found.append(f"{path or 'whole'} {operator} {expected!r}: got {_short(got)}")
    return found


def dig(value: Any, path: str) -> Any:
    if not path:
        return value
    step, _, rest = path.partition(".")
    if step in ("*", "?"):
        if not isinstance(value, list):
            return MISSING
        found = [dig(entry, rest) for entry in value]
        return [entry for entry in found if entry is not MISSING] if step == "?" else found
    if isinstance(value, list) and re.fullmatch(r"-?\d+", step):
        at = int(step)
        return dig(value[at], rest) if -len(value) <= at < len(value) else MISSING
    if isinstance(value, dict) and step in value:
        return dig(value[step], rest)
    return MISSING


def equal(got: Any, wanted: Any) -> bool:
    """Equality that tells 1 from True and 1.0."""
    if isinstance(wanted, dict):
        return isinstance(got, dict) and got.keys() == wanted.keys() and has(got, wanted)
    if isinstance(wanted, list):
        return isinstance(got, list) and len(got) == len(wanted) and all(map(equal, got, wanted))
    return type(got) is type(wanted) and got == wanted


def has(got: Any, wanted: Any) -> bool:
    """`wanted` is part of `got`: objects by their keys, lists entry by entry."""
    if isinstance(wanted, dict):
        return isinstance(got, dict) and all(
            has(got.get(key, MISSING), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(got, list) and len(got) == len(wanted) and all(map(has, got, wanted))
    return equal(got, wanted)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is MISSING else orjson.dumps(value).decode()


def _short(value: Any) -> str:
    return "nothing" if value is MISSING else _text(value)[:400]


def _within(got: Any, wanted: Any) -> bool:
    return isinstance(got, dict) and got.keys() <= set(wanted)


def _distinct(got: Any, wanted: Any) -> bool:
    """`wanted` different entries, and no more."""
    return isinstance(got, list) and len(got) == len(set(got)) == wanted


def _same(got: Any, _: Any) -> bool:
    """Every entry is the first one; there is at least one."""
    return isinstance(got, list) and bool(got) and all(equal(entry, got[0]) for entry in got)


def _each(got: Any, wanted: Any) -> bool:
    """Every entry is text that the pattern matches whole; there is at least one."""
    return (
        isinstance(got, list) and bool(got) and all(re.fullmatch(wanted, _text(entry), re.S) for entry in got)
    )


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "is": equal,
    "has": has,
    "in": lambda got, wanted: any(equal(got, one) for one in wanted),
    "absent": lambda got, _: got is MISSING or got == [],
    "blank": lambda got, _: got is MISSING or got in (None, "", []),
    "present": lambda got, _: got is not MISSING and got not in (None, "", []),
    "matches": lambda got, wanted: isinstance(got, str) and bool(re.fullmatch(wanted, got, re.S)),
    "each": _each,
    "contains": lambda got, wanted: wanted in _text(got),
    "lacks": lambda got, wanted: wanted not in _text(got),
    "counts": lambda got, wanted: _text(got).count(wanted[0]) == wanted[1],
    "at least": lambda got, wanted: type(got) is int and got >= wanted,
    "at most": lambda got, wanted: type(got) is int and got <= wanted,
    "length": lambda got, wanted: isinstance(got, list | str) and len(got) == wanted,
    "within": _within,
    "distinct": _distinct,
    "same": _same,
}
