"""What `dragoman models` and `dragoman resolve` answer, without a gateway that runs."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlencode

import orjson

from config.schema import Config
from providers.catalog import Catalog
from providers.health import Health
from translators.ir import Json
from translators.redaction import redact

from ..gateway import assemble, close
from ..routing.ranked import Query, explained, listed, parse_query
from ..telemetry import log
from .configuration import say

T = TypeVar("T")


def query_of(filters: Mapping[str, str | float | bool | None]) -> Query:
    """The filters of `GET /models`, checked as there. Raises `ProxyError`."""
    given = {name: str(value) for name, value in filters.items() if value is not None}
    return parse_query(urlencode(given).encode())


def look_up(config: Config, question: Callable[[Catalog], T]) -> T:
    """The answer of a catalogue whose providers have listed their models, as far as they did.

    Those that have not are named on stderr, with the reason.
    """
    return asyncio.run(_look_up(config, question))


async def _look_up(config: Config, question: Callable[[Catalog], T]) -> T:
    log.configure(log.LEVELS["error"], (), io.BytesIO())  # stdout is the answer's; what matters is said below
    catalog = assemble(config, None, Health()).catalog
    try:
        await catalog.refresh()
        for name, reason in catalog.faults.items():
            say(f"warning: {name}: {redact(reason.removeprefix(f'provider {name}: '))}")
        return question(catalog)
    finally:
        await close(catalog)


def rows(catalog: Catalog, query: Query) -> Sequence[Json] | None:
    """The entries of `GET /models` that fit; None: no model at all is known, so that none can."""
    if not catalog.ranking().all:
        return None
    found: Sequence[Json] = orjson.loads(listed(catalog.directory(), query))["data"]
    return found


def resolved(catalog: Catalog, name: str) -> Json:
    """How `name` is read, and the endpoints that it means, best first.

    Raises `ProxyError` (404), with suggestions, for a name that means nothing.
    """
    said = explained(catalog, name)
    found = {each.card.target: each for each in catalog.ranking().resolve(name)}
    choices = []
    for choice in said["choices"]:
        each = found.get(choice["id"])
        why = {} if each is None else {"score": each.score, "reasons": each.reasons}
        choices.append({**choice, **why})
    return {"name": name, "source": said["source"], "order": said["order"], "choices": choices}
