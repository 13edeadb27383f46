"""The legal order of tool calls and their results, on a list of Chat messages.

A strict backend wants this: the results of an assistant message's calls follow it directly,
one for each call, before anything else; ids are unique; no result without its call. Clients
break each of these (a warning put between call and result, a call whose result was compacted
away, an aborted turn), and because the whole history is sent again every time, a conversation
that is broken once stays broken.

`repair_history` gives the same list back when it is legal. Else every result moves to its
call, in the order of the calls, and whatever stood between comes after, otherwise in its own
order. A result that answers nothing becomes a user message, a call that nothing answers gets
a result saying so. Only text may be in a result (few backends take more): pictures and files
follow in a user message after the results of the turn.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from ..dialect import Repair, RepairKind
from ..ir import Json
from .content import MEDIA, as_parts, as_text, joined, string


def repair_history(messages: list[Json], lifts: bool = True) -> tuple[list[Json], list[Repair]]:
    """A legal list and the repairs it took; the same list and none when it was legal.

    Rewriting empty arguments (`""` is no JSON, and Databricks refuses it) and moving media out
    of results (`lifts`) is the wire's way of saying things, not a repair.
    """
    if _is_legal(messages, lifts):
        return messages, []
    return _Repair(messages, lifts).run()


def _is_legal(messages: list[Json], lifts: bool) -> bool:
    waiting: deque[Any] = deque()
    seen: set[Any] = set()
    for message in messages:
        if message.get("role") == "tool":
            if not waiting or waiting.popleft() != message.get("tool_call_id"):
                return False
            if lifts and _media(message):
                return False
            continue
        if waiting:
            return False
        for call in calls_of(message):
            call_id = call.get("id")
            if not isinstance(call_id, str) or not call_id or call_id in seen or _untidy(call):
                return False
            seen.add(call_id)
            waiting.append(call_id)
    return not waiting


# --- reading a message -----------------------------------------------------------------


def calls_of(message: Json) -> list[Json]:
    """The calls of an assistant message."""
    calls = message.get("tool_calls") if message.get("role") == "assistant" else None
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def name_of(call: Json) -> str:
    """The name of the called tool, empty when there is none."""
    spec = call.get("function") or call.get("custom")
    return string(spec.get("name")) if isinstance(spec, dict) else ""


def _key(call_id: Any) -> str:
    """What pairs: the call's id alone, where a gateway has put its item's beside it (`call_1|fc_1`)."""
    known = string(call_id)
    return known.partition("|")[0] or known


def _media(message: Json) -> list[Json]:
    content = message.get("content")
    if not isinstance(content, list):
        return []
    return [part for part in content if _is_media(part)]


def _is_media(part: Any) -> bool:
    return isinstance(part, dict) and string(part.get("type")) in MEDIA


def _untidy(call: Json) -> bool:
    """Whether a function call's arguments are no text at all."""
    spec = call.get("function")
    if not isinstance(spec, dict):
        return False
    arguments = spec.get("arguments")
    return not isinstance(arguments, str) or not arguments.strip()


def _tidy(call: Json) -> Json:
    """`call` with text for arguments; text that is no JSON stays as it is."""
    if not _untidy(call):
        return call
    arguments = call["function"].get("arguments")
    text = orjson.dumps(arguments).decode() if isinstance(arguments, dict | list) else "{}"
    return {**call, "function": {**call["function"], "arguments": text}}


_CLOSING = "[The turn ended here: not every call was answered.]"


# --- repairing -------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Slot:
    """One call of a turn and the result found for it."""

    call: Json
    result: Json | None = None
    result_at: int = -1

    def strays(self, here: range) -> bool:
        return self.result is not None and self.result_at not in here


@dataclass(slots=True, eq=False)
class _Turn:
    """An assistant message with calls, of one or more parts. `end` is the place of the last one."""

    parts: list[Json]
    end: int
    message: Json = field(default_factory=dict)
    slots: list[_Slot] = field(default_factory=list)

    @property
    def moved(self) -> int | None:
        """The first call whose result does not follow directly, in any order (calls that ran at once)."""
        found = [slot.result_at for slot in self.slots if slot.result is not None]
        here = range(self.end + 1, self.end + 1 + len(found))
        return next((i for i, slot in enumerate(self.slots) if slot.strays(here)), None)


class _Repair:
    """One list being repaired."""

    def __init__(self, messages: list[Json], lifts: bool) -> None:
        self._messages, self._lifts = messages, lifts
        self._turns: dict[int, _Turn] = {}
        """By the place of the turn's first message."""
        self._coming: dict[str, deque[_Slot]] = defaultdict(deque)
        """By id: the unanswered calls of turns that are still to come, in order."""
        self._begun: dict[str, list[_Slot]] = defaultdict(list)
        """By id: the unanswered calls of turns before, the first one of the nearest turn last."""
        self._merged: set[int] = set()
        self._orphans: set[int] = set()
        self._ids: set[str] = set()
        self._counts: dict[str, int] = {}
        """By id: how many calls have it."""
        self._repairs: list[Repair] = []
        self._made: int | None = None
        """The repair that made the last result of the turn just written."""

    def run(self) -> tuple[list[Json], list[Repair]]:
        self._find_turns()
        self._pair()
        return list(self._written()), self._repairs

    def _note(self, kind: RepairKind, call_id: str = "", name: str = "") -> None:
        self._repairs.append(Repair("message_level", kind, call_id, name))

    def _find_turns(self) -> None:
        """Assistant messages right after one with calls belong to it (Codex: call, text, result)."""
        turn: _Turn | None = None
        for i, message in enumerate(self._messages):
            if message.get("role") != "assistant":
                turn = None
            elif turn is not None:
                turn.parts.append(message)
                turn.end = i
                self._merged.add(i)
            elif calls_of(message):
                turn = self._turns[i] = _Turn([message], i)
        for each in self._turns.values():
            each.message = _merged_all(each.parts)
            each.slots = [_Slot(call) for call in calls_of(each.message)]

    def _pair(self) -> None:
        """Each result to an unanswered call of its id, in the last turn before it or one after it."""
        for turn in self._turns.values():
            for slot in turn.slots:
                self._coming[_key(slot.call.get("id"))].append(slot)
        for i, message in enumerate(self._messages):
            if i in self._turns:
                self._begin(self._turns[i])
            elif message.get("role") == "tool":
                self._answer(message, i)

    def _begin(self, turn: _Turn) -> None:
        for slot in reversed(turn.slots):
            if slot.result is None:
                self._coming[_key(slot.call.get("id"))].popleft()
                self._begun[_key(slot.call.get("id"))].append(slot)

    def _answer(self, message: Json, at: int) -> None:
        key = _key(message.get("tool_call_id"))
        if self._begun[key]:
            slot = self._begun[key].pop()
        elif self._coming[key]:
            slot = self._coming[key].popleft()
        else:
            self._orphans.add(at)
            return
        slot.result, slot.result_at = message, at

    def _written(self) -> Iterator[Json]:
        for i, message in enumerate(self._messages):
            if i in self._turns:
                yield from self._turn(self._turns[i])
            elif i in self._orphans:
                self._note("orphan_result", string(message.get("tool_call_id")), string(message.get("name")))
                words = _as_words(message)
                yield from self._closing(words)
                yield words
            elif message.get("role") != "tool" and i not in self._merged:
                yield from self._closing(message)
                yield message

    def _closing(self, following: Json) -> Iterator[Json]:
        """An assistant's line after a made-up result that `following`, a user, comes right after.

        Templates that want user and assistant to alternate refuse a user after a tool.
        """
        made, self._made = self._made, None
        if made is not None and _is_user(following):
            self._repairs[made] = self._repairs[made]._replace(closed=True)
            yield {"role": "assistant", "content": _CLOSING}

    def _turn(self, turn: _Turn) -> Iterator[Json]:
        self._made = None
        self._repairs += [Repair("message_level", "merged_turn")] * (len(turn.parts) - 1)
        calls = [self._unique(_tidy(slot.call)) for slot in turn.slots]
        if (moved := turn.moved) is not None:
            self._note("moved_result", calls[moved]["id"], name_of(calls[moved]))
        same = all(call is slot.call for call, slot in zip(calls, turn.slots, strict=True))
        unchanged = same and len(calls) == len(turn.message["tool_calls"])
        yield turn.message if unchanged else {**turn.message, "tool_calls": calls}
        shown: list[Json] = []
        for slot, call in zip(turn.slots, calls, strict=True):
            yield self._result(slot, call)
            if self._lifts and slot.result is not None and (media := _media(slot.result)):
                shown += [_caption(call), *media]
        if shown:
            self._made = None
            yield {"role": "user", "content": shown}

    def _unique(self, call: Json) -> Json:
        call_id = string(call.get("id"))
        fresh = base = call_id or "call"
        count = self._counts.get(base, 1)
        while fresh in self._ids:
            count += 1
            fresh = f"{base}_{count}"
        self._counts[base] = count
        self._ids.add(fresh)
        if fresh == call_id:
            return call
        self._note("duplicate_id", fresh, name_of(call))
        return {**call, "id": fresh}

    def _result(self, slot: _Slot, call: Json) -> Json:
        if slot.result is None:
            self._made = len(self._repairs)
            self._note("missing_result", call["id"], name_of(call))
            return _missing(call)
        result = _words_only(slot.result) if self._lifts else slot.result
        return result if result.get("tool_call_id") == call["id"] else {**result, "tool_call_id": call["id"]}


def _merged_all(messages: Sequence[Json]) -> Json:
    """Assistant messages as one. By halves: one by one would copy the first ones again and again."""
    if len(messages) == 1:
        return messages[0]
    half = len(messages) // 2
    return _merged(_merged_all(messages[:half]), _merged_all(messages[half:]))


def _merged(first: Json, second: Json) -> Json:
    """Two assistant messages as one; of a key that both have, texts are joined and the first wins else."""
    both = {**second, **first, "tool_calls": [*calls_of(first), *calls_of(second)]}
    if "content" in first and "content" in second:  # one that only one has stays as it was edited
        both["content"] = joined(first.get("content"), second.get("content"))
    for key in first.keys() & second.keys() - {"role", "content", "tool_calls", "name"}:
        both[key] = _joined_values(first[key], second[key])
    return both


def _joined_values(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return joined(first, second)
    if isinstance(first, list) and isinstance(second, list):
        return [*first, *second]
    return second if first is None else first


def _words_only(result: Json) -> Json:
    """A result whose media are moved out."""
    if not _media(result):
        return result
    rest = [part for part in result["content"] if not _is_media(part)]
    note = {"type": "text", "text": "[The attachments of this result follow in the next user message.]"}
    content = [*rest, note]
    return {**result, "content": as_text(content, "\n") or content}


def _caption(call: Json) -> Json:
    return {"type": "text", "text": f"[Attachments of the result of {name_of(call)} ({call['id']}):]"}


def _missing(call: Json) -> Json:
    words = f"[No result: the call of {name_of(call)} was never answered. It may not have run.]"
    return {"role": "tool", "tool_call_id": call["id"], "content": words}


def _is_user(message: Json) -> bool:
    """Whether a person says this; agents put reminders of their own between calls and results."""
    content = message.get("content")
    text = content if isinstance(content, str) else as_text(content, "\n") or ""
    return message.get("role") == "user" and not text.lstrip().startswith("<system-reminder>")


def _as_words(result: Json) -> Json:
    """A result whose call is unknown, told as a user message so that what it says survives."""
    named = result.get("name") or result.get("tool_call_id") or ""
    label = f"[Tool result {named}]:" if named else "[Tool result]:"
    content = result.get("content")
    text = as_text(content, "\n")
    if text is not None:
        return {"role": "user", "content": f"{label} {text}"}
    return {"role": "user", "content": [{"type": "text", "text": label}, *as_parts(content)]}
