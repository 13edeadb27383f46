"""Databricks model serving: OpenAI's shapes on three surfaces, refused in many words.

GPT has `/responses`, the other families `/open-responses` with gates, all but the Responses-only
GPTs Chat; the rows say so by the model's name. Two things know better. The workspace's listing, where
it names the API types of an endpoint; and the backend itself, whose refusal is remembered: it always
comes before the first chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from translators.ir import Shape
from translators.profile import merge

from .base import ModelInfo, Surface
from .http import HttpClient
from .openai import REFUSED_S, OpenAIProvider, Settings
from .quirks import Quirks

ABSENT = (b"passthrough is not supported", b"endpoint_not_found", b"resource_does_not_exist")
"""Words that say the surface, or the model on it, is not there."""
DOUBTFUL = (
    b"not supported",
    b"for the open responses api",  # "This model does not support 'reasoning' for ..."
    b"unknown field",
    b"invalid_parameter_value",
    b"internal_error",
)
"""Words that also come for one odd request: it moves on, the surface is tried again soon."""
DOUBT_S = 60.0

_SURFACE_OF: Mapping[str, Surface] = {
    "mlflow/v1/chat/completions": "chat",
    "openai/v1/responses": "responses",
    "mlflow/v1/responses": "open_responses",
}
"""API types of the listing that are surfaces of ours; the others say nothing of them."""
_SERVED = frozenset({"llm/v1/chat", "llm/v1/embeddings"})


class DatabricksProvider(OpenAIProvider):
    """A workspace, signed with a personal access token."""

    def __init__(self, settings: Settings, client: HttpClient, quirks: Quirks | None = None) -> None:
        super().__init__(settings, client, quirks)
        self._offered: dict[str, frozenset[Surface]] = {}
        self._toolless: frozenset[str] = frozenset()

    def refusal(self, status: int, body: bytes) -> float:
        """404, or 400, 500, 501 with one of the documented phrases (in any case)."""
        if status == 404:
            return REFUSED_S
        if status not in (400, 500, 501):
            return 0.0
        text = body.lower()
        if any(words in text for words in ABSENT):
            return REFUSED_S
        return DOUBT_S if any(words in text for words in DOUBTFUL) else 0.0

    async def models(self) -> Sequence[ModelInfo]:
        """Endpoints that speak a shape of ours, each with the task it serves, wherever it is told."""
        listed = [_with_task(info) for info in await super().models()]
        listed = [info for info in listed if _is_served(info.facts.get("task"))]
        offered = {info.id: surfaces for info in listed if (surfaces := offered_surfaces(info.facts))}
        if offered != self._offered:
            self._offered = offered
            self._order.cache_clear()
        toolless = frozenset(info.id for info in listed if takes_no_tools(info.facts))
        if toolless != self._toolless:
            self._toolless = toolless
            self._door.cache_clear()
        return tuple(listed)

    def _listed(self, model: str, overrides: Mapping[str, Any]) -> Mapping[str, Any]:
        return merge({"tools": {"supported": False}}, overrides) if model in self._toolless else overrides

    def _build_order(self, model: str, client: Shape) -> tuple[Surface, ...]:
        order = super()._build_order(model, client)
        offered = self._offered.get(model)
        if offered is None or self._settings.wire != "auto":
            return order
        return narrowed(order, offered, client)


def narrowed(order: Sequence[Surface], offered: frozenset[Surface], client: Shape) -> tuple[Surface, ...]:
    """`order`, without what the listing does not offer and with what it offers besides.

    The cross-provider surface is served without being listed (S dbx-tools: Claude on `/open-responses`
    where `api_types` names Chat and Anthropic's), so its absence there says nothing.
    """
    left = [each for each in order if each in offered or each == "open_responses"]
    native = "responses" in offered and "responses" not in left
    if native and (client == "responses" or "chat" not in offered):
        left.insert(0, "responses")
    return tuple(left) or tuple(order)


def offered_surfaces(facts: Mapping[str, Any]) -> frozenset[Surface]:
    """What an entry of the listing says it is served on; empty: it does not say."""
    task = facts.get("task")
    if isinstance(task, str) and task.startswith("agent/"):
        return frozenset({"responses"} if task.endswith("/responses") else {"chat"})
    types = [kind for entity in _entities(facts) for kind in _api_types(entity)]
    return frozenset(_SURFACE_OF[kind] for kind in types if kind in _SURFACE_OF)


def takes_no_tools(facts: Mapping[str, Any]) -> bool:
    """Only an explicit `false` says so: 4 of 20 entries of a real workspace had no word on it."""
    models = [_table(entity, "foundation_model") for entity in _entities(facts)]
    told = (_table(each, "capabilities").get("function_calling") for each in (facts, *models))
    return any(word is False for word in told)


def _is_served(task: Any) -> bool:
    """Custom endpoints tell no task; whatever is told and is neither chat, agent nor embeddings is not."""
    return not isinstance(task, str) or task in _SERVED or task.startswith("agent/")


def _with_task(info: ModelInfo) -> ModelInfo:
    """External models have their task inside the entity (`external_model.task`)."""
    if info.facts.get("task"):
        return info
    tasks = (_table(entity, "external_model").get("task") for entity in _entities(info.facts))
    task = next((each for each in tasks if isinstance(each, str)), None)
    return ModelInfo(info.id, info.provider, {**info.facts, "task": task}) if task else info


def _entities(facts: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """`config` may be `{}`, and an old workspace says `served_models`."""
    config = _table(facts, "config")
    served = config.get("served_entities") or config.get("served_models")
    yield from (each for each in (served if isinstance(served, list) else ()) if isinstance(each, dict))


def _api_types(entity: Mapping[str, Any]) -> list[str]:
    types = _table(entity, "foundation_model").get("api_types")
    return [kind for kind in types if isinstance(kind, str)] if isinstance(types, list) else []


def _table(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}
