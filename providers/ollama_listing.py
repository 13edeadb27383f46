"""What an Ollama says of its models: `/api/tags`, and what that leaves open.

    GET  /api/tags      {models: [{name, model, digest, size, details, capabilities?, remote_model?}]}
    POST /api/show      {capabilities, details, model_info: {"<architecture>.context_length", ...}}
    GET  /api/ps        {models: [{name, ...}]}: what is in memory now
    GET  /api/version   {version}

S ollama: capabilities and `details.context_length` are in the tags of new servers only; with older ones every
model has to be asked about. Its digest names what it is made of, so once for each of those is enough.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

import structlog
from yarl import URL

from translators.lenient import read_json

from .base import ModelInfo
from .listing import LISTING_TIMEOUT_S
from .ranking.facts import dimensions, window

AT_ONCE = 8
MAX_SHOWN = 1024
"""Answers of `/api/show` that are kept."""
_TOLD = (".context_length", ".embedding_length", "general.parameter_count", "general.architecture")
"""Ends of the keys of `model_info` that are worth keeping; others are tables of megabytes."""

Shown = MutableMapping[str, Mapping[str, Any]]
"""Digest, or name where there is none -> what `/api/show` said of such a model."""

_log = structlog.get_logger("dragoman")


async def describe(
    who: str, base: URL, headers: Mapping[str, str], listed: Sequence[ModelInfo], shown: Shown
) -> list[ModelInfo]:
    """`listed` with what else the server at `base` says of them; `shown` is added to.

    What cannot be had is left out: a model without facts can still be asked.
    """
    # Imported on use, as in `listing.py`.
    import httpx

    async with httpx.AsyncClient(timeout=LISTING_TIMEOUT_S, headers=dict(headers)) as client:
        server = _Server(who, client, str(base).rstrip("/"))
        asking = asyncio.gather(*(server.show(info, shown) for info in listed))
        loaded, version, _ = await asyncio.gather(server.loaded(), server.version(), asking)
    while len(shown) > MAX_SHOWN:
        del shown[next(iter(shown))]
    return [_described(info, shown, loaded, version) for info in listed]


def _described(info: ModelInfo, shown: Shown, loaded: frozenset[str] | None, version: str) -> ModelInfo:
    facts = {**info.facts, **shown.get(_kind_of(info), {})}
    if loaded is not None:
        facts["loaded"] = info.id in loaded
    if version:
        facts["server_version"] = version
    return replace(info, facts=facts)


def digest_of(info: ModelInfo) -> str:
    """Empty where none is told."""
    digest = info.facts.get("digest")
    return digest if isinstance(digest, str) else ""


def _kind_of(info: ModelInfo) -> str:
    return digest_of(info) or info.id


class _Server:
    """One server, asked several things at a time."""

    def __init__(self, who: str, client: Any, base: str) -> None:
        self._who, self._client, self._base = who, client, base
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def loaded(self) -> frozenset[str] | None:
        """Names of the models in memory; None: the server does not say."""
        models = (await self._ask("GET", "/api/ps")).get("models")
        if not isinstance(models, list):
            return None
        return frozenset(str(entry.get("name")) for entry in models if isinstance(entry, dict))

    async def version(self) -> str:
        told = (await self._ask("GET", "/api/version")).get("version")
        return told if isinstance(told, str) else ""

    async def show(self, info: ModelInfo, shown: Shown) -> None:
        """Ask about one model, unless all is known of it."""
        if _is_complete(info.facts) or (digest_of(info) and digest_of(info) in shown):
            return
        told = await self._ask("POST", "/api/show", {"model": info.id})
        if told:
            shown[_kind_of(info)] = _worth_keeping(told)

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """The object that the server answers with; empty: it does not."""
        import httpx

        try:
            async with self._gate:
                answer = await self._client.request(method, self._base + path, json=body)
            found, _ = read_json(answer.content) if answer.status_code == 200 else (None, False)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            _log.info("ollama_not_told", provider=self._who, path=path, reason=type(error).__name__)
            return {}
        return found if isinstance(found, dict) else {}


def _is_complete(facts: Mapping[str, Any]) -> bool:
    able = facts.get("capabilities")
    if not isinstance(able, list) or window(facts) is None:
        return False
    return "embedding" not in able or dimensions(facts) is not None


def _worth_keeping(told: Mapping[str, Any]) -> Mapping[str, Any]:
    kept = {key: told[key] for key in ("capabilities", "details") if told.get(key)}
    info = told.get("model_info")
    if isinstance(info, dict):
        kept["model_info"] = {key: value for key, value in info.items() if key.endswith(_TOLD)}
    return kept
