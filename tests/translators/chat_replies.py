"""Events encoded for a Chat client, and what of the chunks a test compares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from translators.chat.encoder import ChatEncoder
from translators.dialect import ReplyContext
from translators.framing import SseFramer
from translators.ir import Call, Closed, Delta, Event, Grammar, Opened, Tool

CALL = Call("chat", "m", ())
OLD = Call("chat", "m", (), tools=(Tool("f", at="/functions/0"),))


def context(**keys: Any) -> ReplyContext:
    ids = iter(range(100))
    base: dict[str, Any] = {"created": 7, "model": "asked", "new_id": lambda prefix: f"{prefix}{next(ids)}"}
    return ReplyContext(**{**base, **keys})


def stream(events: Iterable[Event], call: Call = CALL, **keys: Any) -> tuple[ChatEncoder, bytes]:
    encoder, grammar = ChatEncoder(call, context(**keys)), Grammar()
    out = b""
    for event in events:
        grammar.see(event)
        out += encoder.feed(event)
    return encoder, out


def payloads(out: bytes) -> list[Any]:
    framer = SseFramer()
    found = framer.feed(out)
    assert framer.close() == []
    return [payload if payload == b"[DONE]" else orjson.loads(payload) for payload in found]


def deltas(events: Sequence[Event], call: Call = CALL, **keys: Any) -> list[Any]:
    """What each chunk adds: its delta, or the finish reason, or the usage, or the end mark."""
    found = []
    for chunk in payloads(stream(events, call, **keys)[1]):
        if chunk == b"[DONE]":
            found.append("done")
        elif not chunk["choices"]:
            found.append(chunk["usage"])
        else:
            (choice,) = chunk["choices"]
            found.append(choice["finish_reason"] or choice["delta"])
    return found


ROLE = {"role": "assistant", "content": ""}


def text(index: int, *pieces: str) -> list[Event]:
    return [Opened(index, "text"), *(Delta(index, piece) for piece in pieces), Closed(index)]


def args(number: int, fragment: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": number, "function": {"arguments": fragment}}]}


def first(number: int, call_id: str, name: str) -> dict[str, Any]:
    function = {"name": name, "arguments": ""}
    return {"tool_calls": [{"index": number, "id": call_id, "type": "function", "function": function}]}
