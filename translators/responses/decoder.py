"""A backend's Responses event stream as neutral events.

Tolerant where backends differ from OpenAI: no `created`, no `output_item.added`, no
`completed` (MLflow agents send deltas and `output_item.done` only), no `output_index`, ids
that change from event to event, two items under one index, `done` texts that say more than
the deltas did, items told nowhere but in the last event. Hosted tools' own events are
ignored; their items come through whole. Unknown events are ignored.

A reply is whole when its last event says so. Ended by `[DONE]` alone it counts as whole too,
unless it ends inside a call; ended by nothing it has failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from ..errors import ProxyError, error_in
from ..ir import Event, Failed, Finished, FinishReason, ItemKind, Json, Started, Usage
from ..profile import Profile
from ..timestamps import whole_seconds
from ..usage import read_responses_usage
from .flat import text_of
from .last_word import LastWord
from .slots import CALL, Order, Place, Slot, written

_DELTAS: dict[str, tuple[str, ItemKind, str]] = {
    "response.output_text.delta": ("message", "text", "content"),
    "response.refusal.delta": ("message", "refusal", "content"),
    "response.reasoning_text.delta": ("reasoning", "reasoning", "content"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary", "summary"),
}
_DONES: dict[str, tuple[str, ItemKind, str, str]] = {
    "response.output_text.done": ("message", "text", "content", "text"),
    "response.refusal.done": ("message", "refusal", "content", "refusal"),
    "response.reasoning_text.done": ("reasoning", "reasoning", "content", "text"),
    "response.reasoning_summary_text.done": ("reasoning", "summary", "summary", "text"),
}
_PARTS = {
    "response.content_part.added": "content",
    "response.content_part.done": "content",
    "response.reasoning_summary_part.added": "summary",
    "response.reasoning_summary_part.done": "summary",
}
_CALL_DELTAS = {
    "response.function_call_arguments.delta": "function_call",
    "response.custom_tool_call_input.delta": "custom_tool_call",
}
_CALL_DONES = {
    "response.function_call_arguments.done": ("function_call", "arguments"),
    "response.custom_tool_call_input.done": ("custom_tool_call", "input"),
}
_LIFE = frozenset({"response.created", "response.in_progress", "response.queued"})
_ENDS = frozenset(
    {
        *("response.completed", "response.incomplete", "response.failed", "response.cancelled"),
        "response.done",
    }
)


class ResponsesDecoder:
    """One reply; see the module's words."""

    def __init__(self, profile: Profile) -> None:
        self._order = Order()
        self._slots: list[Slot] = []
        self._open: list[Slot] = []
        """Those that were not done when they were last looked at, and none but done ones besides."""
        self._by_index: dict[int, Slot] = {}
        self._by_id: dict[str, Slot] = {}
        self._started = False
        self._framed = False
        """Whether the backend has told of the response itself, or counts its events.

        Agents (MLflow) tell of their items only, and never of the end.
        """
        self._ended = False
        self.told = False
        """Never: the event that says it is the last one, and ends the reply at once."""

    def feed(self, obj: Json) -> Iterator[Event]:
        """The events that one object of the stream causes."""
        out: list[Event] = []
        kind = obj.get("type")
        if self._ended:
            return iter(out)
        told = _DELTAS.get(kind) if isinstance(kind, str) else None
        if told is not None:  # nearly every object is one
            type, part, place = told
            slot = self._slot(obj, type, out)
            if not slot.done:
                slot.say(_place(obj, place), part, written(obj.get("delta")), obj.get("logprobs"), out)
        elif isinstance(kind, str) and kind != "error" and not obj.get("error"):
            self._event(kind, obj, out)
        elif (error := error_in(obj)) is not None:
            self._end(Failed(error), out)
        return iter(out)

    def lost(self) -> Iterator[Event]:
        """Nothing yet: a later event tells whole what a lost one told in part."""
        return iter(())

    def done(self) -> Iterator[Event]:
        """`[DONE]`: the end, also where no event said so."""
        out: list[Event] = []
        if not self._ended and not self._slots:
            self._end(Failed(_cut("The backend ended the reply before it said anything.")), out)
        elif not self._ended:
            self._finish(self._complete_reason(), None, out)
        return iter(out)

    def close(self) -> Iterator[Event]:
        out: list[Event] = []
        whole = not self._framed and bool(self._slots) and all(slot.done for slot in self._slots)
        if not self._ended and whole:
            self._finish(self._complete_reason(), None, out)
        elif not self._ended:
            self._end(Failed(_cut("The backend's stream ended before the reply was complete.")), out)
        return iter(out)

    # --- one event -----------------------------------------------------------------

    def _event(self, kind: str, obj: Json, out: list[Event]) -> None:
        self._framed = self._framed or kind in _LIFE or "sequence_number" in obj
        if kind in _LIFE:
            self._start(obj.get("response"), out)
        elif kind in _ENDS:
            self._terminal(kind, obj, out)
        elif kind in _DONES:
            type, part, place, key = _DONES[kind]
            self._part(obj, type, place, {"type": _PART_TYPES[part], key: obj.get(key)}, out)
        elif kind in _PARTS:
            place = _PARTS[kind]
            self._part(obj, "reasoning" if place == "summary" else "", place, obj.get("part"), out)
        elif kind == "response.output_item.added":
            self._added(obj, out)
        elif kind == "response.output_item.done":
            self._item_done(obj, out)
        else:
            self._call_event(kind, obj, out)

    def _call_event(self, kind: str, obj: Json, out: list[Event]) -> None:
        if kind in _CALL_DELTAS:
            slot = self._slot(obj, _CALL_DELTAS[kind], out)
            if not slot.done:
                slot.write(written(obj.get("delta")), out)
        elif kind in _CALL_DONES:
            type, key = _CALL_DONES[kind]
            slot = self._slot(obj, type, out)
            if not slot.done:
                slot.learn({"name": obj.get("name")}, out)
                slot.settle(CALL, written(obj.get(key)), out)
        elif kind == "response.output_text.annotation.added":
            slot = self._slot(obj, "message", out)
            if not slot.done:
                slot.cite(_place(obj, "content"), obj.get("annotation"), out)

    def _part(self, obj: Json, type: str, place: str, part: Any, out: list[Event]) -> None:
        if not isinstance(part, dict):
            return
        type = type or ("reasoning" if part.get("type") == "reasoning_text" else "message")
        slot = self._slot(obj, type, out)
        if not slot.done:
            slot.part(_place(obj, place), part, out)

    def _added(self, obj: Json, out: list[Event]) -> None:
        item = obj.get("item")
        if isinstance(item, dict):
            self._slot_of_item(obj, item, whole=False, out=out).learn(item, out)

    def _item_done(self, obj: Json, out: list[Event]) -> None:
        item = obj.get("item")
        if isinstance(item, dict):
            slot = self._slot_of_item(obj, item, whole=True, out=out)
            if not slot.done:
                slot.finish(item, out)

    # --- slots ---------------------------------------------------------------------

    def _slot(self, obj: Json, type: str, out: list[Event]) -> Slot:
        """The slot of a `type` item that an event is about, a new one if there is none."""
        slot = self._find(obj.get("output_index"), obj.get("item_id"), type)
        return slot or self._new(type, obj.get("output_index"), text_of(obj.get("item_id")), out)

    def _find(self, index: Any, id: Any, type: str) -> Slot | None:
        """By index, else by id; an event with neither is about the last item."""
        slot = self._by_index.get(index) if isinstance(index, int) else None
        if slot is not None and slot.type == type:
            return slot
        slot = self._by_id.get(id) if isinstance(id, str) else None
        if slot is None and index is None and id is None:
            slot = self._last_open(type)
        return slot if slot is not None and slot.type == type else None

    def _last_open(self, type: str) -> Slot | None:
        while self._open and self._open[-1].done:
            self._open.pop()
        return next((slot for slot in reversed(self._open) if slot.type == type and not slot.done), None)

    def _slot_of_item(self, obj: Json, item: Json, whole: bool, out: list[Event]) -> Slot:
        """The slot of an item that is told itself, `whole` or just begun.

        Some backends begin a second item under the index of the first, others give an item a
        new id when it is done.
        """
        index, id = obj.get("output_index"), text_of(item.get("id"))
        type = text_of(item.get("type")) or "message"
        slot = self._find(index, id, type)
        if slot is None and whole and index is None:
            slot = self._last_open(type)
        if slot is not None and id and slot.id and id != slot.id and (slot.done or not whole):
            slot = None
        slot = slot or self._new(type, index, id, out)
        if id:
            self._by_id[id] = slot
        return slot

    def _new(self, type: str, index: Any, id: str | None, out: list[Event]) -> Slot:
        self._start(None, out)
        slot = Slot(self._order, type, index if isinstance(index, int) else None)
        self._slots.append(slot)
        self._open.append(slot)
        if slot.output_index is not None:
            self._by_index[slot.output_index] = slot
        if id:
            self._by_id[id] = slot
        return slot

    # --- beginning and end ---------------------------------------------------------

    def _start(self, response: Any, out: list[Event]) -> None:
        if self._started:
            return
        self._started = True
        told = response if isinstance(response, dict) else {}
        out.append(
            Started(
                id=text_of(told.get("id")) or "",
                model=text_of(told.get("model")) or "",
                created=whole_seconds(told.get("created_at")),
                service_tier=text_of(told.get("service_tier")),
            )
        )

    def _terminal(self, kind: str, obj: Json, out: list[Event]) -> None:
        response = obj.get("response")
        told: Json = response if isinstance(response, dict) else {}
        usage = read_responses_usage(told.get("usage"))
        status = told.get("status")
        if status not in ("completed", "incomplete", "failed", "cancelled"):
            status = kind.removeprefix("response.")
        if status in ("failed", "cancelled") or told.get("error"):
            self._end(Failed(reply_error(told, str(status)), usage), out)
            return
        self._start(told, out)
        self._take_output(told.get("output"), out)
        incomplete = _INCOMPLETE.get(_reason(told), "length") if status == "incomplete" else None
        self._finish(incomplete or self._complete_reason(), usage, out)

    def _take_output(self, output: Any, out: list[Event]) -> None:
        """Items of the last event that the stream did not tell, or did not finish."""
        last = LastWord(tuple(self._slots), self._by_id)
        for index, item in enumerate(output if isinstance(output, list) else []):
            if not isinstance(item, dict):
                continue
            slot = last.slot(item, index)
            if slot is None:
                slot = self._new(text_of(item.get("type")) or "message", None, None, out)
            if slot.done:
                slot.seal_late(item, out)
            else:
                slot.finish(item, out)
            last.take(slot)

    def _complete_reason(self) -> FinishReason:
        return "tool_calls" if any(slot.is_call for slot in self._slots) else "stop"

    def _finish(self, reason: FinishReason, usage: Usage | None, out: list[Event]) -> None:
        """Close what is open and end well, unless the reply would end inside a call."""
        cut = reason in ("length", "content_filter")
        unfinished = [slot for slot in self._slots if not slot.done]
        if not cut and any(slot.is_nameless for slot in self._slots):
            self._end(Failed(_cut("The backend called a tool without naming it."), usage), out)
            return
        if not cut and any(_is_torn(slot) for slot in unfinished):
            self._end(Failed(_cut("The backend ended the reply inside a tool call."), usage), out)
            return
        for slot in unfinished:
            if not slot.is_hosted:
                slot.close(out, cut=cut)
        self._end(Finished(reason, usage), out)

    def _end(self, event: Finished | Failed, out: list[Event]) -> None:
        """The last event; a failure where nothing began is no beginning of a reply."""
        if isinstance(event, Finished):
            self._start(None, out)
        self._ended = True
        out.append(event)


_PART_TYPES: dict[ItemKind, str] = {
    "text": "output_text",
    "refusal": "refusal",
    "reasoning": "reasoning_text",
    "summary": "summary_text",
}
_INCOMPLETE: dict[str | None, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
"""`incomplete_details.reason` -> finish reason; every other one (steered, ...) cut the reply too."""


def _reason(response: Json) -> str | None:
    details = response.get("incomplete_details")
    return text_of(details.get("reason")) if isinstance(details, dict) else None


def _place(obj: Json, where: str) -> Place:
    index = obj.get("content_index" if where == "content" else "summary_index")
    return ("content" if where == "content" else "summary", index if isinstance(index, int) else 0)


def _is_torn(slot: Slot) -> bool:
    """Whether a call that never ended has arguments that are no JSON."""
    if slot.type != "function_call" or not slot.arguments.strip():
        return False
    try:
        orjson.loads(slot.arguments)
    except orjson.JSONDecodeError:
        return True
    return False


def reply_error(response: Json, status: str) -> ProxyError:
    """The error of a response object that failed, was cancelled, or carries one."""
    told = error_in({"error": response.get("error")})
    if told is not None:
        return told
    word = "cancelled" if status == "cancelled" else "failed"
    return ProxyError("upstream", f"The backend says that the reply was {word}, and not why.")


def _cut(message: str) -> ProxyError:
    return ProxyError("upstream", message)
