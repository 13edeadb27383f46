"""From tokens to deltas: text that is certain, put together while it comes faster than it can be sent."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from .detokenizer import Detokenizer, StopStrings, Vocabulary
from .protocol import Delta, Params

JOIN_S = 0.02
"""Tokens within this time go out together: 50 deltas a second read as smoothly as 200, and carrying and
reading one takes processor time from the engine (a 135M model on 2 cores: a tenth of its speed at 0.005)."""
QUIET_S = 1.0
"""An empty delta goes out when nothing was certain for so long: the process is seen to be alive."""


class Answer:
    """The text of one answer; `tokens` counts all that were generated, the one that ended it too."""

    __slots__ = (
        *("_decoded", "_detokenizer", "_emit", "_entries", "_released", "_sent_at", "_stops"),
        *("_text", "_unsent", "_wants_entries", "tokens"),
    )

    def __init__(self, vocabulary: Vocabulary, params: Params, emit: Callable[[Delta], None]) -> None:
        self._detokenizer = Detokenizer(vocabulary, params.keep_special)
        self._stops = StopStrings(params.stop)
        self._emit = emit
        self._wants_entries = params.logprobs
        self._entries: list[tuple[int, Mapping[str, Any]]] = []
        """Log probabilities not sent yet, each with where in the text its token begins."""
        self._decoded = 0
        self._released = 0
        self._text: list[str] = []
        self._unsent = 0
        self._sent_at = time.monotonic() - JOIN_S
        self.tokens = 0

    @property
    def matched_stop(self) -> str | None:
        return self._stops.matched

    def add(self, token: int, entry: Mapping[str, Any] | None, *, ends: bool) -> bool:
        """Take the next token; whether the answer ends with it. `ends`: it is an end of text."""
        self.tokens += 1
        if ends:
            return True
        self._unsent += 1
        if entry is not None:
            self._entries.append((self._decoded, entry))
        if text := self._detokenizer.feed(token):
            self._decoded += len(text)
            self._release(self._stops.feed(text))
        if self._stops.matched is not None:
            return True
        self._send_in_time()
        return False

    def close(self) -> None:
        """Send the rest: no text of a stop string, and no half of a character."""
        self._release(self._stops.close())
        everything = self._stops.matched is None
        if self._text or (everything and self._entries):
            self._send(everything)

    def _release(self, text: str) -> None:
        if text:
            self._text.append(text)
            self._released += len(text)

    def _send_in_time(self) -> None:
        now = time.monotonic()
        if now - self._sent_at >= (JOIN_S if self._text else QUIET_S):
            self._sent_at = now
            self._send(False)

    def _send(self, everything: bool) -> None:
        text = "".join(self._text)
        self._text.clear()
        tokens, self._unsent = self._unsent, 0
        self._emit(Delta(text, tokens, self._entries_out(everything) if self._wants_entries else None))

    def _entries_out(self, everything: bool) -> list[Mapping[str, Any]]:
        """Those whose text is out, at least in part: the tokens of a stop string are not the client's."""
        ready = [entry for at, entry in self._entries if everything or at < self._released]
        del self._entries[: len(ready)]
        return ready
