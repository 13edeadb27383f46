"""How lists that arrive become what names mean: beside the requests, never backwards, not without need."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from providers.catalog import RANK_S, Catalog
from providers.directory import Names
from providers.health import Health
from providers.ranking import Ranking
from tests.providers.conftest import Clock
from tests.providers.test_catalog import Fake, ids


def slow(monkeypatch: pytest.MonkeyPatch, seconds: float) -> list[int]:
    """Let a ranking take its time; how many models each had."""
    made: list[int] = []
    build = Ranking.build.__func__  # type: ignore[attr-defined]

    def building(cls: type[Ranking], cards: Any, *more: Any) -> Any:
        made.append(len(cards))
        time.sleep(seconds)
        return build(cls, cards, *more)

    monkeypatch.setattr(Ranking, "build", classmethod(building))
    return made


async def test_a_long_list_keeps_no_request_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake("a")
    found = Catalog([fake], Names(), {})
    slow(monkeypatch, 0.5)
    fake.listed = ["m"]
    refreshing = asyncio.create_task(found.refresh())
    longest = 0.0
    while not refreshing.done():
        since = time.perf_counter()
        await asyncio.sleep(0.005)
        longest = max(longest, time.perf_counter() - since)
    assert longest < 0.25
    assert ids(found, "m") == ["a/m"]


async def test_lists_that_come_together_are_made_into_one(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes = [Fake(f"p{at}") for at in range(6)]
    found = Catalog(fakes, Names(), {})
    made = slow(monkeypatch, 0.05)
    for fake in fakes:
        fake.listed = [f"of-{fake.name}"]
    await found.refresh()
    assert len(made) <= 3
    assert made[-1] == 6
    for fake in fakes:
        assert ids(found, f"of-{fake.name}") == [f"{fake.name}/of-{fake.name}"]


async def test_a_list_that_is_the_same_makes_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake("a")
    found = Catalog([fake], Names(), {})
    fake.listed = ["m", "n"]
    await found.refresh()
    entries = found.entries()
    made = slow(monkeypatch, 0)
    await found.refresh()
    assert (made, found.stale) == ([], [])
    assert found.entries() is entries
    fake.listed = ["n", "m"]
    await found.refresh()
    assert made == [2]


async def test_measurements_do_not_bring_an_old_list_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, health, fake = Clock(), Health(), Fake("a")
    found = Catalog([fake], Names(), {}, clock=clock, health=health)
    fake.listed = ["claude-opus-4-1", "claude-opus-4-8"]
    await found.refresh()
    assert found.find("opus").choices[0].target.id == "a/claude-opus-4-8"
    with_live = Ranking.with_live

    def measuring(ranking: Ranking, live: Any) -> Ranking:
        time.sleep(0.1)
        return with_live(ranking, live)

    monkeypatch.setattr(Ranking, "with_live", measuring)
    for _ in range(50):
        health.failed("a/claude-opus-4-8")
    clock.now += RANK_S
    found.entries()  # begins to look at what was measured
    await asyncio.sleep(0.02)
    fake.listed = ["claude-opus-4-1", "claude-opus-4-8", "claude-opus-4-9"]
    await found.refresh()
    assert ids(found, "claude-opus-4-9") == ["a/claude-opus-4-9"]
    await asyncio.sleep(0.2)
    assert ids(found, "claude-opus-4-9") == ["a/claude-opus-4-9"]
    assert [each.card.model for each in found.ranking().all] == [
        "claude-opus-4-9",
        "claude-opus-4-1",
        "claude-opus-4-8",  # what was measured counts in the new list too
    ]


async def test_what_was_measured_is_known_where_the_order_stays() -> None:
    clock, health = Clock(), Health()
    found = Catalog([Fake("a")], Names(), {"a": ["claude-opus-4-8"]}, clock=clock, health=health)
    before, entries = found.find("opus"), found.entries()
    health.succeeded("a/claude-opus-4-8", 3.0, 10, 1.0)
    clock.now += RANK_S
    found.entries()
    await asyncio.sleep(0.1)
    standing = found.ranking().of("a/claude-opus-4-8")
    assert standing is not None
    assert standing.live is not None
    assert found.entries() is entries
    assert found.find("opus") is before


async def test_a_start_waits_as_long_as_it_is_told() -> None:
    stuck, fine = Fake("stuck"), Fake("fine")
    stuck.go.clear()
    fine.listed = ["m"]
    found = Catalog([stuck, fine], Names(), {})
    began = time.monotonic()
    await found.start(0.2)
    assert 0.15 < time.monotonic() - began < 2
    assert ids(found, "m") == ["fine/m"]
    assert found.loading == ["stuck"]
    await found.aclose()
