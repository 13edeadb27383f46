"""A reply with the first of its calls only: `parallel_tool_calls: false` for a backend that cannot be told.

The client has asked for one call at a time, and may act on each as it comes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from .ir import Event, Failed, Finished, Foreign, Opened, Started

if TYPE_CHECKING:
    from .stream import Restorer


class FirstCall:
    """One per reply: feed the backend's events, get those of the client; `then` restores its tools."""

    def __init__(self, then: Restorer | None) -> None:
        self._then = then
        self._places: dict[int, int] = {}
        """Index of the backend's piece -> the client's; a piece that is left out has none."""
        self._called = False

    def feed(self, event: Event) -> Iterable[Event]:
        kept = self._kept(event)
        if kept is None:
            return ()
        return (kept,) if self._then is None else self._then.feed(kept)

    def _kept(self, event: Event) -> Event | None:
        if isinstance(event, Started | Finished | Failed):
            return event
        if isinstance(event, Opened | Foreign):
            is_call = isinstance(event, Opened) and event.kind == "tool_call"
            if is_call and self._called:
                return None
            self._called = self._called or is_call
            self._places[event.index] = len(self._places)
        place = self._places.get(event.index)
        if place is None or place == event.index:
            return None if place is None else event
        return replace(event, index=place)
