"""What the routes share: configuration, catalogue, keys, and who is being served right now."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from config.extras import lacking
from config.schema import Background as BackgroundLimits
from config.schema import Compaction, Config, Price, ProviderConfig, RateLimits, Server, Store
from providers.base import ModelInfo, Provider
from providers.catalog import Catalog
from providers.gate import Gate
from providers.health import Health
from providers.images import Images
from providers.quirks import Quirks
from providers.registry import build, build_catalog

from .access.auth import Keys
from .access.keys_file import KeysOf, read_keys
from .access.limits import KeyLimiter
from .access.passthrough import signing
from .access.scopes import Scope
from .attempt import Limits
from .routing.dimensions import DimensionProbe
from .routing.models import ModelList
from .routing.ranked import RankedLists
from .routing.routing import Router
from .routing.sticky import Sticky
from .seal_key import SealKey
from .state.background import Background
from .state.state import State
from .store import open_store
from .stream import Client, Patience
from .telemetry.log import Log
from .telemetry.prices import Prices

if TYPE_CHECKING:
    from .telemetry.metrics import Metrics
    from .telemetry.telemetry import Telemetry
    from .telemetry.watch import Watch


LISTED_S = 1.0
"""How long a new configuration waits for what its backends list, before requests go by it."""
RETIRE_S = 0.25
"""Between two looks whether the last request of a former configuration has ended."""


@dataclass(slots=True)
class Parts:
    """What a configuration is made into; a new one replaces all of it at once."""

    server: Server
    store: Store
    providers: Mapping[str, ProviderConfig]
    """By name, as configured."""
    catalog: Catalog
    keys: Keys
    models: ModelList
    limits: Mapping[str, Limits]
    """Of the providers that have some, by name."""
    compaction: Compaction = field(default_factory=Compaction)
    prices: Mapping[str, Price] = field(default_factory=dict)
    keys_of: KeysOf = field(default_factory=KeysOf)
    rate_limits: RateLimits = field(default_factory=RateLimits)
    background: BackgroundLimits = field(default_factory=BackgroundLimits)
    lacking: Mapping[str, str] = field(default_factory=dict)
    """By section of the configuration, what is not installed for it."""


def assemble(
    config: Config,
    quirks: Quirks | None,
    health: Health,
    providers: Sequence[Provider] | None = None,
    former: Parts | None = None,
) -> Parts:
    """`providers`, when given, stand in for the configured ones.

    Of providers unchanged since `former` the listed models are still known and requests under way still
    count; where nothing but the file tells what they are, they go on themselves, memory and connections too.
    """
    named, limits = {each.name: each for each in config.providers}, limits_of(config)
    listed: dict[str, Sequence[ModelInfo]] = {}
    kept: dict[str, Provider] = {}
    dimensions: dict[str, int | None] = {}
    if former is not None:
        same = unchanged(named, former.providers)
        dimensions = _measured(former, same)
        listed = {name: former.catalog.listed(name) for name in same}
        limits |= {name: former.limits[name] for name in same if name in limits}
        kept = _going_on(config, named, former, same)
    built = build(config, quirks, kept) if providers is None else list(providers)
    catalog = build_catalog(config, built, health, listed, dimensions)
    keys_of = read_keys(config.server, None if former is None else former.keys_of)
    return Parts(
        config.server,
        config.store,
        named,
        catalog,
        keys_of.keys(config.server),
        ModelList(catalog),
        limits,
        config.compaction,
        config.prices,
        keys_of,
        config.limits,
        config.background,
        {str(each.place[0]): each.message for each in lacking(config)},
    )


def _measured(former: Parts, same: Collection[str]) -> dict[str, int | None]:
    """By `provider/model`, the lengths of vectors that are known already."""
    found = former.catalog.dimensions.items()
    return {target: count for target, count in found if target.partition("/")[0] in same}


def _going_on(
    config: Config, named: Mapping[str, ProviderConfig], former: Parts, same: Collection[str]
) -> dict[str, Provider]:
    """By name, the providers of `former` that serve on as they are."""
    if _times(config.server) != _times(former.server):
        return {}
    stay = {name for name in same if _told_by_file(named[name])}
    return {
        each.name: each for each in former.catalog.providers if each.name in stay and each.unavailable is None
    }


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
        self.background = Background(parts.background)
        self.state = open_state(parts, metrics, self.background)
        self.images = Images()
        self.serving: set[Client] = set()
        self.closing = False
        """Whether the process is about to end: what has no end of its own ends now."""
        self.watch: Watch | None = None
        """Who looks closely at exchanges, None: nobody does."""
        self.telemetry: Telemetry | None = None
        self._quirks, self._sticky = quirks, Sticky()
        self._limiter: KeyLimiter | None = None
        self._running: dict[str, int] = {}
        self.dimensions = DimensionProbe()
        self._retiring: dict[asyncio.Task[None], Catalog] = {}
        self._take(parts)

    def _take(self, parts: Parts) -> None:
        self._parts = parts
        self.server, self.catalog, self.keys = parts.server, parts.catalog, parts.keys
        self.models, self.limits = parts.models, parts.limits
        self.patience = Patience(parts.server.keepalive_s, parts.server.idle_timeout_s)
        self.compaction = parts.compaction
        self.ranked = RankedLists(parts.catalog)
        self.background.limits = parts.background
        self.prices = Prices(parts.prices, parts.catalog.facts)
        self.probed = frozenset(name for name, each in parts.providers.items() if each.probe_dimensions)
        # What a router learned of losses it learned of other profiles.
        sign = signing(parts.catalog.providers, lambda: self.keys)
        scope_of = None if parts.keys_of.path is None else self._scope_of
        self.router = Router(self.health, self._sticky, self.limits, scope_of, sign)

    @property
    def keys_of(self) -> KeysOf:
        """The keys file as it was read last."""
        return self._parts.keys_of

    @property
    def lacking(self) -> Mapping[str, str]:
        """By section of the configuration, why it has no effect."""
        return self._parts.lacking

    def _scope_of(self, headers: Mapping[bytes, bytes]) -> Scope | None:
        return self.keys.scope(headers)

    def take_keys(self, keys_of: KeysOf) -> None:
        """Let these in from the next request on."""
        self._parts.keys_of = keys_of
        self.keys = self._parts.keys = keys_of.keys(self.server)

    def limiter(self) -> KeyLimiter:
        """The limits of keys; what counts is imported when a key with limits asks first."""
        if self._limiter is None:
            from .access.counters import open_counters

            config = self._parts.rate_limits
            self._limiter = KeyLimiter(config, open_counters(config), self._running)
        return self._limiter

    async def reconfigure(self, config: Config) -> None:
        """Serve by another configuration from the next request on; the old one ends with its last.

        When it raises nothing has changed.
        """
        former = self._parts
        parts = await asyncio.to_thread(assemble, config, self._quirks, self.health, None, former)
        await parts.catalog.start(LISTED_S)
        if parts.server.seal_key != former.server.seal_key:
            self.seal_key = SealKey(parts.server)
        state = self.state
        if parts.store != former.store:
            self.state = open_state(parts, self.metrics, self.background)
        changed = {*parts.providers, *former.providers} - {*unchanged(parts.providers, former.providers)}
        self.health.forget(changed)  # other backends bear these names now
        self._take(parts)
        if parts.rate_limits != former.rate_limits and self._limiter is not None:
            limiter, self._limiter = self._limiter, None
            await limiter.aclose()
        left = None if state is self.state else state
        retiring = self._retire(former.catalog, frozenset(self.serving), parts.catalog.providers, left)
        task = asyncio.create_task(retiring)
        self._retiring[task] = former.catalog
        task.add_done_callback(self._retiring.pop)

    async def _retire(
        self,
        catalog: Catalog,
        under_way: frozenset[Client],
        kept: Collection[Provider],
        state: State | None,
    ) -> None:
        # An Event each would cost every request.
        while not under_way.isdisjoint(self.serving):  # noqa: ASYNC110
            await asyncio.sleep(RETIRE_S)
        await close(catalog, kept)
        if state is not None:
            await self.background.drain(state)
            await state.aclose()

    async def aclose(self) -> None:
        await self.background.drain()
        await self.dimensions.aclose()
        if self._limiter is not None:
            await self._limiter.aclose()
        retiring = dict(self._retiring)
        for task in retiring:
            task.cancel()
        await asyncio.gather(*retiring, return_exceptions=True)
        for catalog in (*retiring.values(), self.catalog):
            await close(catalog)
        if self.state is not None:
            await self.state.aclose()
        if self.telemetry is not None:
            await self.telemetry.aclose()

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
        self.background.stop_waiting()


def open_state(parts: Parts, metrics: Metrics, background: Background) -> State | None:
    """What keeps responses, None: nothing does. It connects when it is first needed."""
    store = open_store(parts.store)
    if store is None:
        return None
    state = State(store, parts.server.max_body_bytes, metrics.run_status)
    state.at_work = background.keys
    return state


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
