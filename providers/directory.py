"""What every name means, for one state of the catalogue: built once, never changed.

In this order: `provider/model` (listed or not), a listed model's bare name (every provider's that has it, in
the order of the file), an alias, a group, the same name spelled otherwise, a class slug, a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .base import ModelInfo, Provider, Target
from .ranking import CLASSES, ModelCard, Ranking, make_card

Source = Literal["exact", "alias", "group", "class", "search"]
"""How a name was read."""

MAX_OTHERS = 3
"""Providers and fallbacks beside the best ones' that are worth a place among the candidates."""
MAX_NAME = 512
"""Characters of a name; what is longer names nothing, and is nowhere remembered."""
MAX_KEPT = 512
"""Answers kept; clients can make up as many names as they like."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a configuration gives; every provider named in them exists."""

    aliases: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)
    """Members as `provider/model` and weight."""
    fallbacks: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Choice:
    """One endpoint that a name may mean."""

    target: Target
    card: ModelCard | None = None
    """What is known of its model; None: it is in no list."""
    weight: float | None = None
    """Its share in a group; None: it is in none, and its place is its rank."""
    reserve: int = 0
    """Of a fallback which one it is, from 1: asked when the others failed, or rest."""

    @property
    def window(self) -> int | None:
        """Tokens that its model takes."""
        return None if self.card is None else self.card.context_window


@dataclass(frozen=True, slots=True)
class Found:
    """What a name means: the endpoints, best first, at least one."""

    source: Source
    choices: Sequence[Choice]
    fixed: bool = False
    """Whether this order was asked for; else what suits a request best may go first."""
    others: Sequence[tuple[int, Choice]] = ()
    """Of many the first of other providers and the first fallback, with their places in `choices`."""

    def among(self, choices: Sequence[Choice]) -> Found:
        """The same with these of its choices, at least one."""
        return replace(self, choices=choices, others=_others(choices))


_NOT_KEPT = Found("exact", ())


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of the public model list, and the model that it reaches."""

    id: str
    target: Target
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the provider's listing said of the model; empty for configured ones."""
    card: ModelCard | None = None


class Directory:
    """`models`: what every provider serves, in the order of the file and of each listing."""

    def __init__(
        self,
        providers: Sequence[Provider],
        names: Names,
        models: Sequence[tuple[Provider, ModelInfo]],
        ranking: Ranking,
    ) -> None:
        self.ranking = ranking
        self._by_name = {provider.name: provider for provider in providers}
        self._names = names
        self._facts = {f"{provider.name}/{info.id}": info.facts for provider, info in models}
        self._bare: dict[str, list[Choice]] = {}
        for provider, info in models:
            self._bare.setdefault(info.id, []).append(self._choice(Target(provider, info.id)))
        self._kept: dict[tuple[str, bool], Found | None] = {}
        self.entries = tuple(self._unique(self._all_entries()))

    def measured(self, ranking: Ranking) -> Directory:
        """The same with measurements that change no order: every name means what it meant."""
        other = copy(self)
        other.ranking = ranking
        return other

    def find(self, name: str, *, embeddings: bool = False) -> Found | None:
        """What `name` means; None: nothing. Endpoints that cannot answer are left where there is no other."""
        if len(name) > MAX_NAME:
            return None
        key = (name, embeddings)
        kept = self._kept.get(key, _NOT_KEPT)  # asked once: threads read too, and others forget meanwhile
        if kept is not _NOT_KEPT:
            return kept
        found = self._find(name, embeddings)
        if found is not None:
            found = self._with_reserves(name, found, embeddings)
            found = found.among(_that_answer(found.choices, embeddings))
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        self._kept[key] = found
        return found

    def usable(self, provider: str) -> bool:
        """Whether its endpoints can be asked at all."""
        return self._by_name[provider].unavailable is None

    def target(self, name: str) -> Target | None:
        """The endpoint that `provider/model` addresses."""
        prefix, slash, model = name.partition("/")
        provider = self._by_name.get(prefix) if slash and model else None
        return None if provider is None else Target(provider, model)

    def facts(self, target: str) -> Mapping[str, Any] | None:
        """What the listing of its provider said of `provider/model`."""
        return self._facts.get(target)

    def entry(self, name: str) -> Entry | None:
        """The entry of a name, listed or not (`provider/unlisted`, a search)."""
        found = self.find(name)
        return None if found is None else self.entry_of(name, found.choices[0])

    def _find(self, name: str, embeddings: bool) -> Found | None:
        """Follows aliases to their end; one that leads back to itself means nothing."""
        seen: set[str] = set()
        source: Source = "exact"
        while name not in seen:
            seen.add(name)
            exact = self._exact(name)
            if exact:
                return Found(source, exact, fixed=True)
            if name not in self._names.aliases:
                return self._weighed(name, embeddings, seen)
            name, source = self._names.aliases[name], "alias"
        return None

    def _exact(self, name: str) -> Sequence[Choice]:
        target = self.target(name)
        return [self._choice(target)] if target is not None else self._bare.get(name, ())

    def _weighed(self, name: str, embeddings: bool, seen: set[str]) -> Found | None:
        """A group, a class or a search: which of its endpoints is best depends on the request too."""
        aliased = len(seen) > 1
        members = self._names.groups.get(name)
        if members is not None:
            choices = [replace(self._choice_of(model), weight=weight) for model, weight in members]
            return Found("alias" if aliased else "group", choices)
        ranked = self.ranking.resolve(name, embeddings=embeddings)
        if not ranked:
            return None
        source: Source = "class" if ranked[0].match == "class" else "search"
        return Found("alias" if aliased else source, [self._choice_of(each.card.target) for each in ranked])

    def _with_reserves(self, name: str, found: Found, embeddings: bool) -> Found:
        """With the fallbacks of the name that was asked for, else of the endpoint that it means."""
        known = {choice.target.id for choice in found.choices}
        more: list[Choice] = []
        for place, each in enumerate(self._fallbacks(name, found.choices[0].target), 1):
            meant = self._find(each, embeddings)
            for choice in meant.choices if meant is not None else ():
                if choice.target.id not in known:
                    known.add(choice.target.id)
                    more.append(replace(choice, reserve=place, weight=None))
        return replace(found, choices=[*found.choices, *more]) if more else found

    def _fallbacks(self, name: str, first: Target) -> Sequence[str]:
        """Of the name, else of what it is an alias of, else of the endpoint."""
        names = [name]
        while names[-1] in self._names.aliases and not self._exact(names[-1]):
            names.append(self._names.aliases[names[-1]])
        given = (self._names.fallbacks.get(each) for each in (*names, first.id))
        return next((each for each in given if each), ())

    def _choice_of(self, name: str) -> Choice:
        target = self.target(name)
        assert target is not None, name  # noqa: S101 - the configuration is checked, cards are ours
        return self._choice(target)

    def _choice(self, target: Target) -> Choice:
        standing = self.ranking.of(target.id)
        return Choice(target, None if standing is None else standing.card)

    def _all_entries(self) -> Iterator[Entry]:
        """Endpoints as ranked, then bare names in the same order, then what the configuration names."""
        ranked = [self._choice_of(each.card.target) for each in self.ranking.all]
        able = [choice for choice in ranked if choice.target.provider.unavailable is None]
        yield from (self.entry_of(choice.target.id, choice) for choice in able)
        given = (*self._names.aliases, *self._names.groups, *CLASSES)
        for name in (*(choice.target.model for choice in able), *given):
            found = self.find(name)
            if found is not None and found.choices[0].target.provider.unavailable is None:
                yield self.entry_of(name, found.choices[0])

    def entry_of(self, name: str, choice: Choice) -> Entry:
        """The entry of a name that leads to this endpoint."""
        return Entry(name, choice.target, self._facts.get(choice.target.id, {}), choice.card)

    @staticmethod
    def _unique(entries: Iterable[Entry]) -> Iterator[Entry]:
        seen: set[str] = set()
        for entry in entries:
            if entry.id not in seen:
                seen.add(entry.id)
                yield entry


def cards_of(models: Iterable[ModelInfo], kind: str) -> list[ModelCard]:
    """The cards of what a provider of this kind lists, in their order."""
    return [make_card(info, kind) for info in models]


def _others(choices: Sequence[Choice]) -> Sequence[tuple[int, Choice]]:
    first: dict[tuple[str, bool], tuple[int, Choice]] = {}
    for place, choice in enumerate(choices):
        first.setdefault((choice.target.provider.name, choice.reserve > 0), (place, choice))
    return list(first.values())[1 : MAX_OTHERS + 1]


def _that_answer(choices: Sequence[Choice], embeddings: bool) -> Sequence[Choice]:
    """Those on providers that can be asked, for embeddings those with a path; all where there are none."""
    able = [each for each in choices if each.target.provider.unavailable is None] or choices
    if not embeddings:
        return able
    return [each for each in able if _embeds(each.target)] or able


def _embeds(target: Target) -> bool:
    return bool(target.provider.profile(target.model, "embeddings").wire.embeddings)
