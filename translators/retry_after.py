"""How long a backend asks to wait, by its headers or by its words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from math import isfinite

MAX_DELAY_S = 2_000_000.0
"""Longest delay that is told, some 23 days: JavaScript's timers fire at once from 2**31 ms on."""


def told_delay(headers: Mapping[str, str], names: Sequence[str], now: float | None) -> float | None:
    """Seconds to wait by the backend's headers: seconds, or a date when `now` is known.

    A header whose name ends in `-ms` holds milliseconds.
    """
    for name in names:
        value = headers.get(name, "").strip()
        seconds = _seconds(value)
        if seconds is None and value and now is not None:
            seconds = _until(value, now)
        if seconds is not None:
            return min(seconds / 1000 if name.endswith("-ms") else seconds, MAX_DELAY_S)
    return None


_DELAY = re.compile(
    r"""(?:(?:try\ again|retry)(?:\ your\ request)?\ (?:in|after)\ (?:about\ )?|"retryDelay":\s*")"""
    r"((?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|hours?|h|minutes?|min|m|seconds?|sec|s)\b\s*|\d+[hm](?=\d))+)",
    re.IGNORECASE | re.VERBOSE,
)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|h|m|s)", re.IGNORECASE)
_UNITS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def worded_delay(text: str) -> float | None:
    """Seconds that a text like "Please try again in 1m20.5s" asks to wait."""
    found = _DELAY.search(text)
    if found is None:
        return None
    spans = (float(count) * _UNITS[unit.lower()] for count, unit in _SPAN.findall(found.group(1)))
    return min(sum(spans), MAX_DELAY_S)


def _seconds(value: str) -> float | None:
    try:
        seconds = float(value)
    except ValueError:
        return None
    return max(0.0, seconds) if isfinite(seconds) else None


def _until(date: str, now: float) -> float | None:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, OverflowError):
        return None
