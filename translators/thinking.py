"""Reasoning inside the text: `<think>...</think>` at its start, split off across chunk borders.

Only a tag at the very start of the content (after blanks) opens a thought; later in the text
it is text, because models write about tags. White space next to the tags is the chat
template's, not the model's. An unclosed thought reaches to the end: it was cut.
"""

from __future__ import annotations


class ThinkSplitter:
    """Feed text as it comes; get what is known so far as (thought, text)."""

    def __init__(self, tags: tuple[str, str]) -> None:
        self._open, self._close = tags
        self._held = ""
        self._thinking = False
        self._trim = False
        self._settled = False

    @property
    def holding(self) -> bool:
        return bool(self._held)

    @property
    def plain(self) -> bool:
        """Whether everything from here on is text as it stands."""
        return self._settled and not self._trim

    def feed(self, text: str) -> tuple[str, str]:
        self._held += text
        if not self._thinking and not self._settled:
            self._look_for_start()
        thought = self._take_thought() if self._thinking else ""
        return thought, self._take_text() if self._settled else ""

    def close(self) -> tuple[str, str]:
        """The end of the content: what was held back belongs to where it stood."""
        held, self._held = self._held, ""
        return (held, "") if self._thinking else ("", held)

    def _look_for_start(self) -> None:
        lead = self._held.lstrip()
        if lead.startswith(self._open):
            self._held, self._thinking, self._trim = lead[len(self._open) :], True, True
        elif not self._open.startswith(lead):
            self._settled = True

    def _take_thought(self) -> str:
        if self._trim:
            self._held = self._held.lstrip()
            self._trim = not self._held
        thought, mark, rest = self._held.partition(self._close)
        if mark:
            self._held, self._thinking, self._trim, self._settled = rest, False, True, True
            return thought
        keep = _overlap(self._held, self._close)
        thought, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return thought

    def _take_text(self) -> str:
        text, self._held = self._held, ""
        if self._trim:
            text = text.lstrip()
            self._trim = not text
        return text


def _overlap(text: str, mark: str) -> int:
    """Length of the longest end of `text` that could be the beginning of `mark`."""
    return next((size for size in range(len(mark) - 1, 0, -1) if text.endswith(mark[:size])), 0)
