"""What reads one call after its opener."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from .brackets import BrokenMarkupError
from .pieces import Found

HEAD_LENGTH = 400
"""Characters in which a call must show that it is one; blanks count. It is asked again with each
piece that comes in, so it must not go on for ever."""


class Parsed(NamedTuple):
    """`end`: one past the last character of the calls' markup, counted from after the opener."""

    end: int
    calls: tuple[Found, ...]


class Reader(ABC):
    """Is given the whole text after the opener, each time with more of it."""

    def unfinished(self, text: str) -> Parsed | None:
        """The head has not ended: wait for more of it, or no longer."""
        if len(text) >= HEAD_LENGTH:
            raise BrokenMarkupError
        return None

    @abstractmethod
    def read(self, text: str) -> Parsed | None:
        """None while the call has not ended; `BrokenMarkupError` once it cannot be a call.

        Each character of the arguments is looked at once, however often this is called.
        """

    def finish(self, text: str) -> Parsed | None:
        """The model ended its output here: a call if only its last mark is missing."""
        return None
