"""Failures as HTTP answers, in the one shape that both APIs use.

{"error": {"message", "type", "param", "code"}}
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import orjson

from translators.errors import ProxyError

from .telemetry.trace import Headers

JSON = (b"content-type", b"application/json")

DEFAULT_RETRY_AFTER_S = 5
"""Retry-After of a 429 whose backend named no delay: a 429 always carries one (Codex gives up
at once on a bare one)."""

_RELAYED = frozenset({"openai-processing-ms", "retry-after", "retry-after-ms", "x-retry-after"})
_OURS = ("allow", "connection")
"""What errors of our own routes say besides."""


def error_body(error: ProxyError) -> bytes:
    return orjson.dumps({"error": error.body()})


def error_headers(error: ProxyError) -> Headers:
    """The backend's rate limits as far as known, and when to come back."""
    headers = relayed({name: value for name, value in error.headers.items() if name != "retry-after"})
    headers += [(name.encode(), error.headers[name].encode()) for name in _OURS if name in error.headers]
    if error.retry_after is not None:
        headers.append((b"retry-after", b"%d" % math.ceil(error.retry_after)))
    elif error.http_status == 429:
        headers.append((b"retry-after", b"%d" % DEFAULT_RETRY_AFTER_S))
    return headers


def relayed(headers: Mapping[str, str]) -> Headers:
    """The backend's headers that a client may see: an allow-list, so that no key or cookie passes."""
    return [
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in headers.items()
        if name.startswith("x-ratelimit-") or name in _RELAYED
    ]


def unexpected() -> ProxyError:
    """What a client is told of a fault of ours; the log has the rest."""
    return ProxyError("internal", "the gateway failed on this request; its log says why")
