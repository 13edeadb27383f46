"""Events into a Chat Completions reply: chunks for a stream, and the same reply as one body.

The stream: one chunk with the role, one for every delta, one with the finish reason, one with
the usage if the client asked for it, `[DONE]`. A call's id, type and name come once, in its
first chunk; calls are numbered from 0 in order of opening and may interleave. Citations wait
for the end: the SDK's accumulator takes a list whose entries have no index only once.

Chat has one message and one place for each kind of text, so pieces of a kind are joined as
they come; parts of one reasoning item are kept apart by a blank line, being paragraphs. A
piece whose whole text turns out to differ from its deltas cannot be undone in a stream (what
is missing at its end is sent; a call fails the reply); the body has it right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from ..capsule import FORMAT, RESPONSES_FORMAT, seal
from ..dialect import OTHER_ARGUMENTS, ReplyContext
from ..errors import ProxyError
from ..framing import sse
from ..ir import (
    Annotated,
    AnyTool,
    Call,
    Closed,
    Delta,
    Event,
    Failed,
    Finished,
    FinishReason,
    Foreign,
    ItemKind,
    Json,
    Opened,
    Started,
    Tool,
    Usage,
)
from ..usage import write_chat_usage
from .annotations import to_chat
from .pieces import Piece, Place, call_piece

_DONE = sse(b"[DONE]")
_KEEP_ALIVE = b": keep-alive\n\n"
_MARK = "\0"
"""Stands for the text in a chunk that is cut into the constant bytes around it."""

_SORTED = orjson.OPT_SORT_KEYS
_SERVICE_TIERS = frozenset({"auto", "default", "flex", "scale", "priority", "fast"})
"""Values of OpenAI's Chat type; a strictly typed client refuses others."""

_PLACES: Mapping[ItemKind, Place] = {
    "text": "content",
    "refusal": "refusal",
    "reasoning": "reasoning_content",
    "summary": "reasoning_content",
}

_THOUGHTS: tuple[Place, ...] = ("reasoning_content", "reasoning")


class ChatEncoder:
    """One Chat reply; see the module's words. For a plain reply every frame is b""."""

    end = None

    def __init__(self, call: Call, context: ReplyContext) -> None:
        self._context = context
        self._old_style = bool(call.tools) and all(_is_old_function(tool) for tool in call.tools)
        """The client offered `functions`: its first call goes back as `function_call`."""
        self._pieces: dict[int, Piece] = {}
        self._calls: list[Piece] = []
        self._call_ids: set[str] = set()
        self._thinking: dict[int, Piece] = {}
        """Thoughts that are open."""
        self._thought = False
        """Whether a thought that is closed has any text."""
        self._meta: Json = {}
        self._own: Json = {}
        self._detailed: list[Json] = []
        self._reason: FinishReason | None = None
        self._error: ProxyError | None = None
        self.usage: Usage | None = None

    # --- events ------------------------------------------------------------------------

    def feed(self, event: Event) -> bytes:
        """The chunks this event causes, any legal order of events given."""
        if type(event) is Delta:  # nearly every event is one: kept out of the match
            piece = self._pieces[event.index]
            piece.texts.append(event.text)
            if event.logprobs:
                return self._scored(piece, event)
            if not piece.before or not event.text:
                return b""
            return b"%b%b%b" % (piece.before, orjson.dumps(event.text), piece.after)
        return self._feed_rare(event)

    def _feed_rare(self, event: Event) -> bytes:
        match event:
            case Started():
                return self._begin(event)
            case Opened():
                return self._open(event)
            case Annotated():
                self._pieces[event.index].annotations.append(event.annotation)
                return b""
            case Closed():
                return self._close(event)
            case Finished():
                return self._finish(event)
            case Failed():
                return self._fail(event)
            case _:
                return self._foreign(event)

    def start(self) -> bytes:
        return self._begin(Started())

    def keepalive(self) -> bytes:
        return _KEEP_ALIVE if self._context.stream else b""

    def body(self) -> Json:
        """The `chat.completion`; raises the error of a failed reply and of one cut short."""
        if self._error is not None:
            raise self._error
        if self._reason is None:
            raise ProxyError("upstream", "The reply ended before it was whole.")
        choice: Json = {"index": 0, "message": self._message(), "logprobs": self._logprobs()}
        choice["finish_reason"] = self._finish_reason(self._reason)
        body = {**self._meta, "object": "chat.completion", "choices": [choice]}
        return body if self.usage is None else {**body, "usage": write_chat_usage(self.usage)}

    # --- chunks ------------------------------------------------------------------------

    def _chunk(self, delta: Json, finish: str | None = None, logprobs: Json | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return self._frame({"choices": [choice], **({"usage": None} if self._context.include_usage else {})})

    def _frame(self, rest: Json) -> bytes:
        return sse(orjson.dumps({**self._meta, **rest})) if self._context.stream else b""

    def _begin(self, event: Started) -> bytes:
        """The role chunk, once; the id and the time are the backend's own where they fit Chat."""
        if self._meta:
            return b""
        context = self._context
        is_ours = event.id.startswith("chatcmpl")
        self._meta = {
            "id": event.id if is_ours else context.new_id("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": context.created if event.created is None else event.created,
            "model": context.model,
        }
        if event.service_tier in _SERVICE_TIERS:
            self._meta["service_tier"] = event.service_tier
        if event.fingerprint is not None:
            self._meta["system_fingerprint"] = event.fingerprint
        return self._chunk({"role": "assistant", "content": ""})

    def _open(self, event: Opened) -> bytes:
        if event.kind == "tool_call":
            return self._open_call(event)
        is_thought = event.kind in ("summary", "reasoning")
        lead = "\n\n" if event.joins and is_thought and self._has_thought() else ""
        # What a backend said under a second name beside its thought has the second name here, too.
        place = "reasoning" if event.native else _PLACES[event.kind]
        piece = self._add(event.index, Piece(place, lead, id=event.id))
        if place == "reasoning_content":
            self._thinking[event.index] = piece
        return self._chunk(piece.delta(lead)) if lead else b""

    def _open_call(self, event: Opened) -> bytes:
        known = len(self._calls)
        place: Place = "function_call" if self._old_style and not known else "tool_calls"
        number = known - 1 if self._old_style and known else known
        if event.call_id in self._call_ids:
            event = replace(event, call_id="")  # it gets its own: a result could be taken for the other's
        piece = call_piece(event, number, place, self._context.new_id)
        self._calls.append(piece)
        self._call_ids.add(event.call_id)
        return self._chunk(self._add(event.index, piece).opening())

    def _add(self, index: int, piece: Piece) -> Piece:
        self._pieces[index] = piece
        piece.before, _, piece.after = self._chunk(piece.delta(_MARK)).rpartition(orjson.dumps(_MARK))
        return piece

    def _scored(self, piece: Piece, event: Delta) -> bytes:
        """A delta with log probabilities; only text and refusals have a place for them."""
        if piece.place not in ("content", "refusal"):
            return self._chunk(piece.delta(event.text))
        piece.logprobs += event.logprobs or []
        scores: Json = {"content": None, "refusal": None, piece.place: event.logprobs}
        return self._chunk(piece.delta(event.text), logprobs=scores)

    def _close(self, event: Closed) -> bytes:
        piece = self._pieces[event.index]
        if self._thinking.pop(event.index, None) is not None:
            self._thought = self._thought or bool(event.text or any(piece.texts))
        native = self._give_back(piece, event) if event.native or event.sealed else b""
        return native if event.text is None else native + self._settle(piece, event.text)

    def _settle(self, piece: Piece, whole: str) -> bytes:
        """Make a piece's text `whole`, as far as what was streamed allows."""
        streamed, piece.whole = "".join(piece.texts), whole
        if whole.startswith(streamed):
            rest = whole[len(streamed) :]
            return self._chunk(piece.delta(rest)) if rest else b""
        if piece.call is not None and self._context.stream:
            raise ProxyError("upstream", OTHER_ARGUMENTS)
        return b""

    def _give_back(self, piece: Piece, event: Closed) -> bytes:
        """What the backend wants back, where Chat clients keep it: on the call, or among the details."""
        native = {key: value for key, value in (event.native or {}).items() if key != "field"}
        if piece.place == "tool_calls":
            piece.signed = {**piece.signed, **native}
            return self._chunk({"tool_calls": [{"index": piece.number, **native}]})
        if "message" in native:
            self._own |= native["message"]
            return self._chunk(native["message"])
        if piece.place != "reasoning_content" or piece.call is not None:
            return b""
        told = self._details(native, piece, event.sealed)
        self._detailed += told
        return self._chunk({"reasoning_details": told}) if told else b""

    def _details(self, native: Mapping[str, Any], piece: Piece, sealed: str | None) -> list[Json]:
        """Details as they came; else one entry with what is sealed, in OpenRouter's words."""
        if "details" in native:
            return list(native["details"])
        entry: Json = {"type": "reasoning.encrypted", "id": piece.id or None, "index": len(self._detailed)}
        if native and self._context.seals is not None:
            return [{**entry, "data": seal(self._context.seals, dict(native)), "format": FORMAT}]
        return [{**entry, "data": sealed, "format": RESPONSES_FORMAT}] if sealed and piece.id else []

    def _foreign(self, event: Event) -> bytes:
        """Reasoning whose encrypted form came late; Chat has no place for a hosted tool's call."""
        if not isinstance(event, Foreign) or event.item.type != "reasoning" or not event.item.raw.get("id"):
            return b""
        piece = Piece("reasoning_content", id=event.item.raw["id"])
        told = self._details({}, piece, event.item.raw["encrypted_content"])
        self._detailed += told
        return self._chunk({"reasoning_details": told})

    def _finish(self, event: Finished) -> bytes:
        self._reason, self.usage = event.reason, event.usage
        annotations = self._annotations()
        out = self._chunk({"annotations": annotations}) if annotations else b""
        out += self._chunk({}, finish=self._finish_reason(event.reason))
        if event.usage is not None and self._context.include_usage:
            out += self._frame({"choices": [], "usage": write_chat_usage(event.usage)})
        return out + _DONE if self._context.stream else b""

    def _fail(self, event: Failed) -> bytes:
        """The error frame that the SDKs raise, then the end; never a finish reason."""
        self._error, self.usage = event.error, event.usage
        if not self._context.stream:
            return b""
        return sse(orjson.dumps({"error": event.error.body()})) + _DONE

    def abort(self, error: ProxyError) -> bytes:
        return self._fail(Failed(error, self.usage))

    # --- the whole ---------------------------------------------------------------------

    def _message(self) -> Json:
        """`content` is null beside calls or a refusal when there is no text, else a string."""
        text, refusal = self._text("content"), self._text("refusal")
        calls = self._calls
        message: Json = {"role": "assistant", "content": text, "refusal": refusal or None}
        if not text and (calls or refusal):
            message["content"] = None
        if annotations := self._annotations():
            message["annotations"] = annotations
        for key in _THOUGHTS:
            if reasoning := self._text(key):
                message[key] = reasoning
        if self._detailed:
            message["reasoning_details"] = self._detailed
        message |= self._own
        for piece in calls:
            call = piece.whole_call(piece.text)
            if piece.place == "tool_calls":
                message.setdefault("tool_calls", []).append(call)
            else:
                message["function_call"] = call
        return message

    def _text(self, place: Place) -> str:
        return "".join(piece.text for piece in self._pieces.values() if piece.place == place)

    def _has_thought(self) -> bool:
        return self._thought or any(any(piece.texts) for piece in self._thinking.values())

    def _finish_reason(self, reason: FinishReason) -> str:
        """`tool_calls` exactly when there are calls and nothing cut the reply short."""
        if reason not in ("stop", "tool_calls"):
            return reason
        calls = self._calls
        if not calls:
            return "stop"
        return "tool_calls" if calls[0].place == "tool_calls" else "function_call"

    def _logprobs(self) -> Json | None:
        found: Json = {"content": None, "refusal": None}
        for piece in self._pieces.values():
            if piece.logprobs:
                found[piece.place] = [*(found[piece.place] or []), *piece.logprobs]
        return found if any(found.values()) else None

    def _annotations(self) -> list[Json]:
        return list(self._distinct_annotations())

    def _distinct_annotations(self) -> Iterator[Json]:
        """Citations in order of appearance, each link once, with offsets into the joined text."""
        seen: set[str | bytes] = set()
        offset = 0
        for piece in self._pieces.values():
            for annotation in piece.annotations:
                url = annotation.get("url")
                source = url if url and isinstance(url, str) else orjson.dumps(annotation, option=_SORTED)
                if source not in seen:
                    seen.add(source)
                    yield to_chat(annotation, offset)
            offset += len(piece.text) if piece.place == "content" else 0


def _is_old_function(tool: AnyTool) -> bool:
    return isinstance(tool, Tool) and tool.at.startswith("/functions/")
