"""What of a provider's settings no client may read and no log may show, beside its key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from .signing import MASKED_FROM

_SECRET = re.compile(r"key|token|secret|password|credential|signature|^(sig|code|auth)$", re.IGNORECASE)
"""Parameters of an address that carry one; `api-version` is none."""


def secrets_in(overrides: Mapping[str, Any]) -> Iterator[str]:
    """Of a provider's paths, as they stand there and as they are meant: some take their key as `?key=...`."""
    for path in _paths(overrides.get("wire")):
        query = path.partition("?")[2] if isinstance(path, str) else ""
        for pair in query.split("&"):
            name, _, value = pair.partition("=")
            if _SECRET.search(name) and len(value) >= MASKED_FROM:
                yield from dict.fromkeys((value, unquote(value)))


def _paths(wire: Any) -> Iterator[Any]:
    if isinstance(wire, Mapping):
        models = wire.get("models")
        yield from wire.values()
        yield from models.values() if isinstance(models, Mapping) else ()
