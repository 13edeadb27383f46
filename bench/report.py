"""The targets, and the tables of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .measure import Figures, Running
from .work import Lane


@dataclass(frozen=True, slots=True)
class Line:
    """A target: `value` against `against`, in `unit`, or a bound of its own."""

    name: str
    unit: str
    value: float
    against: float | None = None
    most: float | None = None
    most_ratio: float | None = None
    least: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.against if self.against else None

    @property
    def target(self) -> str:
        if self.most_ratio is not None:
            return f"<= {self.most_ratio:g} x"
        if self.least is not None:
            return f">= {self.least:g} {self.unit}"
        return "" if self.most is None else f"<= {self.most:g} {self.unit}"

    @property
    def met(self) -> bool:
        if self.most_ratio is not None:
            return self.ratio is not None and self.ratio <= self.most_ratio
        if self.least is not None:
            return self.value >= self.least
        return self.most is None or self.value <= self.most

    def cells(self) -> list[str]:
        against = "" if self.against is None else f"{self.against:.1f}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f} x"
        return [
            self.name,
            self.unit,
            against,
            f"{self.value:.2f}" if self.value < 10 else f"{self.value:.1f}",
            ratio,
            self.target,
            ("met" if self.met else "MISSED") if self.target else "",
        ]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is words and the others numbers."""
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.ljust(widths[0]) if not place else cell.rjust(widths[place])
            for place, cell in enumerate(row)
        ]
        return f"| {' | '.join(cells)} |"

    rule = ["-" * widths[0], *(f"{'-' * (width - 1)}:" for width in widths[1:])]
    return "\n".join([line(head), line(rule), *map(line, rows)])


def targets(lines: Sequence[Line]) -> str:
    return markdown(
        ["target", "unit", "relay", "dragoman", "ratio", "wanted", ""], [each.cells() for each in lines]
    )


def loads(found: Mapping[str, Mapping[int, Mapping[str, Figures]]], units: Mapping[str, str]) -> str:
    """One table for each kind of load: servers down, figures across."""
    parts = []
    for name, by_connections in found.items():
        head = [f"{name}", "connections", f"CPU us/{units[name]}", "replies/s", "p50 ms", "p99 ms", "TTFT ms"]
        rows = [
            [server, str(connections), *_cells(figures)]
            for connections, servers in by_connections.items()
            for server, figures in servers.items()
        ]
        parts.append(markdown(head, rows))
    return "\n\n".join(parts)


def _cells(figures: Figures) -> list[str]:
    ttft = f"{figures.ttft:.2f}" if figures.ttft else ""
    return [
        f"{figures.cpu:.1f}",
        f"{figures.rate:.0f}",
        f"{figures.p50:.2f}",
        f"{figures.p99:.2f}",
        ttft,
    ]


def memory(
    base: Mapping[str, float],
    after: Mapping[str, float],
    idle: Mapping[tuple[str, Lane], float],
    running: Running,
) -> str:
    """Of each server: after its start, after all loads, and of one silent stream."""

    def stream(name: str, lane: Lane) -> str:
        return f"{idle[name, lane]:.0f}" if (name, lane) in idle else ""

    rows = [
        [
            name,
            f"{next(server.start_seconds for who, server in running.items() if who.name == name):.2f}",
            f"{held:.0f}",
            f"{after[name]:.0f}",
            stream(name, "passed"),
            stream(name, "translated"),
        ]
        for name, held in base.items()
    ]
    head = ["server", "start s", "idle MB", "MB after load", "KiB/passed stream", "KiB/translated stream"]
    return markdown(head, rows)
