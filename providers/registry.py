"""From configuration to providers: the one place that maps a `kind` to its code."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from config.databricks_account import Account, find_account, home_folder, read_profile
from config.schema import Config, ProviderConfig, Server

from .base import ModelInfo, Provider
from .catalog import Catalog
from .databricks import DatabricksProvider
from .databricks_tokens import NO_SDK, Sdk, ServicePrincipal, kept_token, sdk_is_installed
from .directory import Names
from .health import Health
from .http import HttpClient
from .ollama import OllamaProvider
from .onnx.extra import NO_EXTRA, extra_is_installed
from .onnx.provider import OnnxProvider
from .openai import OpenAIProvider, Settings
from .passthrough import PassthroughProvider
from .quirks import Quirks
from .signing import Signer
from .unavailable import UnavailableProvider

Factory = Callable[[ProviderConfig, HttpClient, Quirks], Provider]


def build(
    config: Config, quirks: Quirks | None = None, kept: Mapping[str, Provider] | None = None
) -> list[Provider]:
    """The configured providers in file order; those `kept`, by name, were built of the same settings before.

    Each has connections of its own, which its `aclose` closes. They share `quirks`, what is learned of
    their backends; None: it lives as long as they do.
    """
    learned = Quirks() if quirks is None else quirks
    before = kept or {}
    return [before.get(each.name) or _build(each, config.server, learned) for each in config.providers]


def _build(config: ProviderConfig, server: Server, quirks: Quirks) -> Provider:
    client = HttpClient(connect_timeout_s=server.connect_timeout_s, idle_timeout_s=server.idle_timeout_s)
    return FACTORIES[config.kind](config, client, quirks)


def build_catalog(
    config: Config,
    providers: Sequence[Provider],
    health: Health | None = None,
    listed: Mapping[str, Sequence[ModelInfo]] | None = None,
    dimensions: Mapping[str, int | None] | None = None,
) -> Catalog:
    """The catalogue over `build`'s providers; call its `start` inside the event loop.

    `listed` is what some of them are known to serve from before, `dimensions` what was found of models.
    """
    groups = {
        name: [(each.model, each.weight) for each in members] for name, members in config.groups.items()
    }
    names = Names(config.aliases, groups, config.fallbacks)
    configured = {each.name: each.models for each in config.providers}
    local = {each.name: each.known() for each in providers if isinstance(each, OnnxProvider)}
    known = {**(listed or {}), **local}
    return Catalog(
        providers,
        names,
        configured,
        classes=config.classes,
        health=health,
        listed=known,
        dimensions=dimensions,
    )


def _openai(config: ProviderConfig, client: HttpClient, quirks: Quirks) -> Provider:
    made = PassthroughProvider if config.api_key_from == "client" else OpenAIProvider
    return made(_settings(config), client, quirks=quirks)


def _databricks(config: ProviderConfig, client: HttpClient, quirks: Quirks) -> Provider:
    try:
        account = find_account(config, os.environ, home_folder())
    except ValueError as error:
        return UnavailableProvider(config.name, config.kind, str(error))
    if account.strategy == "sdk" and not sdk_is_installed():
        return UnavailableProvider(config.name, config.kind, NO_SDK)
    key = account.token if account.strategy == "pat" and account.profile is None else None
    settings = replace(_settings(config), base_url=account.host, api_key=key)
    return DatabricksProvider(settings, client, quirks=quirks, signer=_signer(config.name, account))


def _signer(name: str, account: Account) -> Signer | None:
    """None: the account has a token that never changes, or nothing to sign with."""
    if account.strategy == "oauth-m2m":
        principal = ServicePrincipal(name, account.host, account.client_id, account.client_secret)
        return Signer(name, principal.sign, [account.client_secret])
    if account.strategy == "sdk":
        return Signer(name, Sdk(name, account.host, account.profile).sign)
    profile = account.profile
    if account.strategy == "pat" and profile is not None:
        sign = kept_token(name, lambda: read_profile(os.environ, home_folder(), profile).get("token"))
        return Signer(name, sign, [account.token])
    return None


def _ollama(config: ProviderConfig, client: HttpClient, quirks: Quirks) -> Provider:
    return OllamaProvider(_settings(config), client, quirks=quirks)


def _onnx(config: ProviderConfig, client: HttpClient, quirks: Quirks) -> Provider:
    if not extra_is_installed():
        return UnavailableProvider(config.name, config.kind, NO_EXTRA)
    return OnnxProvider(_settings(config), Path(config.path or ""), client, quirks=quirks)


def _settings(config: ProviderConfig) -> Settings:
    return Settings(
        name=config.name,
        kind=config.kind,
        base_url=config.base_url or "",
        api_key=config.api_key.get_secret_value() if config.api_key else None,
        wire=config.wire,
        profile=config.profile,
        overrides=config.overrides,
        extra_body=_extra_body(config),
    )


FACTORIES: Mapping[str, Factory] = {
    "openai": _openai,
    "databricks": _databricks,
    "ollama": _ollama,
    "onnx": _onnx,
}


def _extra_body(config: ProviderConfig) -> Mapping[str, Any]:
    """Without `store` where nothing may be stored at the backend: the narrower word counts."""
    wire = config.overrides.get("wire")
    nothing = isinstance(wire, Mapping) and wire.get("chaining") is False
    return {key: value for key, value in config.extra_body.items() if key != "store" or not nothing}
