"""From configuration to providers: the one place that maps a `kind` to its code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from config.schema import Config, ProviderConfig

from .base import Provider
from .catalog import Catalog
from .databricks import DatabricksProvider
from .http import HttpClient
from .openai import OpenAIProvider, Settings
from .quirks import Quirks
from .unavailable import NOT_BUILT, UnavailableProvider

Factory = Callable[[ProviderConfig, HttpClient, Quirks], Provider]


def build(config: Config, quirks: Quirks | None = None) -> list[Provider]:
    """The configured providers in file order; they share one HTTP client, which `aclose` of any closes.

    They share `quirks` too, what is learned of their backends; None: it lives as long as they do.
    """
    learned = Quirks() if quirks is None else quirks
    server = config.server
    client = HttpClient(connect_timeout_s=server.connect_timeout_s, idle_timeout_s=server.idle_timeout_s)
    return [FACTORIES[provider.kind](provider, client, learned) for provider in config.providers]


def build_catalog(config: Config, providers: Sequence[Provider]) -> Catalog:
    """The catalogue over `build`'s providers; call its `start` inside the event loop."""
    return Catalog(providers, config.aliases, {each.name: each.models for each in config.providers})


def _openai(config: ProviderConfig, client: HttpClient, quirks: Quirks) -> Provider:
    return OpenAIProvider(_settings(config), client, quirks=quirks)


def _databricks(config: ProviderConfig, client: HttpClient, quirks: Quirks) -> Provider:
    return DatabricksProvider(_settings(config), client, quirks=quirks)


def _not_built(config: ProviderConfig, client: HttpClient, quirks: Quirks) -> Provider:
    return UnavailableProvider(config.name, config.kind, NOT_BUILT[config.kind])


def _settings(config: ProviderConfig) -> Settings:
    return Settings(
        name=config.name,
        kind=config.kind,
        base_url=config.base_url or "",
        api_key=config.api_key.get_secret_value() if config.api_key else None,
        wire=config.wire,
        profile=config.profile,
        overrides=config.overrides,
        extra_body=config.extra_body,
    )


FACTORIES: Mapping[str, Factory] = {
    "openai": _openai,
    "databricks": _databricks,
    "ollama": _not_built,
    "onnx": _not_built,
}
