"""What a backend says it serves; the only traffic that is not on the data path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from yarl import URL

from translators.errors import ProxyError
from translators.lenient import read_json

from .base import ModelInfo

LISTING_TIMEOUT_S = 5.0


async def list_models(
    provider: str, kind: Literal["openai", "databricks", "static"], url: URL, headers: Mapping[str, str]
) -> tuple[ModelInfo, ...]:
    """GET `url` and read its entries in the order given; raises `ProxyError` for anything but a list."""
    # Imported on use: with static lists nothing needs it, and it costs 0.1 s of start.
    import httpx

    try:
        async with httpx.AsyncClient(timeout=LISTING_TIMEOUT_S) as client:
            answer = await client.get(str(url), headers=dict(headers))
        answer.raise_for_status()
    except httpx.HTTPStatusError as error:
        raise _failed(provider, f"status {error.response.status_code}") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _failed(provider, type(error).__name__) from error
    body, _ = read_json(answer.content)
    if body is None:
        raise _failed(provider, "it is no JSON")
    return tuple(_read(body, provider, kind))


def _read(body: Any, provider: str, kind: str) -> Iterator[ModelInfo]:
    """Databricks: `{endpoints: [{name}]}`, `{}` when there is none; else `{data: [{id}]}` or a bare list."""
    group, key = ("endpoints", "name") if kind == "databricks" else ("data", "id")
    if body == {} and kind == "databricks":
        return
    entries = body.get(group) if isinstance(body, dict) else body
    if not isinstance(entries, list):
        raise _failed(provider, f"no {group!r} list in it")
    seen = set()
    for entry in entries:
        name = entry.get(key) if isinstance(entry, dict) else None
        if isinstance(name, str) and name and name not in seen:
            seen.add(name)
            yield ModelInfo(name, provider, entry)


def _failed(provider: str, reason: str) -> ProxyError:
    return ProxyError("upstream", f"provider {provider}: the model list could not be read ({reason})")
