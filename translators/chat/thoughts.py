"""Reasoning that a reply tells in more than one field of its own.

Backends in transition say the same under two names (`reasoning` and `reasoning_content`), a few say
different things. Which of the two it is shows only at the end of the thought, so the first field that says
something is told live, and another one waits: what is told cannot be unsaid.
"""

from __future__ import annotations

from collections.abc import Iterable

_Said = tuple[str, str]
"""Name of a field, and its text or piece of text."""


class ThoughtFields:
    """One thought. Blank text before the first words is held back: a thought of nothing else is none."""

    __slots__ = ("_texts", "live")

    def __init__(self) -> None:
        self.live = ""
        """The field that is told as it comes; empty until one has words."""
        self._texts: dict[str, list[str]] = {}

    def feed(self, said: Iterable[_Said]) -> str:
        """More of each field; gives what is to be told now."""
        fresh = ""
        for name, text in said:
            told = self._texts.setdefault(name, [])
            told.append(text)
            if name == self.live:
                fresh = text
            elif not self.live and not text.isspace():
                self.live, fresh = name, "".join(told)
        return fresh

    def others(self) -> list[_Said]:
        """The fields that said something else than the one told live, and what; each text once."""
        if len(self._texts) < 2:
            return []
        texts = {name: "".join(told) for name, told in self._texts.items()}
        known = {texts[self.live].strip(), ""} if self.live else {""}
        found: list[_Said] = []
        for name, text in texts.items():
            if text.strip() not in known:
                known.add(text.strip())
                found.append((name, text))
        return found
