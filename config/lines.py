"""Where a key stands in a TOML file: tomllib tells values, not lines.

A reader of table headers and of keys at the start of a line, no more; a key inside an
inline table or a multi-line array is placed at the line where that value begins.
"""

from __future__ import annotations

import re

from .problems import Place

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_PATH = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"^\s*(\[\[?)\s*({_PATH})\s*\]")
_ASSIGNMENT = re.compile(rf"^\s*({_PATH})\s*=")


def find_line(text: str, place: Place) -> int | None:
    """The line (from 1) of the deepest known part of `place`; None for the file as a whole."""
    index = _index(text)
    for depth in range(len(place), 0, -1):
        if place[:depth] in index:
            return index[place[:depth]]
    return None


def _index(text: str) -> dict[Place, int]:
    index: dict[Place, int] = {}
    counts: dict[Place, int] = {}
    table: Place = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _open_table(_split(header[2]), header[1] == "[[", counts)
            index.setdefault(table, number)
            index.setdefault(table[:-1] if header[1] == "[[" else table, number)
        elif assignment := _ASSIGNMENT.match(line):
            index.setdefault((*table, *_split(assignment[1])), number)
    return index


def _open_table(path: Place, repeated: bool, counts: dict[Place, int]) -> Place:
    """The full place of a table: arrays of tables on the way stand for their last member."""
    full: Place = ()
    for depth, step in enumerate(path, 1):
        full = (*full, step)
        if repeated and depth == len(path):
            counts[full] = counts.get(full, -1) + 1
        if full in counts:
            full = (*full, counts[full])
    return full


def _split(path: str) -> Place:
    return tuple(step.strip("\"'") for step in re.findall(_KEY, path))
