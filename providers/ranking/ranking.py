"""A catalogue, ranked: which models a name means, in the order in which they should be tried, and why.

Immutable once built; everything that depends on the catalogue alone is made ready here, so that an
exact name is one dictionary lookup and a class an attribute.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Literal

from .cards import ModelCard
from .classes import CHAT_CLASSES, CLASSES, classify, parse_class, this_and_below
from .families import FamilyRules, ModelClass
from .order import LiveProfile, Standing, Weights, place
from .search import MAX_QUERY, THRESHOLD, SearchIndex, compared, near, parse

Match = Literal["exact", "alias", "name", "class", "search"]
"""How a model was found: by its id, an alias, its name spelled otherwise, its class (or any), a search."""

CACHED = 512
"""Answers kept per ranking; the next ranking starts anew."""
_PLACE: Mapping[ModelClass | None, int] = {
    "chat-thinking": 0,
    "chat-balanced": 1,
    "chat-fast": 2,
    None: 3,
    "embedding": 4,
}
"""The order of the classes; None: models without one."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A model that may answer."""

    standing: Standing
    score: float | None
    """How far the name is from what was asked, 0 to 1, lower is better; None where nothing was searched."""
    match: Match

    @property
    def card(self) -> ModelCard:
        return self.standing.card

    @property
    def cls(self) -> ModelClass | None:
        return self.standing.cls

    @property
    def breakdown(self) -> Mapping[str, float]:
        """What its score within the class is made of; empty where nothing is published or measured."""
        return self.standing.breakdown

    @property
    def reasons(self) -> list[str]:
        """For people: why it was found, and why it stands where it stands."""
        return [_found(self.match, self.score), *self.standing.reasons()]


def _found(match: Match, score: float | None) -> str:
    match match:
        case "exact":
            return "its id was asked for"
        case "alias":
            return "an alias of it was asked for"
        case "name":
            return "its name was asked for, spelled otherwise"
        case "search":
            return f"all words of the search fit (score {score:.3f}, 0 is exact)"
        case _:
            return "its class, a higher one, or any was asked for"


class Ranking:
    """`build` it from cards in the order of the providers and their listings."""

    def __init__(self, catalogue: _Catalogue, live: Mapping[str, LiveProfile]) -> None:
        self._catalogue = catalogue
        self._standings = catalogue.standings(live)
        places = sorted(range(len(self._standings)), key=lambda at: (_class_rank(self._standings[at]), at))
        self._order = {at: rank for rank, at in enumerate(places)}
        self.all = tuple(Ranked(self._standings[at], None, "class") for at in places)
        """Every model: chat by class and rank, then those without a class, then embeddings."""
        ranks = [_PLACE[each.cls] for each in self.all]
        self._general = self.all[: bisect_left(ranks, _PLACE[None])]
        self._classes = {
            cls: self.all[
                bisect_left(ranks, _PLACE[cls]) : bisect_right(ranks, _PLACE[this_and_below(cls)[-1]])
            ]
            for cls in CLASSES
        }
        self._cache: dict[tuple[object, ...], tuple[Ranked, ...]] = {}
        self._caching = Lock()

    @classmethod
    def build(
        cls,
        cards: Sequence[ModelCard],
        live: Mapping[str, LiveProfile] | None = None,
        families: Mapping[str, str] | None = None,
        weights: Weights | None = None,
    ) -> Ranking:
        """A ranking of a whole catalogue; `live` by target id, `families` over the built-in ones.

        Of two cards with one target the first counts. Raises `ValueError` for a wrong entry of `families`.
        """
        held: dict[str, ModelCard] = {}
        for card in cards:
            held.setdefault(card.target, card)
        catalogue = _Catalogue(tuple(held.values()), FamilyRules(families), weights or Weights())
        return cls(catalogue, live or {})

    def with_live(self, live: Mapping[str, LiveProfile]) -> Ranking:
        """The same catalogue after new measurements: cheaper than to build it again."""
        return Ranking(self._catalogue, live)

    def resolve(self, name: str, *, embeddings: bool = False) -> tuple[Ranked, ...]:
        """The models that `name` means, best first; empty for an unknown one.

        In this order: id or bare name (every provider's, in the order of the file), alias, class slug,
        the same name spelled otherwise, search. Of a search only the best matches are meant: a failing
        model is not replaced by one that was asked for less.
        """
        found = self._exact(name)
        if found or len(name) > MAX_QUERY:
            return found
        key = ("resolve", name, embeddings)
        return self._cached(key, lambda: self._resolve(name, embeddings))

    def search(
        self,
        query: str = "",
        cls: ModelClass | None = None,
        limit: int | None = None,
        threshold: float = THRESHOLD,
        *,
        tools: bool | None = None,
        vision: bool | None = None,
        reasoning: bool | None = None,
    ) -> tuple[Ranked, ...]:
        """Ranked models that fit `query` ("": all that have a class) and are of `cls` or below.

        Embeddings are found with `cls="embedding"` only. `tools=True` leaves out what is known to take
        none; `vision` and `reasoning` True leave out what isn't known to have it; False is the other half.
        """
        wanted = (tools, vision, reasoning)
        if len(query) > MAX_QUERY:
            return self._search(query, cls, limit, threshold, wanted)
        key = (query, cls, limit, threshold, *wanted)
        return self._cached(key, lambda: self._search(query, cls, limit, threshold, wanted))

    def suggest(self, name: str, limit: int = 5) -> list[str]:
        """Names that resolve and are like `name`, for an answer 404."""
        written, names = self._catalogue.suggestable
        found = near(name, written, names, limit)
        return [each for each in found if each not in CHAT_CLASSES or self.resolve(each)]

    def of(self, target: str) -> Standing | None:
        """The standing of `provider/model`."""
        at = self._catalogue.targets.get(target)
        return None if at is None else self._standings[at]

    def _ranked(self, at: int, score: float | None, match: Match) -> Ranked:
        return Ranked(self._standings[at], score, match)

    def _exact(self, name: str) -> tuple[Ranked, ...]:
        found = self._catalogue.exact.get(name)
        return tuple(self._ranked(at, 0.0, found[0]) for at in found[1]) if found else ()

    def _cached(
        self, key: tuple[object, ...], answer: Callable[[], tuple[Ranked, ...]]
    ) -> tuple[Ranked, ...]:
        found = self._cache.get(key)
        if found is None:
            found = answer()
            with self._caching:  # lists are rendered in threads
                while len(self._cache) >= CACHED:
                    del self._cache[next(iter(self._cache))]
                self._cache[key] = found
        return found

    def _resolve(self, name: str, embeddings: bool) -> tuple[Ranked, ...]:
        cls = parse_class(name)
        if cls is not None:
            return self._classes[cls]
        found = self._found(name, "embedding" if embeddings else "chat", THRESHOLD)
        best = [each for each in found if _bucket(each) == _bucket(found[0])]
        return tuple(best)

    def _search(
        self,
        query: str,
        cls: ModelClass | None,
        limit: int | None,
        threshold: float,
        wanted: tuple[bool | None, bool | None, bool | None],
    ) -> tuple[Ranked, ...]:
        found: Sequence[Ranked] = self._exact(query)
        if not query.strip():
            found = self._general if cls is None else self._classes[cls]
        elif not found:
            found = self._found(query, "embedding" if cls == "embedding" else "chat", threshold)
        classes = None if cls is None else this_and_below(cls)
        kept = (
            each for each in found if (classes is None or each.cls in classes) and _able(each.card, *wanted)
        )
        return tuple(kept)[:limit]

    def _found(self, query: str, task: str, threshold: float) -> list[Ranked]:
        """What a search finds, in the order of an answer."""
        scores = self._catalogue.index.find(query, threshold)
        newest_first = parse(query).brand is not None
        found = []
        for position, (at, score) in enumerate(scores.items()):
            card = self._standings[at].card
            if card.task == task:
                newest = tuple(-part for part in (*card.version, 0, 0, 0)[:3]) if newest_first else ()
                rank = (card.ready is False, newest, self._order[at]) if score else (False, (), position)
                found.append((round(score * 1000), rank, at, score))
        found.sort()
        return [self._ranked(at, score, "search" if score else "name") for _, _, at, score in found]


def _class_rank(standing: Standing) -> tuple[int, object]:
    return _PLACE[standing.cls], standing.key


def _bucket(found: Ranked) -> int:
    return round((found.score or 0.0) * 1000)


def _able(card: ModelCard, tools: bool | None, vision: bool | None, reasoning: bool | None) -> bool:
    if tools is not None and (card.tools is not False) is not tools:
        return False
    if vision is not None and (card.vision is True) is not vision:
        return False
    return reasoning is None or (card.reasoning is True) is reasoning


class _Catalogue:
    """What depends on the cards alone; places are positions in `cards`."""

    def __init__(self, cards: tuple[ModelCard, ...], rules: FamilyRules, weights: Weights) -> None:
        self._cards = cards
        self._weights = weights
        self._classified = classify(cards, rules)
        self._best = max((card.quality for card in cards if card.quality is not None), default=0.0)
        self._unmeasured = [self._place(card, None) for card in cards]
        self.index = SearchIndex(cards)
        self.targets = {card.target: at for at, card in enumerate(cards)}
        self.exact = _exact_names(cards)
        self.suggestable = _suggestable(cards)

    def standings(self, live: Mapping[str, LiveProfile]) -> list[Standing]:
        """Only what was measured is placed anew; measurements of models that are gone are ignored."""
        standings = list(self._unmeasured)
        for target, measured in live.items():
            at = self.targets.get(target)
            if at is not None:
                standings[at] = self._place(self._cards[at], measured)
        return standings

    def _place(self, card: ModelCard, live: LiveProfile | None) -> Standing:
        return place(card, self._classified[card.target], live, self._best, self._weights)


def _exact_names(cards: Sequence[ModelCard]) -> dict[str, tuple[Match, tuple[int, ...]]]:
    """Every name that means something by itself; an id goes before a bare name, that before an alias."""
    found: dict[str, tuple[Match, tuple[int, ...]]] = {}
    ids: Sequence[tuple[Match, Callable[[ModelCard], Sequence[str]]]] = (
        ("exact", lambda card: (card.target,)),
        ("exact", lambda card: (card.model,)),
        ("alias", lambda card: card.aliases),
    )
    for match, names in ids:
        held: dict[str, list[int]] = {}
        for at, card in enumerate(cards):
            for name in names(card):
                held.setdefault(name, []).append(at)
        for name, places in held.items():
            found.setdefault(name, (match, tuple(places)))
    return found


def _suggestable(cards: Sequence[ModelCard]) -> tuple[list[str], list[str]]:
    """Bare names where they are clear, ids where two providers serve the name, aliases and classes."""
    times: dict[str, int] = {}
    for card in cards:
        times[card.model] = times.get(card.model, 0) + 1
    named = [card.model if times[card.model] == 1 else card.target for card in cards]
    aliases = [alias for card in cards for alias in card.aliases]
    written = list(dict.fromkeys([*named, *aliases, *CHAT_CLASSES]))
    return written, [compared(name) for name in written]
