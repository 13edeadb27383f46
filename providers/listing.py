"""What a backend says it serves; the only traffic that is not on the data path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from yarl import URL

from translators.errors import Kind, ProxyError
from translators.lenient import read_json

from .base import ModelInfo

LISTING_TIMEOUT_S = 5.0
MAX_BYTES = 32 << 20
"""Of a list, unpacked: 10,000 models with all that backends tell of them are a third of that."""
_PLACES: Mapping[str, tuple[str, str]] = {"databricks": ("endpoints", "name"), "ollama": ("models", "name")}
"""Key of the list and of a model's name, where they are not OpenAI's."""


async def list_models(
    provider: str,
    kind: Literal["openai", "databricks", "ollama", "static"],
    url: URL,
    headers: Mapping[str, str],
) -> tuple[ModelInfo, ...]:
    """GET `url` and read its entries in the order given; raises `ProxyError` for anything but a list.

    It is an upstream_auth when the key was refused.
    """
    status, content = await fetch(provider, url, headers)
    if not 200 <= status < 300:
        raise _failed(provider, f"status {status}", "upstream_auth" if status in (401, 403) else "upstream")
    body, _ = read_json(content)
    if body is None:
        raise _failed(provider, "it is no JSON")
    return tuple(_read(body, provider, kind))


async def fetch(provider: str, url: URL, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Status and body of a GET; raises `ProxyError` when there was no answer, or more than MAX_BYTES."""
    # Imported on use: with static lists nothing needs it, and it costs 0.1 s of start.
    import httpx

    try:
        async with (
            httpx.AsyncClient(timeout=LISTING_TIMEOUT_S) as client,
            client.stream("GET", str(url), headers=dict(headers)) as answer,
        ):
            content = bytearray()
            async for piece in answer.aiter_bytes():
                content += piece
                if len(content) > MAX_BYTES:
                    raise _failed(provider, f"it is longer than {MAX_BYTES >> 20} MiB")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _failed(provider, type(error).__name__) from error
    return answer.status_code, bytes(content)


def _read(body: Any, provider: str, kind: str) -> Iterator[ModelInfo]:
    """`{data: [{id}]}` or a bare list; Ollama `{models: [{name}]}`, Databricks `{endpoints: [{name}]}`.

    The last is `{}` when there is none.
    """
    group, key = _PLACES.get(kind, ("data", "id"))
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


def _failed(provider: str, reason: str, kind: Kind = "upstream") -> ProxyError:
    return ProxyError(kind, f"provider {provider}: the model list could not be read ({reason})")
