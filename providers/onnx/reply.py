"""What a model writes, as a reply of Chat Completions: the chunks of a stream, or one body."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from translators.ir import Json
from translators.local.pieces import Arguments, Call, CallEnd, Piece, Text, TextParser, Thought

from .protocol import Delta, Done

Entry = Mapping[str, Any]
"""A token's log probability as Chat Completions has it."""
Told = tuple[Json, Sequence[Entry]]
"""A delta, and the log probabilities of the tokens that wrote its text."""


@dataclass(frozen=True, slots=True)
class Head:
    """What every chunk says of the reply; `created` in seconds since 1970."""

    id: str
    created: int
    model: str
    new_call_id: Callable[[], str]
    usage: bool = False
    """Whether a stream ends with its counts."""
    logprobs: bool = False
    parallel: bool = True
    """Whether more than one call is the client's."""


@dataclass(slots=True)
class Reply:
    """Reads one answer; `feed` and `close` give deltas, each with the log probabilities of its text."""

    head: Head
    parser: TextParser
    index: int = 0
    """Which of the request's answers it is."""
    calls: int = 0
    reasoning_tokens: int = 0
    _pending: int = 0
    """Tokens of which it isn't known yet what they say."""
    _entries: list[Entry] = field(default_factory=list)

    def feed(self, delta: Delta) -> list[Told]:
        self._pending += delta.tokens
        if delta.logprobs:
            self._entries += delta.logprobs
        return self._told(self.parser.feed(delta.text))

    def close(self, done: Done) -> list[Told]:
        told = self._told(self.parser.close(cut=done.finish == "length"))
        if self.parser.thinking:
            self.reasoning_tokens += self._pending
        return told

    def finish(self, done: Done) -> str:
        if done.finish == "length":
            return "length"
        return "tool_calls" if self.calls else "stop"

    def _told(self, pieces: Sequence[Piece]) -> list[Told]:
        if not pieces:
            return []
        self._count(pieces)
        told: list[Told] = []
        for piece in pieces:
            match piece:
                case Text(text):
                    told.append(({"content": text}, self._entries_of(text)))
                case Thought(text):
                    self._entries_of(text)
                    told.append(({"reasoning_content": text}, ()))
                case Call() | Arguments():
                    self._entries.clear()
                    told += [(delta, ()) for delta in self._call(piece)]
                case CallEnd():
                    pass
        return told

    def _call(self, piece: Call | Arguments) -> Iterator[Json]:
        """A call's beginning, with no arguments yet, or all of them."""
        if isinstance(piece, Call):
            self.calls += 1
        index = self.calls - 1
        if index and not self.head.parallel:
            return
        if isinstance(piece, Call):
            function = {"name": piece.name, "arguments": ""}
            id_ = piece.id or self.head.new_call_id()
            yield {"tool_calls": [{"index": index, "id": id_, "type": "function", "function": function}]}
        else:
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece.text}}]}

    def _count(self, pieces: Sequence[Piece]) -> None:
        """Where tokens that came together are thoughts and more, they are shared out by their characters."""
        thought = sum(len(piece.text) for piece in pieces if isinstance(piece, Thought))
        other = sum(len(piece.text) for piece in pieces if isinstance(piece, Text | Arguments))
        if thought:
            self.reasoning_tokens += round(self._pending * thought / (thought + other))
        self._pending = 0

    def _entries_of(self, text: str) -> Sequence[Entry]:
        """The entries of the tokens that wrote `text`; those before it wrote markup and are forgotten."""
        if not self._entries:
            return ()
        tokens = [entry["token"] for entry in self._entries]
        at = "".join(tokens).find(text)
        if at < 0:  # a character of several tokens, none of which can be written by itself
            found, self._entries = self._entries, []
            return found
        found, rest, begins = [], [], 0
        for entry, token in zip(self._entries, tokens, strict=True):
            if begins >= at + len(text):
                rest.append(entry)
            elif begins + len(token) > at or (not token and begins >= at):
                found.append(entry)
            begins += len(token)
        self._entries = rest
        return found


@dataclass(frozen=True, slots=True)
class Answer:
    """One that has ended."""

    reply: Reply
    done: Done
    told: Sequence[Told] = ()
    """Its deltas; not kept of a stream."""


def usage(answers: Sequence[Answer]) -> Json:
    """What a request has cost: its prompt counts once."""
    first, made = answers[0].done, sum(each.done.completion_tokens for each in answers)
    thought = sum(min(each.reply.reasoning_tokens, each.done.completion_tokens) for each in answers)
    return {
        "prompt_tokens": first.prompt_tokens,
        "completion_tokens": made,
        "total_tokens": first.prompt_tokens + made,
        "prompt_tokens_details": {"cached_tokens": first.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }


# --- as a stream -----------------------------------------------------------------------


def first_chunk(reply: Reply) -> bytes:
    return _chunk(reply, {"role": "assistant", "content": ""}, None, ())


def chunks(reply: Reply, told: Sequence[Told]) -> bytes:
    return b"".join([_chunk(reply, delta, None, entries) for delta, entries in told])


def finish_chunk(reply: Reply, done: Done) -> bytes:
    return _chunk(reply, {}, reply.finish(done), ())


def end(head: Head, answers: Sequence[Answer]) -> bytes:
    counts = _event({**_frame(head), "choices": [], "usage": usage(answers)}) if head.usage else b""
    return counts + b"data: [DONE]\n\n"


def _chunk(reply: Reply, delta: Json, finish: str | None, entries: Sequence[Entry]) -> bytes:
    head = reply.head
    logprobs = {"content": list(entries), "refusal": None} if head.logprobs and entries else None
    choice = {"index": reply.index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
    body = {**_frame(head), "choices": [choice]}
    return _event({**body, "usage": None} if head.usage else body)


def _frame(head: Head, kind: str = "chat.completion.chunk") -> Json:
    return {"id": head.id, "object": kind, "created": head.created, "model": head.model}


def _event(body: Json) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


# --- as one body -----------------------------------------------------------------------


def whole(head: Head, answers: Sequence[Answer]) -> bytes:
    frame = _frame(head, "chat.completion")
    return orjson.dumps({**frame, "choices": list(map(_choice, answers)), "usage": usage(answers)})


def _choice(answer: Answer) -> Json:
    """What the deltas of an answer add up to."""
    reply, told = answer.reply, answer.told
    text, thought = _joined(told, "content"), _joined(told, "reasoning_content")
    calls: list[Json] = []
    for delta, _ in told:
        for call in delta.get("tool_calls", ()):
            if "id" in call:
                calls.append({key: call[key] for key in ("id", "type", "function")})
            else:
                calls[-1]["function"]["arguments"] += call["function"]["arguments"]
    message: Json = {"role": "assistant", "content": text or (None if calls else ""), "refusal": None}
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    entries = [entry for _, found in told for entry in found]
    return {
        "index": reply.index,
        "message": message,
        "logprobs": {"content": entries, "refusal": None} if reply.head.logprobs else None,
        "finish_reason": reply.finish(answer.done),
    }


def _joined(told: Sequence[Told], key: str) -> str:
    return "".join([delta[key] for delta, _ in told if key in delta])
