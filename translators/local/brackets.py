"""Where a bracketed value ends in a text that is still coming in."""

from __future__ import annotations

import re
from typing import NamedTuple

BLANK = " \t\r\n"


class BrokenMarkupError(Exception):
    """What followed a marker is no call: the marker was text."""


class Syntax(NamedTuple):
    """`plain` is what may stand outside of strings and brackets."""

    plain: re.Pattern[str]
    quotes: tuple[str, ...]
    escapes: bool = True


JSON = Syntax(re.compile(r"[\w\s:,.+\-]*"), ('"',))
PYTHON = Syntax(re.compile(r"[^\[\]{}'\"]*"), ('"', "'"))
GEMMA = Syntax(re.compile(r"[^\[\]{}<]*"), ('<|"|>',), escapes=False)
FUNCTION_GEMMA = Syntax(re.compile(r"[^\[\]{}<]*"), ("<escape>",), escapes=False)

_RUNS = {quote: re.compile(rf"[^{quote}\\]*") for quote in "\"'"}


def begins(text: str, marks: tuple[str, ...]) -> bool | None:
    """Whether `text` begins with one of `marks`; None while it may yet."""
    if text.startswith(marks):
        return True
    return None if any(mark.startswith(text) for mark in marks) else False


def first_of(text: str) -> int:
    """Where the first character stands that is no blank; the length of `text` without one."""
    return len(text) - len(text.lstrip(BLANK))


class Brackets:
    """Reads on from where it stopped: each character is seen once, however the text is cut."""

    def __init__(self, syntax: Syntax, start: int) -> None:
        """`start`: where the opening bracket stands."""
        self.start = start
        self._syntax = syntax
        self._at = start
        self._depth = 0
        self._quote = ""

    def end(self, text: str) -> int | None:
        """One past the bracket that closes the first one; None if it has not come yet."""
        while self._step(text):
            if not self._depth:
                return self._at
        return None

    def _step(self, text: str) -> bool:
        """Read one more thing; False where there is nothing more to read."""
        if self._quote:
            return self._escaped(text) if self._syntax.escapes else self._raw(text)
        self._at = _end_of(self._syntax.plain, text, self._at)
        if self._at == len(text):
            return False
        char = text[self._at]
        if char not in "[]{}":
            return self._opens(text)
        self._depth += 1 if char in "[{" else -1
        self._at += 1
        return True

    def _opens(self, text: str) -> bool:
        for quote in self._syntax.quotes:
            known = begins(text[self._at : self._at + len(quote)], (quote,))
            if known:
                self._quote = quote
                self._at += len(quote)
            if known is not False:
                return bool(known)
        raise BrokenMarkupError

    def _raw(self, text: str) -> bool:
        found = text.find(self._quote, self._at)
        if found < 0:
            self._at = max(self._at, len(text) - len(self._quote) + 1)
            return False
        self._at, self._quote = found + len(self._quote), ""
        return True

    def _escaped(self, text: str) -> bool:
        self._at = _end_of(_RUNS[self._quote], text, self._at)
        rest = len(text) - self._at
        if rest > 1 and text[self._at] == "\\":
            self._at += 2
            return True
        if rest and text[self._at] == self._quote:
            self._at, self._quote = self._at + 1, ""
            return True
        return False


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start
