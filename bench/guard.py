"""Whether a change made requests dearer: ratios to the bare relay in turns, by the cheapest round of each.

    python -m bench.guard [--seconds 1] [--rounds 5]

The bounds are a fifth above what is seen on busy machines, a quarter above what is on quiet ones: a shared
machine may not fail a build, a change that costs a quarter of a request shall. Fails with exit status 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .measure import once
from .processes import Server
from .report import Line, targets
from .servers import CONTENDERS, backend
from .work import PASSED_CHUNK, PASSED_REQUEST, TRANSLATED_DELTA, TRANSLATED_REQUEST, Work

BOUNDS: tuple[tuple[Work, Work, float], ...] = (
    (PASSED_REQUEST, PASSED_REQUEST, 1.55),
    (PASSED_CHUNK, PASSED_CHUNK, 1.35),
    (TRANSLATED_REQUEST, PASSED_REQUEST, 2.7),
    (TRANSLATED_DELTA, PASSED_CHUNK, 2.3),
)
"""What Dragoman does, what the relay does meanwhile, and the most that the first may cost of the second."""
CONNECTIONS = 16


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    relay, gateway = CONTENDERS["relay"], CONTENDERS["dragoman"]
    with tempfile.TemporaryDirectory() as folder, backend() as behind:
        place = Path(folder)
        with relay.start(place, behind.url) as bare, gateway.start(place, behind.url) as ours:
            lines = [_line(ours, bare, *bound, given) for bound in BOUNDS]
    print(targets(lines))
    return 0 if all(line.met for line in lines) else 1


def _line(
    ours: Server, bare: Server, work: Work, measure: Work, most: float, given: argparse.Namespace
) -> Line:
    costs: dict[str, list[float]] = {"dragoman": [], "relay": []}
    for name, server, load in (("dragoman", ours, work), ("relay", bare, measure)):
        once(CONTENDERS[name], server, load, CONNECTIONS, 0.3)  # warm
    for _ in range(given.rounds):
        for name, server, load in (("dragoman", ours, work), ("relay", bare, measure)):
            costs[name].append(once(CONTENDERS[name], server, load, CONNECTIONS, given.seconds).cpu)
    return Line(work.name, "us", min(costs["dragoman"]), min(costs["relay"]), most_ratio=most)


if __name__ == "__main__":
    sys.exit(main())
