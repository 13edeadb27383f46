"""Lines of `/api/chat` in, events out: each becomes a chunk of the Chat shape, which its decoder reads.

    {"model", "created_at", "message": {"content", "thinking", "tool_calls"}, "done": false, "logprobs"}
    {..., "done": true, "done_reason": "stop" | "length", "prompt_eval_count", "eval_count", durations in ns}

Calls come whole, in the middle or on the last line, their arguments as an object; `done_reason` says "stop"
over them. An error is a line of its own, `{"error": "..."}`, under a status of 200. Nothing but a line with
`done` ends a reply: S ollama, a model that repeats itself is stopped and its stream just ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from ..chat.decoder import ChatDecoder
from ..errors import ProxyError
from ..ir import Event, Failed, Finished, Json
from ..profile import Profile

_SPENT: Mapping[str, str] = {
    "load": "load_duration",
    "prompt": "prompt_eval_duration",
    "eval": "eval_duration",
}
_FIGURES = ("prompt_eval_count", "eval_count", "total_duration", *_SPENT.values())
_NS = 1e-9
_NO_ANSWER = ("load", "unload")
"""Ends of a request that only moved the model into memory or out of it."""
_CHAT = ("choices", "usage", "id")


class OllamaDecoder:
    """One reply: `feed` its lines, then `close` at the end of the bytes."""

    def __init__(self, profile: Profile) -> None:
        self._chat = ChatDecoder(profile)
        self._calls = 0
        self._ended = False

    @property
    def told(self) -> bool:
        """Never: the line that tells the end is the last one."""
        return False

    def feed(self, obj: Json) -> Iterator[Event]:
        if self._ended:
            return iter(())
        over = obj.get("done") is True
        if obj.get("error") or not (over or isinstance(obj.get("message"), dict)):
            # No line of a reply: whoever finds the error in it must find nothing of a Chat reply there.
            other = {key: value for key, value in obj.items() if key not in _CHAT}
            return self._given(self._chat.feed(other))
        if not over:
            return self._given(self._chat.feed(self._chunk(obj)))
        if obj.get("done_reason") in _NO_ANSWER:
            what = f"The backend did not answer: {obj['done_reason']} is all it did."
            return self._given(iter([Failed(ProxyError("upstream", what))]))
        return self._given(self._last(obj))

    def lost(self) -> Iterator[Event]:
        return self._given(self._chat.lost())

    def done(self) -> Iterator[Event]:
        """This wire has no such mark: what looks like one says no more than the end of the bytes."""
        return self.close()

    def close(self) -> Iterator[Event]:
        return iter(()) if self._ended else self._given(self._chat.close())

    def _given(self, events: Iterator[Event]) -> Iterator[Event]:
        found = list(events)
        self._ended = self._ended or (bool(found) and isinstance(found[-1], Finished | Failed))
        return iter(found)

    def _last(self, obj: Json) -> Iterator[Event]:
        """The line that ends the reply: more of it, why it ends, and what it took."""
        chunk = self._chunk(obj)
        chunk["choices"][0]["finish_reason"] = obj.get("done_reason") or "stop"
        yield from self._chat.feed({**chunk, "usage": _usage(obj)})
        seconds = _seconds(obj)
        for event in self._chat.done():
            if seconds and isinstance(event, Finished) and event.usage is not None:
                event.usage.seconds = seconds
            yield event

    def _chunk(self, obj: Json) -> Json:
        message = obj.get("message")
        message = message if isinstance(message, dict) else {}
        delta: Json = {"content": message.get("content")}
        if thought := message.get("thinking"):
            delta["reasoning_content"] = thought
        if calls := message.get("tool_calls"):
            delta["tool_calls"] = self._numbered(calls)
        choice: Json = {"index": 0, "delta": delta}
        if logprobs := obj.get("logprobs"):
            choice["logprobs"] = {"content": logprobs}
        return {"model": obj.get("model"), "choices": [choice]}

    def _numbered(self, calls: Any) -> list[Json]:
        """Calls in Chat's form. They are counted over the whole reply: each line begins at 0."""
        found = []
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                spec = {"name": function.get("name"), "arguments": _text(function.get("arguments"))}
                known = {"id": call.get("id"), "type": "function", "function": spec}
                found.append({"index": self._calls, **known})
                self._calls += 1
        return found


def decode_reply(body: Json, profile: Profile) -> Iterator[Event]:
    """The events of an answer that came as one object: those of its only line."""
    decoder = OllamaDecoder(profile)
    whole = body if "done" in body or not isinstance(body.get("message"), dict) else {**body, "done": True}
    yield from decoder.feed(whole)
    yield from decoder.close()


def _text(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return "{}" if arguments is None else orjson.dumps(arguments).decode()


def _usage(obj: Json) -> Json | None:
    """A count of 0 is left out (S ollama: `omitempty`); where no figure is there at all, nobody counted."""
    if all(obj.get(key) is None for key in _FIGURES):
        return None
    return {
        "prompt_tokens": obj.get("prompt_eval_count") or 0,
        "completion_tokens": obj.get("eval_count") or 0,
    }


def _seconds(obj: Json) -> dict[str, float]:
    """What the last line tells of the time spent, as far as it does."""
    told = {name: obj.get(key) for name, key in _SPENT.items()}
    return {name: value * _NS for name, value in told.items() if type(value) is int and value > 0}
