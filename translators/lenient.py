"""JSON that is not quite JSON, as backends write it when they do not look at what they write.

Met in the field: bytes that are no UTF-8 (a token that ends inside a character), half a
surrogate pair (text cut by UTF-16 units), NaN and Infinity (Python's own `json`), raw line ends
in strings, a byte order mark. A frame is not thrown away for that: what it says is kept, and
what cannot be said becomes U+FFFD or null.
"""

from __future__ import annotations

import json  # noqa: TID251 - asked only for what orjson refuses
import re
from math import isfinite
from typing import Any

import orjson

MAX_DEPTH = 200
"""Levels of lists and objects that are taken: orjson reads 1024, but writes 254."""
_WRITABLE_DEPTH = 254

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""One escape: a surrogate pair, half a one (the group), anything else."""

_LONGEST_INT = 18
"""Digits that fit into 64 bits for sure; a longer integer is read as a float, as orjson does."""


def read_json(data: bytes) -> tuple[Any, bool]:
    """The JSON value of a backend, and whether a client could read `data` as it stands.

    None for what is no JSON at all, or nested deeper than it could be written again.
    """
    try:
        value, plain = orjson.loads(data), True
    except orjson.JSONDecodeError:
        value, plain = _mended(data), False
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and not writable(value):
        return None, False
    return value, plain


def is_torn_object(data: bytes) -> bool:
    """Whether `data`, which `read_json` could not read, has begun as an object: something was lost.

    What begins otherwise is noise (a proxy's `data: ping`).
    """
    return data.lstrip()[:1] == b"{"


def json_in(text: str) -> Any:
    """The JSON value that a model wrote as text; None as with `read_json`."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    deep = text.count("[") + text.count("{") > MAX_DEPTH
    return None if deep and not writable(value) else value


def same_json(one: str, other: str) -> bool:
    """Whether two texts are one JSON value: spaces, escapes and the order of keys aside."""
    values = [json_in(one), json_in(other)]
    if None in values or values[0] != values[1]:
        return False
    left, right = (orjson.dumps(value, option=orjson.OPT_SORT_KEYS) for value in values)
    return left == right  # to Python, true is 1


def writable(value: Any) -> bool:
    """Whether `value` has at most `MAX_DEPTH` levels; what it is put into adds some."""
    for _ in range(_WRITABLE_DEPTH - MAX_DEPTH):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return True


def _mended(data: bytes) -> Any:
    """What `data`, which orjson has refused, is meant to say."""
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        return json.loads(
            _ESCAPE.sub(_whole_character, text),
            strict=False,
            parse_constant=lambda _: None,
            parse_float=_finite,
            parse_int=lambda digits: int(digits) if len(digits) <= _LONGEST_INT else _finite(digits),
        )
    except (ValueError, RecursionError):
        return None


def has_whole_characters(data: bytes) -> bool:
    """Whether a client can decode whole frames as they are.

    Half a surrogate pair is as bad as half a character; where there may be one the answer is no.
    """
    if b"\\ud" in data or b"\\uD" in data:
        return False
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def with_whole_characters(data: bytes) -> bytes:
    """JSON text with U+FFFD for every escape that is half a surrogate pair; the rest as it was."""
    return _ESCAPE.sub(_whole_character, data.decode("utf-8", "replace")).encode()


def _whole_character(escape: re.Match[str]) -> str:
    return r"\ufffd" if escape[1] else escape[0]


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if isfinite(number) else None
