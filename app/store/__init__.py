"""Stored responses: the interface, and the store that a configuration asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import structlog

from config.extras import store_lacks
from config.schema import Store
from providers.quirks_file import state_file

from .base import ChainTooLong, Record, ResponseStore, StoreDown, is_id
from .memory import MemoryStore
from .missing import MissingStore
from .sqlite import SqliteStore

__all__ = ["ChainTooLong", "MemoryStore", "Record", "ResponseStore", "StoreDown", "is_id", "open_store"]

_log = structlog.get_logger("dragoman.store")


def open_store(config: Store, environ: Mapping[str, str] = os.environ) -> ResponseStore | None:
    """The configured store, None: nothing is kept. It connects when it is first needed."""
    if config.kind == "off":
        return None
    lacking = store_lacks(config)
    if lacking is not None:
        _log.error("store:unavailable", reason=lacking.message)
        return MissingStore(lacking.message)
    store = _open(config, environ)
    if config.encryption_key is None or isinstance(store, MemoryStore):
        return store
    from .sealed import SealedStore

    return SealedStore(store, config.encryption_key.get_secret_value())


def _open(config: Store, environ: Mapping[str, str]) -> ResponseStore:
    if config.kind == "postgres" and config.url is not None:
        from .postgres import PostgresStore

        url = config.url.get_secret_value()
        return PostgresStore(url, config.ttl_s, config.max_bytes, config.timeout_s)
    path = _path(config, environ) if config.kind == "sqlite" else None
    if path is not None:
        return SqliteStore(path, config.ttl_s, config.max_bytes, config.timeout_s)
    return MemoryStore(config.ttl_s, config.max_bytes)


def _path(config: Store, environ: Mapping[str, str]) -> Path | None:
    """The configured file, else one beside the learned quirks; None: there is no home to keep one in."""
    if config.path is not None:
        return Path(config.path)
    quirks = state_file(environ)
    if quirks is None:
        _log.warning("store:not_kept", reason="there is no home directory", instead="set store.path")
        return None
    return quirks.with_name("responses.db")
