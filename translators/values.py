"""What the value of a parameter may be: its JSON types, in code and in words, and its range.

The types are asked of every body, in both lanes. The range is asked where a parameter is
translated; of a body that passes unread it is the backend's business (llama.cpp takes -1 for
`max_tokens`, Anthropic layers take a temperature of 1 at most, ...).
"""

from __future__ import annotations

from typing import Any, NamedTuple

NULL = type(None)


class Rule(NamedTuple):
    """`types` a value may have, `words` for them and for the range from `low` to `high`."""

    types: frozenset[type]
    words: str
    low: float | None = None
    high: float | None = None
    entry: type | None = None
    """The type of each entry of a list."""
    whole: bool = False
    """An integer, which JSON may write as `7.0`."""

    def is_typed(self, value: Any) -> bool:
        """Whether the value is of the right JSON type; `True` is no number."""
        kind = type(value)
        if kind is float and self.whole:
            return bool(value.is_integer())
        if kind is list and self.entry is not None:
            return kind in self.types and all(type(entry) is self.entry for entry in value)
        return kind in self.types

    def fits(self, value: Any) -> bool:
        """Whether it is of the right type and in the range."""
        if not self.is_typed(value):
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


def number(low: int, high: int) -> Rule:
    """A number from `low` to `high`."""
    return Rule(frozenset({int, float}), f"a number between {low} and {high}", low, high)


def integer(words: str, low: int | None = None, high: int | None = None) -> Rule:
    """An integer; `words` say its range."""
    return Rule(frozenset({int}), words, low, high, whole=True)


STRING = Rule(frozenset({str}), "a string")
OBJECT = Rule(frozenset({dict}), "an object")
FLAG = Rule(frozenset({bool}), "true or false")
LIST = Rule(frozenset({list}), "a list")
STRINGS = Rule(frozenset({list}), "a list of strings", entry=str)
STOP = Rule(frozenset({str, list}), "a string or a list of strings", entry=str)
