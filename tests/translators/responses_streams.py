"""Responses streams a test writes, and the watcher they are played to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import orjson

from translators.dialect import ReplyContext
from translators.errors import ProxyError
from translators.framing import SseFramer
from translators.profile import AnswerRules, Profile
from translators.responses.watch import ResponsesWatcher

ANY = Profile()
EXACT = replace(ANY, answer=AnswerRules(exact=True))
ERROR = ProxyError("timeout", "too slow")
HEAD: dict[str, Any] = {
    "id": "resp_up",
    "object": "response",
    "created_at": 5,
    "model": "up",
    "parallel_tool_calls": True,
    "tools": [],
    "tool_choice": "auto",
}
CREATED: dict[str, Any] = {
    "type": "response.created",
    "sequence_number": 0,
    "response": {**HEAD, "status": "in_progress", "output": [], "error": None},
}
DELTA = {"type": "response.output_text.delta", "sequence_number": 1, "delta": '"error":{ response.completed'}
USAGE = {
    "input_tokens": 3,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 2,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 5,
}
COMPLETED: dict[str, Any] = {
    "type": "response.completed",
    "sequence_number": 2,
    "response": {**HEAD, "status": "completed", "output": [], "usage": USAGE},
}


def ended(*output: Any, **more: Any) -> dict[str, Any]:
    """`response.completed` with this output."""
    return {**COMPLETED, "response": {**COMPLETED["response"], "output": list(output), **more}}


def watcher(profile: Profile = ANY) -> ResponsesWatcher:
    numbers = count(1)
    context = ReplyContext(created=7, model="m", new_id=lambda prefix: f"{prefix}{next(numbers)}")
    return ResponsesWatcher(profile, context)


def stream(*objs: Any, newline: bytes = b"\n", named: bool = True) -> bytes:
    """Frames as a backend sends them; strings and bytes go as they are."""
    out = b""
    for obj in objs:
        if isinstance(obj, bytes):
            out += obj
            continue
        event = b"event: " + obj["type"].encode() + newline if named and "type" in obj else b""
        out += event + b"data: " + orjson.dumps(obj) + newline * 2
    return out


def run(watch: ResponsesWatcher, sent: bytes, size: int = 0) -> bytes:
    """Everything the client gets, `size` bytes to a read (0: all in one)."""
    step = size or len(sent) or 1
    return b"".join([watch.feed(sent[i : i + step]) for i in range(0, len(sent), step)]) + watch.close()


def events(data: bytes) -> list[dict[str, Any]]:
    framer = SseFramer()
    return [orjson.loads(p) for p in (*framer.feed(data), *framer.close()) if p != b"[DONE]"]


def sizes() -> Iterator[int]:
    yield from (0, 1, 7, 50)
