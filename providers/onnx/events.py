"""What happens to the models of one provider, told to whoever listens.

An event is `{model, state, progress?, reason?, waiting?}`; `model` is the provider's own name for it.
States: unloaded -> loading (progress 0..1) -> compiling -> ready <-> generating -> unloaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["unloaded", "loading", "compiling", "ready", "generating"]

_BACKLOG = 256
"""Events kept for a listener that is slow; then its oldest ones are left out, the newest state counts."""


@dataclass(frozen=True, slots=True)
class Status:
    """A model as it is now. `progress`: share of its files that is read; `reason`: why it was unloaded."""

    state: State = "unloaded"
    progress: float | None = None
    reason: str | None = None
    waiting: int = 0
    """Requests before the model, besides the one that it answers."""

    def fields(self) -> dict[str, Any]:
        """As JSON; what says nothing is left out."""
        held = {
            "state": self.state,
            "progress": self.progress,
            "reason": self.reason,
            "waiting": self.waiting or None,
        }
        return {key: value for key, value in held.items() if value is not None}


class Feed:
    """The events of one provider, for any number of listeners; telling never waits."""

    def __init__(self) -> None:
        self._tells: set[Callable[[dict[str, Any]], None]] = set()

    def tell(self, model: str, status: Status) -> None:
        if self._tells:
            event = {"model": model, **status.fields()}
            for tell in tuple(self._tells):
                tell(event)

    def attach(self, tell: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        """Call `tell` with every event from now on; what is returned ends that."""
        self._tells.add(tell)
        return lambda: self._tells.discard(tell)


class Listener:
    """The events of several feeds in one line, for one reader."""

    def __init__(self) -> None:
        self._held: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._ends: list[Callable[[], None]] = []

    def follow(self, provider: str, feed: Feed) -> None:
        """Take a provider's events, its name before those of its models."""
        self._ends.append(
            feed.attach(lambda event: self._put({**event, "model": f"{provider}/{event['model']}"}))
        )

    def close(self) -> None:
        for end in self._ends:
            end()

    async def next(self, timeout_s: float) -> dict[str, Any] | None:
        """The next event; None: there was none for so long."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._held.get()
        except TimeoutError:
            return None

    def _put(self, event: dict[str, Any]) -> None:
        if self._held.qsize() >= _BACKLOG:
            self._held.get_nowait()
        self._held.put_nowait(event)
