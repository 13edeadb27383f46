"""Neutral events in, a Responses event stream out; afterwards the same reply as one body.

Items never overlap on this wire: Codex books a delta to the item added last, and the SDK's
accumulator counts on it. So items stand in a queue in the order they were opened. The first
one is *live*: its deltas leave as they come. Those behind it gather their text and leave in
one piece when their turn comes.

An item's turn ends when all its pieces are closed and another item waits. A tool call's turn
ends only with the reply: clients run a tool on its `done`, and a reply that breaks off later
is asked for again, which would run it twice. Text after a call therefore leaves at the end.
A message stays unfinished until something follows it, because a further part may still join
it and because only the end of the reply says whether it is complete.

What was streamed cannot be unsaid: texts in `done` events are the sum of the deltas, also
where the backend's last word differs; where that are a call's arguments the reply fails (see
`_settle`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from ..capsule import seal
from ..dialect import OTHER_ARGUMENTS, End, ReplyContext
from ..errors import ProxyError, responses_error
from ..ir import (
    Annotated,
    Call,
    Closed,
    Delta,
    Event,
    Failed,
    Finished,
    Foreign,
    Json,
    Opened,
    Started,
    Usage,
)
from ..logprobs import read_logprobs
from ..usage import write_responses_usage
from .frames import END, delta, frame, lifecycle
from .items import (
    CallItem,
    ForeignItem,
    OutputItem,
    PartsItem,
    Piece,
    Status,
    Step,
    annotation_step,
    whole_annotation,
)
from .snapshot import service_tier, snapshot

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Finish reason -> `incomplete_details.reason`; every other one completes the response."""

_THOUGHT_ID = re.compile(r"rs_[A-Za-z0-9_-]{1,61}")
"""A backend's id that a reasoning item keeps: OpenAI refuses what is sealed under another one ("Encrypted
content item_id did not match the target item id", I maximhq/bifrost#5186)."""

_CALL_PREFIX = {"function": "fc_", "custom": "ctc_", "tool_search": "tsc_"}


class ResponsesEncoder:
    """One reply for one client; see the module's words. `call` is not needed beyond its context."""

    def __init__(self, call: Call, context: ReplyContext) -> None:
        self._context = context
        self._response = snapshot(context, context.new_id("resp_"))
        self._begun = False
        self._upstream = ""
        self._sequence = 0
        self._pieces: dict[int, Piece] = {}
        self._items: dict[int, OutputItem] = {}
        self._last: OutputItem | None = None
        self._live: OutputItem | None = None
        self._waiting: list[OutputItem] = []  # seldom any; a deque takes 0.7 KiB of every stream
        self._output: list[Json] = []
        self._ids: dict[str, None] = {}  # an empty set takes three times that of every stream
        self._thoughts: dict[str, OutputItem] = {}
        """By their ids."""
        self._error: ProxyError | None = None
        self.usage: Usage | None = None
        self.end: End | None = None

    # --- what the pump calls ---------------------------------------------------------

    def start(self) -> bytes:
        """`created` and `in_progress`, once."""
        if self._begun or not self._context.stream:
            return b""
        self._begun = True
        opening = orjson.dumps(self._response)
        created = lifecycle("response.created", self._next(), opening)
        return created + lifecycle("response.in_progress", self._next(), opening)

    def keepalive(self) -> bytes:
        """`in_progress` again.

        Comments do not reset Codex's idle timer, and typed clients refuse event types of our own.
        """
        if not self._context.stream:
            return b""
        return self.start() or lifecycle("response.in_progress", self._next(), orjson.dumps(self._response))

    def body(self) -> Json:
        """The response object; raises the error of a `Failed` event."""
        if self._error is not None:
            raise self._error
        return self._response

    def feed(self, event: Event) -> bytes:
        if isinstance(event, Delta):
            return self._delta(event)
        match event:
            case Started():
                self._upstream = event.id
                self._response["service_tier"] = service_tier(event.service_tier)
                return self.start()
            case Opened():
                return self._write(self._open(event))
            case Closed():
                return self._write(self._close(event))
            case Annotated():
                return self._write(self._annotate(event))
            case Foreign():
                return self._write(self._foreign(event))
            case Finished():
                return self._finish(event)
            case _:
                return self._fail(event)

    # --- events ------------------------------------------------------------------------

    def _delta(self, event: Delta) -> bytes:
        piece = self._pieces[event.index]
        if not piece.head or event.logprobs:
            return self._write(self._say(event.index, event.text, event.logprobs or []))
        if not event.text:
            return b""
        piece.texts.append(event.text)
        if not self._context.stream:
            return b""
        return delta(piece.head, self._next(), event.text, piece.tail)

    def _say(self, index: int, text: str, logprobs: list[Json]) -> list[Step]:
        """More text of a piece that waits, is yet to be shown, or says more than text."""
        piece, item = self._pieces[index], self._items[index]
        told = read_logprobs(logprobs) or []
        piece.logprobs += told
        if not text:
            return []
        piece.texts.append(text)
        if item is not self._live:
            return []
        return piece.grow(text, told) if piece.shown else item.show(piece)

    def _open(self, event: Opened) -> list[Step]:
        as_text = event.kind == "refusal" and self._context.refusal_as_text
        piece = Piece("text" if as_text else event.kind)
        item = self._last if event.joins else None
        if item is None:
            item = self._last = self._new_item(event)
            if event.native:
                self._carry(item, event.native)
            self._waiting.append(item)
        self._pieces[event.index], self._items[event.index] = piece, item
        item.pieces.append(piece)
        return item.show(piece) if item is self._live else self._advance()

    def _new_item(self, event: Opened) -> OutputItem:
        new_id = self._context.new_id
        if event.kind == "tool_call":
            call_id = self._unused(event.call_id, "call_")
            return CallItem(
                new_id(_CALL_PREFIX[event.tool]), call_id, event.name, event.tool, event.namespace
            )
        if event.kind in ("reasoning", "summary"):
            own = event.id if _THOUGHT_ID.fullmatch(event.id) else ""
            thought = PartsItem(self._unused(own, "rs_"), True, event.phase)
            self._thoughts[thought.id] = thought
            return thought
        return PartsItem(new_id("msg_"), False, event.phase)

    def _carry(self, item: OutputItem, native: Mapping[str, Any]) -> None:
        """Put the backend's own form in a capsule; that of a call in an item of its own."""
        if self._context.seals is None:
            return
        if isinstance(item, CallItem):
            carrier = PartsItem(self._unused("", "rs_"), True)
            carrier.sealed = seal(self._context.seals, {"calls": {item.call_id: dict(native)}})
            self._waiting.append(carrier)
        else:
            item.sealed = seal(self._context.seals, dict(native))

    def _close(self, event: Closed) -> list[Step]:
        piece, item = self._pieces[event.index], self._items[event.index]
        steps = [] if event.text is None else self._settle(event.index, event.text)
        piece.open, piece.head = False, b""
        item.cut = item.cut or event.cut
        if event.sealed is not None:
            item.sealed = event.sealed
        if event.native:
            self._carry(item, event.native)
        if item is not self._live:
            return steps
        return [*steps, *item.close(piece), *self._advance()]

    def _settle(self, index: int, whole: str) -> list[Step]:
        """Make a piece's text `whole`, unless something else was streamed already."""
        piece = self._pieces[index]
        if not (piece.shown and piece.stem and self._context.stream):
            piece.texts.clear()
        said = piece.text
        if whole.startswith(said):
            return self._say(index, whole[len(said) :], [])
        if piece.kind == "tool_call":
            raise ProxyError("upstream", OTHER_ARGUMENTS)
        return []

    def _annotate(self, event: Annotated) -> list[Step]:
        piece = self._pieces[event.index]
        if piece.kind != "text":
            return []
        piece.annotations.append(whole_annotation(event.annotation))
        return [annotation_step(piece, len(piece.annotations) - 1)] if piece.shown else []

    def _foreign(self, event: Foreign) -> list[Step]:
        self._last = None
        if event.item.shape != "responses":
            return []
        if event.item.type == "reasoning":
            self._seal_late(event.item.raw)
            return []
        item_id = self._unused(str(event.item.raw.get("id") or ""), "item_")
        self._waiting.append(ForeignItem(item_id, event.item.raw))
        return self._advance()

    def _seal_late(self, raw: Json) -> None:
        """The encrypted form of reasoning whose item may have left already: the final output has it."""
        item, sealed = self._thoughts.get(raw["id"]), raw["encrypted_content"]
        if item is not None:
            item.sealed = sealed
            if item.output_index >= 0 and item is not self._live:
                self._output[item.output_index]["encrypted_content"] = sealed

    def _unused(self, id: str, prefix: str) -> str:
        """`id` unless empty or taken: two calls under one id would get each other's results."""
        if not id or id in self._ids:
            id = self._context.new_id(prefix)
        self._ids[id] = None
        return id

    # --- turns -------------------------------------------------------------------------

    def _advance(self) -> list[Step]:
        """End the live item's turn if it is over, and begin the next ones that can."""
        steps: list[Step] = []
        while self._live is None or self._over(self._live):
            if self._live is not None:
                steps += self._end_turn(self._live, "completed")
            if not self._waiting:
                break
            steps += self._begin_turn(self._waiting.pop(0))
        return steps

    def _over(self, item: OutputItem) -> bool:
        return item.lone or (bool(self._waiting) and item.settled and not item.held)

    def _begin_turn(self, item: OutputItem) -> list[Step]:
        self._live = item
        return item.begin(len(self._output))

    def _end_turn(self, item: OutputItem, status: Status) -> list[Step]:
        steps, done = item.finish(status)
        self._output.append(done)
        self._live = None
        return steps

    # --- the end -----------------------------------------------------------------------

    def _finish(self, event: Finished) -> bytes:
        reason = _INCOMPLETE.get(event.reason)
        steps: list[Step] = []
        left = self._waiting if self._live is None else [self._live, *self._waiting]
        for item in left:
            if item is not self._live:
                steps += self._begin_turn(item)
            cut = reason and (item.cut or item is left[-1])
            steps += self._end_turn(item, "incomplete" if cut else "completed")
        self.usage = event.usage
        if reason:
            end: Json = {"status": "incomplete", "incomplete_details": {"reason": reason}}
        else:
            now = self._context.now or (lambda: self._context.created)
            end = {"status": "completed", "completed_at": max(now(), self._context.created)}
        return self._write(steps) + self._terminal(end)

    def _fail(self, event: Failed) -> bytes:
        """An open message is closed as far as it came; a call is left open, so that nobody runs it."""
        opening, live = self.start(), self._live
        steps = [] if live is None or live.held else self._end_turn(live, "incomplete")
        self._error, self.usage = event.error, event.usage
        end: Json = {"status": "failed", "error": responses_error(event.error)}
        return opening + self._write(steps) + self._terminal(end)

    def abort(self, error: ProxyError) -> bytes:
        """`response.failed` with the items that were done, and nothing of the others."""
        self._error, opening = error, self.start()
        return opening + self._terminal({"status": "failed", "error": responses_error(error)})

    def _terminal(self, end: Json) -> bytes:
        usage = None if self.usage is None else write_responses_usage(self.usage)
        self._response |= {**end, "output": self._output, "usage": usage}
        last = self._write([(f"response.{end['status']}", {"response": self._response})])
        if not last:
            return b""
        self.end = End(self._response, self._sequence - 1, last + END, self._upstream)
        return self.end.frame

    # --- bytes -------------------------------------------------------------------------

    def _write(self, steps: Iterable[Step]) -> bytes:
        if not self._context.stream:
            return b""
        return b"".join([frame(kind, self._next(), fields) for kind, fields in steps])

    def _next(self) -> int:
        number = self._sequence
        self._sequence = number + 1
        return number
