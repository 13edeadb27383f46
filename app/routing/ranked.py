"""`GET /models`: endpoints in the order in which a class or a search would ask them, and why.

Each entry of `data` is OpenAI's model object with what the order is made of beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from providers.base import Surface
from providers.catalog import Catalog
from providers.directory import Choice, Directory, Entry
from providers.ranking import CLASSES, ModelCard, ModelClass, Ranked, parse_class
from translators.errors import bad_request
from translators.ir import Json, Shape

from ..access.scopes import Scope
from .models import codex_model, openai_model, within_limit

MAX_LIMIT = 50
MAX_ANSWERS = 4
"""Kept for the same queries: of 10,000 models each has several megabytes."""
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked of the ranking; every key may be absent."""

    search: str = ""
    cls: ModelClass | None = None
    limit: int | None = None
    threshold: float | None = None
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None


def parse_query(query: bytes) -> Query:
    """Raises `ProxyError` (400) that names the parameter and what it takes; others are no concern of ours."""
    given = {}
    for key, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        reader = _READERS.get(key)
        if reader is not None and value != "":
            try:
                given["cls" if key == "class" else key] = reader[0](value)
            except (ValueError, KeyError):
                raise bad_request(f"`{key}` must be {reader[1]}", key, code="invalid_value") from None
    return Query(**given)


def _class(text: str) -> ModelClass:
    found = parse_class(text)
    if found is None:
        raise ValueError(text)
    return found


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAX_LIMIT):
        raise ValueError(text)
    return int(text)


def _threshold(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(text)
    return value


def _truth(text: str) -> bool:
    return _TRUTHS[text.lower()]


_Reader = tuple[Callable[[str], Any], str]
_READERS: Mapping[str, _Reader] = {
    "search": (str, "a text"),
    "class": (_class, f"one of {', '.join(CLASSES)} (thinking, balanced and fast mean the same)"),
    "limit": (_limit, f"a whole number from 1 to {MAX_LIMIT}"),
    "threshold": (_threshold, "a number from 0 (exact) to 1 (anything)"),
    **dict.fromkeys(("tools", "vision", "reasoning"), (_truth, "true or false")),
}


def ranked(directory: Directory, query: Query, scope: Scope | None = None) -> Sequence[Ranked]:
    """The endpoints that fit, best first; those that cannot be asked, or are not in `scope`, are left out.

    With neither a search nor a class all chat models are there, those without a class at the end; embeddings
    are when their class is asked for.
    """
    ranking = directory.ranking
    needs = {"tools": query.tools, "vision": query.vision, "reasoning": query.reasoning}
    at_most = {} if query.threshold is None else {"threshold": query.threshold}
    found = ranking.search(query.search, query.cls, None, **at_most, **needs)  # type: ignore[arg-type]
    if query == Query(limit=query.limit, threshold=query.threshold):
        found += tuple(each for each in ranking.all if each.cls is None and each.card.task == "chat")
    usable = [each for each in found if directory.usable(each.card.provider)]
    if scope is not None:
        usable = [each for each in usable if scope.allows_ranked(each, directory)]
    return usable[: query.limit]


class RankedLists:
    """The answers to the last queries, as long as nothing has changed; each is made in a thread."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._directory: Directory | None = None
        self._answers: dict[tuple[Query, Scope | None], bytes] = {}
        self._rendering = asyncio.Lock()

    async def answer(self, query: Query, scope: Scope | None = None) -> bytes:
        directory, key = self._catalog.directory(), (query, scope)
        found = self._answers.get(key) if directory is self._directory else None
        if found is not None:
            return found
        async with self._rendering:  # one at a time, however many ask
            if directory is not self._directory:
                self._directory, self._answers = directory, {}
            if key not in self._answers:
                body = await asyncio.to_thread(listed, directory, query, scope)
                if len(self._answers) >= MAX_ANSWERS:
                    del self._answers[next(iter(self._answers))]
                self._answers[key] = body
            return self._answers[key]


def listed(directory: Directory, query: Query, scope: Scope | None = None) -> bytes:
    """The answer: `object` and `data` as OpenAI has them, `models` as Codex does, both in this order."""
    found = ranked(directory, query, scope)
    data = (
        {**openai_model(entry), **described(each, place)} for place, each, entry in _entries(directory, found)
    )
    models = (codex_model(entry, place) for place, _, entry in _entries(directory, found))
    return within_limit(data, models)


def _entries(directory: Directory, found: Sequence[Ranked]) -> Iterator[tuple[int, Ranked, Entry]]:
    """With their places. None is held: thousands that live on make the garbage collector stop all threads."""
    for place, each in enumerate(found, 1):
        entry = directory.entry(each.card.target)
        if entry is not None:
            yield place, each, entry


def described(each: Ranked, place: int) -> Json:
    """What the ranking knows of an endpoint and why it stands at `place` (from 1)."""
    card = each.card
    return {
        "rank": place,
        "class": each.cls,
        "score": each.score,
        "breakdown": dict(each.breakdown),
        "reasons": each.reasons,
        **facts(card),
    }


def facts(card: ModelCard) -> Json:
    """What is known of a model; null where nobody says."""
    return {
        "provider": card.provider,
        "kind": card.kind,
        "model": card.model,
        "display_name": card.display_name,
        "family": card.family,
        "version": ".".join(map(str, card.version)) or None,
        "task": card.task,
        "tools": card.tools,
        "vision": card.vision,
        "reasoning": card.reasoning,
        "context_window": card.context_window,
        "dimensions": card.dimensions,
        "parameter_count": card.parameter_count,
        "quality": card.quality,
        "speed": card.speed,
        "cost": card.cost,
        "loaded": card.loaded,
        "ready": card.ready,
    }


def explained(catalog: Catalog, name: str, scope: Scope | None = None) -> Json:
    """How a name resolves, and of each endpoint it may mean every profile key and where it comes from.

    Raises `ProxyError` (404) for a name that does not resolve, or to nothing in `scope`.
    """
    found = catalog.find(name) if scope is None else scope.find(catalog, name)
    ranking = catalog.ranking()
    choices = []
    for choice in found.choices:
        standing = ranking.of(choice.target.id)
        known: Json = {"id": choice.target.id, "weight": choice.weight, "fallback": choice.reserve}
        if standing is not None:
            known |= {
                "class": standing.cls,
                "breakdown": dict(standing.breakdown),
                "reasons": standing.reasons(),
                **facts(standing.card),
            }
        choices.append(known)
    return {
        "source": found.source,
        "order": "fixed" if found.fixed else "by what suits the request",
        "choices": choices,
        "surfaces": profiles_of(found.choices[0]),
    }


def _without_query(key: str, value: Any) -> Any:
    """Some backends take their key in the address, which is configured as one of these."""
    if key.startswith("wire.") and isinstance(value, str) and "?" in value:
        return value.partition("?")[0] + "?[redacted]"
    return value


def profiles_of(choice: Choice) -> Json:
    """By surface, in the order in which they are tried: every key with its value and the layer
    that set it, and the fields that the backend turned out not to take.
    """
    target, card = choice.target, choice.card
    provider = target.provider
    shapes: Sequence[Shape] = ("responses", "chat")
    surfaces: Sequence[Surface] = ("embeddings",)
    if card is None or card.task != "embedding":
        asked = (surface for shape in shapes for surface in provider.surfaces(target.model, shape))
        surfaces = tuple(dict.fromkeys(asked))
    return {
        surface: {
            "profile": {
                key: {"value": _without_query(key, value), "from": layer}
                for key, (value, layer) in provider.explain(target.model, surface).items()
            },
            "learned": [each.field for each in provider.known_rejections(target.model, surface)],
        }
        for surface in surfaces
    }
