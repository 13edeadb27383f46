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
from .problems import Problem, did_you_mean

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


def check_all(raw: Mapping[str, Any], profiles: Collection[str]) -> Iterator[Problem]:
    """`profiles` are the names that `profile` may take."""
    providers = [p if isinstance(p, Mapping) else {} for p in _list(raw.get("providers"))]
    yield from _server(_table(raw.get("server")))
    yield from _names(providers)
    for position, provider in enumerate(providers):
        yield from _provider(provider, position, profiles)
    yield from _aliases(_table(raw.get("aliases")), providers)


def _server(server: Mapping[str, Any]) -> Iterator[Problem]:
    host = server.get("host", "127.0.0.1")
    known = isinstance(host, str) and host.strip() and "${" not in host
    if known and not is_loopback(host) and not server.get("api_keys"):
        message = f"required when host is {host!r}, which others can reach; or listen on 127.0.0.1"
        yield Problem(("server", "api_keys"), message)


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
    if need and need not in provider:
        message = f'required for kind {kind}, e.g. {need} = "{_EXAMPLE[kind]}"'
        yield Problem(("providers", position, need), message)
    other = {"base_url": "path", "path": "base_url"}.get(need or "")
    if other and other in provider:
        yield Problem(("providers", position, other), f"has no meaning for kind {kind}")
    if row and row not in profiles:
        hint = did_you_mean(row, profiles) or f"; there are {', '.join(sorted(profiles))}"
        yield Problem(("providers", position, "profile"), f"no profile is named {row!r}{hint}")
    for problem in refused_keys(_table(provider.get("extra_body"))):
        yield replace(problem, place=("providers", position, "extra_body", *problem.place))


def _aliases(aliases: Mapping[str, Any], providers: list[Mapping[str, Any]]) -> Iterator[Problem]:
    names = {_text(provider.get("name")) for provider in providers}
    for alias, target in aliases.items():
        if "/" in alias and alias.partition("/")[0] in names:
            message = "can never be reached: a name that begins with a provider's addresses that provider"
            yield Problem(("aliases", alias), message)
        if _leads_back(alias, aliases):
            yield Problem(("aliases", alias), "leads back to itself")
        elif isinstance(target, str) and target.strip() and target not in aliases:
            yield from _alias_target(alias, target, names, providers)


def _leads_back(alias: str, aliases: Mapping[str, Any]) -> bool:
    seen, name = set(), alias
    while isinstance(aliases.get(name), str):
        if name in seen:
            return True
        seen.add(name)
        name = aliases[name]
    return False


def _alias_target(
    alias: str, target: str, names: Collection[str], providers: list[Mapping[str, Any]]
) -> Iterator[Problem]:
    """A target is `provider/model`, another alias, or the bare name of a model that a provider lists."""
    prefix, slash, _ = target.partition("/")
    listed = [model for provider in providers for model in _list(provider.get("models"))]
    if (slash and prefix in names) or target in listed:
        return
    if slash:
        yield Problem(("aliases", alias), f"no provider is named {prefix!r}{did_you_mean(prefix, names)}")
    elif all("models" in provider for provider in providers):
        hint = did_you_mean(target, [model for model in listed if isinstance(model, str)])
        yield Problem(("aliases", alias), f"no provider lists {target!r}{hint}")


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
