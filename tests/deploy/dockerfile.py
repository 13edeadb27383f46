"""The Dockerfile as stages of instructions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

ROOT = Path(__file__).resolve().parents[2]

_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


@dataclass(slots=True)
class Instruction:
    name: str
    flags: dict[str, str]
    """Of `--from=build --chown=x`: without the dashes."""
    rest: str

    def words(self) -> list[str]:
        """In exec form, a JSON array; else split as a shell does."""
        return orjson.loads(self.rest) if self.rest.startswith("[") else shlex.split(self.rest)


@dataclass(slots=True)
class Stage:
    base: str
    name: str
    steps: list[Instruction] = field(default_factory=list)

    def only(self, name: str) -> Instruction:
        (found,) = (step for step in self.steps if step.name == name)
        return found


def instructions(text: str) -> list[Instruction]:
    """Comments are left out, lines that go on are joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    return [_instruction(line) for line in joined.splitlines() if line.strip()]


def _instruction(line: str) -> Instruction:
    name, _, rest = line.strip().partition(" ")
    flags = {}
    while found := re.match(r"--([\w-]+)=(\S+)\s+", rest := rest.strip()):
        flags[found[1]] = found[2]
        rest = rest[found.end() :]
    return Instruction(name.upper(), flags, rest)


def stages(text: str) -> list[Stage]:
    """The stages in order; an ARG before the first FROM counts in the FROMs only, as its reference says."""
    found: list[Stage] = []
    outer: dict[str, str] = {}
    for each in instructions(text):
        if each.name == "FROM":
            base, _, name = expand(each.rest, outer).partition(" AS ")
            found.append(Stage(base, name))
        elif found:
            found[-1].steps.append(each)
        else:
            assert each.name == "ARG", f"{each.name} before FROM"
            key, _, value = each.rest.partition("=")
            outer[key] = value
    return found


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$NAME` and `${NAME}`; an unset one is empty."""
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], ""), text)


def read() -> list[Stage]:
    return stages((ROOT / "Dockerfile").read_text())
