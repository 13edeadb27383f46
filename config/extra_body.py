"""`[providers.extra_body]`: free in its keys but for those the gateway itself goes by."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from .problems import Problem

_OWN: Mapping[str, str] = {
    "model": "a model is chosen by the client's request and [aliases]",
    "stream": "whether the answer is a stream is the client's to say, and it is read as such",
}


def refused_keys(extra: Mapping[str, Any]) -> Iterator[Problem]:
    """What may not stand there; places begin at the table."""
    for key, reason in _OWN.items():
        if key in extra:
            yield Problem((key,), f"cannot be set here: {reason}")
    for key, value in extra.items():
        if not is_json(value):
            yield Problem((key,), "holds what JSON cannot (inf, nan, or a number over 64 bits)")


def is_json(value: Any) -> bool:
    """TOML's dates are written as text, the way JSON does it."""
    if isinstance(value, Mapping):
        return all(map(is_json, value.values()))
    if isinstance(value, list):
        return all(map(is_json, value))
    if isinstance(value, float):
        return math.isfinite(value)
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True
