"""Catalogues that the tests of ranking share: a workspace as Databricks lists it, and cards by hand."""

from __future__ import annotations

from typing import Any

from providers.base import ModelInfo
from providers.ranking import ModelCard, Ranking, make_card

SCORED = {
    "databricks-claude-opus-4-7": (46.0, 43.7, 10.0),
    "databricks-claude-opus-4-8": (46.0, 43.7, 10.0),
    "databricks-claude-opus-4-6": (46.0, 43.7, 10.0),
    "databricks-claude-opus-4-5": (43.0, 48.7, 10.0),
    "databricks-claude-sonnet-4-6": (44.0, 44.2, 6.0),
    "databricks-claude-haiku-4-5": (31.0, 96.0, 2.0),
    "databricks-gpt-oss-120b": (33.0, 266.5, 0.26),
    "databricks-gpt-oss-20b": (24.0, 263.7, 0.09),
    "databricks-llama-4-maverick": (18.0, 123.5, 0.49),
    "databricks-meta-llama-3-3-70b-instruct": (14.0, 86.0, 0.64),
    "databricks-meta-llama-3-1-8b-instruct": (12.0, 156.4, 0.10),
    "databricks-gemma-3-12b": (9.0, 29.2, 0.0),
}
UNSCORED = (
    "databricks-gpt-5-4-mini",
    "databricks-gpt-5-5",
    "databricks-gpt-5-3-codex",
    "databricks-gemini-3-1-pro",
    "databricks-gemini-3-flash",
    "databricks-glm-5",
    "databricks-acme-chat",
)
EMBEDDINGS = ("databricks-gte-large-en", "databricks-bge-large-en")


def endpoint(name: str, task: str | None = "llm/v1/chat", scores: Any = None, **more: Any) -> dict[str, Any]:
    """An entry of `/api/2.0/serving-endpoints`."""
    model: dict[str, Any] = {"name": f"system.ai.{name}"}
    if scores is not None:
        model["ai_gateway_model_profile"] = dict(zip(("quality", "speed", "cost"), scores, strict=True))
    entry: dict[str, Any] = {
        "name": name,
        "state": {"ready": "READY"},
        "config": {"served_entities": [{"foundation_model": model}]},
    }
    return {**entry, **({} if task is None else {"task": task}), **more}


def databricks(entry: dict[str, Any], provider: str = "dbx") -> ModelCard:
    return make_card(ModelInfo(entry["name"], provider, entry), "databricks")


def named(name: str, provider: str = "p", kind: str = "openai", **facts: Any) -> ModelCard:
    return make_card(ModelInfo(name, provider, facts), kind)


def workspace() -> list[ModelCard]:
    entries = [endpoint(name, scores=scores) for name, scores in SCORED.items()]
    entries += [endpoint(name) for name in UNSCORED]
    entries += [endpoint(name, "llm/v1/embeddings") for name in EMBEDDINGS]
    entries.append(endpoint("churn-model", None))
    return [databricks(entry) for entry in entries]


def ranking() -> Ranking:
    return Ranking.build(workspace())
