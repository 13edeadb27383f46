"""Soak a gateway process, and fail when it leaks.

    python -m tests.soak --minutes 30 --requests 50000 [--rate 50] [--workers 2]

Ends when both are reached. Prints a line every ten seconds and a summary; exits 1 on a leak or a surprise.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.backends.chaos import ChaosBackend
from tests.backends.gateway import Gateway, config_text

from .mix import LIMITS, Mix, providers

AT_ONCE = 16
WARM_UP = 300
"""Requests, before anything is measured."""
EVERY_S = 10.0
POOL_S = 70.0
"""Until the last connection to a backend is closed that nobody uses: those are looked for every 30 s."""
WARM = 0.25
"""The part of the time in which memory may still grow."""
MOST_GROWTH = 0.06
MOST_GROWN_MB = 12.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What the process, and its workers, hold."""

    at: float
    rss_mb: float
    files: int
    connections: int
    threads: int
    children: int


def sample(process: psutil.Process, began: float) -> Sample:
    """`began`: by the monotonic clock."""
    family = [process, *process.children(recursive=True)]
    return Sample(
        time.monotonic() - began,
        sum(each.memory_info().rss for each in family) / 2**20,
        sum(each.num_fds() for each in family),
        sum(len(each.net_connections("tcp")) for each in family),
        sum(each.num_threads() for each in family),
        len(family) - 1,
    )


def judged(samples: Sequence[Sample], before: Sample, after: Sample) -> list[str]:
    """What leaked."""
    found = []
    warm = [each.rss_mb for each in samples if each.at >= samples[-1].at * WARM]
    third = max(1, len(warm) // 3)
    early, late = statistics.median(warm[:third]), statistics.median(warm[-third:])
    if late - early > MOST_GROWN_MB + MOST_GROWTH * early:
        found.append(f"memory: {early:.0f} MB early, {late:.0f} MB late")
    for name in ("files", "connections", "children"):
        was, now = getattr(before, name), getattr(after, name)
        if now > was:
            found.append(f"{name}: {was} before, {now} after")
    if after.threads > max(each.threads for each in samples[: max(1, len(samples) // 2)]):
        found.append(f"threads: {after.threads} after")
    return found


async def soak(mix: Mix, process: psutil.Process, minutes: float, requests: int, rate: float) -> list[Sample]:
    began, sent = time.monotonic(), 0
    end = began + minutes * 60
    samples: list[Sample] = []

    def more() -> bool:
        nonlocal sent
        sent += 1
        return time.monotonic() < end or sent <= requests

    async def watch() -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            samples.append(sample(process, began))
            print(f"{sent:>7} {samples[-1]}", flush=True)

    watching = asyncio.create_task(watch())
    await mix.run(more, AT_ONCE, AT_ONCE / rate if rate else 0.0)
    watching.cancel()
    return [*samples, sample(process, began)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--rate", type=float, default=0, help="requests a second at most; 0: as many as go")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dragoman-soak-") as folder, ChaosBackend() as chaos:
        config = config_text(providers(chaos.origin), server=LIMITS)
        env = {"DRAGOMAN_LOG_LEVEL": "info"}
        arguments = ["--workers", str(given.workers)]
        with Gateway(Path(folder), config, env=env, arguments=arguments) as gateway:
            return report(gateway, given)


def report(gateway: Gateway, given: argparse.Namespace) -> int:
    process, mix = psutil.Process(gateway.process.pid), Mix(gateway.base)
    for path in ("/v1/models", "/models", "/openapi.json", "/metrics"):
        httpx.get(gateway.base + path, trust_env=False).raise_for_status()
    left = itertools.repeat(True, WARM_UP)
    asyncio.run(Mix(gateway.base, seed=2).run(lambda: next(left, False), AT_ONCE))
    time.sleep(POOL_S)
    before = sample(process, 0.0)
    samples = asyncio.run(soak(mix, process, given.minutes, given.requests, given.rate))
    time.sleep(POOL_S)
    after = sample(process, 0.0)
    leaks = judged(samples, before, after)
    faults = [line for line in gateway.log().splitlines() if '"event":"fault"' in line or "Traceback" in line]
    print(f"before {before}\nafter  {after}")
    for kind, count in sorted(mix.counts.items()):
        print(f"{count:>8} {kind}")
    print(f"{sum(mix.counts.values())} requests in {samples[-1].at:.0f} s")
    for words in (*leaks, *faults[:5], *mix.surprises[:10]):
        print(f"FAILED {words}")
    return 1 if leaks or faults or mix.surprises else 0


if __name__ == "__main__":
    sys.exit(main())
