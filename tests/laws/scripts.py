"""What a reply says, apart from any wire: the truth that the laws compare with.

A `Script` is drawn by hypothesis and rendered for a backend's wire by `render_chat` and
`render_responses`, in one of many styles. `said` is what a client must be told, whatever the
wire, the style and the client's shape.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar, get_type_hints

from hypothesis import strategies as st

T = TypeVar("T")


class Counts(NamedTuple):
    """Token counts; `cached` and `written` are part of `input`, `reasoning` of `output`."""

    input: int
    output: int
    cached: int
    written: int
    reasoning: int


class Called(NamedTuple):
    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Words:
    """A stretch of text; `kind` says where it belongs."""

    kind: Literal["text", "refusal", "thought"]
    fragments: tuple[str, ...]

    @property
    def text(self) -> str:
        return "".join(self.fragments)


@dataclass(frozen=True)
class Request:
    """A tool call; `fragments` are the pieces its arguments arrive in."""

    id: str
    name: str
    fragments: tuple[str, ...]

    @property
    def called(self) -> Called:
        return Called(self.id, self.name, "".join(self.fragments))


Piece = Words | Request


@dataclass(frozen=True)
class Script:
    pieces: tuple[Piece, ...]
    reason: Literal["stop", "length", "content_filter"]
    usage: Counts | None

    @property
    def calls(self) -> list[Request]:
        return [piece for piece in self.pieces if isinstance(piece, Request)]

    def words(self, kind: str) -> str:
        return "".join(p.text for p in self.pieces if isinstance(p, Words) and p.kind == kind)


@dataclass(frozen=True)
class Said:
    """A whole reply, as a client of either shape can know it."""

    text: str
    refusal: str
    thought: str
    calls: tuple[Called, ...]
    reason: str
    """stop, tool_calls, length or content_filter."""
    usage: Counts | None


def said(script: Script) -> Said:
    calls = tuple(call.called for call in script.calls)
    reason = "tool_calls" if calls and script.reason == "stop" else script.reason
    words = (script.words("text"), script.words("refusal"), script.words("thought"))
    return Said(*words, calls, reason, script.usage)


# --- drawing ---------------------------------------------------------------------------


def oddities(style: type[T]) -> st.SearchStrategy[T]:
    """Instances of a style; half of the fields as usual, so that one oddity is seen by itself."""
    hints = get_type_hints(style)
    values = {
        field.name: st.just(field.default) | st.from_type(hints[field.name])
        for field in dataclasses.fields(style)
    }
    return st.builds(style, **values)


_ALPHABET = "ab \n\t\"\\'{}[]:,<>/é\u2028\u0085\x7f😀"
"""No letters of tags and of end marks: those are drawn on purpose, by the styles."""
TEXT = st.text(_ALPHABET, max_size=6) | st.sampled_from(["data: x", "[DONE]", "\r\n\r\n", "event: y\n"])
THOUGHT = st.text("abc é\u2028😀.", min_size=1, max_size=6).filter(lambda text: not text.isspace())

_VALUES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(_ALPHABET, max_size=4)
ARGUMENTS = st.dictionaries(st.text('abé"', max_size=2), _VALUES, max_size=3)
NAMES = st.sampled_from(["f", "get_weather", "a-b_c", "exec_command"])


@st.composite
def counts(draw: st.DrawFn) -> Counts:
    cached, written, rest = (draw(st.integers(0, 50)) for _ in range(3))
    reasoning, answer = draw(st.integers(0, 50)), draw(st.integers(0, 50))
    return Counts(cached + written + rest, reasoning + answer, cached, written, reasoning)


def cut(draw: st.DrawFn, text: str) -> tuple[str, ...]:
    """`text` in one to four pieces, some perhaps empty."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return tuple(text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True))


@st.composite
def request(draw: st.DrawFn, number: int) -> Request:
    arguments = json.dumps(draw(ARGUMENTS), ensure_ascii=draw(st.booleans()), separators=(",", ":"))
    return Request(f"call_{number}{draw(st.sampled_from('xyz'))}", draw(NAMES), cut(draw, arguments))


def words(kind: Literal["text", "refusal", "thought"]) -> st.SearchStrategy[Words]:
    fragments = THOUGHT if kind == "thought" else TEXT
    return st.lists(fragments, min_size=1, max_size=3).map(lambda texts: Words(kind, tuple(texts)))


@st.composite
def scripts(draw: st.DrawFn, kinds: Sequence[str] = ("text", "refusal", "thought", "call")) -> Script:
    """Any reply, its pieces in any order."""
    order = draw(st.lists(st.sampled_from(kinds), max_size=5))
    pieces: list[Piece] = []
    for number, kind in enumerate(order):
        piece: Any = request(number) if kind == "call" else words(kind)  # type: ignore[arg-type]
        pieces.append(draw(piece))
    reason = draw(st.sampled_from(["stop", "stop", "length", "content_filter"]))
    return Script(tuple(pieces), reason, draw(st.none() | counts()))


@st.composite
def orderly_scripts(draw: st.DrawFn) -> Script:
    """Replies in the order that a plain Chat body has: thought, text, refusal, calls."""
    kinds = [kind for kind in ("thought", "text", "refusal") if draw(st.booleans())]
    prose: list[Piece] = [draw(words(kind)) for kind in kinds]  # type: ignore[arg-type]
    calls = [draw(request(number)) for number in range(draw(st.integers(0, 3)))]
    return Script((*prose, *calls), draw(st.sampled_from(["stop", "length"])), draw(st.none() | counts()))


REPLIES = scripts() | scripts(("text", "call", "call", "call"))
"""Every kind of reply, and half of them busy with calls, where most goes wrong."""
