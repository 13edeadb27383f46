"""What a request costs: configured, listed, or not known."""

from __future__ import annotations

from typing import Any

import pytest

from app.telemetry.prices import Prices, listed_rate
from config.schema import Config, Price
from tests.app.conftest import Serve, Served, provider
from tests.backends import replies
from tests.backends.replies import chat_completion, json_reply, model_list
from tests.backends.scripted import ScriptedBackend
from translators.ir import Usage

MILLION = Usage(1_000_000, 1_000_000)


def cost(table: dict[str, Any], target: str, usage: Usage = MILLION, facts: Any = None) -> float | None:
    prices = {name: Price.model_validate(each) for name, each in table.items()}
    return Prices(prices, lambda _: facts).cost(target, usage)


ONE = {"input": 1.0, "output": 0.0}
TWO = {"input": 2.0, "output": 0.0}


@pytest.mark.parametrize(
    ("table", "target", "expected"),
    [
        ({}, "p/m", None),
        ({"other": ONE}, "p/m", None),
        ({"m": ONE}, "p/m", 1.0),
        ({"p/m": ONE}, "p/m", 1.0),
        ({"p/m": ONE}, "q/m", None),
        ({"m": ONE, "p/m": TWO}, "p/m", 2.0),
        ({"gpt-5": ONE}, "p/gpt-5-2025-08-07", 1.0),
        ({"claude-sonnet-4": ONE}, "p/claude-sonnet-4-20250514", 1.0),
        ({"claude-sonnet-4": ONE}, "p/claude-sonnet-4@20250514", 1.0),
        ({"gpt-4": ONE}, "p/gpt-4-0613", 1.0),
        ({"command-r": ONE}, "p/command-r-08-2024", 1.0),
        ({"gpt-5": ONE, "gpt-5-2025-08-07": TWO}, "p/gpt-5-2025-08-07", 2.0),
        ({"gpt-5": ONE}, "p/gpt-5-mini", None),
        ({"gpt-5": ONE}, "p/gpt-5-2", None),
        ({"GPT-5": ONE}, "p/gpt-5", 1.0),
        ({"p/*": ONE}, "p/anything/at-all", 1.0),
        ({"*": ONE, "p/gpt-*": TWO}, "p/gpt-9", 2.0),
        ({"*": ONE, "m": TWO}, "p/m", 2.0),
        ({"m": {"input": 0.0, "output": 0.0}}, "p/m", 0.0),
        ({"m": {"input": 1.0}}, "p/m", None),
    ],
)
def test_which_price(table: dict[str, Any], target: str, expected: float | None) -> None:
    assert cost(table, target) == expected


@pytest.mark.parametrize(
    ("price", "usage", "expected"),
    [
        ({"input": 3.0, "output": 15.0}, Usage(1000, 100), 0.0045),
        ({"input": 3.0, "output": 15.0}, Usage(1000, 100, 400), 0.0045),
        ({"input": 3.0, "output": 15.0, "cached_input": 0.3}, Usage(1000, 100, 400), 0.00342),
        ({"input": 3.0, "output": 15.0, "cache_write": 3.75}, Usage(1000, 0, 0, 400), 0.0033),
        ({"input": 3.0, "output": 15.0}, Usage(1000, 100, 0, 0, 90), 0.0045),
        ({"input": 3.0, "output": 15.0, "cached_input": 0.3}, Usage(10, 0, 400), 0.00012),
        ({"input": 3.0}, Usage(1000, 0), 0.003),
        ({"input": 3.0, "output": 15.0}, Usage(), 0.0),
    ],
)
def test_how_much(price: dict[str, float], usage: Usage, expected: float) -> None:
    assert cost({"m": price}, "p/m", usage) == pytest.approx(expected)


def test_without_usage_nobody_knows() -> None:
    prices = Prices({"m": Price(input=1, output=1)}, lambda _: None)
    assert (prices.cost("p/m", None), prices.cost("", MILLION)) == (None, None)


OPENROUTER = {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"}


@pytest.mark.parametrize(
    ("pricing", "expected"),
    [
        (OPENROUTER, 18.0),
        ({"prompt": "0", "completion": "0"}, 0.0),
        ({"prompt": "-1", "completion": "-1"}, None),
        ({"prompt": "0.000003"}, None),
        ({**OPENROUTER, "request": "0.01"}, None),
        ({**OPENROUTER, "request": "0"}, 18.0),
        ({"input": 0.88, "output": 0.88, "hourly": 0}, 1.76),
        ({"input": "odd"}, None),
        ({"input": True}, None),
        ({"input": "inf"}, None),
        ("free", None),
        (None, None),
    ],
)
def test_what_a_listing_tells(pricing: Any, expected: float | None) -> None:
    found = cost({}, "p/m", MILLION, {"pricing": pricing})
    assert found == (None if expected is None else pytest.approx(expected))


def test_a_listed_price_of_cached_tokens() -> None:
    rate = listed_rate({"pricing": OPENROUTER})
    assert rate is not None
    assert rate.cost(Usage(1000, 0, 1000)) == pytest.approx(0.0003)


def test_the_configuration_wins_over_a_listing() -> None:
    assert cost({"m": ONE}, "p/m", MILLION, {"pricing": OPENROUTER}) == 1.0


def test_a_new_listing_changes_the_price() -> None:
    facts: dict[str, Any] = {"pricing": {"input": 1, "output": 1}}
    told = [facts]
    prices = Prices({}, lambda _: told[0])
    assert prices.cost("p/m", MILLION) == 2.0
    told[0] = {"pricing": {"input": 2, "output": 2}}
    assert prices.cost("p/m", MILLION) == 4.0


def test_names_are_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.telemetry.prices.MAX_KEPT", 3)
    prices = Prices({"m*": Price(input=1, output=0)}, lambda _: None)
    assert {prices.cost(f"p/m{number}", MILLION) for number in range(10)} == {1.0}


@pytest.mark.parametrize("price", [{"input": -1}, {"output": 1}, {"input": 1, "outptu": 2}, 3])
def test_a_faulty_price_is_refused(price: Any) -> None:
    with pytest.raises(ValueError):
        Config.model_validate({"prices": {"m": price}})


CHAT: dict[str, Any] = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}


def asked(served: Served) -> tuple[dict[str, Any], list[str]]:
    """The line of one request, and the costs that are counted."""
    with served.client() as client:
        client.post("/v1/chat/completions", json=CHAT)
        shown = client.get("/metrics").text
    line = next(line for line in served.log() if line["route"].startswith("POST"))
    return line, [each for each in shown.splitlines() if each.startswith("dragoman_cost_usd_total")]


def test_it_is_logged_and_counted(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply(chat_completion("hi")))
    prices = {"m": {"input": 100, "output": 1000}}
    line, counted = asked(serve(fresh=True, providers=[provider(scripted)], prices=prices))
    assert line["cost_usd"] == pytest.approx(0.0081)
    assert counted == ['dragoman_cost_usd_total{model="p/m"} 0.0081']


def test_an_unknown_price_is_no_zero(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply(chat_completion("hi")))
    line, counted = asked(serve(fresh=True, providers=[provider(scripted)]))
    assert (line["cost_usd"], counted) == (None, [])


def test_a_backends_listing_is_asked(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = model_list(("m",))
    listing["data"][0]["pricing"] = {"prompt": "0.001", "completion": "0.01"}
    monkeypatch.setattr(replies, "model_list", lambda _: listing)
    scripted.play(json_reply(chat_completion("hi")))
    served = serve(fresh=True, providers=[provider(scripted, models=None)])
    with served.client() as client:
        client.get("/v1/models?refresh=1")
    line, _ = asked(served)
    assert line["cost_usd"] == pytest.approx(0.081)
