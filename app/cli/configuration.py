"""What the commands share: the option `--config`, the configuration that it means, words to a person."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from config.databricks_account import find_account, home_folder
from config.extras import lacking
from config.keys import load_keys
from config.load import find, keys_file_of, load, placed, read
from config.problems import ConfigErrors
from config.schema import Config, ProviderConfig
from providers.databricks_tokens import NO_SDK, sdk_is_installed
from providers.onnx.extra import NO_EXTRA, extra_is_installed
from providers.profiles import BY_NAME

CONFIG_ERROR = 2
"""Exit status for a configuration with errors."""

ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="TOML file; else DRAGOMAN_CONFIG, else ./dragoman.toml.")
]

LEAST_LENGTH = 16
"""Characters of a secret: 128 bits are 22 letters and digits at random, and nobody's own words are."""
TOO_SHORT = (
    f"has fewer than {LEAST_LENGTH} characters and may be guessed: `openssl rand -hex 32` makes a better one"
)

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
            found = checked(path, server)
            warn(found)
            return found
        from .discover import discover

        discovery = discover(os.environ, server, Path.home())
    except ConfigErrors as errors:
        refuse(errors)
    for line in discovery.brief if brief else discovery.lines:
        say(line)
    return discovery.config


def checked(path: Path | None, server: dict[str, Any] | None = None, *, extras: bool = False) -> Config:
    """A file's word; ends the process with every fault of it, and of the keys file that it names.

    `extras`: a section whose extra is not installed is a fault too, though the rest can be served.
    """
    faults: list[ConfigErrors] = []
    found = Config()
    try:
        found = load(path, os.environ, BY_NAME, server)
    except ConfigErrors as errors:
        faults.append(errors)
    if path is not None and extras and (missing := list(lacking(found))):
        faults.append(ConfigErrors(placed(missing, read(path)), path))
    try:
        if (named := _keys_file(path)) is not None:
            load_keys(Path(named))
    except ConfigErrors as errors:
        faults.append(errors)
    if faults:
        refuse(*faults)
    return found


def _keys_file(path: Path | None) -> str | None:
    """What is wrong with the name itself, reading the whole file has told."""
    try:
        return None if path is None else keys_file_of(read(path), os.environ)
    except ConfigErrors:
        return None


def warn(config: Config) -> None:
    """Name what is allowed and will not do what was hoped for."""
    level = os.environ.get("DRAGOMAN_LOG_LEVEL", "").strip().lower()
    if level not in ("", *_LEVELS):
        say(f"warning: DRAGOMAN_LOG_LEVEL is none of {', '.join(_LEVELS)}: info is used")
    if config.server.workers > 1 and config.server.keys_file and _in_memory(config):
        say("warning: each worker counts keys' limits for itself; limits.storage = redis://... shares them")
    if not config.providers:
        say("warning: no provider is configured, so there is nothing to serve")
    for missing in lacking(config):
        say(f"warning: {missing}")
    for name in short_secrets(config):
        say(f"warning: {name} {TOO_SHORT}")
    for provider in config.providers:
        if (reason := _unavailable(provider)) is not None:
            say(f"warning: {provider.name}: {reason}; until then its models answer 503")
        for place in _one_person(provider.overrides.get("request") or {}):
            say(f"warning: {provider.name}: overrides.request.{place} {_SAME_FOR_ALL}")
        for place in _stored_all_the_same(provider):
            say(f"warning: {provider.name}: {place} {_NOT_STORED}")


def _unavailable(provider: ProviderConfig) -> str | None:
    """Why it cannot be asked, as far as this machine tells."""
    if provider.kind == "onnx" and not extra_is_installed():
        return NO_EXTRA
    if provider.kind != "databricks":
        return None
    try:
        account = find_account(provider, os.environ, home_folder())
    except ValueError as error:
        return str(error)
    return NO_SDK if account.strategy == "sdk" and not sdk_is_installed() else None


def short_secrets(config: Config) -> Iterator[str]:
    """Where the configuration has a secret of ours that can be found by trying."""
    given = {f"server.api_keys[{at}]": key for at, key in enumerate(config.server.api_keys)}
    sealing = {"server.seal_key": config.server.seal_key, "store.encryption_key": config.store.encryption_key}
    given |= {place: secret for place, secret in sealing.items() if secret is not None}
    return (place for place, secret in given.items() if len(secret) < LEAST_LENGTH)


def _in_memory(config: Config) -> bool:
    return config.limits.storage.get_secret_value() == "memory"


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - this is the command's own output


def refuse(*faults: ConfigErrors) -> NoReturn:
    for line in (line for errors in faults for line in errors.lines()):
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
