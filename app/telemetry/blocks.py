"""The blocks of a stream as its client gets them: where each begins, grows and ends.

A block is an output item of a Responses stream, or a run of one kind of delta in a choice of a Chat stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from translators.framing import SseFramer

Say = Callable[[str, Mapping[str, Any]], None]
"""Told `start`, `delta`, `end` or `aborted`, and the fields of the event."""

_KINDS: Mapping[str, str] = {
    "content": "text",
    "reasoning_content": "reasoning",
    "reasoning": "reasoning",
    "refusal": "refusal",
}
_FAILED = ("response.failed", "error")

Key = tuple[int, str, int]
"""Output index or choice, kind, number of the call."""


@dataclass(slots=True)
class _Block:
    index: int
    """Which block of the stream, from 0."""
    kind: str
    deltas: int = 0
    chars: int = 0


class Blocks:
    """Feed what the client is sent of an event stream; `close` at its end."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._framer = SseFramer()
        self._open: dict[Key, _Block] = {}
        self._unsure: Key | None = None
        """An item that ended as incomplete: at its limit, or cut short, as the next event tells."""
        self._count = 0

    def feed(self, data: bytes) -> None:
        for payload in self._framer.feed(data):
            try:
                event = orjson.loads(payload)
            except orjson.JSONDecodeError:
                continue  # `[DONE]`, or a backend's oddity that passes
            if isinstance(event, dict):
                self._take(event)

    def close(self) -> None:
        """What is still open was cut short."""
        self._end_all("aborted")

    def _take(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if event.get("error") is not None and kind is None:
            self._end_all("aborted")
        elif isinstance(kind, str):
            self._responses(kind, event)
        else:
            for choice in _dicts(event.get("choices")):
                self._chat(choice)

    def _responses(self, kind: str, event: Mapping[str, Any]) -> None:
        if self._unsure is not None:
            self._end(self._unsure, "aborted" if kind in _FAILED else "end")
            self._unsure = None
        index = event.get("output_index")
        key = (index if isinstance(index, int) else 0, "", 0)
        if kind == "response.output_item.added":
            item = event.get("item")
            self._start(key, str(item.get("type")) if isinstance(item, dict) else "")
        elif kind.endswith(".delta"):
            self._delta(key, "", event.get("delta"))
        elif kind == "response.output_item.done":
            item = event.get("item")
            if isinstance(item, dict) and item.get("status") == "incomplete":
                self._unsure = key
            else:
                self._end(key)
        elif kind in _FAILED:
            self._end_all("aborted")

    def _chat(self, choice: Mapping[str, Any]) -> None:
        at, delta = choice.get("index"), choice.get("delta")
        index = at if isinstance(at, int) else 0
        for key, kind, text in _deltas(index, delta if isinstance(delta, dict) else {}):
            for other in [each for each in self._open if each[0] == index and each != key]:
                self._end(other)
            self._delta(key, kind, text)
        if choice.get("finish_reason"):
            for other in [each for each in self._open if each[0] == index]:
                self._end(other)

    def _start(self, key: Key, kind: str) -> _Block:
        block = self._open[key] = _Block(self._count, kind)
        self._count += 1
        self._say("start", {"block_index": block.index, "block_type": kind})
        return block

    def _delta(self, key: Key, kind: str, text: Any) -> None:
        block = self._open.get(key) or self._start(key, kind)
        size = len(text) if isinstance(text, str) else 0
        block.deltas += 1
        block.chars += size
        fields = {"block_index": block.index, "block_type": block.kind, "sequence": block.deltas}
        self._say("delta", {**fields, "chars": size})

    def _end(self, key: Key, how: str = "end") -> None:
        block = self._open.pop(key, None)
        if block is not None:
            fields = {"block_index": block.index, "block_type": block.kind}
            self._say(how, {**fields, "deltas": block.deltas, "chars": block.chars})

    def _end_all(self, how: str) -> None:
        for key in list(self._open):
            self._end(key, how)


def _deltas(choice: int, delta: Mapping[str, Any]) -> Iterator[tuple[Key, str, Any]]:
    """The parts of one Chat delta that say something, with the block that each belongs to."""
    for name, kind in _KINDS.items():
        if delta.get(name):
            yield (choice, kind, 0), kind, delta[name]
    for call in _dicts(delta.get("tool_calls")):
        number, function = call.get("index"), call.get("function")
        text = function.get("arguments") if isinstance(function, dict) else None
        yield (choice, "function_call", number if isinstance(number, int) else 0), "function_call", text


def _dicts(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (each for each in (value if isinstance(value, list) else ()) if isinstance(each, dict))
