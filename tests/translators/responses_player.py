"""Plays event logs through the Responses encoder, and writes its events as short lines."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from typing import Any

from translators.dialect import ReplyContext
from translators.ir import (
    Call,
    Closed,
    Delta,
    Event,
    Finished,
    Grammar,
    Json,
    Opened,
    Started,
    Usage,
)
from translators.responses.encoder import ResponsesEncoder

CALL = Call("responses", "m", ())
START, STOP = Started(), Finished("stop", Usage(10, 5))


def ids() -> Callable[[str], str]:
    counts: dict[str, itertools.count[int]] = {}
    return lambda prefix: f"{prefix}{next(counts.setdefault(prefix, itertools.count(1)))}"


def encoder(**context: Any) -> ResponsesEncoder:
    fields = {"created": 1700000000, "model": "m", "new_id": ids(), "now": lambda: 1700000001, **context}
    return ResponsesEncoder(CALL, ReplyContext(**fields))


def play(log: Iterable[Event], **context: Any) -> bytes:
    grammar, machine, out = Grammar(), encoder(**context), []
    for event in log:
        grammar.see(event)
        out.append(machine.feed(event))
    return b"".join(out)


def text(index: int, *deltas: str, **opened: Any) -> list[Event]:
    return [
        Opened(index, "text", **opened),
        *(Delta(index, delta) for delta in deltas),
        Closed(index),
    ]


def call(index: int, *deltas: str, **opened: Any) -> list[Event]:
    fields = {"call_id": f"call_{index}", "name": "f", **opened}
    return [Opened(index, "tool_call", **fields), *(Delta(index, delta) for delta in deltas), Closed(index)]


def brief(event: Json) -> str:
    """One event as a line: type, indices, texts, item, part, status."""
    words = [event["type"].removeprefix("response.")]
    words += [
        f"{key[0]}{event[key]}"
        for key in ("output_index", "content_index", "summary_index", "annotation_index")
        if key in event
    ]
    words += [repr(event[key]) for key in ("delta", "text", "refusal", "arguments", "input") if key in event]
    if "item" in event:
        words.append(brief_item(event["item"]))
    if "part" in event:
        part = event["part"]
        words.append(f"{part['type']} {part.get('text', part.get('refusal'))!r}")
    if "response" in event:
        words.append(f"{event['response']['status']} {len(event['response']['output'])}")
    return " ".join(words)


def brief_item(item: Json) -> str:
    words = [item["id"], item["type"], str(item.get("status"))]
    words += [str(item[key]) for key in ("name", "namespace", "phase") if key in item]
    words += [json.dumps(item[key]) for key in ("arguments", "input", "encrypted_content") if key in item]
    for key in ("summary", "content"):
        if key in item:
            words.append(key + repr([part.get("text", part.get("refusal")) for part in item[key]]))
    return " ".join(words)
