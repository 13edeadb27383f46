"""Two thousand exchanges, good, broken and left: what they leave behind is nothing."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator

import psutil
import pytest

from app import answer
from tests.app.conftest import Serve, Served
from tests.backends.chaos import ChaosBackend
from tests.soak.mix import LIMITS, Mix, providers
from translators import framing

WARM, MANY, AT_ONCE = 300, 1700, 12
OURS = ("app", "translators", "providers", "aiohttp", "uvicorn", "starlette")
"""Packages of which no object may be left of an exchange that is over."""
SPARE = 2 * AT_ONCE
"""Connections of the pool that may be open: as many as were used at once, on two wires."""
MOST_BYTES = 1 << 20


@pytest.fixture
def chaos() -> Iterator[ChaosBackend]:
    with ChaosBackend() as backend:
        yield backend


@pytest.fixture
def served(serve: Serve, chaos: ChaosBackend, monkeypatch: pytest.MonkeyPatch) -> Served:
    monkeypatch.setattr(answer, "MAX_BODY_BYTES", 8 << 20)
    monkeypatch.setattr(framing, "MAX_EVENT_BYTES", 8 << 20)
    return serve(fresh=True, providers=providers(chaos.origin), server=LIMITS, store={"kind": "memory"})


class Left:
    """What is there when nothing is under way."""

    def __init__(self, served: Served) -> None:
        self.tasks = tasks_of(served)
        gc.collect()
        self.objects = Counter(name_of(each) for each in gc.get_objects() if name_of(each))
        self.files = psutil.Process().num_fds()
        self.children = len(psutil.Process().children(recursive=True))
        self.threads = threading.active_count()
        self.bytes = tracemalloc.get_traced_memory()[0] - served.log_file.getbuffer().nbytes


def name_of(value: object) -> str:
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return f"{kind.__module__}.{kind.__qualname__}" if package in OURS else ""


def tasks_of(served: Served) -> list[str]:
    found: list[str] = []
    done = threading.Event()

    def look() -> None:
        found.extend(sorted(each.get_coro().__qualname__ for each in asyncio.all_tasks()))  # type: ignore[union-attr]
        done.set()

    served.call_soon(look)
    assert done.wait(5)
    return found


def settle(served: Served, chaos: ChaosBackend) -> None:
    """Wait until every exchange has ended, its client's connection too."""
    deadline = time.monotonic() + 10
    while (served.gateway.serving or len(tasks_of(served)) > 4) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.3)


def send(served: Served, count: int, seed: int) -> Mix:
    mix, numbers = Mix(served.base, seed, stored=0), itertools.count()
    asyncio.run(mix.run(lambda: next(numbers) < count, AT_ONCE))
    assert mix.surprises == []
    return mix


@pytest.mark.timeout(300)
def test_nothing_is_left(served: Served, chaos: ChaosBackend) -> None:
    send(served, WARM, 1)
    tracemalloc.start()
    try:
        send(served, WARM, 2)
        settle(served, chaos)
        before = Left(served)
        mix = send(served, MANY, 3)
        settle(served, chaos)
        after = Left(served)
    finally:
        tracemalloc.stop()
    assert {kind.partition(" ")[0] for kind in mix.counts} == {
        *("good", "broken", "silent", "leaving", "wrong", "asking", "background", "websocket")
    }
    assert not Counter(after.tasks) - Counter(
        {*before.tasks, "Background._watch"}
    )  # while it looks after runs
    assert (after.children, after.threads) == (before.children, before.threads)
    assert after.files <= before.files + SPARE
    grown = {name: count - before.objects[name] for name, count in after.objects.items()}
    assert {name: count for name, count in grown.items() if count > 3 * SPARE} == {}
    assert after.bytes - before.bytes < MOST_BYTES
    assert served.log("fault") == served.log("library") == []
