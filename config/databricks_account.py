"""Which workspace a provider of kind `databricks` is, and how it signs in there.

The configuration says it; where it doesn't, the environment, then the profile in `~/.databrickscfg`,
as in Databricks' own tools. What was found rather than named is used for its own host only: nobody's
token goes to an address that merely stands in the configuration.
"""

from __future__ import annotations

import configparser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from .address import normalise
from .schema import ProviderConfig

Strategy = Literal["pat", "oauth-m2m", "sdk"]

NO_HOST = (
    "no workspace is known: set base_url, or DATABRICKS_HOST, or name a profile of ~/.databrickscfg "
    "that has a host in config_profile"
)

_SDK_VARIABLES = (
    *("DATABRICKS_AUTH_TYPE", "DATABRICKS_METADATA_SERVICE_URL", "DATABRICKS_USERNAME"),
    *("DATABRICKS_OIDC_TOKEN_ENV", "DATABRICKS_OIDC_TOKEN_FILEPATH", "DATABRICKS_AZURE_RESOURCE_ID"),
    *("DATABRICKS_GOOGLE_SERVICE_ACCOUNT", "GOOGLE_CREDENTIALS", "ARM_CLIENT_ID", "ARM_USE_MSI"),
)
"""Variables that ask for one of the SDK's strategies."""


@dataclass(frozen=True, slots=True)
class Account:
    """A workspace and what to sign with; `strategy` None: requests are not signed.

    `profile` is the one that it was read from, or that the SDK shall read.
    """

    host: str
    strategy: Strategy | None = None
    token: str = field(default="", repr=False)
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class _Source:
    """One place that may say something; `other`: it asks for a strategy that only the SDK knows."""

    host: str = ""
    token: str = field(default="", repr=False)
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    other: bool = False
    profile: str | None = None

    def strategy(self) -> Strategy | None:
        if self.other:
            return "sdk"
        if self.token:
            return "pat"
        return "oauth-m2m" if self.client_id and self.client_secret else None

    def allows(self, strategy: Strategy) -> bool:
        if strategy == "sdk":
            return self.other or self.profile is not None
        return bool(self.token if strategy == "pat" else self.client_id and self.client_secret)


@dataclass(frozen=True, slots=True)
class ProfileFile:
    """`~/.databrickscfg`: INI sections; one that is missing or no INI file holds nothing."""

    path: Path
    sections: Mapping[str, Mapping[str, str]]

    @staticmethod
    def read(environ: Mapping[str, str], home: Path) -> ProfileFile:
        told = environ.get("DATABRICKS_CONFIG_FILE", "")
        path = home / told[2:] if told.startswith("~/") else Path(told) if told else home / ".databrickscfg"
        # DEFAULT is a profile like any other there, not a base that others inherit from.
        parser = configparser.ConfigParser(interpolation=None, default_section="")
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            return ProfileFile(path, {})
        return ProfileFile(path, {name: parser[name] for name in parser.sections()})

    def default(self, environ: Mapping[str, str]) -> str:
        """The profile that is meant where none is named."""
        chosen = self.sections.get("__settings__", {}).get("default_profile", "").strip()
        return environ.get("DATABRICKS_CONFIG_PROFILE") or chosen or "DEFAULT"


def find_account(config: ProviderConfig, environ: Mapping[str, str], home: Path) -> Account:
    """Raises ValueError saying what to change."""
    own = _configured(config)
    if own.host and own.strategy():
        return _account(own.host, config.auth or own.strategy(), own)
    found = list(_elsewhere(config, environ, home))
    host = own.host or next((source.host for source in found if source.host), "")
    if not host:
        raise ValueError(NO_HOST)
    for source in (own, *(each for each in found if _speaks_for(each, host, config))):
        strategy = config.auth or source.strategy()
        if strategy is not None and source.allows(strategy):
            return _account(host, strategy, source)
    if config.auth in _MISSING:
        raise ValueError(_MISSING[config.auth])
    return Account(host, config.auth)


def home_folder() -> Path:
    """Where there is none (a container's nameless user), nothing is found in it either."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")


def read_profile(environ: Mapping[str, str], home: Path, profile: str) -> Mapping[str, str]:
    """The keys of one profile, none when there is no such."""
    return ProfileFile.read(environ, home).sections.get(profile, {})


_MISSING: Mapping[str | None, str] = {
    "pat": 'auth = "pat" finds no token: set api_key or DATABRICKS_TOKEN, or name a profile with a token',
    "oauth-m2m": 'auth = "oauth-m2m" finds no service principal: set client_id and client_secret, or '
    "DATABRICKS_CLIENT_ID and DATABRICKS_CLIENT_SECRET, or name a profile with both",
}


def _account(host: str, strategy: Strategy | None, source: _Source) -> Account:
    return Account(host, strategy, source.token, source.client_id, source.client_secret, source.profile)


def _configured(config: ProviderConfig) -> _Source:
    token, secret = config.api_key, config.client_secret
    return _Source(
        config.base_url or "",
        token.get_secret_value() if token else "",
        config.client_id or "",
        secret.get_secret_value() if secret else "",
    )


def _elsewhere(config: ProviderConfig, environ: Mapping[str, str], home: Path) -> Iterator[_Source]:
    """The places outside the configuration that may speak for it; the first that can be used wins."""
    file = ProfileFile.read(environ, home)
    if config.config_profile:
        if config.config_profile not in file.sections:
            raise ValueError(f"{file.path} has no profile {config.config_profile!r}")
        yield _of_profile(file, config.config_profile)
        return
    named = file.default(environ)
    yield _of_environment(environ)
    if named in file.sections:
        yield _of_profile(file, named)


def _speaks_for(source: _Source, host: str, config: ProviderConfig) -> bool:
    """A profile that was named does; what was found, for its host, or with `auth` if it tells none."""
    return bool(config.config_profile) or source.host == host or (not source.host and bool(config.auth))


def _of_environment(environ: Mapping[str, str]) -> _Source:
    """Databricks' variables, and for two of them LiteLLM's names."""
    host = environ.get("DATABRICKS_HOST") or environ.get("DATABRICKS_API_BASE") or ""
    token = environ.get("DATABRICKS_TOKEN") or environ.get("DATABRICKS_API_KEY") or ""
    client, secret = environ.get("DATABRICKS_CLIENT_ID", ""), environ.get("DATABRICKS_CLIENT_SECRET", "")
    asks = any(environ.get(name) for name in _SDK_VARIABLES)
    return _source((host, token, client, secret), environ.get("DATABRICKS_AUTH_TYPE", ""), asks)


def _of_profile(file: ProfileFile, profile: str) -> _Source:
    """A host without anything to sign with is what the command line's login leaves: the SDK knows it."""
    keys = file.sections[profile]
    told = (keys.get(key, "") for key in ("host", "token", "client_id", "client_secret"))
    return replace(_source(tuple(told), keys.get("auth_type", ""), True), profile=profile)


def _source(told: tuple[str, ...], auth_type: str, asks: bool) -> _Source:
    """`asks`: what is not ours to sign with is the SDK's."""
    host, token, client, secret = (each.strip() for each in told)
    if auth_type not in ("", "pat"):
        token = ""
    if auth_type not in ("", "oauth-m2m"):
        client = secret = ""
    return _Source(_host(host), token, client, secret, asks and not token and not (client and secret))


def _host(value: str) -> str:
    """An address that is none stands for no workspace."""
    try:
        return normalise(value, "databricks")
    except ValueError:
        return ""
