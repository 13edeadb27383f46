"""What an ordinary chunk of one stream looks like around its text, learned from the stream itself.

A frame with the same bytes before and after its text, and no quote or escape end in it, differs from
a known good one in nothing but the text, and needs no look. Where the stream repeats the role in every
chunk, the frames that match leave without it: accumulators of clients join what comes again
("assistantassistant", measured with openai 3.57).
"""

from __future__ import annotations

import re

import orjson

from ..lenient import has_whole_characters

_STRING_BODY = re.compile(rb'[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*')
_ROLE = re.compile(rb'"role"\s*:\s*"assistant"\s*,\s*|,\s*"role"\s*:\s*"assistant"')
_LESSONS = 64
"""Lessons in a row that served no frame: a stream that changes all the time is parsed instead."""


def without_role(frame: bytes) -> bytes | None:
    """The frame less its `role` key; None when bytes alone do not tell where that stands."""
    if frame.count(b'"role"') != 1:
        return None
    bare, count = _ROLE.subn(b"", frame)
    return bare if count == 1 else None


class FramePattern:
    """The bytes around the text: as the backend writes them, and as the client gets them."""

    __slots__ = ("_after", "_before", "_between", "_end", "_said", "_start", "_whole", "lessons")

    def __init__(self) -> None:
        self._before, self._after = b"\0", b""
        self.lessons = 0
        """What was learned since a frame was last like a lesson."""
        self._said: tuple[bytes, bytes] | None = None
        self._start = self._end = 0
        self._between = b""
        self._whole = False
        """Whether a client can decode what is around the text."""

    def forget(self) -> None:
        self._before = b"\0"

    def matches(self, frame: bytes) -> bool:
        """Whether the frame is an ordinary one; `quoted` and `written` then speak of it."""
        if not frame.startswith(self._before) or not frame.endswith(self._after):
            return False
        start, end = len(self._before), len(frame) - len(self._after)
        if start > end:
            return False
        text = frame[start:end]
        escaped = b"\\" in text
        if (escaped or b'"' in text) and _STRING_BODY.fullmatch(frame, start, end) is None:
            return False
        # Of most frames the short text is all there is to see.
        plain = self._whole and not escaped and text.isascii()
        if not plain and not has_whole_characters(frame):
            return False
        self._start, self._end, self.lessons = start, end, 0
        return True

    def covers(self, data: bytes) -> bool:
        """Whether a read is ordinary frames from end to end, with plain texts, which leave as they came.

        Most reads are, and this looks at all of their frames at once. Both sides of a text are quotes:
        where none is left without what is between two texts, nothing else was there.
        """
        before, after = self._before, self._after
        if self._said is not None or not (self._whole and data.startswith(before) and data.endswith(after)):
            return False
        texts = data[len(before) : len(data) - len(after)].replace(self._between, b"")
        if b'"' in texts or b"\\" in texts or b"\n" in texts or b"\r" in data:
            return False
        if len(data) < len(before) + len(after) or not (texts.isascii() or has_whole_characters(data)):
            return False
        self.lessons = 0
        return True

    def run(self, frames: list[bytes]) -> int:
        """How many of these, from the first on, are ordinary with plain texts and leave as they came.

        All are looked at together, as in `covers`; 0 also where that does not tell. The last one of the run
        may be left out.
        """
        if self._said is not None or not self._whole or not frames[0].startswith(self._before):
            return 0
        data = b"".join(frames)
        texts = data[len(self._before) :].split(self._between)
        del texts[-1]  # with whatever follows
        plain = b"".join(texts)
        if b'"' in plain or b"\\" in plain or b"\n" in plain or b"\r" in plain:
            return 0
        if not (plain.isascii() or has_whole_characters(data)):
            return 0
        if texts:
            self.lessons = 0
        return len(texts)

    def quoted(self, frame: bytes) -> bytes:
        """The text of the frame that matched last, with its quotes."""
        return frame[self._start - 1 : self._end + 1]

    def written(self, frame: bytes) -> bytes:
        """What the client gets of the frame that matched last."""
        if self._said is None:
            return frame
        return self._said[0] + frame[self._start : self._end] + self._said[1]

    def learn(self, frame: bytes, name: str, bare: bool) -> bool:
        """Take a good frame whose text stands once under `name` as the pattern of the next ones.

        `bare`: they leave without their role.
        """
        mark = orjson.dumps(name) + b":"
        if self.lessons >= _LESSONS or frame.count(mark) != 1 or not frame.endswith(b"\n\n"):
            return False
        start = frame.index(b'"', frame.index(mark) + len(mark)) + 1
        text = _STRING_BODY.match(frame, start)
        end = text.end() if text else start
        self._before, self._after = frame[:start], frame[end:]
        self._between = self._after + self._before
        self._whole = has_whole_characters(self._between)
        self._said = _parted(frame, start, end) if bare else None
        self.lessons += 1
        return True


def _parted(frame: bytes, start: int, end: int) -> tuple[bytes, bytes]:
    before, after = _ROLE.subn(b"", frame[:start])[0], frame[end:]
    return before, after if len(before) < start else _ROLE.subn(b"", after)[0]
