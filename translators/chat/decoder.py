"""Chat chunks in, events out: the tolerant reader.

Prose (text, refusal, reasoning) is one open piece at a time and closes when the stream moves
on to another kind. Calls stay open to the end, because a backend may resume the first after
it has begun the second. The end is told by `finish_reason` or `[DONE]`, but usage may follow,
so `Finished` waits for `done` or `close`; bytes that end with neither are a failure.

A plain text delta takes the short way at the top of `feed`; everything else is read in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..capsule import native_of
from ..errors import ProxyError
from ..ir import (
    Annotated,
    Closed,
    Delta,
    Event,
    Failed,
    Finished,
    FinishReason,
    ItemKind,
    Json,
    Opened,
    Started,
    Usage,
)
from ..profile import Profile
from ..thinking import ThinkSplitter
from ..timestamps import whole_seconds
from ..toolcalls import Piece, ToolCallAssembler
from ..usage import read_chat_usage
from .chunk import call_entries, first_choice, place_of, plain_text
from .finish import (
    cut_short,
    failure_in,
    lost_piece,
    nameless_call,
    read_finish,
    settle_finish,
    stopped_by_failure,
)
from .parts import Fragment, content_logprobs, read_annotations, read_content, read_thought
from .thoughts import ThoughtFields

_MESSAGE = ("text", "refusal")
_SIGNATURES = ("extra_content", "thoughtSignature", "thought_signature")
"""Keys in which thought signatures come: Google's own endpoint, Databricks, gateways in front of either."""
_SIGNATURE_KEYS = frozenset(_SIGNATURES)


class ChatDecoder:
    """One reply: `feed` its chunks, then `done` at `[DONE]`, then `close` at the end of bytes."""

    def __init__(self, profile: Profile) -> None:
        tags = profile.reasoning.tags
        self._fields, self._thought_types = profile.reasoning.fields, profile.reasoning.parts
        self._answer = profile.answer
        self._splitter = ThinkSplitter(tags) if tags else None
        self._calls = ToolCallAssembler(profile.answer.tool_delta)
        self._call_indices: list[int] = []
        self._out: list[Event] = []
        self._started = self._ended = self._in_messages = self._lost = False
        self._next = 0
        self._place: int | None = None
        """Index of the one choice that is read, once there is one."""
        self._kind: ItemKind | None = None
        self._last: ItemKind | None = None
        self._index = -1
        self._plain = -1
        """Index of the open text piece while text needs no look at all, else -1."""
        self._sealed: str | None = None
        self._said: ThoughtFields | None = None
        """The open thought, as fields of its own tell it."""
        signature = profile.reasoning.signature or ""
        self._wants_parts = profile.reasoning.replay == "parts" or signature.startswith("content")
        self._wants_details = profile.reasoning.replay == "details"
        self._parts: list[Json] = []
        self._details: list[Any] = []
        self._late: dict[int, Json] = {}
        """Position of a call -> its signature, where it came after the call was opened."""
        self._message: Json = {}
        """The signature of the message itself."""
        self._logprobs: list[Json] = []
        self._citations: list[Json] = []
        self._finish: FinishReason | None = None
        self._usage: Usage | None = None

    @property
    def told(self) -> bool:
        return self._finish is not None and not self._ended

    def feed(self, obj: Json) -> Iterator[Event]:
        if self._plain >= 0 and (text := plain_text(obj)):
            return iter((Delta(self._plain, text),))
        if not self._ended:
            self._read(obj)
        return self._events()

    def lost(self) -> Iterator[Event]:
        self._lost = True
        if self._calls.calls and self._finish is None and not self._ended:
            self._fail(lost_piece())
        return self._events()

    def done(self) -> Iterator[Event]:
        if not self._ended:
            self._end(marked=True)
        return self._events()

    def close(self) -> Iterator[Event]:
        if not self._ended:
            self._end(marked=False)
        return self._events()

    def _events(self) -> Iterator[Event]:
        plain = self._kind == "text" and self._splitter is None and not self._logprobs and not self._ended
        plain = plain and not self._place  # `plain_text` reads choice 0
        self._plain = self._index if plain else -1
        out, self._out = self._out, []
        return iter(out)

    # --- one chunk ---------------------------------------------------------------------

    def _read(self, obj: Json) -> None:
        choice = first_choice(obj.get("choices"), self._place)
        if choice is not None and self._place is None:
            self._place = place_of(choice)
        if not self._started and (choice is not None or obj.get("id")):
            self._start(obj)
        error = failure_in(obj, choice, self._answer.content)
        if error is not None:
            self._fail(error)
            return
        told = obj.get("usage")
        if not told and choice is not None and self._answer.usage == "any":
            told = choice.get("usage")
        if told and (usage := read_chat_usage(told, self._answer.reasoning_in_completion)):
            self._usage = usage
        if choice is not None:
            self._choose(choice)

    def _start(self, obj: Json) -> None:
        self._started = True
        self._out.append(
            Started(
                _string(obj.get("id")),
                _string(obj.get("model")),
                whole_seconds(obj.get("created")),
                _string(obj.get("service_tier")) or None,
                _string(obj.get("system_fingerprint")) or None,
            )
        )

    def _choose(self, choice: Json) -> None:
        if delta := self._delta_of(choice):
            self._take(delta, choice.get("logprobs"))
        reason = choice.get("finish_reason")
        finish = read_finish(reason, self._answer.finish_map) if reason else None
        if finish == "failed":
            self._fail(stopped_by_failure(reason))
        elif finish is not None:
            self._finish = finish

    def _delta_of(self, choice: Json) -> Json | None:
        """The delta; or the `message` that some send instead, but not one that sums deltas up."""
        delta = choice.get("delta")
        if isinstance(delta, dict) and delta:
            return delta
        message = choice.get("message")
        if not isinstance(message, dict) or not (self._in_messages or self._next == 0):
            return None
        self._in_messages = True
        return message

    def _take(self, delta: Json, logprobs: Any) -> None:
        if not _SIGNATURE_KEYS.isdisjoint(delta):
            self._message |= {key: delta[key] for key in _SIGNATURES if delta.get(key)}
        thought = read_thought(delta, self._fields)
        if thought is not None:
            self._think(thought)
        content = delta.get("content")
        if content is not None:
            if logprobs:
                self._logprobs += content_logprobs(logprobs)
            self._content(content, thought)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._leave_text()
            self._say("refusal", refusal)
        if annotations := delta.get("annotations"):
            self._cite(read_annotations(annotations))
        if entries := call_entries(delta):
            self._leave_text()
            self._put(self._calls.feed(entries))

    def _content(self, content: Any, thought: Fragment | None) -> None:
        if isinstance(content, str):
            if content:
                self._text(content)
            return
        for fragment in read_content(content, self._thought_types):
            if fragment.kind == "text":
                self._text(fragment.text)
                self._cite(fragment.annotations)
            elif fragment.kind == "refusal":
                self._leave_text()
                self._say("refusal", fragment.text)
            elif thought is None or thought.text != fragment.text:
                self._think(fragment)

    # --- prose -------------------------------------------------------------------------

    def _think(self, thought: Fragment) -> None:
        """More reasoning; text after a seal is the next thought, since a seal comes last."""
        self._leave_text()
        if self._sealed and thought.sealed != self._sealed:
            self._shut()
        text = thought.text
        if thought.said:
            self._said = self._said or ThoughtFields()
            text = self._said.feed(thought.said)
            if not (text or thought.sealed or thought.details):
                return
        self._say("summary", text)
        self._sealed = thought.sealed or self._sealed
        if thought.part is not None and self._wants_parts:
            self._parts.append(thought.part)
        if self._wants_details:
            self._details += thought.details

    def _text(self, text: str) -> None:
        splitter = self._splitter
        if splitter is not None:
            thought, text = splitter.feed(text)
            if splitter.plain:
                self._splitter = None
            if thought:
                self._logprobs.clear()
                self._say("summary", thought)
        if text:
            self._say("text", text)

    def _leave_text(self) -> None:
        """Something else than text comes: what the splitter holds is what it looks like."""
        splitter = self._splitter
        if splitter is not None and splitter.holding:
            self._splitter = None
            thought, text = splitter.close()
            if thought:
                self._say("summary", thought)
            if text:
                self._say("text", text)

    def _say(self, kind: ItemKind, text: str) -> None:
        if self._kind != kind:
            if self._calls.waiting:
                self._put(self._calls.settle())
            self._open(kind)
        logprobs = None
        if kind == "text" and self._logprobs:
            logprobs, self._logprobs = self._logprobs, []
        if text:
            self._out.append(Delta(self._index, text, logprobs))

    def _open(self, kind: ItemKind) -> None:
        joins = kind in _MESSAGE and self._last in _MESSAGE
        self._shut()
        self._kind = self._last = kind
        self._index = self._number()
        self._out.append(Opened(self._index, kind, joins=joins))
        if kind == "text" and self._citations:
            cited, self._citations = self._citations, []
            self._cite(tuple(cited))

    def _shut(self, cut: bool = False) -> None:
        """Close the open prose, if any."""
        if self._kind is None:
            return
        if self._kind == "text" and self._logprobs:
            self._out.append(Delta(self._index, "", self._logprobs))
            self._logprobs = []
        # A part that nobody signed is words and nothing else: they are in the summary.
        parts = self._parts if self._sealed else []
        native = native_of(parts, self._details) if parts or self._details else None
        said = self._said if self._kind == "summary" else None
        others = said.others() if said is not None else ()
        if said is not None and said.live and others:
            native = {**(native or {}), "field": said.live}
        self._out.append(Closed(self._index, sealed=self._sealed, cut=cut, native=native))
        self._kind, self._sealed = None, None
        if self._parts or self._details:
            self._parts, self._details = [], []
        if said is not None:
            self._said = None
            for name, text in others:
                self._add_thought(name, text, cut)

    def _add_thought(self, field: str, text: str, cut: bool) -> None:
        """A whole thought, of another field than the one told live."""
        index = self._number()
        self._out.append(Opened(index, "summary", native={"field": field}))
        self._out.append(Delta(index, text))
        self._out.append(Closed(index, cut=cut))

    def _cite(self, annotations: tuple[Json, ...]) -> None:
        """Citations belong to the open text; told early, to the next one."""
        if self._kind == "text":
            self._out.extend(Annotated(self._index, annotation) for annotation in annotations)
        else:
            self._citations += annotations

    # --- calls -------------------------------------------------------------------------

    def _put(self, pieces: list[Piece]) -> None:
        for call, opens, text, extra in pieces:
            signed = {key: extra[key] for key in _SIGNATURES if key in extra} if extra else None
            if signed and not opens:
                self._late[call.position] = {**self._late.get(call.position, {}), **signed}
            if opens:
                self._shut()
                self._last = "tool_call"
                self._call_indices.append(self._number())
                self._out.append(
                    Opened(
                        self._call_indices[-1],
                        "tool_call",
                        call.id,
                        call.name,
                        tool=call.kind,
                        native=signed or None,
                    )
                )
            if text:
                self._out.append(Delta(self._call_indices[call.position], text))

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    # --- the end -----------------------------------------------------------------------

    def _end(self, marked: bool) -> None:
        """`marked`: by `[DONE]`; some servers send nothing else at their end."""
        unmarked = not marked and self._answer.sse.done == "required"
        if unmarked or (self._finish is None and not (marked and self._started)):
            self._fail(cut_short("reply" if self._started else ""))
            return
        self._leave_text()
        self._put(self._calls.settle())
        if self._calls.nameless():
            self._fail(nameless_call())
        elif (self._finish is None or self._lost) and any(not call.parsable for call in self._calls.calls):
            self._fail(cut_short("tool call"))
        else:
            self._finish_off(
                settle_finish(self._finish, bool(self._call_indices), self._answer.tool_calls_imply_finish)
            )

    def _finish_off(self, reason: FinishReason) -> None:
        short = reason in ("length", "content_filter")
        self._shut(cut=short)
        if self._message:
            carrier = self._number()
            self._out.append(Opened(carrier, "summary"))
            self._out.append(Closed(carrier, native={"message": self._message}))
        for call in self._calls.calls:
            if call.position < 0:
                continue
            index = self._call_indices[call.position]
            if not call.begun and not short:
                # No arguments are `{}`: Codex and Databricks refuse "" as JSON.
                self._out.append(Delta(index, "{}"))
            late = self._late.get(call.position)
            self._out.append(Closed(index, cut=short and not call.parsable, native=late))
        self._out.append(Finished(reason, self._usage))
        self._ended = True

    def _fail(self, error: ProxyError) -> None:
        self._leave_text()
        self._out.append(Failed(error, self._usage))
        self._ended = True


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
