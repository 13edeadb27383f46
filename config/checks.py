"""Checks that look at more than one value.

They read the parsed file rather than the checked model, so that their findings come in the
same run as the faults of single values; whatever has the wrong type is passed over here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from .extra_body import refused_keys
from .names import check_names
from .problems import Problem, did_you_mean
from .sign_in import sign_in_problems

_NEEDS: Mapping[str, str] = {
    "openai": "base_url",
    "databricks": "base_url",
    "ollama": "base_url",
    "onnx": "path",
}
_EXAMPLE: Mapping[str, str] = {
    "openai": "https://api.openai.com/v1",
    "databricks": "https://dbc-1234.cloud.databricks.com",
    "ollama": "http://127.0.0.1:11434",
    "onnx": "models/tiny",
}

_DATABASE = "postgresql://user:password@host/database"


def check_all(raw: Mapping[str, Any], profiles: Collection[str]) -> Iterator[Problem]:
    """`profiles` are the names that `profile` may take."""
    providers = [p if isinstance(p, Mapping) else {} for p in _list(raw.get("providers"))]
    yield from _server(_table(raw.get("server")))
    yield from _store(_table(raw.get("store")))
    yield from _names(providers)
    for position, provider in enumerate(providers):
        yield from _provider(provider, position, profiles)
    yield from check_names(raw, providers)


def _server(server: Mapping[str, Any]) -> Iterator[Problem]:
    host = server.get("host", "127.0.0.1")
    known = isinstance(host, str) and host.strip() and "${" not in host
    if known and not is_loopback(host) and not server.get("api_keys") and not server.get("keys_file"):
        message = f"required when host is {host!r}, which others can reach; or listen on 127.0.0.1"
        yield Problem(("server", "api_keys"), message)


def _store(store: Mapping[str, Any]) -> Iterator[Problem]:
    kind = store.get("kind", "sqlite")
    for key, owner in (("path", "sqlite"), ("url", "postgres")):
        if key in store and kind != owner:
            yield Problem(("store", key), f'has a meaning only with kind = "{owner}"')
    url = store.get("url")
    if kind == "postgres" and url is None:
        yield Problem(("store", "url"), f'required for kind postgres, e.g. url = "{_DATABASE}"')
    elif kind == "postgres" and isinstance(url, str) and not _is_database(url):
        yield Problem(("store", "url"), f"must be a PostgreSQL address such as {_DATABASE}")


def _is_database(url: str) -> bool:
    return "${" in url or url.partition("://")[0] in ("postgresql", "postgres", "postgresql+asyncpg")


def _names(providers: list[Mapping[str, Any]]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for position, provider in enumerate(providers):
        name = _text(provider.get("name"))
        if name and first.setdefault(name, position) != position:
            message = f"{name!r} is the name of providers[{first[name]}] too; names are unique"
            yield Problem(("providers", position, "name"), message)


def _provider(provider: Mapping[str, Any], position: int, profiles: Collection[str]) -> Iterator[Problem]:
    kind, row = _text(provider.get("kind")), _text(provider.get("profile"))
    need = _NEEDS.get(kind)
    found_elsewhere = kind == "databricks" and ("auth" in provider or "config_profile" in provider)
    if need and need not in provider and not found_elsewhere:
        message = f'required for kind {kind}, e.g. {need} = "{_EXAMPLE[kind]}"'
        yield Problem(("providers", position, need), message)
    other = {"base_url": "path", "path": "base_url"}.get(need or "")
    if other and other in provider:
        yield Problem(("providers", position, other), f"has no meaning for kind {kind}")
    if row and row not in profiles:
        hint = did_you_mean(row, profiles) or f"; there are {', '.join(sorted(profiles))}"
        yield Problem(("providers", position, "profile"), f"no profile is named {row!r}{hint}")
    if provider.get("api_key_from") == "client":
        if "api_key" in provider:
            message = 'has no meaning with api_key_from = "client": callers send their own'
            yield Problem(("providers", position, "api_key"), message)
        if kind != "openai":
            message = f'must be "config" for kind {kind}: only kind openai is asked with the caller\'s key'
            yield Problem(("providers", position, "api_key_from"), message)
    for key, message in sign_in_problems(provider, kind):
        yield Problem(("providers", position, key), message)
    for problem in refused_keys(_table(provider.get("extra_body"))):
        yield replace(problem, place=("providers", position, "extra_body", *problem.place))


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
