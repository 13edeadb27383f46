"""Names that clients can make up, as labels of metrics: a bounded number of them."""

from __future__ import annotations

MAX_NAMES = 200
OTHER = "_other"


class Bounded:
    """The first `MAX_NAMES` names that something answered to; all others are `_other`."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def name(self, name: str, answered: bool) -> str:
        if name in self._known:
            return name
        if not answered or len(self._known) >= MAX_NAMES:
            return OTHER
        self._known.add(name)
        return name
