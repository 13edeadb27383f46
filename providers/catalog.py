"""Which endpoints a name means, answered from memory; kept up to date behind the callers' backs.

`find` and `entries` never wait: static lists are there from the start, discovered ones arrive in the
background and are renewed when they are used and old. A listing that fails leaves the last good one in
place. What calls show of endpoints (`health.py`) changes the order of a class from time to time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from translators.errors import ProxyError

from .base import ModelInfo, Provider
from .directory import Directory, Entry, Found, Names, cards_of
from .health import Health
from .ranking import ModelCard, Ranking, parse_class

TTL_S = 300.0
"""Age from which a discovered list is renewed on its next use."""
RETRY_S = 10.0
"""Least time between two listings of one provider, whatever asks for them."""
LISTING_S = 10.0
"""A listing that takes longer counts as failed."""
RANK_S = 15.0
"""Least time between two orders made of what calls have shown."""
_NAME_LENGTH = 128

_log = structlog.get_logger("dragoman.catalog")


@dataclass(slots=True)
class _Listing:
    """What one provider serves, as far as known."""

    models: tuple[ModelInfo, ...]
    cards: Sequence[ModelCard]
    discovered: bool
    tried_at: float | None = None
    loaded_at: float = 0.0
    task: asyncio.Task[None] | None = None
    failed: bool = False
    """Whether the last attempt brought nothing."""
    reason: str = ""
    """Why that was, the last time."""
    asked: bool = False
    """Whether the provider has answered once, or failed to."""


class Catalog:
    """Every name a client may use as `model`.

    `configured[name]` is a provider's static list; None or absent: the provider is asked. `classes` are
    words of models' names and the class each tells, over the built-in ones. `listed[name]` is what an asked
    provider answered in an earlier life, `dimensions` what its models were found to have.
    """

    def __init__(
        self,
        providers: Sequence[Provider],
        names: Names,
        configured: Mapping[str, Sequence[str] | None],
        clock: Callable[[], float] = time.monotonic,
        classes: Mapping[str, str] | None = None,
        health: Health | None = None,
        listed: Mapping[str, Sequence[ModelInfo]] | None = None,
        dimensions: Mapping[str, int | None] | None = None,
    ) -> None:
        self.dimensions: dict[str, int | None] = dict(dimensions or {})
        """By target, of embedding models that were asked because no list tells; None: to no avail."""
        self.providers = tuple(providers)
        self._by_name = {provider.name: provider for provider in providers}
        self._names, self._classes = names, classes
        self._clock = clock
        self._health = health or Health()
        known = listed or {}
        self._listings = {
            p.name: _first_listing(p, configured.get(p.name), known.get(p.name, ())) for p in providers
        }
        self._ranked_at, self._ranked_version = clock(), self._health.version
        self._ranking: asyncio.Task[None] | None = None
        self._making = asyncio.Lock()
        self._listed_count = self._made_count = 0
        self._directory = self._made()

    async def start(self, wait_s: float = 0.0) -> None:
        """Begin to ask the providers without a static list; returns when all answered, or at `wait_s`."""
        for name, listing in self._listings.items():
            if listing.discovered:
                self._renew(name, listing)
        asked = [each.task for each in self._listings.values() if each.task is not None]
        if asked and wait_s:
            await asyncio.wait(asked, timeout=wait_s)

    async def aclose(self) -> None:
        tasks = [listing.task for listing in self._listings.values()] + [self._ranking]
        running = [task for task in tasks if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def find(self, name: str, *, embeddings: bool = False) -> Found:
        """What `name` means: the endpoints, best first, at least one.

        Endpoints that cannot answer (an unavailable provider, one without embeddings) are among them
        only when there is no other: asking them says why.

        Raises `ProxyError`: not_found (404, `model_not_found`) for an unknown name, unavailable (503)
        when a list that might hold it is still being loaded for the first time.
        """
        self._renew_old()
        found = self._directory.find(name, embeddings=embeddings)
        if found is None:
            raise self._missing(name)
        return found

    def entries(self) -> Sequence[Entry]:
        """The public model list: `provider/model` ids, bare names, aliases, groups, classes; each once."""
        self._renew_old()
        return self._directory.entries

    def entry(self, name: str) -> Entry | None:
        """The entry of a name, listed or not (`provider/unlisted`, an alias of an alias)."""
        return self._directory.entry(name)

    def facts(self, target: str) -> Mapping[str, Any] | None:
        """What its provider's listing said of `provider/model`; the same object until it is listed anew."""
        return self._directory.facts(target)

    def ranking(self) -> Ranking:
        """The endpoints as they are ranked now."""
        self._renew_old()
        return self._directory.ranking

    def directory(self) -> Directory:
        """What every name means now: it never changes, and another takes its place."""
        self._renew_old()
        return self._directory

    def listed(self, provider: str) -> Sequence[ModelInfo]:
        """The models that it is known to serve."""
        return self._listings[provider].models

    @property
    def loading(self) -> Sequence[str]:
        """Providers whose list is being loaded for the first time."""
        return [name for name, listing in self._listings.items() if _is_first_load(listing)]

    @property
    def stale(self) -> Sequence[str]:
        """Providers whose last listing failed: what is known of them may be old."""
        return [name for name, listing in self._listings.items() if listing.failed]

    @property
    def faults(self) -> Mapping[str, str]:
        """Why the last listing of those brought nothing."""
        return {name: self._listings[name].reason for name in self.stale}

    async def learn_dimensions(self, target: str, count: int) -> None:
        """How long the vectors of a model turned out to be."""
        self.dimensions[target] = count
        await self._make()

    async def refresh(self) -> None:
        """Ask every provider without a static list again, and wait for the answers."""
        for name, listing in self._listings.items():
            if listing.discovered:
                self._renew(name, listing, forced=True)
        tasks = [each.task for each in self._listings.values() if each.task is not None]
        await asyncio.gather(*tasks)

    def _missing(self, name: str) -> ProxyError:
        waiting = self.loading
        for each, listing in self._listings.items():
            if listing.discovered:
                self._renew(each, listing)
        # A client that is refused with 404 gives up for good, so a gateway that has just
        # started says instead that it does not know yet.
        if waiting:
            message = f"the model list of {', '.join(waiting)} is still being loaded; try again"
            return ProxyError("unavailable", message, param="model", retry_after=1)
        message = f"model {name[:_NAME_LENGTH]!r} is not known; {self._advice(name)}"
        return ProxyError("not_found", message, param="model", code="model_not_found")

    def _advice(self, name: str) -> str:
        if not self.providers:
            return "no provider is configured"
        if parse_class(name) is not None:
            return "no model that is listed is in that class"
        near = [] if len(name) > _NAME_LENGTH else self._directory.ranking.suggest(name)
        return f"did you mean {', '.join(near)}?" if near else "GET /v1/models lists what there is"

    def _renew_old(self) -> None:
        now = self._clock()
        for name, listing in self._listings.items():
            if listing.discovered and now - listing.loaded_at >= TTL_S:
                self._renew(name, listing)
        if self._health.version != self._ranked_version and now - self._ranked_at >= RANK_S:
            self._ranked_at, self._ranked_version = now, self._health.version
            if self._ranking is None:
                self._ranking = asyncio.get_running_loop().create_task(self._rank())

    async def _rank(self) -> None:
        """The same endpoints in the order that calls have shown; in a thread, for a catalogue may be long."""
        try:
            async with self._making:
                self._directory = await asyncio.to_thread(self._measured)
        finally:
            self._ranking = None

    def _measured(self) -> Directory:
        before = self._directory
        ranking = before.ranking.with_live(self._health.all_live())
        same = _order(ranking) == _order(before.ranking)
        return before.measured(ranking) if same else self._made(ranking)

    async def _make(self) -> None:
        """A directory with the lists that have arrived, in a thread; one for all that came meanwhile."""
        self._listed_count += 1
        async with self._making:
            if self._made_count == self._listed_count:
                return
            count = self._listed_count
            self._directory = await asyncio.to_thread(self._made)
            self._made_count = count

    def _renew(self, name: str, listing: _Listing, forced: bool = False) -> None:
        """Schedule a listing unless one runs or ran a moment ago; never waits."""
        now = self._clock()
        fresh = listing.tried_at is not None and now - listing.tried_at < RETRY_S and not forced
        if listing.task is not None or fresh:
            return
        listing.tried_at = now
        listing.task = asyncio.get_running_loop().create_task(self._load(name, listing))

    async def _load(self, name: str, listing: _Listing) -> None:
        before = listing.models, listing.cards
        try:
            async with asyncio.timeout(LISTING_S):
                models = tuple(await self._by_name[name].models())
            if models != listing.models:  # mostly they are the same, and then nothing is to be made
                async with self._making:  # several threads at once would keep the requests' one waiting
                    cards = await asyncio.to_thread(cards_of, models, self._by_name[name].kind)
                listing.models, listing.cards = models, cards
                await self._make()
            listing.loaded_at, listing.failed = self._clock(), False
        except (ProxyError, TimeoutError) as error:
            self._not_loaded(name, listing, str(error) or f"no answer within {LISTING_S:g} s")
        except Exception as error:  # a list that nobody thought of: the last good one stays, for all
            listing.models, listing.cards = before
            self._not_loaded(name, listing, f"{type(error).__name__}: {error}"[:500])
        finally:
            listing.task = None
            listing.asked = True

    @staticmethod
    def _not_loaded(name: str, listing: _Listing, reason: str) -> None:
        listing.failed, listing.reason = True, reason
        _log.warning("model_list_not_loaded", provider=name, reason=reason)

    def _made(self, ranking: Ranking | None = None) -> Directory:
        """A directory of what is known now; `ranking` None: made anew."""
        models = list(self._listed())
        if ranking is None:
            cards = [
                self._measured_card(card)
                for provider in self.providers
                for card in self._listings[provider.name].cards
            ]
            ranking = Ranking.build(cards, self._health.all_live(), self._classes)
        return Directory(self.providers, self._names, models, ranking)

    def _measured_card(self, card: ModelCard) -> ModelCard:
        found = self.dimensions.get(card.target)
        return replace(card, dimensions=found) if found and card.dimensions is None else card

    def _listed(self) -> Iterator[tuple[Provider, ModelInfo]]:
        for provider in self.providers:
            for info in self._listings[provider.name].models:
                yield provider, info


def _order(ranking: Ranking) -> list[str]:
    return [each.card.target for each in ranking.all]


def _first_listing(provider: Provider, models: Sequence[str] | None, listed: Sequence[ModelInfo]) -> _Listing:
    discovered = models is None and provider.unavailable is None
    known = tuple(listed) if discovered else tuple(ModelInfo(model, provider.name) for model in models or ())
    return _Listing(known, cards_of(known, provider.kind), discovered, asked=bool(known))


def _is_first_load(listing: _Listing) -> bool:
    return listing.discovered and not listing.asked
