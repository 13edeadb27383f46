"""Chat streams a test writes, and the watcher they are played to."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import orjson

from translators.chat.watch import ChatWatcher
from translators.dialect import ReplyContext
from translators.profile import AnswerRules, Profile

DONE = b"data: [DONE]\n\n"
EXACT = Profile(answer=AnswerRules(exact=True))
CASES = json.loads((Path(__file__).parent.parent / "cases" / "chat_streams.json").read_text())


def watcher(profile: Profile | None = None, include_usage: bool = False) -> ChatWatcher:
    numbers = itertools.count()
    context = ReplyContext(
        created=7, model="asked", new_id=lambda p: f"{p}{next(numbers)}", include_usage=include_usage
    )
    return ChatWatcher(profile or Profile(), context)


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }


def calls(*entries: Any, finish: Any = None) -> dict[str, Any]:
    return chunk({"tool_calls": list(entries)}, finish)


def call(
    index: int, arguments: str | None, ident: str | None = None, name: str | None = None
) -> dict[str, Any]:
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    head = {"index": index} if ident is None else {"index": index, "id": ident, "type": "function"}
    return {**head, "function": function}


USAGE = {**chunk(usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}), "choices": []}
STOP = chunk({}, "stop")


def frame(obj: Any, newline: bytes = b"\n", prefix: bytes = b"data: ") -> bytes:
    data = obj if isinstance(obj, bytes) else orjson.dumps(obj)
    return prefix + data + newline * 2


def wire(*objs: Any, **form: bytes) -> bytes:
    return b"".join(frame(b"[DONE]" if obj == "[DONE]" else obj, **form) for obj in objs)


def play(data: bytes, *, size: int = 0, close: bool = True, **how: Any) -> tuple[bytes, ChatWatcher]:
    watch = watcher(**how)
    size = size or max(1, len(data))
    out = b"".join(watch.feed(data[at : at + size]) for at in range(0, len(data), size))
    return out + (watch.close() if close else b""), watch


def chunks(data: bytes) -> list[Any]:
    """The parsed data of every frame; `[DONE]` as that."""
    found = [line[6:] for line in data.split(b"\n") if line.startswith(b"data: ")]
    return [text.decode() if text == b"[DONE]" else orjson.loads(text) for text in found]


def last(*objs: Any) -> Any:
    """A finish that fits: `tool_calls` when there were calls."""
    return chunk(
        {},
        "tool_calls" if b"tool_calls" in orjson.dumps([o for o in objs if isinstance(o, dict)]) else "stop",
    )
