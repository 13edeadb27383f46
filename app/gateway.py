"""What the routes share: configuration, catalogue, keys, and who is being served right now."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from config.schema import Config, ProviderConfig, Server
from providers.base import ModelInfo, Provider
from providers.catalog import Catalog
from providers.gate import Gate
from providers.health import Health
from providers.images import Images
from providers.quirks import Quirks
from providers.registry import build, build_catalog

from .attempt import Limits
from .auth import Keys
from .log import Log
from .models import ModelList
from .ranked import RankedLists
from .routing import Router
from .seal_key import SealKey
from .sticky import Sticky
from .stream import Client

if TYPE_CHECKING:
    from .metrics import Metrics


LISTED_S = 1.0
"""How long a new configuration waits for what its backends list, before requests go by it."""
RETIRE_S = 0.25
"""Between two looks whether the last request of a former configuration has ended."""


@dataclass(slots=True)
class Parts:
    """What a configuration is made into; a new one replaces all of it at once."""

    server: Server
    providers: Mapping[str, ProviderConfig]
    """By name, as configured."""
    catalog: Catalog
    keys: Keys
    models: ModelList
    limits: Mapping[str, Limits]
    """Of the providers that have some, by name."""


def assemble(
    config: Config,
    quirks: Quirks | None,
    health: Health,
    providers: Sequence[Provider] | None = None,
    former: Parts | None = None,
) -> Parts:
    """`providers`, when given, stand in for the configured ones.

    Of providers that were the same in `former`, the models that they listed are still known, and requests
    that they have under way still count; where nothing but the file tells what they are, they go on
    themselves, with their connections and what they hold in memory.
    """
    named = {each.name: each for each in config.providers}
    listed: dict[str, Sequence[ModelInfo]] = {}
    kept: dict[str, Provider] = {}
    limits = limits_of(config)
    if former is not None:
        same = unchanged(named, former.providers)
        listed = {name: former.catalog.listed(name) for name in same}
        limits |= {name: former.limits[name] for name in same if name in limits}
        if _times(config.server) == _times(former.server):
            stay = {name for name in same if _told_by_file(named[name])}
            kept = {
                each.name: each
                for each in former.catalog.providers
                if each.name in stay and each.unavailable is None
            }
    built = build(config, quirks, kept) if providers is None else list(providers)
    catalog = build_catalog(config, built, health, listed)
    keys = Keys([key.get_secret_value() for key in config.server.api_keys])
    return Parts(config.server, named, catalog, keys, ModelList(catalog), limits)


def unchanged(new: Mapping[str, ProviderConfig], old: Mapping[str, ProviderConfig]) -> Collection[str]:
    """The names that stand for the same in both."""
    return [name for name, provider in new.items() if old.get(name) == provider]


def _told_by_file(config: ProviderConfig) -> bool:
    """Not by the environment or `~/.databrickscfg`, which may say something else by now."""
    return config.kind != "databricks" or (config.base_url is not None and config.config_profile is None)


def _times(server: Server) -> tuple[float, float]:
    """What connections are made with."""
    return server.connect_timeout_s, server.idle_timeout_s


class Gateway:
    """One per process."""

    def __init__(
        self, parts: Parts, health: Health, log: Log, metrics: Metrics, quirks: Quirks | None = None
    ) -> None:
        """`quirks`: what `parts` were assembled with."""
        self.health, self.log, self.metrics = health, log, metrics
        self.seal_key = SealKey(parts.server)
        self.images = Images()
        self.serving: set[Client] = set()
        self.closing = False
        """Whether the process is about to end: what has no end of its own ends now."""
        self._quirks, self._sticky = quirks, Sticky()
        self._retiring: dict[asyncio.Task[None], Catalog] = {}
        self._take(parts)

    def _take(self, parts: Parts) -> None:
        self._parts = parts
        self.server, self.catalog, self.keys = parts.server, parts.catalog, parts.keys
        self.models, self.limits = parts.models, parts.limits
        self.ranked = RankedLists(parts.catalog)
        # What a router learned of losses it learned of other profiles.
        self.router = Router(self.health, self._sticky, self.limits)

    async def reconfigure(self, config: Config) -> None:
        """Serve by another configuration from the next request on; the old one ends with its last.

        When it raises nothing has changed.
        """
        former = self._parts
        parts = await asyncio.to_thread(assemble, config, self._quirks, self.health, None, former)
        await parts.catalog.start(LISTED_S)
        if parts.server.seal_key != former.server.seal_key:
            self.seal_key = SealKey(parts.server)
        changed = {*parts.providers, *former.providers} - {*unchanged(parts.providers, former.providers)}
        self.health.forget(changed)  # other backends bear these names now
        self._take(parts)
        retiring = self._retire(former.catalog, frozenset(self.serving), parts.catalog.providers)
        task = asyncio.create_task(retiring)
        self._retiring[task] = former.catalog
        task.add_done_callback(self._retiring.pop)

    async def _retire(
        self, catalog: Catalog, under_way: frozenset[Client], kept: Collection[Provider]
    ) -> None:
        # An Event each would cost every request.
        while not under_way.isdisjoint(self.serving):  # noqa: ASYNC110
            await asyncio.sleep(RETIRE_S)
        await close(catalog, kept)

    async def aclose(self) -> None:
        retiring = dict(self._retiring)
        for task in retiring:
            task.cancel()
        await asyncio.gather(*retiring, return_exceptions=True)
        for catalog in (*retiring.values(), self.catalog):
            await close(catalog)

    def not_ready(self) -> str | None:
        """Why no call can be answered now, None when one can."""
        providers = self.catalog.providers
        if not providers:
            return "no provider is configured"
        reasons = [f"{each.name}: {each.unavailable}" for each in providers if each.unavailable is not None]
        return "; ".join(reasons) if len(reasons) == len(providers) else None

    def end_open_answers(self) -> None:
        """The grace of a shutdown is over: what still runs fails, each answer in its own way."""
        for client in list(self.serving):
            client.interrupt("shutdown")


async def close(catalog: Catalog, kept: Collection[Provider] = ()) -> None:
    """End what a catalogue and its providers have under way, but for those `kept`."""
    await catalog.aclose()
    for provider in catalog.providers:
        if provider not in kept:
            await provider.aclose()


def limits_of(config: Config) -> dict[str, Limits]:
    """What the configuration limits, by provider; nothing for one without limits."""
    limits = {}
    for each in config.providers:
        gate = None
        if each.max_concurrency is not None:
            gate = Gate(each.name, each.max_concurrency, each.max_queue, each.queue_timeout_s)
        if gate is not None or each.first_token_timeout_s is not None:
            limits[each.name] = Limits(gate, each.first_token_timeout_s)
    return limits
