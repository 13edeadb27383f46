"""Which endpoint a conversation was answered by, so that its next turn goes there too.

Backends keep what they computed of a prompt for a while; a conversation that changes its endpoint
pays for the whole of it again, and reasoning sealed by one means nothing to another. A conversation
is known by `prompt_cache_key`, else by the headers in which clients name theirs.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from translators.ir import Json

TTL_S = 3600.0
"""Longer than any backend keeps a prompt's state."""
MAX_CONVERSATIONS = 20_000
MAX_KEY = 256
"""Characters of a key that count; what is longer was not made to be one."""

HEADERS = (
    b"session-id",  # Codex
    b"thread-id",
    b"session_id",
    b"conversation_id",
    b"x-session-id",
    b"x-conversation-id",
    b"x-thread-id",
)


def conversation(body: Json, headers: Mapping[bytes, bytes]) -> str | None:
    """What names the conversation of a request; None: nothing does."""
    key = body.get("prompt_cache_key")
    if isinstance(key, str) and key:
        return key[:MAX_KEY]
    for name in HEADERS:
        value = headers.get(name)
        if value:
            return value[:MAX_KEY].decode("latin-1")
    return None


class Sticky:
    """The last endpoint of every conversation, by the name that it asks for and its key."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], tuple[str, float]] = OrderedDict()

    def get(self, model: str, key: str) -> str | None:
        """`provider/model` that answered last, if that is not too long ago."""
        found = self._known.get((model, key))
        if found is None or self._clock() - found[1] > TTL_S:
            return None
        return found[0]

    def set(self, model: str, key: str, endpoint: str) -> None:
        self._known[model, key] = (endpoint, self._clock())
        self._known.move_to_end((model, key))
        if len(self._known) > MAX_CONVERSATIONS:
            self._known.popitem(last=False)
