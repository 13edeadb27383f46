"""How long the vectors of embedding models are that no listing tells: each is asked once, for one word.

`GET /models?class=embedding` begins it, for what it lists of providers with `probe_dimensions`. The answer to
that does not wait; the lengths are in later ones. A model that fails is not asked again, and stays in the
list without a length. What runs here or in an Ollama tells its length without being asked; asking would
load it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, MutableMapping
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from providers.catalog import Catalog
from providers.ranking import ModelCard, Ranked
from translators.errors import ProxyError
from translators.lenient import read_json

from ..stream import Client, Patience
from ..telemetry.trace import Trace, request_id

if TYPE_CHECKING:
    from ..gateway import Gateway

AT_ONCE = 4
LIMIT_S = 30.0
"""Longest wait for one model."""
_KEEPALIVE_S = 3600.0
"""One body is no stream: nothing is sent to keep it alive."""

_log = structlog.get_logger("dragoman.dimensions")


class DimensionProbe:
    """What is under way; what was found is the catalogue's."""

    def __init__(self) -> None:
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, gateway: Gateway, listed: Iterable[Ranked]) -> None:
        """Ask those that nothing is known of; never waits."""
        catalog = gateway.catalog
        cards = (each.card for each in listed if each.card.provider in gateway.probed)
        wanted = [card for card in cards if _is_open(card, catalog)]
        catalog.dimensions.update((card.target, None) for card in wanted)
        for card in wanted:
            task = asyncio.create_task(self._learn(gateway, catalog, card))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _learn(self, gateway: Gateway, catalog: Catalog, card: ModelCard) -> None:
        async with self._gate:
            found = await _asked(gateway, card.target)
        if isinstance(found, int):
            await catalog.learn_dimensions(card.target, found)
        else:
            _log.warning("dimensions_not_told", model=card.target, reason=found)


def _is_open(card: ModelCard, catalog: Catalog) -> bool:
    unknown = card.task == "embedding" and card.dimensions is None and card.target not in catalog.dimensions
    return unknown and not card.local


async def _asked(gateway: Gateway, target: str) -> int | str:
    """The length, or why there is none."""
    from ..calls import answer_call, framed  # it knows the gateway, and the gateway this

    kept = _Kept()
    trace = Trace(request_id({}), "dimensions")
    client = Client(kept, trace, Patience(_KEEPALIVE_S))
    raw = orjson.dumps({"model": target, "input": "ping"})
    try:
        async with asyncio.timeout(LIMIT_S):
            work = answer_call(gateway, None, raw, {}, client)
            await framed(gateway, client, trace, work, "/embeddings", probe=True)
    except TimeoutError:
        return f"no answer within {LIMIT_S:g} s"
    if trace.error is not None or trace.target != target:
        return _reason(trace.error)
    return _length(kept.body) or "its answer holds no list of numbers"


def _reason(error: ProxyError | None) -> str:
    return "another model answered in its place" if error is None else str(error)[:500]


def _length(body: bytes) -> int:
    """Of the first vector of an answer; 0: it holds none."""
    try:
        vector = read_json(body)[0]["data"][0]["embedding"]
    except (TypeError, KeyError, IndexError):
        return 0
    return len(vector) if isinstance(vector, list) else 0


class _Kept:
    """Takes an answer as a server would, and keeps its body."""

    def __init__(self) -> None:
        self.body = b""

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        self.body += message.get("body", b"")
