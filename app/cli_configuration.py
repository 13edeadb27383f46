"""What the commands share: the option `--config`, the configuration that it means, words to a person."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from config.load import find, load
from config.problems import ConfigErrors
from config.schema import Config
from providers.onnx.extra import NO_EXTRA, extra_is_installed
from providers.profiles import BY_NAME

CONFIG_ERROR = 2
"""Exit status for a configuration with errors."""

ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="TOML file; else DRAGOMAN_CONFIG, else ./dragoman.toml.")
]

_LEVELS = ("debug", "info", "warning", "error")
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
            warn(found)
            return found
        from .discover import discover

        discovery = discover(os.environ, server, Path.home())
    except ConfigErrors as errors:
        refuse(errors)
    for line in discovery.brief if brief else discovery.lines:
        say(line)
    return discovery.config


def warn(config: Config) -> None:
    """Name what is allowed and will not do what was hoped for."""
    level = os.environ.get("DRAGOMAN_LOG_LEVEL", "").strip().lower()
    if level not in ("", *_LEVELS):
        say(f"warning: DRAGOMAN_LOG_LEVEL is none of {', '.join(_LEVELS)}: info is used")
    if not config.providers:
        say("warning: no provider is configured, so there is nothing to serve")
    for provider in config.providers:
        if provider.kind == "onnx" and not extra_is_installed():
            say(f"warning: {provider.name}: {NO_EXTRA}; until then its models answer 503")
        for place in _one_person(provider.overrides.get("request") or {}):
            say(f"warning: {provider.name}: overrides.request.{place} {_SAME_FOR_ALL}")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - this is the command's own output


def refuse(errors: ConfigErrors) -> NoReturn:
    for line in errors.lines():
        say(line)
    raise typer.Exit(CONFIG_ERROR)


def _one_person(rules: Mapping[str, Any]) -> list[str]:
    """Keys for the end user that are set to one value: a provider may block them all for one."""
    tables = [(name, rules.get(name) or {}) for name in ("defaults", "force")]
    return [
        f"{name}.{key}" for name, table in tables for key in ("safety_identifier", "user") if key in table
    ]
