"""A fault of a configuration, and where it is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

Place = tuple[str | int, ...]
"""Keys and list positions from the top, e.g. `("providers", 0, "kind")`."""


@dataclass(frozen=True, slots=True)
class Problem:
    """`place` may be empty (the file as a whole); `line` counts from 1, None: not known."""

    place: Place
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.place).lstrip(
            "."
        )
        return f"{where}: {self.message}" if where else self.message


class ConfigErrors(Exception):
    """Every fault found; never holds a secret."""

    def __init__(self, problems: Sequence[Problem], source: Path | None = None) -> None:
        super().__init__(f"{len(problems)} configuration errors")
        self.problems, self.source = list(problems), source

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """One line for each fault: `file:line: place: message`."""
        file = str(self.source) if self.source else "configuration"
        return [f"{file}{f':{each.line}' if each.line else ''}: {each}" for each in self.problems]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`, did you mean "x"?` for the nearest of `known`, else an empty string."""
    near = difflib.get_close_matches(word, list(known), 1, 0.6)
    return f', did you mean "{near[0]}"?' if near else ""
