"""Measure Dragoman beside the backend itself, nginx, a bare relay and other gateways, in one run.

    python -m bench [--seconds 2] [--rounds 3] [--write docs/performance.md]
    python -m bench --quick       only what the targets need

Prints the tables and fails when a target is missed. Figures of two runs are not comparable, ratios within
one are.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from . import page, report
from .measure import Figures, Running, idle_kib, measure, once
from .processes import NotHeld
from .report import Line
from .servers import CONTENDERS, Contender, Direct, Missing, backend, dragoman
from .store import storing
from .work import LONG, PASSED_CHUNK, PASSED_REQUEST, QUICK, TRANSLATED_DELTA, WORK, Lane

Found = dict[str, dict[int, dict[str, Figures]]]
_LANES: tuple[Lane, ...] = ("passed", "translated")
STARTS = 3
DIRECT = Contender("direct", lambda _, __: backend(), lambda: "", "/v1/chat/completions")


def main() -> int:
    given = _arguments()
    with tempfile.TemporaryDirectory() as folder, backend() as behind, ExitStack() as stack:
        place = Path(folder)
        starts = [_start_ms(place, behind.url) for _ in range(STARTS)]
        running, missing = _start(stack, place, behind.url, given.quick)
        base = {who.name: server.memory_mb() for who, server in running.items()}
        running = {DIRECT: Direct(behind), **running}
        found = _loads(running, given)
        kept = storing(running[CONTENDERS["dragoman"]], given.rounds, given.seconds)
        after = {who.name: server.memory_mb() for who, server in running.items() if who is not DIRECT}
        idle = _idle(list(running), place, behind.url, given.streams)
        scale = _scaling(place, behind.url, given)
    lines = _lines(found, sorted(starts)[STARTS // 2], base, idle, scale) + kept.lines()
    memory = report.memory(base, after, idle, running)
    text = page.body(lines, found, memory, running, missing)
    print(text)
    if given.write:
        page.write(Path(given.write), text)
    return 0 if all(line.met for line in lines) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=2, help="of load per measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each, in turn; medians count")
    parser.add_argument("--streams", type=int, default=1000, help="that are open and silent")
    parser.add_argument("--quick", action="store_true", help="only Dragoman and the bare relay")
    parser.add_argument("--write", metavar="FILE", help="a page whose figures are to be these")
    return parser.parse_args()


def _start(stack: ExitStack, place: Path, behind: str, quick: bool) -> tuple[Running, dict[str, str]]:
    running, missing = {}, {}
    for name, who in CONTENDERS.items():
        if quick and not who.quick:
            continue
        folder = place / name
        folder.mkdir()
        try:
            running[who] = stack.enter_context(who.start(folder, behind))
        except (Missing, RuntimeError) as reason:
            missing[name] = str(reason)
    return running, missing


def _start_ms(place: Path, behind: str) -> float:
    with dragoman(place, behind) as server:
        return server.start_seconds * 1000


def _loads(running: Running, given: argparse.Namespace) -> Found:
    found: Found = {}
    for work in QUICK if given.quick else WORK:
        by_connections = found.setdefault(work.name, {})
        for connections in work.connections:
            by_connections[connections] = measure(running, work, connections, given.rounds, given.seconds)
            print(f"{work.name}, {connections} connections: done", file=sys.stderr, flush=True)
    return found


def _idle(
    contenders: Sequence[Contender], place: Path, behind: str, streams: int
) -> dict[tuple[str, Lane], float]:
    """Of servers that have just started: one that was loaded has memory to spare."""
    found: dict[tuple[str, Lane], float] = {}
    for who in contenders:
        for lane in _LANES:
            if who is not DIRECT and who.path(lane) is not None:
                with who.start(place / who.name, behind) as server, suppress(NotHeld):
                    found[who.name, lane] = idle_kib(who, server, lane, streams)
    return found


def _scaling(place: Path, behind: str, given: argparse.Namespace) -> float:
    """Replies a second of two workers over those of one, where the gateway is what is busy."""
    who, rates = CONTENDERS["dragoman"], {}
    for workers in (1, 2):
        with dragoman(place, behind, workers) as server:
            once(who, server, LONG, 16, 0.5)
            rates[workers] = max(once(who, server, LONG, 16, given.seconds).rate for _ in range(given.rounds))
    return rates[2] / rates[1]


def _lines(
    found: Found, start: float, base: dict[str, float], idle: dict[tuple[str, Lane], float], scale: float
) -> list[Line]:
    request, chunk = found[PASSED_REQUEST.name][16], found[PASSED_CHUNK.name][16]
    alone = found[PASSED_CHUNK.name][1]
    delta = found[TRANSLATED_DELTA.name][16]["dragoman"]
    return [
        Line("passed request, CPU", "us", request["dragoman"].cpu, request["relay"].cpu, most_ratio=1.4),
        Line("passed stream chunk, CPU", "us", chunk["dragoman"].cpu, chunk["relay"].cpu, most_ratio=1.15),
        Line("translated delta, CPU", "us", delta.cpu, most=15),
        Line("TTFT over the backend's own", "ms", alone["dragoman"].ttft - alone["direct"].ttft, most=1),
        Line("start", "ms", start, most=1000),
        Line("idle memory", "MB", base["dragoman"], base["relay"], most=80),
        Line("silent passed stream", "KiB", idle["dragoman", "passed"], idle["relay", "passed"], most=40),
        Line("silent translated stream", "KiB", idle["dragoman", "translated"], most=40),
        Line("two workers over one", "x", scale, least=1.8),
    ]


if __name__ == "__main__":
    sys.exit(main())
