"""The page of figures: a text that people wrote, with the tables of one run between two marks."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from .measure import Figures, Running
from .report import Line, loads, markdown, targets
from .work import WORK

BEGIN, END = "<!-- figures: begin (make bench-page) -->", "<!-- figures: end -->"
_UNITS = {work.name: "reply" if work.unit == "replies" else "delta" for work in WORK}


def body(
    lines: Sequence[Line],
    found: Mapping[str, Mapping[int, Mapping[str, Figures]]],
    memory: str,
    running: Running,
    missing: Mapping[str, str],
) -> str:
    left_out = "".join(f"\nNot measured: {name}, {reason}\n" for name, reason in missing.items())
    versions = [[who.name, who.version()] for who in running if who.version()]
    return "\n\n".join(
        [
            f"Measured on {date.today().isoformat()}: {_machine()}.{left_out}",
            markdown(["server", "version"], versions),
            targets(lines),
            loads(found, _UNITS),
            memory,
        ]
    )


def _machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, Linux, Python {platform.python_version()}"


def write(path: Path, text: str) -> None:
    """Put `text` between the marks of the page."""
    before, _, rest = path.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
