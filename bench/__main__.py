"""Measure, print the table, and fail when a target is missed.

python -m bench [--seconds 3] [--rounds 3] [--connections 16]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .processes import Server, free_port, load

Json = dict[str, object]
ASK: Json = {"messages": [{"role": "user", "content": "hi"}]}


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of load; `unit` says what its CPU time is divided by."""

    name: str
    path: str
    body: Json
    unit: str
    relayed: bool = True
    """Whether the bare relay can do it too."""


WORK = (
    Work("passed request", "/v1/chat/completions", ASK, "replies"),
    Work("passed stream chunk", "/v1/chat/completions", {**ASK, "stream": True}, "deltas"),
    Work("translated request", "/v1/responses", {"input": "hi"}, "replies", relayed=False),
    Work("translated delta", "/v1/responses", {"input": "hi", "stream": True}, "deltas", relayed=False),
)


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table; `target` in the unit of the value that it limits, None: for information."""

    name: str
    unit: str
    dragoman: float
    relay: float | None = None
    most: float | None = None
    most_ratio: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.dragoman / self.relay if self.relay else None

    @property
    def target(self) -> str:
        if self.most_ratio is not None:
            return f"<= {self.most_ratio:g} x"
        return "" if self.most is None else f"<= {self.most:g} {self.unit}"

    @property
    def met(self) -> bool:
        if self.most_ratio is not None:
            return self.ratio is not None and self.ratio <= self.most_ratio
        return self.most is None or self.dragoman <= self.most

    def row(self) -> str:
        relay = "" if self.relay is None else f"{self.relay:.1f}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f} x"
        verdict = ("ok" if self.met else "MISSED") if self.target else ""
        numbers = f"{relay:>9} {self.dragoman:9.1f} {ratio:>8}"
        return f"{self.name:<20} {self.unit:>3} {numbers}  {self.target:<11} {verdict}".rstrip()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3, help="of load per measurement")
    parser.add_argument(
        "--rounds", type=int, default=3, help="measurements of each, in turn; the median counts"
    )
    parser.add_argument("--connections", type=int, default=16)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, backend() as behind:
        config = write_config(Path(folder), behind.url)
        starts = [start_seconds(config) for _ in range(given.rounds)]
        with relay(behind.url) as bare, dragoman(config) as gateway:
            load(f"{gateway.url}/v1/chat/completions", {**ASK, "model": "up/fast"}, 1, 0.1)
            memory = (bare.memory_mb(), gateway.memory_mb())
            costs = measure(bare, gateway, given)
    lines = table(costs, starts, memory)
    print(f"{'':<24} {'relay':>9} {'dragoman':>9} {'ratio':>8}  target")
    print("\n".join(line.row() for line in lines))
    return 0 if all(line.met for line in lines) else 1


def measure(bare: Server, gateway: Server, given: argparse.Namespace) -> dict[tuple[str, str], float]:
    """CPU microseconds per unit, by (work, server): the median of rounds that alternate the two."""
    found: dict[tuple[str, str], float] = {}
    for work in WORK:
        servers = {"relay": bare, "dragoman": gateway} if work.relayed else {"dragoman": gateway}
        rounds: dict[str, list[float]] = {name: [] for name in servers}
        for server in servers.values():
            cost(server, work, given.connections, 0.3)  # warm
        for _ in range(given.rounds):
            for name, server in servers.items():
                rounds[name].append(cost(server, work, given.connections, given.seconds))
        found |= {(work.name, name): statistics.median(values) for name, values in rounds.items()}
    return found


def cost(server: Server, work: Work, connections: int, seconds: float) -> float:
    before = server.cpu_seconds()
    counts = load(server.url + work.path, {**work.body, "model": "up/fast"}, connections, seconds)
    return (server.cpu_seconds() - before) / counts[work.unit] * 1e6


def table(
    costs: dict[tuple[str, str], float], starts: list[float], memory: tuple[float, float]
) -> list[Line]:
    def cpu(name: str, **target: float) -> Line:
        return Line(name, "us", costs[name, "dragoman"], costs.get((name, "relay")), **target)

    return [
        cpu("passed request", most_ratio=1.6),
        cpu("passed stream chunk", most_ratio=1.3),
        cpu("translated request"),
        cpu("translated delta", most=20),
        Line("start", "ms", statistics.median(starts) * 1000, most=1500),
        Line("idle memory", "MB", memory[1], memory[0], most=90),
    ]


# --- the servers -----------------------------------------------------------------------


def start_seconds(config: Path) -> float:
    with dragoman(config) as server:
        return server.start_seconds


def backend() -> Server:
    port = free_port()
    return Server([sys.executable, "-m", "bench.backend", str(port)], port)


def relay(behind: str) -> Server:
    port = free_port()
    return Server([sys.executable, "-m", "bench.relay", str(port), behind], port)


def dragoman(config: Path) -> Server:
    port = free_port()
    command = str(Path(sys.executable).with_name("dragoman"))
    return Server([command, "serve", "--config", str(config), "--port", str(port)], port)


def write_config(folder: Path, behind: str) -> Path:
    """One provider of the base profile: its streams are watched, as those of any unknown server."""
    path = folder / "bench.toml"
    path.write_text(
        "\n".join(
            [
                "[[providers]]",
                'name = "up"',
                'kind = "openai"',
                f'base_url = "{behind}/v1"',
                'wire = "chat"',
                'models = ["fast"]',
                "",
            ]
        )
    )
    return path


if __name__ == "__main__":
    sys.exit(main())
