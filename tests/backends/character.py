"""A backend of a strict character, playing the long task (long_task.py) on the Chat wire.

Tolerant servers hide a gateway's mistakes. Each character refuses, in the words that its model
server was seen to use, what that server refuses, and answers with that server's oddities.

What a backend gave with a call and wants back (reasoning text, a signature) is made from the
call itself, so that no state is kept: whether the right text comes back with the right call,
byte for byte, can be judged from one request.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from . import replies
from .long_task import Called, Turn, next_turn, place_of
from .loopback import Loopback, OnLoopback, Reply, Request
from .strict_chat import Fault

Json = dict[str, Any]
FULL, USUAL = 90_000, 3_000
"""Prompt tokens that a reply reports: over and under the limit at which a client compacts."""
SECRET_THOUGHT = "Почему? “Because”\n\tstep {key} needs \\u2028 care…   "


@dataclass(slots=True)
class Exchange:
    """One request and what became of it."""

    body: Json
    turn: Turn | None = None
    refusal: str | None = None


class Character(OnLoopback):
    """A strict backend. `exchanges` tells what happened; nothing here depends on it."""

    model: ClassVar[str]

    def __init__(self, *, cuts: frozenset[int] = frozenset()) -> None:
        """`cuts`: requests, counted from 1, whose stream breaks off before it says how it ended."""
        self._cuts = cuts
        self._lock = threading.Lock()
        self.exchanges: list[Exchange] = []
        self.elsewhere: list[str] = []
        """Paths that were asked for and are not here."""
        self.server = Loopback(self._answer)

    def provider(self) -> Json:
        """A gateway's configuration for it."""
        raise NotImplementedError

    def fault(self, body: Json) -> Fault | None:
        raise NotImplementedError

    def error(self, status: int, message: str) -> Reply:
        kind = "invalid_request_error"
        return replies.json_reply({"error": {"message": message, "type": kind, "code": kind}}, status)

    def deltas(self, turn: Turn) -> Iterator[Json]:
        """Everything between the role and the finish reason."""
        raise NotImplementedError

    def message(self, turn: Turn) -> Json:
        """The same, not streamed."""
        raise NotImplementedError

    def finish(self, turn: Turn) -> str:
        return "tool_calls" if turn.calls else "stop"

    @property
    def refusals(self) -> list[str]:
        return [exchange.refusal for exchange in self.exchanges if exchange.refusal]

    @property
    def steps(self) -> list[int | None]:
        """The steps played, in order; None for a last word or a summary."""
        return [exchange.turn.step for exchange in self.exchanges if exchange.turn]

    def _answer(self, request: Request) -> Reply:
        if request.method == "GET":
            return self.listing(request)
        if not request.path.endswith("/chat/completions"):
            self.elsewhere.append(request.path)
            return self.error(404, f"No API found for '{request.path}'")
        exchange = Exchange(request.json)
        with self._lock:
            self.exchanges.append(exchange)
            number = len(self.exchanges)
        fault = self.fault(exchange.body)
        if fault is not None:
            exchange.refusal = str(fault)
            return self.error(400, self.words(fault))
        exchange.turn = next_turn(exchange.body)
        return self._reply(exchange, exchange.turn, cut=number in self._cuts)

    def words(self, fault: Fault) -> str:
        return fault.why if not fault.path else str(fault)

    def listing(self, request: Request) -> Reply:
        if request.path.endswith("/models"):
            return replies.json_reply(replies.model_list([self.model]))
        return self.error(404, f"No API found for '{request.path}'")

    def _reply(self, exchange: Exchange, turn: Turn, cut: bool) -> Reply:
        body = exchange.body
        usage = self.usage(turn)
        if not body.get("stream"):
            choice = {"index": 0, "message": self.message(turn), "finish_reason": self.finish(turn)}
            whole = {**replies.chat_completion("", model=self.model), "choices": [choice], "usage": usage}
            return replies.json_reply(whole)
        frames: list[Any] = [replies.chat_chunk({"role": "assistant", "content": ""}, model=self.model)]
        frames += [replies.chat_chunk(delta, model=self.model) for delta in self.deltas(turn)]
        if cut:
            return replies.sse_reply(frames, end="cut")
        frames.append(replies.chat_chunk({}, self.finish(turn), self.model))
        if (body.get("stream_options") or {}).get("include_usage"):
            frames.append({**replies.usage_chunk(self.model), "usage": usage})
        return replies.sse_reply([*frames, "[DONE]"])

    def usage(self, turn: Turn) -> Json:
        prompt = FULL if turn.full else USUAL
        return {"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20}

    def _openai(self, profile: str | None = None) -> Json:
        base = {"name": "up", "kind": "openai", "base_url": f"{self.origin}/v1", "api_key": "k"}
        return {**base, "models": [self.model], **({"profile": profile} if profile else {})}


def signature(*of: str) -> str:
    """Bytes that nobody can guess or mend, as base64 with its padding."""
    return base64.b64encode(hashlib.sha512("\0".join(of).encode()).digest()).decode()


def wire_call(call: Called, call_id: str) -> Json:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call_id, "type": "function", "function": function}


def assistants(messages: Sequence[Json]) -> Iterator[tuple[int, Json]]:
    for at, message in enumerate(messages):
        if message.get("role") == "assistant":
            yield at, message


def edited(body: Json, edit: Callable[[Json], Json]) -> Json:
    """A copy of the request whose messages went through `edit`."""
    return {**body, "messages": [edit(message) for message in body.get("messages") or []]}


def since_prompt(messages: Sequence[Json]) -> int:
    """How many messages came since the last prompt; all where there is none."""
    place = place_of(messages)
    asked = messages[-1].get("role") == "user" and place is not None and place.since
    if asked and not _is_lifted(messages[-1]):
        return 1
    return len(place.since) if place else len(messages)


def _is_lifted(message: Json) -> bool:
    """Whether a user message only holds what a tool's result held."""
    content = message.get("content")
    return isinstance(content, list) and any(part.get("type") == "image_url" for part in content)
