"""From a file to a `Config`, or to every error in it at once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from .checks import check_all
from .conflicts import provider_conflicts
from .environment import substitute
from .faults import explain, first_causes
from .lines import find_line
from .overrides import find_problems, sections, without_false
from .problems import ConfigErrors, Place, Problem, did_you_mean
from .schema import Config, Price, ProviderConfig, RateLimits, Section, Server, Store, Telemetry

VARIABLE = "DRAGOMAN_CONFIG"
DEFAULT_FILE = "dragoman.toml"


def find(chosen: Path | None, environ: Mapping[str, str], folder: Path) -> Path | None:
    """`--config`, else the file that DRAGOMAN_CONFIG names, else ./dragoman.toml if present."""
    if chosen is not None:
        return chosen
    if environ.get(VARIABLE):
        return Path(environ[VARIABLE])
    return folder / DEFAULT_FILE if (folder / DEFAULT_FILE).is_file() else None


def load(
    path: Path | None,
    environ: Mapping[str, str],
    profiles: Collection[str],
    server: Mapping[str, Any] | None = None,
) -> Config:
    """Read and check a configuration; `path` None means the built-in defaults.

    `profiles` are the names that a provider's `profile` may take; `server` are values from
    the command line, which win over the file's. Raises `ConfigErrors`.
    """
    text = read(path) if path else ""
    return parse(text, environ, profiles, server, path)


def parse(
    text: str,
    environ: Mapping[str, str],
    profiles: Collection[str],
    server: Mapping[str, Any] | None = None,
    source: Path | None = None,
) -> Config:
    """`load` for text already read."""
    raw = read_toml(text, source)
    if server:
        table = raw.setdefault("server", {})
        raw["server"] = {**table, **server} if isinstance(table, dict) else table
    problems, config = check(raw, environ, profiles)
    if config is None:
        raise ConfigErrors(placed(problems, text), source)
    return config


def check(
    raw: Mapping[str, Any], environ: Mapping[str, str], profiles: Collection[str]
) -> tuple[list[Problem], Config | None]:
    """All faults of a parsed file, and the configuration if there is none."""
    problems: list[Problem] = []
    filled = substitute(raw, environ, problems)
    unset = {problem.place for problem in problems}
    found = [*_override_problems(filled), *_conflicts(filled, profiles), *check_all(filled, profiles)]
    try:
        config = Config.model_validate(_with_plain_overrides(filled))
    except ValidationError as error:
        config = None
        found += [explain(fault, _nearest) for fault in first_causes(error.errors(include_url=False))]
    # A value with an unset variable in it has had its say.
    problems += [each for each in found if each.place not in unset]
    return list(dict.fromkeys(problems)), None if problems else config


def keys_file_of(text: str, environ: Mapping[str, str], source: Path | None = None) -> str | None:
    """`server.keys_file` of a file's text, whatever else is in it. Raises `ConfigErrors` for that key alone.

    Whoever makes keys need not have the secrets of backends in the environment.
    """
    server = read_toml(text, source).get("server")
    if not isinstance(server, dict) or "keys_file" not in server:
        return None
    problems, config = check({"server": {"keys_file": server["keys_file"]}}, environ, ())
    if config is None:
        raise ConfigErrors(placed(problems, text), source)
    return config.server.keys_file


def placed(problems: Iterable[Problem], text: str) -> list[Problem]:
    """With the lines of `text` where they are, in that order."""
    found = [replace(each, line=find_line(text, each.place)) for each in problems]
    return sorted(found, key=lambda each: each.line or 0)


def read_toml(text: str, source: Path | None) -> dict[str, Any]:
    """Raises `ConfigErrors`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"at line (\d+)", str(error))
        raise ConfigErrors([Problem((), str(error), int(at[1]) if at else None)], source) from error


def read(path: Path) -> str:
    """Raises `ConfigErrors`."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigErrors([Problem((), "no such file")], path) from error
    except UnicodeDecodeError as error:
        raise ConfigErrors([Problem((), "is not UTF-8 text")], path) from error
    except OSError as error:
        raise ConfigErrors([Problem((), f"cannot be read: {error.strerror}")], path) from error


def _override_tables(raw: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any], str]]:
    providers = raw.get("providers")
    for at, provider in enumerate(providers if isinstance(providers, list) else ()):
        if isinstance(provider, dict) and isinstance(provider.get("overrides"), dict):
            yield at, provider["overrides"], str(provider.get("kind"))


def _override_problems(raw: Mapping[str, Any]) -> Iterator[Problem]:
    for at, table, kind in _override_tables(raw):
        for problem in find_problems(table, kind):
            yield replace(problem, place=("providers", at, "overrides", *problem.place))


def _conflicts(raw: Mapping[str, Any], profiles: Collection[str]) -> Iterator[Problem]:
    """Of overrides without a fault of their own, over the rows that they may meet."""
    for at, table, kind in _override_tables(raw):
        provider = raw["providers"][at]
        known = provider.get("profile") is None or provider["profile"] in profiles
        if table and known and not any(find_problems(table, kind)):
            for problem in provider_conflicts(provider, without_false(table)):
                yield replace(problem, place=("providers", at, "overrides", *problem.place))


def _with_plain_overrides(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Faulty overrides are told once, with their places, and not again by the model."""
    out = dict(raw)
    for at, table, kind in _override_tables(raw):
        plain = {} if any(find_problems(table, kind)) else without_false(table)
        out["providers"] = list(out["providers"])
        out["providers"][at] = {**out["providers"][at], "overrides": plain}
    return out


def _nearest(place: Place) -> str:
    word, owner = str(place[-1]), _model_at(place)
    hint = did_you_mean(word, owner.model_fields)
    if not hint and owner is ProviderConfig and word in sections():
        hint = f', did you mean "overrides.{word}"?'
    return hint


def _model_at(place: Place) -> type[Section]:
    """The table that the last key of `place` stands in."""
    tables: dict[str | int, type[Section]] = {
        "server": Server,
        "store": Store,
        "limits": RateLimits,
        "telemetry": Telemetry,
        "prices": Price,
        "providers": ProviderConfig,
    }
    return tables.get(place[0], Config) if len(place) > 1 else Config
