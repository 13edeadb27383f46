"""A model that a workspace lists twice: as an endpoint, and as a service that stands for it."""

from __future__ import annotations

from typing import Any

import pytest

from providers.base import ModelInfo
from providers.ranking import Ranking, make_card
from providers.ranking.cards import ModelCard


def card(name: str, quality: float | None, endpoint: Any = None, kind: str = "databricks") -> ModelCard:
    profile = {} if quality is None else {"ai_gateway_model_profile": {"quality": quality}}
    facts: dict[str, Any] = {
        "task": "llm/v1/chat",
        "config": {"served_entities": [{"foundation_model": profile}]},
    }
    if endpoint is not None:
        facts["endpoint"] = endpoint
    return make_card(ModelInfo(name, "dbx", facts), kind)


ENDPOINTS = {f"model-{quality}": float(quality) for quality in (10, 20, 30, 40, 50, 60)}
OWN = [card(name, quality) for name, quality in ENDPOINTS.items()]
TOP = [card(f"system.ai.model-{each}", float(each), f"model-{each}") for each in (50, 60)]


def classes(cards: list[ModelCard]) -> dict[str, str | None]:
    return {each.card.model: each.cls for each in Ranking.build(cards).all}


def order(cards: list[ModelCard], name: str) -> list[str]:
    return [each.card.model for each in Ranking.build(cards).resolve(name)]


def test_a_twin_moves_no_border() -> None:
    alone = classes(OWN)
    both = classes([*OWN, *TOP])
    assert {name: both[name] for name in alone} == alone
    assert {alone[f"model-{each}"] for each in (50, 60)} == {"chat-thinking"}
    copies = [card(f"copy-{each}", 60.0) for each in range(6)]
    assert classes([*OWN, *copies]) | alone != classes([*OWN, *copies]), "others do"


def test_a_twin_is_in_the_class_of_its_endpoint_and_comes_after_the_others() -> None:
    found = order([*TOP, *OWN], "chat-thinking")
    assert found[:4] == ["model-60", "model-50", "system.ai.model-60", "system.ai.model-50"]


def test_a_twin_is_where_its_endpoint_is_gone_or_not_ready() -> None:
    assert order(TOP[1:], "system.ai.model-60") == ["system.ai.model-60"]
    scored = [*OWN[:-1], TOP[1]]
    assert classes(scored)["system.ai.model-60"] == "chat-thinking"


@pytest.mark.parametrize(
    ("endpoint", "kind", "twin"),
    [
        ("model-60", "databricks", "dbx/model-60"),
        ("/v1/chat/completions", "openai", None),
        ("", "databricks", None),
        (["x"], "databricks", None),
        (None, "databricks", None),
    ],
)
def test_what_a_twin_is(endpoint: Any, kind: str, twin: str | None) -> None:
    assert card("m", None, endpoint, kind).twin_of == twin


def test_its_reasons_say_so() -> None:
    (found,) = Ranking.build([*OWN, *TOP]).resolve("system.ai.model-60")
    assert any("another way to dbx/model-60" in reason for reason in found.reasons)


@pytest.mark.parametrize(
    ("facts", "able"),
    [
        ({}, None),
        ({"supported_parameters": ["tools", "structured_outputs"]}, True),
        ({"supported_parameters": ["tools", "response_format"]}, False),
        ({"capabilities": {"structured_outputs": False}}, False),
        ({"capabilities": {"json_schema": True}, "supported_parameters": []}, True),
        ({"capabilities": ["completion"]}, None),
    ],
)
def test_whether_a_model_takes_a_schema(facts: dict[str, Any], able: bool | None) -> None:
    assert make_card(ModelInfo("m", "p", facts), "openai").json_schema is able
