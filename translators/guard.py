"""The grammar of events, watched in production: what an encoder gets is always legal.

`ir.Grammar` says what is legal and raises; a stream that a client is reading must not. So the
guard stands between decoder and encoder, mends what it can, drops what it cannot and counts
both. A violation is a bug of ours or a backend so odd that the decoder lost its way.

The machine asks the guard only about the rare events: a `Delta` whose index is in `open` is
legal, and `open` is empty before the beginning and after the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from .ir import Annotated, Closed, Delta, Event, Failed, Finished, Foreign, Opened, Started, may_join

Violation = Literal[
    "no_beginning",
    "second_beginning",
    "index_gap",
    "index_taken",
    "false_join",
    "not_open",
    "left_open",
    "text_differs",
    "after_end",
    "not_json",
    "fault",
    "number_gap",
    "not_added",
    "bad_delta",
    "bad_item",
    "second_finish",
]
"""What was wrong. `text_differs`: a backend's last word for a text is not what it streamed; prose stays as
the client has read it (it cannot be unsaid, and nobody runs it), a call ends the reply as failed. `fault`
is an exception of ours; those after it are met by the watchers of the pass lane only: `number_gap` and
`not_added` are left as they are (the frames after them would all have to be written anew), the others are
mended or left out."""

_Running: TypeAlias = Started | Opened | Delta | Annotated | Closed | Foreign | Finished


class Violations(dict[str, int]):
    """How often each kind was met; the kinds are few, so it stays small."""

    def count(self, kind: Violation) -> None:
        self[kind] = self.get(kind, 0) + 1


class Guard:
    """One reply. `open`: indices whose pieces are open, as the encoder knows them."""

    __slots__ = ("_aliases", "_begun", "_ended", "_last", "_next", "_taken", "open", "violations")

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.violations = Violations()
        self._aliases: dict[int, int] = {}
        """Indices used twice -> the fresh one that the second piece got."""
        self._begun = self._ended = False
        self._last: Opened | None = None
        self._next = 0
        self._taken: dict[int, None] = {}  # an empty set takes three times that of every stream

    def mend(self, event: Event) -> Iterable[Event]:
        """The legal events that `event` comes to; often itself alone, never an exception."""
        if self._ended:
            self.violations.count("after_end")
            return ()
        if isinstance(event, Failed):
            self._end()
            return (event,)
        if self._begun or isinstance(event, Started):
            return self._mend_running(event)
        self.violations.count("no_beginning")
        self._begun = True
        return (Started(), *self._mend_running(event))

    def _mend_running(self, event: _Running) -> tuple[Event, ...]:
        match event:
            case Started():
                return self._start(event)
            case Opened():
                return self._open(event)
            case Foreign():
                before = self._take(event)
                self._last = None
                return (*before, event)
            case Finished():
                return self._finish(event)
            case _:
                return self._inside(event)

    def _start(self, event: Started) -> tuple[Event, ...]:
        if self._begun:
            self.violations.count("second_beginning")
            return ()
        self._begun = True
        return (event,)

    def _open(self, event: Opened) -> tuple[Event, ...]:
        before = self._take(event)
        if event.joins and not may_join(event, self._last, self.open):
            self.violations.count("false_join")
            event.joins = False
        self._last = event
        self.open.add(event.index)
        return (*before, event)

    def _take(self, event: Opened | Foreign) -> tuple[Event, ...]:
        """Note the index of a new piece; one that is taken is changed, and its old piece closed."""
        before: tuple[Event, ...] = ()
        index = event.index
        if index in self._taken:
            self.violations.count("index_taken")
            before = self._close(self._aliases.get(index, index))
            event.index = self._aliases[index] = max(self._taken) + 1
        elif index != self._next:
            self.violations.count("index_gap")  # encoders look pieces up by index, so a gap harms none
        self._taken[event.index] = None
        self._next = event.index + 1
        return before

    def _close(self, index: int) -> tuple[Closed, ...]:
        if index not in self.open:
            return ()
        self.violations.count("left_open")
        self.open.remove(index)
        return (Closed(index),)

    def _inside(self, event: Delta | Annotated | Closed) -> tuple[Event, ...]:
        """More of a piece, or its end. Of one that is not open nobody knows what it is."""
        event.index = self._aliases.get(event.index, event.index)
        if event.index not in self.open:
            self.violations.count("not_open")
            return ()
        if isinstance(event, Closed):
            self.open.remove(event.index)
            if event.text is not None:
                self.violations.count("text_differs")
        return (event,)

    def _finish(self, event: Finished) -> tuple[Event, ...]:
        closed = [each for index in sorted(self.open) for each in self._close(index)]
        self._end()
        return (*closed, event)

    def _end(self) -> None:
        self._ended = True
        self.open.clear()
