"""What a workspace's listing says of an endpoint; every key of it may be missing or of another type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .base import ModelInfo, Surface

_SURFACE_OF: Mapping[str, Surface] = {
    "mlflow/v1/chat/completions": "chat",
    "openai/v1/responses": "responses",
    "mlflow/v1/responses": "open_responses",
}
"""API types of the listing that are surfaces of ours; the others say nothing of them."""
_SERVED = frozenset({"llm/v1/chat", "llm/v1/embeddings"})


def offered_surfaces(facts: Mapping[str, Any]) -> frozenset[Surface]:
    """What an entry of the listing says it is served on; empty: it does not say."""
    task = facts.get("task")
    if isinstance(task, str) and task.startswith("agent/"):
        return frozenset({"responses"} if task.endswith("/responses") else {"chat"})
    types = [kind for entity in entities(facts) for kind in _api_types(entity)]
    return frozenset(_SURFACE_OF[kind] for kind in types if kind in _SURFACE_OF)


def takes_no_tools(facts: Mapping[str, Any]) -> bool:
    """Only an explicit `false` says so: 4 of 20 entries of a real workspace had no word on it."""
    models = [table(entity, "foundation_model") for entity in entities(facts)]
    told = (table(each, "capabilities").get("function_calling") for each in (facts, *models))
    return any(word is False for word in told)


def is_served(task: Any) -> bool:
    """Custom endpoints tell no task; whatever is told and is neither chat, agent nor embeddings is not."""
    return not isinstance(task, str) or task in _SERVED or task.startswith("agent/")


def with_task(info: ModelInfo) -> ModelInfo:
    """External models have their task inside the entity, at `external_model.task` (S Posit)."""
    if info.facts.get("task"):
        return info
    tasks = (table(entity, "external_model").get("task") for entity in entities(info.facts))
    task = next((each for each in tasks if isinstance(each, str)), None)
    return ModelInfo(info.id, info.provider, {**info.facts, "task": task}) if task else info


def entities(facts: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """`config` may be `{}`, and an old workspace says `served_models`."""
    config = table(facts, "config")
    served = config.get("served_entities") or config.get("served_models")
    yield from (each for each in (served if isinstance(served, list) else ()) if isinstance(each, dict))


def _api_types(entity: Mapping[str, Any]) -> list[str]:
    types = table(entity, "foundation_model").get("api_types")
    return [kind for kind in types if isinstance(kind, str)] if isinstance(types, list) else []


def table(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}
