"""A listing that fails in a way nobody thought of: it is told, and what was known stays."""

from __future__ import annotations

import asyncio

import pytest

from providers.catalog import Catalog
from providers.directory import Names
from tests.providers.conftest import Clock
from tests.providers.test_catalog import Fake, ids


@pytest.mark.parametrize("error", [KeyError("x"), RecursionError("deep"), ValueError("odd")])
async def test_any_error_leaves_the_last_good_list(error: Exception) -> None:
    fake, other = Fake("a"), Fake("b")
    found = Catalog([fake, other], Names(), {}, clock=Clock())
    fake.listed, other.listed = ["m"], ["n"]
    await found.refresh()
    fake.listed, other.listed = error, ["o"]
    await found.refresh()
    assert (ids(found, "m"), ids(found, "o")) == (["a/m"], ["b/o"])
    assert found.stale == ["a"]
    assert type(error).__name__ in found.faults["a"]


async def test_a_list_that_cannot_be_ranked_hurts_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    fake, other = Fake("a"), Fake("b")
    found = Catalog([fake, other], Names(), {}, clock=Clock())
    fake.listed = ["m"]
    await found.refresh()

    made = Catalog._made

    def broken(self: Catalog, *given: object) -> object:
        if any(info.id == "bad" for _, info in self._listed()):
            raise TypeError("unhashable")
        return made(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Catalog, "_made", broken)
    fake.listed = ["bad"]
    await found.refresh()
    other.listed = ["n"]
    fake.go.clear()
    refreshing = asyncio.create_task(found.refresh())
    await asyncio.sleep(0.05)
    assert (ids(found, "m"), ids(found, "n")) == (["a/m"], ["b/n"])
    fake.go.set()
    await refreshing


async def test_a_list_is_not_stale_while_it_is_asked_for_again() -> None:
    fake = Fake("a")
    found = Catalog([fake], Names(), {}, clock=Clock())
    fake.listed = ["m"]
    await found.refresh()
    fake.go.clear()
    refreshing = asyncio.create_task(found.refresh())
    await asyncio.sleep(0.01)
    assert found.stale == []
    fake.go.set()
    await refreshing
