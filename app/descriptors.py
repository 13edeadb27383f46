"""File descriptors: as many as the system allows, and how many connections fit into them.

A request takes two, its client's connection and the one to the backend. When none is left nothing can be told
any more, so connections are refused before that: by an answer, after their request has come.
"""

from __future__ import annotations

import contextlib
import errno
import resource
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import structlog

from translators.errors import ProxyError

from .errors import JSON, error_body, error_headers

RESERVED = 96
"""For what no request opens: listeners, logs, the store, model lists, files that are read."""
EACH = 2
WAITING = RESERVED // 3
"""How many more connections may wait for their refusal; further ones get it at once, whatever they send."""
FEWEST = 8
MOST = 1 << 20
"""Some systems allow billions."""
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
"""None is left, of the process or of the machine."""
SILENT_S = 60.0
"""Between two lines of the log that say that connections are refused."""

_log = structlog.get_logger("dragoman")

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def raise_limit() -> None:
    """Let this process open as many as its hard limit says."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # macOS has a limit below the one that it tells
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections_that_fit() -> int:
    """How many clients may be connected at a time."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(FEWEST, (soft - RESERVED) // EACH)


def full() -> ProxyError:
    """What a client is told for whom none is left."""
    message = "too many connections are open to this gateway; send the request again in a moment"
    return ProxyError("overloaded", message, code="too_many_connections", retry_after=1)


class Crowd:
    """Answers the requests of connections that are too many."""

    def __init__(self) -> None:
        self._said = 0.0
        self._refused = 0

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        """An ASGI application."""
        self._say()
        error = full()
        headers = [JSON, *error_headers(error), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": error.http_status, "headers": headers})
        await send({"type": "http.response.body", "body": error_body(error)})

    def _say(self) -> None:
        self._refused += 1
        now = time.monotonic()
        if now - self._said > SILENT_S or not self._said:
            _log.warning("connections:refused", count=self._refused, most=connections_that_fit())
            self._said, self._refused = now, 0
