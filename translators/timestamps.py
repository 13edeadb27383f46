"""`created` as backends tell it."""

from __future__ import annotations

from typing import Any

_LATEST = 2**53
"""What every JSON reader takes as an integer."""


def whole_seconds(told: Any) -> int | None:
    """Seconds since the epoch as an integer (SGLang sends floats); None for what is no time."""
    if type(told) not in (int, float) or not 0 <= told <= _LATEST:
        return None
    return int(told)
