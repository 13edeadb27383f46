"""Tool calls out of whatever a Chat backend streams as `tool_calls`.

The wire says: index always; id, type and name once; then pieces of a JSON text. In the field
the index is missing or 0 for all, ids come late, never, empty, or anew with each piece, names
late, repeated or in pieces, arguments as an object, whole, twice, or `{}` first and the real
text after it. The rules, in the order they are asked:

* A known id is that call, whatever the index; else the index decides; else the place in a
  list of several; else the call touched last. Of several calls with one id (Gemini's ids are
  function names) the index decides.
* It is a new call after all when the entry has another id (and is not a mere further piece),
  a name under an index that is not known yet, another name although arguments have begun, or
  further whole arguments after whole ones.
* A call is announced once its name is whole: when its first argument text comes, or when
  something else does. Calls are announced in the order they began.
* `{}` waits: more text replaces it. A JSON string waits: if it holds an object, the object
  is meant. Whole arguments told again are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, NamedTuple

import orjson

from .ir import Json, ToolKind
from .lenient import json_in, same_json
from .profile import ToolDelta


@dataclass(slots=True, eq=False)
class StreamedCall:
    """One call; `position` counts announced calls from 0, -1 before it is announced."""

    id: str
    index: int | None
    name: str = ""
    kind: ToolKind = "function"
    told_id: str = ""
    """The id that the backend gave it, also where another call had it before and `id` is empty."""
    position: int = -1
    said: list[str] = field(default_factory=list)
    fresh: str = ""
    """Said, but not yet given out."""
    held: str = ""
    """Not yet known to be meant."""
    extra: Json = field(default_factory=dict)
    """Keys the wire has no name for (Google's signatures), not yet given out."""
    place: int = 0
    """Among all calls, announced or not."""
    due: bool = True
    """Whether it may have something to give out."""
    held_since: int = 0
    """The feed that brought what is held."""

    @property
    def arguments(self) -> str:
        return "".join(self.said) + self.held

    @property
    def begun(self) -> bool:
        return bool(self.said or self.held)

    @property
    def parsable(self) -> bool:
        """Whether nothing is cut off, as far as one can tell."""
        return self.kind == "custom" or json_in(self.arguments) is not None

    @property
    def whole(self) -> bool:
        """Whether the arguments are a whole JSON value other than `{}`, which means little."""
        last = self.held or (self.said[-1] if self.said else "")
        if last.rstrip()[-1:] not in ("}", '"', ""):
            return False  # told by the last piece alone: it is asked with every piece of some streams
        text = self.arguments.strip()
        return text[-1:] in ("}", '"') and text != "{}" and json_in(text) is not None

    def tells_again(self, text: str) -> bool:
        known = self.arguments
        return text == known or same_json(text, known)


class Piece(NamedTuple):
    """What a feed adds: a call announced (`opens`), more of its arguments, keys of the wire's own."""

    call: StreamedCall
    opens: bool
    text: str
    extra: Json


class _Entry(NamedTuple):
    number: int | None
    id: str
    name: str
    text: str
    kind: ToolKind
    extra: Json
    plain: bool
    """Written as the wire says, as far as one can tell from the entry alone."""


_NOTHING: Json = {}
_TOLERANT = ToolDelta()
_INDEX_DIGITS = 9
_KEYS = frozenset({"index", "id", "type", "function", "custom", "name", "arguments", "input"})
_FURTHER_KEYS = frozenset({"index", "id", "type", "function"})


class ToolCallAssembler:
    """See the module's words.

    `clean` turns False when a client that reads by the book would have taken the entries for
    something else than the pieces given out; whoever rewrites sets it back. `rules` say what is
    exact with this backend: then it is taken at its word there, and nothing is guessed.
    """

    def __init__(self, rules: ToolDelta = _TOLERANT) -> None:
        self._rules = rules
        self.calls: list[StreamedCall] = []
        self.clean = True
        self._by_index: dict[int, StreamedCall] = {}
        self._by_id: dict[str, StreamedCall] = {}
        self._current: StreamedCall | None = None
        self._announced = 0
        self._feeds = 0
        self._due: list[int] = []
        """A heap: the places of the calls that are due. A feed looks at no others, of many there may be."""
        self._held: dict[StreamedCall, None] = {}
        """The calls with something that is held, in no order."""

    @property
    def waiting(self) -> bool:
        """Whether something was fed that has not been given out."""
        return bool(self._held) or self._announced < len(self.calls)

    def nameless(self) -> bool:
        """Whether a call with arguments never got a name."""
        return any(not call.name and call.begun for call in self.calls)

    def feed(self, entries: list[Any]) -> list[Piece]:
        """The entries of one delta's `tool_calls`."""
        if len(entries) == 1 and (piece := self._further(entries[0])):
            return [piece]
        known = len(self.calls)
        self._feeds += 1
        for place, raw in enumerate(entries):
            if isinstance(raw, dict):
                self._take(_entry(raw), place if len(entries) > 1 else None)
            else:
                self.clean = False
        # The next call begins, so the ones before are whole; but one that begins with `{}` as well
        # may be announced like them, and the texts of all come after that.
        if len(self.calls) > known and self.calls[-1].held.strip() != "{}":
            self._release([call for call in self._held if call.held_since < self._feeds])
        return list(self._given(settle=False))

    def settle(self) -> list[Piece]:
        """Something else comes, or the end: what waits is as whole as it will be."""
        self._release(list(self._held))
        return list(self._given(settle=True))

    def _further(self, raw: Any) -> Piece | None:
        """The common case, told early: one more piece of an announced call's arguments."""
        if not isinstance(raw, dict) or raw.get("id") is not None or not raw.keys() <= _FURTHER_KEYS:
            return None
        index, function = raw.get("index"), raw.get("function")
        if raw.get("type") not in ("function", None):
            return None
        call = self._by_index.get(index) if type(index) is int else None
        if call is None or call.position != index or call.held or not isinstance(function, dict):
            return None
        text = function.get("arguments")
        if function.get("name") is not None or not isinstance(text, str) or text[:1] in ("", "{"):
            return None
        self.grow(call, text)
        return Piece(call, False, text, _NOTHING)

    def grow(self, call: StreamedCall, text: str) -> None:
        """Note a piece of arguments that somebody else has passed on already."""
        call.said.append(text)
        self._current = call

    def _take(self, entry: _Entry, place: int | None) -> None:
        call = self._known(entry, place)
        if call is None or self._begins(call, entry, place):
            if entry.id or entry.name or entry.text:
                self._create(entry)
            else:
                self.clean = False
        else:
            self._continue(call, entry)

    def _known(self, entry: _Entry, place: int | None) -> StreamedCall | None:
        if self._rules.index == "exact" and entry.number is not None:
            return self._by_index.get(entry.number)
        indexed = None if entry.number is None else self._by_index.get(entry.number)
        if entry.id in self._by_id:
            shares = indexed is not None and indexed.told_id == entry.id
            return indexed if shares else self._by_id[entry.id]
        if entry.number is not None:
            return indexed or (None if entry.id or entry.name else self._unnumbered())
        if place is not None and not entry.id:
            return self._by_index.get(place)
        return self._current

    def _unnumbered(self) -> StreamedCall | None:
        """The call touched last, if it was begun without an index and may get one late."""
        return self._current if self._current is not None and self._current.index is None else None

    def _begins(self, call: StreamedCall, entry: _Entry, place: int | None) -> bool:
        """Whether an entry that points to `call` is the beginning of another one."""
        if self._rules.index == "exact" and entry.number is not None:
            return False
        if self._rules.id == "exact":
            return bool(entry.id and call.id and entry.id != call.id)
        if entry.id and call.id and entry.id != call.id:
            further = entry.text and not entry.name and (not call.whole or call.tells_again(entry.text))
            return not further
        if not entry.name or not call.name:
            return False
        if self._opens_elsewhere(call, entry, place):
            return True
        if entry.name != call.name:
            return call.begun or (entry.number is None and (not entry.id or entry.id != call.id))
        return bool(entry.text) and call.whole and not call.tells_again(entry.text)

    def _opens_elsewhere(self, call: StreamedCall, entry: _Entry, place: int | None) -> bool:
        """Whether a named entry opens a second call of the same id, told apart by index or place.

        Not where its text can only go on (an index that changes from piece to piece), nor where the
        call may get its index late.
        """
        number = place if entry.number is None else entry.number
        if number is None or number in self._by_index:
            return False
        if entry.kind == "function" and entry.text.lstrip()[:1] not in ("", "{", '"'):
            return False
        return entry.number is None or call.index is not None or call.whole or bool(call.held)

    def _create(self, entry: _Entry) -> None:
        """A new call; an id that is taken (Gemini's are function names) is left empty."""
        unique = entry.id if entry.id not in self._by_id else ""
        call = self._current = StreamedCall(unique, entry.number, kind=entry.kind, told_id=entry.id)
        plain = entry.plain and bool(unique and entry.name) and entry.number == len(self.calls)
        self.clean = self.clean and plain
        number = entry.number if entry.number is not None else len(self.calls)
        call.place = len(self.calls)
        self.calls.append(call)
        heappush(self._due, call.place)
        self._by_index[number] = call
        if entry.id:
            self._by_id[entry.id] = call
        self._add(call, entry)

    def _continue(self, call: StreamedCall, entry: _Entry) -> None:
        expected = call.index if call.position < 0 else call.position
        self.clean = (
            self.clean and entry.plain and not entry.id and not entry.name and entry.number == expected
        )
        if entry.id and not call.told_id and call.position < 0:
            call.id = call.told_id = entry.id
            self._by_id[entry.id] = call
        if entry.number is not None:
            self._by_index.setdefault(entry.number, call)
        self._current = call
        self._add(call, entry)

    def _add(self, call: StreamedCall, entry: _Entry) -> None:
        self._is_due(call)
        call.extra |= entry.extra
        name = entry.name
        if name and name != call.name and call.position < 0:
            call.name = name if not call.name or name.startswith(call.name) else call.name + name
        if entry.text and call.kind == "function":
            self._add_json(call, entry.text)
        elif entry.text:
            self._say(call, entry.text)

    def _add_json(self, call: StreamedCall, text: str) -> None:
        if self._rules.args == "exact":
            self._say(call, text)
        elif call.said:
            if text.lstrip()[:1] == "{" and call.whole and call.tells_again(text):
                self.clean = False
            else:
                self._say(call, text)
        else:
            self._add_first(call, text)

    def _add_first(self, call: StreamedCall, text: str) -> None:
        """The beginning of the arguments, which may be no more than a placeholder."""
        if call.held and (call.held.strip() == "{}" or call.tells_again(text)):
            call.held, self.clean = "", False
        if text.strip() == "{}" or (call.held + text).lstrip()[:1] == '"':
            self._hold(call, text)
        else:
            self._say(call, text)

    def _hold(self, call: StreamedCall, text: str) -> None:
        if call not in self._held:
            self._held[call] = None
            call.held_since = self._feeds
        call.held += text

    def _say(self, call: StreamedCall, text: str) -> None:
        call.held = ""
        self._held.pop(call, None)
        call.said.append(text)
        call.fresh += text
        self._is_due(call)

    def _is_due(self, call: StreamedCall) -> None:
        if not call.due:
            call.due = True
            heappush(self._due, call.place)

    def _release(self, calls: list[StreamedCall]) -> None:
        for call in calls:
            self._say(call, self._unwrapped(call.held))

    def _unwrapped(self, text: str) -> str:
        """Arguments encoded twice, once decoded; only when an object comes out."""
        inner = json_in(text)
        if isinstance(inner, str) and isinstance(json_in(inner), dict):
            self.clean = False
            return inner
        return text

    def _given(self, settle: bool) -> Iterator[Piece]:
        """What is due, in the order in which the calls began."""
        passed_over: list[int] = []
        while self._due:
            call = self.calls[self._due[0]]
            opens = call.position < 0
            ready = settle or call.fresh or call is not self.calls[-1]
            if opens and not (call.name and ready):
                if not settle:
                    break  # later calls wait for this one
                passed_over.append(heappop(self._due))
                continue
            heappop(self._due)
            call.due = False
            if opens:
                call.position = self._announced
                self._announced += 1
                self.clean = self.clean and call.position == call.index
            if opens or call.fresh or call.extra:
                text, extra, call.fresh, call.extra = call.fresh, call.extra, "", {}
                yield Piece(call, opens, text, extra)
        for place in passed_over:
            heappush(self._due, place)


def _entry(raw: Json) -> _Entry:
    """One entry; some backends leave the inner object out and write its keys flat."""
    custom = isinstance(raw.get("custom"), dict)
    inner = raw.get("custom" if custom else "function")
    table: Json = inner if isinstance(inner, dict) else raw
    told = table.get("input" if custom else "arguments")
    number, id_, name = _number(raw.get("index")), raw.get("id"), table.get("name")
    kind: ToolKind = "custom" if custom else "function"
    plain = (
        table is not raw
        and (told is None or isinstance(told, str))
        and type(raw.get("index")) is int
        and raw.get("type") in ((kind,) if id_ else (kind, None))
        and id_ != ""
        and name != ""
    )
    extra = {key: value for key, value in raw.items() if key not in _KEYS}
    return _Entry(number, _name(id_), _name(name), _as_text(told), kind, extra, plain)


def _name(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) <= _INDEX_DIGITS:
        return int(value)
    return value if type(value) is int else None


def _as_text(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else orjson.dumps(arguments).decode()
