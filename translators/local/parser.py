"""Thoughts, text and calls out of what a local model writes, as it comes in.

Blanks around a thought are markup. Blanks before or after a call are text only if more text
follows. A thought begins an output (or follows a call), it does not begin amid text: there the
mark is a word about the mark. Without tools nothing is a call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..ir import Json
from .argument_values import Offer
from .brackets import BLANK, BrokenMarkupError, first_of
from .families import Family
from .harmony import HarmonyParser
from .pieces import Piece, Text, TextParser, Thought
from .reader import Parsed, Reader
from .readers import reader_of

_CERTAIN = 8
"""Characters of an opener with which no text ends by chance."""


def make_parser(family: Family, tools: Sequence[Json], *, thinking_open: bool = False) -> TextParser:
    """What reads one output. `thinking_open`: the prompt ended inside a thought."""
    if family.body == "harmony":
        return HarmonyParser(tools, thinking_open=thinking_open)
    return MarkerParser(family, tools, thinking_open=thinking_open)


class _Marks:
    """Marks to look for, and how much of a text's end may be the beginning of one."""

    def __init__(self, marks: Sequence[str]) -> None:
        self._marks = tuple(sorted(marks, key=len, reverse=True))
        self._pattern = re.compile("|".join(map(re.escape, self._marks)) or r"(?!)")
        self._longest = max(map(len, self._marks), default=1)

    def find(self, text: str) -> re.Match[str] | None:
        return self._pattern.search(text)

    def held(self, text: str) -> int:
        """Where the longest beginning of a mark stands that ends `text`."""
        for at in range(max(0, len(text) - self._longest + 1), len(text)):
            if any(mark.startswith(text[at:]) for mark in self._marks):
                return at
        return len(text)


class MarkerParser:
    """See `TextParser` for the laws."""

    def __init__(self, family: Family, tools: Sequence[Json], *, thinking_open: bool) -> None:
        self.dropped = ""
        self._family = family
        self._offer = Offer(tools)
        self._openers = family.openers if tools else ()
        self._unmarked = {"loose_json": "{", "loose_pythonic": "["}.get(family.body, "") if tools else ""
        calls = (*self._openers, *(family.sections if tools else ()), *family.wraps)
        opens = tuple(opening for opening, _ in family.thoughts)
        self._amid = _Marks(calls)
        self._first = _Marks((*calls, *opens))
        self._next = _Marks((*calls, *opens, *family.closers))
        self._ends = {
            opening: _Marks(
                (opening, closing, *family.wraps, *(self._openers if family.call_ends_thought else ()))
            )
            for opening, closing in family.thoughts
        }
        self._out: list[Piece] = []
        self._buffer = ""
        self._blank = ""
        """Blanks after what was said last."""
        self._kept = 0
        """How many of them stood before the last call, not between it and its closing mark."""
        self._thought = ""
        """The mark that opened the thought we are in."""
        self._noise: str | None = None
        """Words where only calls should be; None: this is no such place."""
        self._said = False
        self._trim = False
        self._leading = True
        """No text yet since the beginning, a thought or a call."""
        self._after_call = False
        self._opener = ""
        self._reader: Reader | None = None
        if thinking_open and opens:
            self._begin_thought(opens[0])

    @property
    def thinking(self) -> bool:
        return bool(self._thought)

    def feed(self, text: str) -> list[Piece]:
        self._buffer += text
        while self._buffer and self._advance():
            pass
        return self._taken()

    def close(self, cut: bool) -> list[Piece]:
        if self._reader is not None:
            self._close_call(self._reader, cut)
        elif cut and len(self._buffer) >= _CERTAIN and self._begins_call():
            self._drop(self._buffer)
        else:
            self._say(self._buffer)
        self._buffer = ""
        self._end_section()
        if self._blank and not self._after_call:
            self._put(self._blank)
        self._blank = ""
        return self._taken()

    def _begins_call(self) -> bool:
        return any(opener.startswith(self._buffer) for opener in self._openers)

    def _close_call(self, reader: Reader, cut: bool) -> None:
        """A cut call is gone, unless it has no marker: then it may as well be a JSON answer."""
        self._reader = None
        if cut and self._opener:
            self._drop(self._opener + self._buffer)
            return
        try:
            parsed = reader.finish(self._buffer)
        except BrokenMarkupError:
            parsed = None
        if parsed is None:
            self._say(self._opener + self._buffer)
        else:
            self._call(parsed)

    def _drop(self, markup: str) -> None:
        self.dropped += markup
        self._blank = ""

    def _taken(self) -> list[Piece]:
        out, self._out = self._out, []
        return out

    def _advance(self) -> bool:
        """Read on in the buffer; False when more must come first."""
        if self._reader is not None:
            return self._read(self._reader)
        if not self._thought and self._unmarked and self._leading:
            start = first_of(self._buffer)
            if self._buffer[start : start + 1] == self._unmarked:
                self._say(self._eaten(start))
                self._opener, self._reader = "", reader_of(self._family, "", self._offer)
                return True
        marks = self._watched()
        found = marks.find(self._buffer)
        if found is None:
            self._say(self._eaten(marks.held(self._buffer)))
            return False
        before = self._eaten(found.end())[: found.start()]
        self._say(before)
        self._mark(found[0])
        return True

    def _watched(self) -> _Marks:
        if self._thought:
            return self._ends[self._thought]
        if self._after_call:
            return self._next
        return self._first if self._leading else self._amid

    def _eaten(self, end: int) -> str:
        text, self._buffer = self._buffer[:end], self._buffer[end:]
        return text

    def _mark(self, mark: str) -> None:
        if mark in self._openers:
            if self._noise is not None:
                self.dropped += self._noise
                self._noise = ""
            self._opener, self._reader = mark, reader_of(self._family, mark, self._offer)
        elif self._thought:
            self._mark_thought(mark)
        elif mark in self._ends and self._leading:
            self._begin_thought(mark)
        elif mark in self._family.closers and self._after_call:
            self._blank = self._blank[: self._kept]
        elif mark in self._family.sections:
            self._end_section()
            if self._family.calls_only and mark == self._family.sections[0]:
                self._noise = ""
        elif mark not in self._family.wraps:
            self._say(mark)

    def _end_section(self) -> None:
        """Words that no call came after are the answer after all."""
        noise, self._noise = self._noise, None
        if noise and noise.strip():
            self._say(noise)

    def _mark_thought(self, mark: str) -> None:
        if mark != self._thought:
            self._thought, self._blank = "", ""
            self._trim = self._leading = True
            self._after_call = False
        elif self._said:
            self._say(mark)

    def _begin_thought(self, mark: str) -> None:
        self._thought, self._blank = mark, ""
        self._said, self._trim = False, True

    def _read(self, reader: Reader) -> bool:
        try:
            parsed = reader.read(self._buffer)
        except BrokenMarkupError:
            self._reader = None
            self._say(self._opener or self._eaten(1))
            return True
        if parsed is None:
            return False
        self._reader = None
        self._call(parsed)
        return True

    def _call(self, parsed: Parsed) -> None:
        self._eaten(parsed.end)
        if self._thought:
            self._thought, self._blank = "", ""
        for call in parsed.calls:
            self._out += call.pieces()
        self._trim, self._kept = False, len(self._blank)
        self._leading = self._after_call = True

    def _say(self, text: str) -> None:
        if self._noise is not None and not self._thought:
            self._noise += text
            return
        if self._trim:
            text = text.lstrip(BLANK)
        body = text.rstrip(BLANK)
        if body:
            self._put(self._blank + body)
            self._blank = text[len(body) :]
        else:
            self._blank += text

    def _put(self, text: str) -> None:
        if self._thought:
            self._out.append(Thought(text))
        else:
            self._out.append(Text(text))
            self._leading = self._after_call = False
        self._said, self._trim = True, False
