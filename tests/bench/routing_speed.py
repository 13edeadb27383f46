"""How long it takes to know whom to ask: `python -m tests.bench.routing_speed [endpoints ...]`.

By default for 1000 and 10000. Prints microseconds, the median of many runs, from a parsed request to its
route: the name looked up in the catalogue, and the endpoints that it may mean put in order by what each
would lose of the request. Also the milliseconds for which a new model list keeps the event loop from its
requests.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import orjson

from app.request import Request, parse_request
from app.routing.routing import Router
from app.telemetry.trace import Trace
from config.schema import Config
from providers.base import ModelInfo, Provider
from providers.catalog import Catalog
from providers.health import Health
from providers.registry import build, build_catalog

from .ranking_speed import facts_of, median_us, names

ACCOUNTS = 10
LOOK_S = 0.001
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
TURNS = [{"role": role, "content": f"turn {at}"} for at in range(10) for role in ("user", "assistant")]
KEY = {b"session-id": b"a-conversation"}


def config_of(models: Sequence[str]) -> Config:
    first = f"p0/{models[0]}"
    account = {"kind": "databricks", "base_url": "http://127.0.0.1:9", "api_key": "none"}
    return Config.model_validate(
        {
            "providers": [{"name": f"p{at}", **account} for at in range(ACCOUNTS)],
            "aliases": {"an-alias": first, "of-a-class": "chat-balanced"},
            "groups": {"a-group": [{"model": f"p{at % ACCOUNTS}/{models[at]}"} for at in range(8)]},
        }
    )


def catalog_of(count: int) -> tuple[Catalog, Health, list[str]]:
    """`count` endpoints of ten workspaces; half of them scored."""
    models = list(names(count))
    config, health = config_of(models), Health()
    listed: dict[str, list[ModelInfo]] = {}
    for at, model in enumerate(models):
        account = f"p{at % ACCOUNTS}"
        listed.setdefault(account, []).append(ModelInfo(model, account, facts_of(at)))
    catalog = build_catalog(config, build(config), health, listed)
    for provider in catalog.providers:
        _answer(provider, listed[provider.name])
    return catalog, health, models


def _answer(provider: Provider, listed: Sequence[ModelInfo]) -> None:
    """Let a provider list these without a network, and a little otherwise each time."""
    other = [replace(each, facts={**each.facts, "asked": True}) for each in listed]
    answers = itertools.cycle([other, listed])

    async def models() -> Sequence[ModelInfo]:
        return next(answers)

    provider.models = models  # type: ignore[method-assign]


def request_of(model: str, **more: object) -> Request:
    body = {"model": model, "messages": TURNS, "tools": [TOOL], "temperature": 0.2, **more}
    return parse_request("chat", orjson.dumps(body), {}, Trace(b"", ""))


async def measure(count: int) -> dict[str, float]:
    catalog, health, models = catalog_of(count)
    await catalog.refresh()
    gc.collect()
    gc.freeze()  # as a server does when it has started
    router = Router(health)

    def routed(model: str, headers: dict[bytes, bytes] | None = None) -> Callable[[], object]:
        request = request_of(model)
        return lambda: router.route(request, headers or {}, catalog)

    fresh = itertools.count()
    last = f"p{(count - 1) % ACCOUNTS}/{models[-1]}"
    return {
        "exact id": median_us(routed(last), 2000),
        "bare name": median_us(routed(models[-1]), 2000),
        "alias": median_us(routed("an-alias"), 2000),
        "class": median_us(routed("chat-fast"), 500),
        "class, a conversation": median_us(routed("chat-fast", KEY), 500),
        "alias of a class": median_us(routed("of-a-class"), 500),
        "search, repeated": median_us(routed("claud sonet"), 500),
        "group": median_us(routed("a-group"), 500),
        "class, new make of request": median_us(
            lambda: router.route(request_of("chat-fast", **{f"k{next(fresh)}": 1}), {}, catalog), 20
        ),
        "unknown name, repeated": median_us(lambda: _missed(catalog), 200),
        "renewed list: longest stall (ms)": await stall_ms(catalog.refresh),
        "measurements: longest stall (ms)": await stall_ms(lambda: _remeasured(catalog, health, models)),
    }


def _missed(catalog: Catalog) -> object:
    return catalog._directory.find("gpt-4o-2024-08-06")


async def _remeasured(catalog: Catalog, health: Health, models: Sequence[str]) -> None:
    for at, model in enumerate(models[::3]):
        health.succeeded(f"p{at * 3 % ACCOUNTS}/{model}", 3.0, 20, 1.0)
    catalog._ranked_at = -1000.0
    catalog.entries()
    if catalog._ranking is not None:
        await catalog._ranking


async def stall_ms(work: Callable[[], object]) -> float:
    """The longest time for which nothing else got its turn while `work` was done."""
    longest, running = 0.0, True

    async def look() -> None:
        nonlocal longest
        while running:
            since = time.perf_counter()
            await asyncio.sleep(LOOK_S)
            longest = max(longest, time.perf_counter() - since - LOOK_S)

    looking = asyncio.create_task(look())
    await asyncio.sleep(LOOK_S)
    await work()  # type: ignore[misc]
    running = False
    await looking
    return longest * 1e3


def main(counts: Sequence[int]) -> None:
    columns = [asyncio.run(measure(count)) for count in counts]
    print(f"{'us':34}", *(f"{count:>10}" for count in counts))
    for name in columns[0]:
        print(f"{name:34}", *(f"{column[name]:10.1f}" for column in columns))


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [1000, 10000])
