"""What the commands share: the option `--config`, the configuration that it means, words to a person."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from config.keys import load_keys
from config.load import find, load
from config.problems import ConfigErrors
from config.schema import Config, ProviderConfig
from providers.onnx.extra import NO_EXTRA, extra_is_installed
from providers.profiles import BY_NAME

CONFIG_ERROR = 2
"""Exit status for a configuration with errors."""

ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="TOML file; else DRAGOMAN_CONFIG, else ./dragoman.toml.")
]

_LEVELS = ("debug", "info", "warning", "error")
_NOT_STORED = "has no effect: overrides.wire.chaining = false lets the backend store nothing"
_SAME_FOR_ALL = "names one end user for every request: leave it to the clients to send it"


def configured(config: Path | None) -> Config:
    """What a command works with that listens nowhere, or on a port of its own."""
    return configuration(find(config, os.environ, Path.cwd()), {"port": 0}, brief=True)


def configuration(path: Path | None, server: dict[str, Any], *, brief: bool = False) -> Config:
    """A file's word, or what there is; ends the process when there are errors.

    `brief`: what there is is named, but not what to do about it.
    """
    try:
        if path is not None:
            found = load(path, os.environ, BY_NAME, server)
            check_keys(found)
            warn(found)
            return found
        from .discover import discover

        discovery = discover(os.environ, server, Path.home())
    except ConfigErrors as errors:
        refuse(errors)
    for line in discovery.brief if brief else discovery.lines:
        say(line)
    return discovery.config


def check_keys(config: Config) -> None:
    """Raises `ConfigErrors` for what is wrong in the keys file."""
    if config.server.keys_file is not None:
        load_keys(Path(config.server.keys_file))


def warn(config: Config) -> None:
    """Name what is allowed and will not do what was hoped for."""
    level = os.environ.get("DRAGOMAN_LOG_LEVEL", "").strip().lower()
    if level not in ("", *_LEVELS):
        say(f"warning: DRAGOMAN_LOG_LEVEL is none of {', '.join(_LEVELS)}: info is used")
    if config.server.workers > 1 and config.server.keys_file and _in_memory(config):
        say("warning: each worker counts keys' limits for itself; limits.storage = redis://... shares them")
    if not config.providers:
        say("warning: no provider is configured, so there is nothing to serve")
    for provider in config.providers:
        if provider.kind == "onnx" and not extra_is_installed():
            say(f"warning: {provider.name}: {NO_EXTRA}; until then its models answer 503")
        for place in _one_person(provider.overrides.get("request") or {}):
            say(f"warning: {provider.name}: overrides.request.{place} {_SAME_FOR_ALL}")
        for place in _stored_all_the_same(provider):
            say(f"warning: {provider.name}: {place} {_NOT_STORED}")


def _in_memory(config: Config) -> bool:
    return config.limits.storage.get_secret_value() == "memory"


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - this is the command's own output


def refuse(errors: ConfigErrors) -> NoReturn:
    for line in errors.lines():
        say(line)
    raise typer.Exit(CONFIG_ERROR)


def _stored_all_the_same(provider: ProviderConfig) -> list[str]:
    """Where a provider that lets its backend store nothing says `store`."""
    if (provider.overrides.get("wire") or {}).get("chaining") is not False:
        return []
    rules = provider.overrides.get("request") or {}
    tables = {"extra_body": provider.extra_body}
    tables |= {f"overrides.request.{name}": rules.get(name) or {} for name in ("defaults", "force")}
    return [f"{name}.store" for name, table in tables.items() if table.get("store")]


def _one_person(rules: Mapping[str, Any]) -> list[str]:
    """Keys for the end user that are set to one value: a provider may block them all for one."""
    tables = [(name, rules.get(name) or {}) for name in ("defaults", "force")]
    return [
        f"{name}.{key}" for name, table in tables for key in ("safety_identifier", "user") if key in table
    ]
