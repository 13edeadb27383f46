"""A reply that the token limit cut off, continued: several replies of a backend as one.

`Continuing` stands where a stream's events leave its decoder. The end of a reply that may go on is held back,
with the end of its last text; the next reply's first text continues that text, its thoughts are left out, its
tokens are added. A reply goes on only from a text: not over a tool call, whose arguments would be torn, nor
over anything else that no text says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from .dialect import Framer, StreamDecoder, StreamEncoder
from .errors import ProxyError
from .ir import (
    Annotated,
    Closed,
    Delta,
    Event,
    Failed,
    Finished,
    Foreign,
    Json,
    Opened,
    Shape,
    Started,
    Usage,
)
from .profile import Profile
from .stream import Restorer, StreamTranslator

GO_ON = "Go on exactly where you stopped: repeat nothing, and say nothing about going on."
"""For a backend that takes no conversation in which the assistant spoke last."""

Make = Callable[[], tuple[StreamDecoder, Restorer | None, Framer]]
"""What reads one more reply of the same backend."""


class Continuing:
    """`most`: replies that may be asked for after the first."""

    def __init__(self, restorer: Restorer | None, most: int) -> None:
        self._restorer, self._left = restorer, most
        self._first = True
        self._places: dict[int, int] = {}
        """Index in this reply -> index in the whole; absent: the piece is left out."""
        self._next = 0
        self._open: set[int] = set()
        self._last: int | None = None
        """The last piece of the whole, where it is a text."""
        self._closed: Closed | None = None
        """Its end, held back."""
        self._only_texts = True
        self._texts: list[str] = []
        """What has been said in earlier pieces."""
        self._told: list[str] = []
        """What has been said of the last text in earlier replies."""
        self._pieces: list[str] = []
        """The same in this reply."""
        self._mended = False
        """Whether the backend's last word for a part of the last text is not what it streamed."""
        self._usage: Usage | None = None
        self.waits = False
        """Whether the reply was cut off and may go on."""
        self.id = ""
        """The backend's id of the last reply."""

    @property
    def text(self) -> str:
        """All that has been said."""
        return "".join([*self._texts, *self._told, *self._pieces])

    def go_on(self, restorer: Restorer | None) -> None:
        """Another reply comes, which `restorer` belongs to."""
        self._restorer, self._first, self.waits = restorer, False, False
        self._left -= 1
        self._places, self._only_texts = {}, True
        self._told.append("".join(self._pieces))
        self._pieces = []

    def feed(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Foreign) or (isinstance(event, Opened) and event.kind == "tool_call"):
            self._only_texts = False  # also where it is made a text of: its form would be torn
        restored = (event,) if self._restorer is None else self._restorer.feed(event)
        for each in restored:
            yield from self._take(each)

    def _take(self, event: Event) -> Iterator[Event]:
        match event:
            case Delta() | Annotated():
                yield from self._say(event)
            case Started():
                self.id = event.id
                if self._first:
                    yield event
            case Opened():
                yield from self._begin(event)
            case Closed():
                yield from self._close(event)
            case Foreign():
                yield from self._foreign(event)
            case Finished():
                yield from self._finish(event)
            case _:
                yield from self._fail(event)

    def _say(self, event: Delta | Annotated) -> Iterator[Event]:
        place = self._places.get(event.index)
        if place is None:
            return
        if isinstance(event, Delta):
            if place == self._last:
                self._pieces.append(event.text)
        elif place == self._last and self._told:
            event.annotation = _moved(event.annotation, sum(map(len, self._told)))
        event.index = place
        yield event

    def _begin(self, event: Opened) -> Iterator[Event]:
        if not self._first and event.kind in ("reasoning", "summary"):
            return
        if self._closed is not None and event.kind == "text" and not self._first and not self._places:
            assert self._last is not None  # noqa: S101 - it is what is closed
            self._places[event.index] = self._last
            self._closed = None
            return
        yield from self._release()
        if not self._first:
            event.joins = False
        self._places[event.index] = event.index = self._place()
        self._last = event.index if event.kind == "text" else None
        self._only_texts = self._only_texts and event.kind != "refusal"
        self._open.add(event.index)
        yield event

    def _place(self) -> int:
        self._next += 1
        return self._next - 1

    def _close(self, event: Closed) -> Iterator[Event]:
        place = self._places.get(event.index)
        if place is None:
            return
        event.index = place
        if place != self._last:
            self._open.discard(place)
            yield event
            return
        if event.text is not None:
            self._pieces, self._mended = [event.text], True
        self._closed = event

    def _release(self) -> Iterator[Event]:
        """The end of the last text, now that nothing continues it."""
        if self._closed is None:
            return
        whole = "".join([*self._told, *self._pieces])
        yield replace(self._closed, text=whole if self._mended else None)
        self._open.discard(self._closed.index)
        self._texts.append(whole)
        self._told, self._pieces, self._mended, self._closed, self._last = [], [], False, None, None

    def _foreign(self, event: Foreign) -> Iterator[Event]:
        if not self._first and event.item.type == "reasoning":
            return
        yield from self._release()
        event.index = self._place()
        yield event

    def _finish(self, event: Finished) -> Iterator[Event]:
        self._usage = added(self._usage, event.usage)
        said_more = self._closed is not None and any(self._pieces)
        goes_on = self._left > 0 and self._only_texts and said_more
        if event.reason == "length" and goes_on:
            self.waits = True
            return
        yield from self._release()
        yield Finished(event.reason, self._usage)

    def _fail(self, event: Failed) -> Iterator[Event]:
        """A reply that cannot go on is what it is; only a call that broke off in it makes it a failure."""
        if not self.waits and (self._first or not self._only_texts):
            yield Failed(event.error, added(self._usage, event.usage))
            return
        self.waits = False
        yield from self._release()
        for place in sorted(self._open):
            yield Closed(place, cut=True)
        yield Finished("length", added(self._usage, event.usage))


class ContinuedTranslator(StreamTranslator):
    """A stream that goes on with the next reply where one was cut off: see `cut` and `go_on`."""

    def __init__(self, make: Make, encoder: StreamEncoder, private: Sequence[str], most: int) -> None:
        decoder, restorer, framer = make()
        self._make, self._continuing = make, Continuing(restorer, most)
        super().__init__(decoder, encoder, self._continuing, private, framer)

    @property
    def cut(self) -> str | None:
        """What has been said, where the reply was cut off and may go on; else None."""
        return self._continuing.text if self._continuing.waits else None

    @property
    def reply_id(self) -> str:
        """The backend's id of its last reply."""
        return self._continuing.id

    def go_on(self) -> None:
        """What is fed from now on is another reply."""
        self._decoder, restorer, self._framer = self._make()
        self._continuing.go_on(restorer)

    def fail(self, error: ProxyError) -> bytes:
        """What a reply said that goes on no further is an incomplete one, not a failed one."""
        return super().fail(error) + super().fail(error)  # where its end was told, it waits after the first


def added(one: Usage | None, other: Usage | None) -> Usage | None:
    """The tokens of both; None where nobody counted."""
    if one is None or other is None:
        return one or other
    return Usage(
        one.input + other.input,
        one.output + other.output,
        one.cached + other.cached,
        one.cache_write + other.cache_write,
        one.reasoning + other.reasoning,
    )


def with_text(body: Json, text: str, shape: Shape, profile: Profile) -> Json:
    """A backend's request once more, with what its reply has said so far at the end."""
    asks = profile.messages.trailing_assistant == "drop"
    if shape == "responses":
        kind = f"{profile.messages.assistant_parts}_text"
        said = {"type": "message", "role": "assistant", "content": [{"type": kind, "text": text}]}
        more = [said, {"role": "user", "content": GO_ON}] if asks else [said]
        given: Any = body.get("input")
        before = given if isinstance(given, list) else [{"role": "user", "content": given}]
        return {**body, "input": [*before, *more]}
    message = {"role": "assistant", "content": text}
    return {
        **body,
        "messages": [*body["messages"], message, *([{"role": "user", "content": GO_ON}] if asks else [])],
    }


def _moved(annotation: Json, by: int) -> Json:
    """An annotation of a later part of a text, in the whole of it."""
    places = {
        key: annotation[key] + by
        for key in ("start_index", "end_index", "index")
        if _is_place(annotation, key)
    }
    return {**annotation, **places}


def _is_place(annotation: Json, key: str) -> bool:
    return type(annotation.get(key)) is int
