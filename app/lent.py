"""What a connection lends to whoever answers a request on it; other servers than ours lend nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

CONNECTION = "dragoman.connection"
"""The extension of a request's scope that is a `Lent`."""


class Lent:
    """Good until its answer is complete or its connection is lost: then it lets go of both.

    Nothing of a request may refer to itself afterwards. What does is freed by the garbage collector alone,
    and its walks were a thirteenth of what a request costs.
    """

    __slots__ = ("gone", "transport")

    def __init__(self, transport: asyncio.WriteTransport | None = None) -> None:
        self.transport = transport
        """To be cut off under a client that takes nothing."""
        self.gone: Callable[[], None] | None = None
        """Called, once somebody has set it, when the connection is lost before the answer is whole."""

    @property
    def tells(self) -> bool:
        """Whether it will call `gone`."""
        return False

    def is_for(self, send: Callable[..., Any]) -> bool:
        """Whether `send` is the connection's own, so that what is sent may go around it."""
        return False

    def piece(self, data: bytes) -> bool:
        """Send a part of a stream that has begun, if nothing has to be waited for; whether it was sent."""
        return False

    def whole(self, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> bool:
        """Send an answer that is one body, if nothing has to be waited for; whether it was sent."""
        return False


def lent_to(scope: Mapping[str, Any]) -> Lent:
    """What goes with a request."""
    extensions = scope.get("extensions")
    lent: Lent | None = extensions.get(CONNECTION) if extensions else None
    return Lent() if lent is None else lent
