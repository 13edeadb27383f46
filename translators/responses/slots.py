"""Output items of a backend's reply while they arrive, and the neutral events they cause.

A slot is one item; its pieces are the parts of a message, the paragraphs of a reasoning item,
or the arguments of a call. A piece stays open until the next one of its item begins or the
item is done, because what ends it may still come: citations, the backend's own word for the
whole text, the encrypted form of reasoning (which only `output_item.done` tells).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from ..ir import (
    Annotated,
    Closed,
    Delta,
    Event,
    Foreign,
    ItemKind,
    Json,
    Opaque,
    Opened,
    ToolKind,
)
from ..lenient import same_json
from ..logprobs import read_logprobs

Place = tuple[Literal["content", "summary", "call"], int]
"""Where a piece is in its item: the list it is in and its position there."""
CALL: Place = ("call", 0)
_LISTS: tuple[Literal["summary", "content"], ...] = ("summary", "content")

_CALLS: dict[str, tuple[ToolKind, str]] = {
    "function_call": ("function", "arguments"),
    "custom_tool_call": ("custom", "input"),
    "tool_search_call": ("tool_search", "arguments"),
}
_PARTS: dict[str, tuple[ItemKind, str]] = {
    "output_text": ("text", "text"),
    "text": ("text", "text"),
    "refusal": ("refusal", "refusal"),
    "reasoning_text": ("reasoning", "text"),
    "summary_text": ("summary", "text"),
}
"""Type of a part -> what it is, and the key of its text."""


class Order:
    """Numbers pieces in the order of opening, and knows whose was opened last."""

    def __init__(self) -> None:
        self._next = 0
        self._last: Slot | None = None

    def take(self, slot: Slot | None) -> tuple[int, bool]:
        """The next index, and whether the piece before it was of the same item."""
        index, joins = self._next, slot is not None and slot is self._last
        self._next, self._last = index + 1, slot
        return index, joins


@dataclass(slots=True)
class _Piece:
    index: int
    texts: list[str] = field(default_factory=list)
    whole: str | None = None
    """The backend's word for the whole text, where it is not the sum of the deltas."""
    cited: int = 0
    open: bool = True


class Slot:
    """One item. Every method appends the events it causes to `out`."""

    def __init__(self, order: Order, type: str, output_index: int | None = None) -> None:
        self.type = type
        self.id = ""
        self.call_id = ""
        self.output_index = output_index
        self.done = False
        self._order = order
        self._pieces: dict[Place, _Piece] = {}
        self._current: _Piece | None = None
        self._name = ""
        self._namespace: str | None = None
        self._phase: str | None = None
        self._hosted = self._sealed = False
        self._early: list[str] = []

    @property
    def is_call(self) -> bool:
        """A call that the client has to answer."""
        return self.type in _CALLS and not self._hosted

    @property
    def is_hosted(self) -> bool:
        return not self.is_call and self.type not in ("message", "reasoning")

    @property
    def is_nameless(self) -> bool:
        return self.is_call and not self._name

    @property
    def arguments(self) -> str:
        piece = self._pieces.get(CALL)
        texts = self._early if piece is None else piece.texts
        return "".join(texts)

    # --- while it streams ----------------------------------------------------------

    def learn(self, item: Json, out: list[Event]) -> None:
        """What the item says of itself, with `output_item.added` or `.done`."""
        self.type = text_of(item.get("type")) or self.type
        self.id = text_of(item.get("id")) or self.id
        self.call_id = text_of(item.get("call_id")) or self.call_id
        self._phase = text_of(item.get("phase")) or self._phase
        self._namespace = text_of(item.get("namespace")) or self._namespace
        self._name = text_of(item.get("name")) or self._name
        if self.type == "tool_search_call":
            self._name, self._hosted = "tool_search", item.get("execution") == "server"
        self._open_call(out)

    def begin(self, place: Place, kind: ItemKind, out: list[Event]) -> _Piece:
        """The open piece at `place`; the one before it in the item is closed for it."""
        piece = self._pieces.get(place)
        if piece is not None and piece.open:
            return piece
        self._close_current(out)
        index, joins = self._order.take(self)
        piece = self._pieces[place] = self._current = _Piece(index)
        id = self.id if self.type == "reasoning" else ""
        out.append(Opened(index, kind, joins=joins, phase=self._phase, id=id))
        return piece

    def say(self, place: Place, kind: ItemKind, text: str, logprobs: Any, out: list[Event]) -> None:
        """More text; `logprobs` as the event has them, often an empty list."""
        piece = self.begin(place, kind, out)
        piece.texts.append(text)
        out.append(Delta(piece.index, text, read_logprobs(logprobs) if logprobs else None))

    def write(self, text: str, out: list[Event]) -> None:
        """More of a call's arguments; they wait while the call has no name yet."""
        piece = self._pieces.get(CALL)
        if piece is None:
            self._early.append(text)
        else:
            piece.texts.append(text)
            out.append(Delta(piece.index, text))

    def settle(self, place: Place, whole: str, out: list[Event], logprobs: Any = None) -> None:
        """The backend's word for the whole text of a piece: it adds what the deltas lacked.

        An empty one after deltas says nothing (some backends leave the field empty), and arguments
        written in another way are the same arguments.
        `logprobs` are those of the whole, of use only when there were no deltas.
        """
        piece = self._pieces.get(place)
        if piece is None or not piece.open:
            return
        said = "".join(piece.texts)
        if whole:
            piece.whole = None if whole.startswith(said) or self._means(place, whole, said) else whole
        if whole.startswith(said):
            rest = whole[len(said) :]
            if rest:
                piece.texts.append(rest)
                out.append(Delta(piece.index, rest, None if said else read_logprobs(logprobs)))

    def _means(self, place: Place, whole: str, said: str) -> bool:
        return place == CALL and self.type != "custom_tool_call" and same_json(whole, said)

    def cite(self, place: Place, annotation: Any, out: list[Event]) -> None:
        """A citation; one without a type is nothing a client could read."""
        piece = self.begin(place, "text", out)
        piece.cited += 1
        if isinstance(annotation, dict) and text_of(annotation.get("type")):
            out.append(Annotated(piece.index, annotation))

    # --- when it is whole ----------------------------------------------------------

    def part(self, place: Place, part: Any, out: list[Event]) -> None:
        """A whole part: text the deltas lacked, and citations that no event told."""
        kind, key = _PARTS.get(str(part.get("type")), (None, ""))
        known = self._pieces.get(place)
        if kind is None or (known is not None and not known.open):
            return
        piece = self.begin(place, kind, out)
        self.settle(place, written(part.get(key)), out, part.get("logprobs"))
        annotations = part.get("annotations")
        if kind == "text" and isinstance(annotations, list):
            for annotation in annotations[piece.cited :]:
                self.cite(place, annotation, out)

    def finish(self, item: Json, out: list[Event]) -> None:
        """The whole item: everything in it that was not yet said, then its end."""
        self.learn(item, out)
        if self.is_hosted:
            self._finish_hosted(item, out)
        elif self.is_call:
            self._finish_call(item, out)
        else:
            self._finish_parts(item, out)

    def _finish_hosted(self, item: Json, out: list[Event]) -> None:
        index, _ = self._order.take(None)
        self.done = True
        # The item's own type may be missing where an earlier event told it: clients need it.
        whole = item if item.get("type") == self.type else {**item, "type": self.type}
        out.append(Foreign(index, Opaque("responses", whole)))

    def _finish_call(self, item: Json, out: list[Event]) -> None:
        _, key = _CALLS[self.type]
        self.settle(CALL, written(item.get(key)), out)
        self.close(out, cut=item.get("status") == "incomplete")

    def _finish_parts(self, item: Json, out: list[Event]) -> None:
        content = item.get("content")
        if isinstance(content, str):
            content = [{"type": "output_text", "text": content}]
        for where in _LISTS:
            parts = content if where == "content" else item.get("summary")
            for index, part in enumerate(parts if isinstance(parts, list) else []):
                if isinstance(part, dict):
                    self.part((where, index), part, out)
        sealed = text_of(item.get("encrypted_content"))
        self._sealed = sealed is not None
        if sealed is not None and self._current is None:
            self.begin(("summary", 0), "summary", out)
        self.close(out, sealed, cut=item.get("status") == "incomplete")

    def close(self, out: list[Event], sealed: str | None = None, cut: bool = False) -> None:
        """The item ends with what it has; no arguments are `{}`, which agents can parse."""
        self.done = True
        if self.type == "function_call" and not cut and not self.arguments.strip():
            self.write("{}", out)
        self._close_current(out, sealed, cut)

    def seal_late(self, item: Json, out: list[Event]) -> None:
        """Reasoning that had ended without its encrypted form, which the last event has: the item again."""
        if self.type == "reasoning" and not self._sealed and text_of(item.get("encrypted_content")):
            index, _ = self._order.take(None)
            out.append(Foreign(index, Opaque("responses", {**item, "type": self.type, "id": self.id})))

    def _open_call(self, out: list[Event]) -> None:
        """A call is shown once it has a name; a client could do nothing with it before."""
        if not self.is_call or not self._name or CALL in self._pieces:
            return
        index, _ = self._order.take(self)
        early, self._early = "".join(self._early), []
        self._current = self._pieces[CALL] = _Piece(index, [early] if early else [])
        kind = _CALLS[self.type][0]
        call_id = self.call_id or self.id
        out.append(Opened(index, "tool_call", call_id, self._name, kind, self._namespace))
        if early:
            out.append(Delta(index, early))

    def _close_current(self, out: list[Event], sealed: str | None = None, cut: bool = False) -> None:
        piece, self._current = self._current, None
        if piece is not None:
            piece.open = False
            out.append(Closed(piece.index, sealed, piece.whole, cut))


def text_of(value: Any) -> str | None:
    """`value` when it is a string with something in it."""
    return value if isinstance(value, str) and value else None


def written(value: Any) -> str:
    """What the model wrote; an object where text belongs is the JSON text it stands for."""
    if value is None or isinstance(value, str):
        return value or ""
    return orjson.dumps(value).decode()
