"""What a configuration asks for that is not installed; what providers need they tell themselves."""

from __future__ import annotations

from collections.abc import Iterator

from providers.extras import install, is_installed

from .problems import Problem
from .schema import Config, Store

NO_REDIS = f"limits in Redis need the extra: {install('redis')}"


def lacking(config: Config) -> Iterator[Problem]:
    """Each with its place, which begins with the section that does nothing until it is there."""
    store = store_lacks(config.store)
    if store is not None:
        yield store
    if config.limits.storage.get_secret_value() != "memory" and not is_installed("redis"):
        yield Problem(("limits", "storage"), NO_REDIS)
    if config.telemetry.endpoint is not None and not is_installed("otel"):
        yield Problem(("telemetry", "endpoint"), f"traces and metrics need the extra: {install('otel')}")


def store_lacks(store: Store) -> Problem | None:
    """What keeps it from being opened, None: nothing."""
    if store.kind == "postgres" and not is_installed("postgres"):
        return Problem(("store", "kind"), f"a store in PostgreSQL needs the extra: {install('postgres')}")
    sealed = store.kind in ("sqlite", "postgres") and store.encryption_key is not None
    if sealed and not is_installed("encryption"):
        return Problem(("store", "encryption_key"), f"encryption needs the extra: {install('encryption')}")
    return None
