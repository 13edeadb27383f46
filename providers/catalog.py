"""Which backend model a name means, answered from memory.

`resolve` and `entries` never wait: static lists are there from the start, discovered ones
arrive in the background and are renewed when they are used and old. A listing that fails
leaves the last good one in place.
"""

from __future__ import annotations

import asyncio
import difflib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from translators.errors import ProxyError

from .base import ModelInfo, Provider, Target

TTL_S = 300.0
"""Age from which a discovered list is renewed on its next use."""
RETRY_S = 10.0
"""Least time between two listings of one provider, whatever asks for them."""
LISTING_S = 10.0
"""A listing that takes longer counts as failed."""
_NEAR_POOL = 2000
_NEAR_LENGTH = 128

_log = structlog.get_logger("dragoman.catalog")


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of the public model list, and the model that it reaches."""

    id: str
    target: Target
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the provider's listing said of the model; empty for configured ones."""


@dataclass(slots=True)
class _Listing:
    """What one provider serves, as far as known."""

    models: tuple[ModelInfo, ...]
    discovered: bool
    tried_at: float | None = None
    loaded_at: float = 0.0
    task: asyncio.Task[None] | None = None
    asked: bool = False
    """Whether the provider has answered once, or failed to."""


class Catalog:
    """Every name a client may use as `model`.

    `configured[name]` is a provider's static list; None or absent: the provider is asked.
    """

    def __init__(
        self,
        providers: Sequence[Provider],
        aliases: Mapping[str, str],
        configured: Mapping[str, Sequence[str] | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.providers = tuple(providers)
        self._by_name = {provider.name: provider for provider in providers}
        self._aliases = dict(aliases)
        self._clock = clock
        self._listings = {p.name: _first_listing(p, configured.get(p.name)) for p in providers}
        self._bare: dict[str, list[Target]] = {}
        self._entries: list[Entry] = []
        self._index()

    async def start(self) -> None:
        """Begin to ask the providers without a static list; returns at once."""
        for name, listing in self._listings.items():
            if listing.discovered:
                self._renew(name, listing)

    async def aclose(self) -> None:
        tasks = [listing.task for listing in self._listings.values() if listing.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def resolve(self, name: str, *, embeddings: bool = False) -> list[Target]:
        """The targets `name` may mean, best first; at least one.

        Targets that cannot answer (an unavailable provider, one without embeddings) are among
        them only when there is no other: asking them says why.

        Raises `ProxyError`: not_found (404, `model_not_found`) for an unknown name, unavailable
        (503) when a list that might hold it is still being loaded for the first time.
        """
        self._renew_old()
        targets = self._find(name)
        if not targets:
            raise self._missing(name)
        able = [target for target in targets if target.provider.unavailable is None] or targets
        return _that_embed(able) if embeddings else able

    def entries(self) -> list[Entry]:
        """The public model list: `provider/model` ids, bare names, aliases; no name twice."""
        self._renew_old()
        return self._entries

    def entry(self, name: str) -> Entry | None:
        """The entry of a name, listed or not (`provider/unlisted`, an alias of an alias)."""
        found = next((entry for entry in self.entries() if entry.id == name), None)
        if found is not None:
            return found
        targets = self._find(name)
        return Entry(name, targets[0]) if targets else None

    def _find(self, name: str) -> list[Target]:
        """Exact `provider/model`, listed bare name, alias; in this order."""
        seen: set[str] = set()
        while name not in seen:
            seen.add(name)
            prefix, slash, model = name.partition("/")
            provider = self._by_name.get(prefix) if slash and model else None
            if provider is not None:
                return [Target(provider, model)]
            if name in self._bare:
                return self._bare[name]
            name = self._aliases.get(name, name)
        return []

    def _missing(self, name: str) -> ProxyError:
        waiting = [each for each, listing in self._listings.items() if _is_first_load(listing)]
        for each, listing in self._listings.items():
            if listing.discovered:
                self._renew(each, listing)
        # A client that is refused with 404 gives up for good, so a gateway that has just
        # started says instead that it does not know yet.
        if waiting:
            message = f"the model list of {', '.join(waiting)} is still being loaded; try again"
            return ProxyError("unavailable", message, param="model", retry_after=1)
        message = f"model {name[:_NEAR_LENGTH]!r} is not known; {self._advice(name)}"
        return ProxyError("not_found", message, param="model", code="model_not_found")

    def _advice(self, name: str) -> str:
        if not self.providers:
            return "no provider is configured"
        near = self._near(name)
        return f"did you mean {', '.join(near)}?" if near else "GET /v1/models lists what there is"

    def _near(self, name: str) -> list[str]:
        if len(name) > _NEAR_LENGTH:
            return []
        pool = [entry.id for entry in self._entries[:_NEAR_POOL]]
        holding = [each for each in pool if name and name.lower() in each.lower()]
        return list(dict.fromkeys(holding + difflib.get_close_matches(name, pool, 5, 0.6)))[:5]

    def _renew_old(self) -> None:
        now = self._clock()
        for name, listing in self._listings.items():
            if listing.discovered and now - listing.loaded_at >= TTL_S:
                self._renew(name, listing)

    def _renew(self, name: str, listing: _Listing) -> None:
        """Schedule a listing unless one runs or ran a moment ago; never waits."""
        now = self._clock()
        fresh = listing.tried_at is not None and now - listing.tried_at < RETRY_S
        if listing.task is not None or fresh:
            return
        listing.tried_at = now
        listing.task = asyncio.get_running_loop().create_task(self._load(name, listing))

    async def _load(self, name: str, listing: _Listing) -> None:
        try:
            async with asyncio.timeout(LISTING_S):
                listing.models = tuple(await self._by_name[name].models())
            listing.loaded_at = self._clock()
            self._index()
        except (ProxyError, TimeoutError) as error:
            reason = str(error) or f"no answer within {LISTING_S:g} s"
            _log.warning("model_list_not_loaded", provider=name, reason=reason)
        finally:
            listing.task = None
            listing.asked = True

    def _index(self) -> None:
        """Rebuild the name maps; runs once per listing, not per request."""
        self._bare = {}
        for target, info in self._listed():
            self._bare.setdefault(info.id, []).append(target)
        entries: dict[str, Entry] = {}
        for entry in self._all_entries():
            entries.setdefault(entry.id, entry)
        self._entries = list(entries.values())

    def _listed(self) -> Iterator[tuple[Target, ModelInfo]]:
        for provider in self.providers:
            for info in self._listings[provider.name].models:
                yield Target(provider, info.id), info

    def _all_entries(self) -> Iterator[Entry]:
        listed = [(target, info) for target, info in self._listed() if target.provider.unavailable is None]
        facts = {target.id: info.facts for target, info in listed}
        yield from (Entry(target.id, target, info.facts) for target, info in listed)
        for name in (*(info.id for _, info in listed), *self._aliases):
            targets = [target for target in self._find(name) if target.provider.unavailable is None]
            if targets:
                yield Entry(name, targets[0], facts.get(targets[0].id, {}))


def _first_listing(provider: Provider, models: Sequence[str] | None) -> _Listing:
    known = tuple(ModelInfo(model, provider.name) for model in models or ())
    return _Listing(known, discovered=models is None and provider.unavailable is None)


def _is_first_load(listing: _Listing) -> bool:
    return listing.discovered and not listing.asked


def _that_embed(targets: list[Target]) -> list[Target]:
    """Those on providers with an embeddings path, if any."""
    return [t for t in targets if t.provider.profile(t.model, "embeddings").wire.embeddings] or targets
