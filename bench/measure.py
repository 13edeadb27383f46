"""Figures of one run. Servers take turns at every kind of load: what the machine does besides hits all."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from .processes import Held, Server, load
from .servers import Contender
from .work import IDLE, Lane, Work

Running = Mapping[Contender, Server]


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians over the rounds: CPU in us per unit, replies a second, milliseconds."""

    cpu: float
    rate: float
    p50: float
    p99: float
    ttft: float


def measure(
    running: Running, work: Work, connections: int, rounds: int, seconds: float
) -> dict[str, Figures]:
    """By server, of those that can do it."""
    able = {who: server for who, server in running.items() if who.path(work.lane) is not None}
    found: dict[str, list[Figures]] = {who.name: [] for who in able}
    for who, server in able.items():
        once(who, server, work, connections, 0.3)  # warm
    for _ in range(rounds):
        for who, server in able.items():
            found[who.name].append(once(who, server, work, connections, seconds))
    return {name: _median(each) for name, each in found.items()}


def once(who: Contender, server: Server, work: Work, connections: int, seconds: float) -> Figures:
    path, before = who.path(work.lane), server.cpu_seconds()
    body = {**work.body, "model": f"{who.prefix}fast"}
    counts = load(f"{server.url}{path}", body, connections, seconds)
    cpu = (server.cpu_seconds() - before) / counts[work.unit] * 1e6
    return Figures(cpu, counts["replies"] / seconds, counts["p50"], counts["p99"], counts["ttft"])


def _median(rounds: list[Figures]) -> Figures:
    def middle(name: str) -> float:
        values: list[float] = [getattr(each, name) for each in rounds]
        return statistics.median(values)

    return Figures(middle("cpu"), middle("rate"), middle("p50"), middle("p99"), middle("ttft"))


def idle_kib(who: Contender, server: Server, lane: Lane, streams: int) -> float:
    """Memory of one stream that has begun and is silent, in KiB: the mean over `streams`."""
    path = who.path(lane)
    url, body = f"{server.url}{path}", {**IDLE[lane], "model": f"{who.prefix}idle"}
    with Held(url, body, min(50, streams)):  # what is made once is not counted
        before = server.memory_mb()
        with Held(url, body, streams):
            return (server.memory_mb() - before) * 1e6 / 1024 / streams
