"""Which models are in memory, and who is next: with processes that are none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from providers.onnx.events import Feed, Listener, Status
from providers.onnx.pool import Bounds, Pool
from translators.errors import ProxyError


class Process:
    def __init__(self, name: str) -> None:
        self.name, self.alive = name, True
        self._tells: list[Callable[[], None]] = []

    def on_end(self, tell: Callable[[], None]) -> None:
        self._tells.append(tell)

    def die(self) -> None:
        self.alive = False
        for tell in self._tells:
            tell()

    async def stop(self) -> None:
        await asyncio.sleep(0)
        self.die()


class Models:
    """Starts processes; a load waits for `gate` while there is one."""

    def __init__(self, **bounds: Any) -> None:
        self.started: list[Process] = []
        self.gate: asyncio.Event | None = None
        self.fault: Exception | None = None
        self.feed = Feed()
        self.told: list[tuple[str, str]] = []
        self.feed.attach(lambda event: self.told.append((event["model"], event["state"])))
        self.pool = Pool(self._start, Bounds(**bounds), self.feed)  # type: ignore[arg-type]

    async def _start(self, name: str, tell: Any) -> Process:
        tell("loading", 0.5)
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        tell("compiling", 1.0)
        self.started.append(Process(name))
        return self.started[-1]

    @property
    def alive(self) -> list[str]:
        return [each.name for each in self.started if each.alive]

    async def ask(self, name: str, until: asyncio.Event | None = None) -> Process:
        async with self.pool.lease(name) as process:
            if until is not None:
                await until.wait()
            return process  # type: ignore[return-value]


async def turn() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_it_is_loaded_once_and_kept() -> None:
    models = Models()
    assert models.pool.status("a") == Status()
    found = await asyncio.gather(*(models.ask("a") for _ in range(5)))
    assert len(set(map(id, found))) == len(models.started) == 1
    assert models.told[:5] == [
        ("a", "loading"),
        ("a", "loading"),
        ("a", "compiling"),
        ("a", "ready"),
        ("a", "generating"),
    ]
    assert models.pool.status("a") == Status("ready")
    await models.pool.aclose()
    assert models.alive == []
    assert models.told[-1] == ("a", "unloaded")


async def test_they_wait_in_the_order_they_came() -> None:
    models, order = Models(max_queue=9), list[int]()

    async def one(number: int) -> None:
        async with models.pool.lease("a"):
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*map(one, range(10)))
    assert order == list(range(10))


async def test_a_queue_has_an_end() -> None:
    models, end = Models(max_queue=2), asyncio.Event()
    asked = [asyncio.create_task(models.ask("a", end)) for _ in range(3)]
    await turn()
    assert models.pool.status("a").waiting == 2
    with pytest.raises(ProxyError) as refused:
        await models.ask("a")
    assert (refused.value.kind, refused.value.http_status) == ("overloaded", 503)
    assert (refused.value.retry_after or 0) >= 1
    end.set()
    await asyncio.gather(*asked)
    assert await models.ask("a")


async def test_who_leaves_the_queue_is_passed_over() -> None:
    models, end = Models(), asyncio.Event()
    first, second, third = (asyncio.create_task(models.ask("a", end)) for _ in range(3))
    await turn()
    second.cancel()
    await turn()
    assert models.pool.status("a").waiting == 1
    end.set()
    assert await first is await third


async def test_who_leaves_when_his_turn_comes_passes_it_on() -> None:
    models, end = Models(), asyncio.Event()
    first, second, third = (asyncio.create_task(models.ask("a", end)) for _ in range(3))
    await turn()
    first.cancel()
    await asyncio.sleep(0)  # the second's turn is set, it does not run yet
    second.cancel()
    end.set()
    assert await asyncio.wait_for(third, 1)
    assert second.cancelled()


async def test_a_load_goes_on_when_its_client_leaves() -> None:
    models = Models(idle_unload_s=0.05)
    models.gate = asyncio.Event()
    asked = asyncio.create_task(models.ask("a"))
    await turn()
    asked.cancel()
    await turn()
    assert models.pool.status("a") == Status("loading", 0.5)
    models.gate.set()
    await turn()
    assert models.alive == ["a"]
    await asyncio.sleep(0.1)  # nobody came
    assert models.alive == []
    assert models.pool.status("a").reason == "not used for 0.05 s"


async def test_a_load_that_fails_is_told_and_tried_again() -> None:
    models = Models()
    models.fault = ProxyError("unavailable", "no memory")
    with pytest.raises(ProxyError, match="no memory"):
        await models.ask("a")
    assert models.pool.status("a") == Status("unloaded", reason="no memory")
    models.fault = None
    assert await models.ask("a")


async def test_a_load_that_fails_when_all_have_left_disturbs_nobody() -> None:
    models = Models()
    models.gate, models.fault = asyncio.Event(), ProxyError("unavailable", "no memory")
    asked = asyncio.create_task(models.ask("a"))
    await turn()
    asked.cancel()
    await turn()
    models.gate.set()
    await turn()
    assert models.pool.status("a").reason == "no memory"


async def test_the_one_used_longest_ago_makes_way() -> None:
    models = Models(max_loaded=2)
    for name in ("a", "b", "a", "c"):
        await models.ask(name)
        await asyncio.sleep(0.001)
    assert models.alive == ["a", "c"]
    assert models.pool.status("b") == Status("unloaded", reason="c needs its place")


async def test_who_waits_for_room_comes_before_those_who_wait_for_the_model_there() -> None:
    models, ends = Models(max_loaded=1), [asyncio.Event() for _ in range(3)]
    order: list[str] = []

    async def one(name: str, end: asyncio.Event) -> None:
        await models.ask(name, end)
        order.append(name)

    asked = [asyncio.create_task(one("a", ends[0])), asyncio.create_task(one("b", ends[1]))]
    await turn()
    asked.append(asyncio.create_task(one("a", ends[2])))
    await turn()
    assert models.alive == ["a"]
    for end in ends:
        end.set()
    await asyncio.wait_for(asyncio.gather(*asked), 2)
    assert order == ["a", "b", "a"]
    assert [each.name for each in models.started] == ["a", "b", "a"]


async def test_what_died_is_replaced() -> None:
    models = Models()
    first = await models.ask("a")
    first.die()
    assert models.pool.status("a") == Status("unloaded", reason="its process ended")
    second = await models.ask("a")
    assert second is not first
    first.die()  # told twice, it changes nothing
    assert models.pool.status("a") == Status("ready")


async def test_what_is_idle_is_unloaded_unless_it_never_is() -> None:
    models, kept = Models(idle_unload_s=0.03), Models(idle_unload_s=0)
    for each in (models, kept):
        await each.ask("a")
    await asyncio.sleep(0.02)
    await models.ask("a")
    await asyncio.sleep(0.02)
    assert models.alive == ["a"]  # used in the meantime
    await asyncio.sleep(0.05)
    assert (models.alive, kept.alive) == ([], ["a"])


async def test_the_end_ends_loads_too() -> None:
    models = Models()
    models.gate = asyncio.Event()
    asked = asyncio.create_task(models.ask("a"))
    await turn()
    await models.pool.aclose()
    with pytest.raises(asyncio.CancelledError):
        await asked
    with pytest.raises(ProxyError, match="shutting down"):
        await models.ask("b")
    assert models.started == []


async def test_a_listener_that_is_slow_misses_the_oldest() -> None:
    feed, listener = Feed(), Listener()
    feed.tell("a", Status())  # nobody listens
    assert await listener.next(0.01) is None
    listener.follow("local", feed)
    for number in range(300):
        feed.tell("a", Status("loading", number / 300))
    first = await listener.next(1)
    assert first == {"model": "local/a", "state": "loading", "progress": 44 / 300}
    listener.close()
    feed.tell("b", Status("ready"))
    left = [await listener.next(0) for _ in range(300)]
    assert "local/b" not in str(left)
