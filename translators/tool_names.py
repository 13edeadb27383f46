"""Names that every function-calling backend takes, for tools whose own names it would refuse.

A function name is 1 to 64 characters of `[A-Za-z0-9_-]` (Chat and Responses alike). A tool of
a namespace is called `namespace__name`. What does not fit or is taken gets a short hash of the
whole name, so that the same request gives the same names on every turn (prompt caches hold)
and two long names that begin alike stay apart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

MAX_NAME = 64
_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_SEPARATORS = (".", "/", ":", "__")
"""How models write a namespaced name they make up from the description instead of the tool list."""


@dataclass(frozen=True, slots=True)
class ToolKey:
    """A tool by its own name; `namespace` None: it stands alone."""

    name: str
    namespace: str | None = None

    @property
    def full(self) -> str:
        return f"{self.namespace}__{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Original:
    """What a lowered name stands for.

    `format` is the tool that stands for a structured answer. `verbatim`: a free-form tool
    whose grammar has no place for a Markdown fence. `wrapped`: the answer is the one property
    of the arguments.
    """

    kind: Literal["function", "custom", "tool_search", "format"]
    name: str
    namespace: str | None = None
    verbatim: bool = False
    wrapped: bool = False


def is_legal(name: str) -> bool:
    return _LEGAL.fullmatch(name) is not None


class NameTable:
    """Gives each tool one name on the wire; `reserved` names are given to nobody else."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)
        self._given: dict[ToolKey, str] = {}

    def give(self, key: ToolKey) -> str:
        """The wire name of `key`, the same at every call."""
        if key not in self._given:
            name, salt = _ILLEGAL.sub("_", key.full), 0
            while not is_legal(name) or name in self._taken:
                name, salt = _hashed(key, salt), salt + 1
            self._taken.add(name)
            self._given[key] = name
        return self._given[key]


def aliases(names: Mapping[str, Original], offered: Iterable[str]) -> dict[str, Original]:
    """Other spellings of the namespaced tools in `names`, as far as each means one tool only.

    A model that invents `ns.name`, `ns/name` or the bare `name` then still reaches its tool.
    `offered` names mean themselves.
    """
    found: dict[str, Original | None] = {}
    for original in names.values():
        for alias in _spellings(original):
            found[alias] = original if found.get(alias, original) == original else None
    known = {*names, *offered}
    return {alias: one for alias, one in found.items() if one is not None and alias not in known}


def _spellings(original: Original) -> list[str]:
    if not original.namespace:
        return []
    joined = [f"{original.namespace}{separator}{original.name}" for separator in _SEPARATORS]
    return [original.name, *joined]


def _hashed(key: ToolKey, salt: int) -> str:
    seed = f"{key.namespace or ''}\0{key.name}\0{salt or ''}"
    digest = hashlib.sha256(seed.encode()).hexdigest()[:8]
    return f"{_ILLEGAL.sub('_', key.full)[: MAX_NAME - len(digest) - 1]}_{digest}"
