"""Endpoints as a table, for people: a line each, what is known of it, why it stands there."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from translators.ir import Json

ENDLESS = 1000
"""Columns where the output is no terminal: an endpoint is one line there, for `grep`."""


def print_table(rows: Sequence[Json]) -> None:
    """`rows` are entries of `GET /models`, or choices of `resolve`."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    for head, right in (("#", True), ("MODEL", False), ("CLASS", False), ("SCORE", True), ("CONTEXT", True)):
        table.add_column(head, justify="right" if right else "left", no_wrap=head != "MODEL", overflow="fold")
    table.add_column("CAN", no_wrap=True)
    table.add_column("WHY", overflow="fold")
    for place, row in enumerate(rows, 1):
        table.add_row(str(place), *_cells(row))
    width = None if sys.stdout.isatty() else ENDLESS
    Console(width=width, markup=False, emoji=False, highlight=False).print(table)


def _cells(row: Json) -> Iterator[str]:
    yield row["id"]
    yield row.get("class") or "-"
    total = (row.get("breakdown") or {}).get("total")
    yield "-" if total is None else f"{total:.2f}"
    yield _thousands(row.get("context_window"))
    yield " ".join(name for name in ("tools", "vision", "reasoning") if row.get(name)) or "-"
    yield "; ".join(_why(row))


def _why(row: Json) -> Iterator[str]:
    if row.get("fallback"):
        yield "a fallback"
    if row.get("weight") is not None:
        yield f"weight {row['weight']:g} in its group"
    reasons = row.get("reasons") or ["its model is in no list"]
    # The first says how it was found, which is news for a search only.
    yield from reasons[1:] if "score" in row and row["score"] is None else reasons


def _thousands(tokens: int | None) -> str:
    """Tokens, shortened."""
    if tokens is None:
        return "-"
    return f"{tokens / 1e6:.3g}M" if tokens >= 1e6 else f"{tokens / 1e3:.3g}k"
