"""The model services of a workspace's AI gateway: the same models under Unity Catalog names.

S ucode: `parent` is the only filter that works, without `page_size` the answer is a 499, and 499 and
504 come at random. A workspace that has no gateway answers 404, one that may not look 403: it then has
no services.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from yarl import URL

from translators.errors import ProxyError
from translators.lenient import read_json

from .base import ModelInfo
from .databricks_facts import entities, table
from .listing import fetch

PATH = "/api/2.1/unity-catalog/model-services"
SCHEMA = "schemas/system.ai"
PAGE = 100
MAX_PAGES = 20
TRIES = 4
PAUSE_S = 0.2
SERVICES_S = 4.0
"""Longest wait for all pages: the endpoints, which are listed first, must not wait for them in vain."""
_AT_RANDOM = frozenset({499, 504})


async def list_services(
    provider: str, base: URL, headers: Mapping[str, str], endpoints: Sequence[ModelInfo]
) -> list[ModelInfo]:
    """Services in the order given; each with what the listing of `endpoints` says of the same model.

    Raises `ProxyError` or TimeoutError when the list broke, and there may well be services.
    """
    known = _by_model(endpoints)
    taken = {info.id for info in endpoints}
    found: list[ModelInfo] = []
    async with asyncio.timeout(SERVICES_S):
        async for entry in _entries(provider, base, headers):
            name = entry.get("name")
            name = name.rpartition("/")[2] if isinstance(name, str) else ""
            if name and name not in taken:
                taken.add(name)
                found.append(ModelInfo(name, provider, _facts(name, entry, known.get(name))))
    return found


async def _entries(provider: str, base: URL, headers: Mapping[str, str]) -> AsyncIterator[Mapping[str, Any]]:
    token = ""
    for _ in range(MAX_PAGES):
        page = await _page(provider, _page_url(base, token), headers)
        for entry in _tables(page.get("model_services")):
            yield entry
        token = page.get("next_page_token") or ""
        if not isinstance(token, str) or not token:
            return


def _page_url(base: URL, token: str) -> URL:
    query = {"parent": SCHEMA, "page_size": str(PAGE), "view": "FULL"}
    if token:
        query["page_token"] = token
    return base.with_path(base.path.rstrip("/") + PATH).with_query(query)


async def _page(provider: str, url: URL, headers: Mapping[str, str]) -> Mapping[str, Any]:
    for left in reversed(range(TRIES)):
        status, content = await fetch(provider, url, headers)
        if status not in _AT_RANDOM:
            break
        if left:
            await asyncio.sleep(PAUSE_S)
    if 400 <= status < 500 and status not in _AT_RANDOM and status != 429:
        return {}
    body, _ = read_json(content) if status == 200 else (None, None)
    if not isinstance(body, dict):
        raise ProxyError(
            "upstream", f"provider {provider}: its model services could not be listed ({status})"
        )
    return body


def _by_model(endpoints: Sequence[ModelInfo]) -> dict[str, tuple[ModelInfo, Mapping[str, Any]]]:
    """Endpoint and entity of each foundation model, by its name: `system.ai.gpt-5-5`."""
    found: dict[str, tuple[ModelInfo, Mapping[str, Any]]] = {}
    for info in endpoints:
        for entity in entities(info.facts):
            name = table(entity, "foundation_model").get("name")
            if isinstance(name, str):
                found.setdefault(name, (info, entity))
    return found


def _facts(
    name: str, entry: Mapping[str, Any], twin: tuple[ModelInfo, Mapping[str, Any]] | None
) -> dict[str, Any]:
    """The raw entry, in the form of an endpoint's: what tells of the model is where it is told there.

    `endpoint` is the endpoint that serves the same model, if one does. `api_types` are the service's
    own: the endpoint is served on other paths.
    """
    types = entry.get("supported_api_types")
    entity: Mapping[str, Any] = {}
    more: dict[str, Any] = {}
    if twin is not None:
        info, entity = twin
        more = {key: info.facts[key] for key in ("task", "capabilities", "description") if key in info.facts}
        more["endpoint"] = info.id
    model = {key: value for key, value in table(entity, "foundation_model").items() if key != "api_types"}
    model |= {"name": name} | ({"api_types": types} if isinstance(types, list) else {})
    served = {**entity, "name": name, "foundation_model": model}
    task = _task(types)
    config = {**table(entry, "config"), "served_entities": [served]}
    return {**({"task": task} if task else {}), **more, **entry, "name": name, "config": config}


def _task(types: Any) -> str | None:
    """Services tell none; one that makes vectors makes nothing else."""
    told = [kind for kind in types if isinstance(kind, str)] if isinstance(types, list) else []
    if not told:
        return None
    return "llm/v1/embeddings" if all(kind.endswith("/embeddings") for kind in told) else "llm/v1/chat"


def _tables(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (each for each in (value if isinstance(value, list) else ()) if isinstance(each, dict))
