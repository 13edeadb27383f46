"""Pydantic's faults in our words, for every file that we read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from pydantic_core import ErrorDetails

from .problems import Place, Problem, did_you_mean

Hint = Callable[[Place], str]
"""What to say after "unknown key" of the key at a place, ", did you mean ...?" or nothing."""


def explain(fault: ErrorDetails, hint: Hint) -> Problem:
    """A fault; its input is quoted only where it cannot be a secret."""
    place, kind, message = fault["loc"], fault["type"], fault["msg"]
    if kind == "extra_forbidden":
        message = "unknown key" + hint(place)
    elif kind == "missing":
        message = "is required"
    elif kind == "too_short":
        message = "must not be empty: name at least one, or leave the key out"
    elif kind == "tuple_type" and place in (("providers",), ("keys",)):
        message = (
            f"must be a list of tables: begin each {str(place[0]).removesuffix('s')} with [[{place[0]}]]"
        )
    elif kind in ("model_type", "dict_type"):
        message = "must be a table"
    elif kind == "string_pattern_mismatch":
        message = "may hold only a-z, 0-9 and -"
    elif kind == "literal_error":
        message += did_you_mean(str(fault["input"]), re.findall(r"'([^']+)'", message))
    message = message.removeprefix("Value error, ").replace("Input should", "should")
    return Problem(place, message.replace("valid tuple", "list"))


def first_causes(faults: Sequence[ErrorDetails]) -> Iterator[ErrorDetails]:
    """Without the lists that are too short only because of a fault in an entry."""
    holders = {fault["loc"][:-at] for fault in faults for at in range(1, len(fault["loc"]))}
    return (fault for fault in faults if fault["type"] != "too_short" or fault["loc"] not in holders)
