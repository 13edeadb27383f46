"""`truncation: auto` against conversations that are made to be hard to shorten."""

from __future__ import annotations

import random
from typing import Any

import pytest

from app.context import truncation
from app.plan import make_plan
from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend
from translators.truncation import oldest

Json = dict[str, Any]

TURNS = 400
MOST_PLANS = 20
"""Of which each reads the whole conversation: the worst case takes as many as its length has bits."""


def unseen(number: int) -> list[Json]:
    """A turn that is long for a client, and nothing for a chat backend."""
    thought = {"type": "summary_text", "text": "y" * 60}
    return [
        {"role": "user", "content": ""},
        {"type": "reasoning", "id": f"rs_{number}", "summary": [thought]},
        {"role": "assistant", "content": ""},
    ]


def test_turns_that_hold_nothing_for_the_backend_cost_no_round_each(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body of 200 kB held up everybody for 75 s: one turn went at a time, and all was read anew."""
    plans = []

    def counted(*args: Any) -> Any:
        plans.append(args)
        return make_plan(*args)

    monkeypatch.setattr(truncation, "make_plan", counted)
    narrow = provider(scripted, overrides={"request": {"context_window": 990}})
    last = {"role": "user", "content": "w" * 4000}
    items = [item for number in range(TURNS) for item in unseen(number)]
    with serve(providers=[narrow]).client() as client:
        reply = client.post(
            "/v1/responses", json={"model": "p/m", "input": [*items, last], "truncation": "auto"}
        )
    assert reply.json()["error"]["code"] == "context_length_exceeded"
    assert len(plans) <= MOST_PLANS


def conversation(dice: random.Random) -> list[Json]:
    """Turns with calls and results, some of them answered turns later, or twice, or never."""
    items: list[Json] = []
    for _ in range(dice.randint(1, 12)):
        items.append({"role": "user", "content": "x" * dice.randint(0, 30)})
        for _ in range(dice.randint(0, 4)):
            id, kind = f"c{dice.randint(0, 9)}", dice.choice(("function_call", "function_call_output"))
            items.append({"type": kind, "call_id": id})
    return items


@pytest.mark.parametrize("seed", range(200))
def test_no_call_loses_its_result_and_no_result_its_call(seed: int) -> None:
    dice = random.Random(seed)
    items = conversation(dice)
    gone = oldest(items, dice.choice((1.0, 40.0, 1e9)))
    lost = {items[place].get("call_id") for place in gone} - {None}
    assert not lost & {item.get("call_id") for place, item in enumerate(items) if place not in gone}
    last = max(place for place, item in enumerate(items) if "role" in item)
    assert all(place < last for place in gone)


@pytest.mark.timeout(20)
def test_turns_that_share_a_call_are_judged_in_one_pass() -> None:
    """Each was held against all others."""
    call = {"type": "function_call", "call_id": "c"}
    items = [item for _ in range(20_000) for item in ({"role": "user", "content": "x"}, call)]
    assert oldest(items, 1e9) == set()
