"""Replies by the book, in both shapes, whole and streamed: what a plain backend would send."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from .loopback import Ending, Reply

Json = dict[str, Any]
CREATED = 1_700_000_000
CHAT_USAGE: Json = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
RESPONSES_USAGE: Json = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 18,
}


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call the scripted model makes; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


# --- how bytes leave ------------------------------------------------------------------


def json_reply(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """A JSON body with its length; a `content-encoding: gzip` header compresses it."""
    data = orjson.dumps(body)
    head = {"content-type": "application/json", **(headers or {})}
    if head.get("content-encoding") == "gzip":
        data = gzip.compress(data)
    return Reply(status, {**head, "content-length": str(len(data))}, [data])


@dataclass(frozen=True, slots=True)
class Framing:
    """How events become bytes; `split` writes that many bytes at a time."""

    newline: str = "\n"
    prefix: str = "data: "
    event_lines: bool = False
    split: int = 0


PLAIN_FRAMING = Framing()


def sse_reply(
    frames: Iterable[Any],
    framing: Framing = PLAIN_FRAMING,
    *,
    end: Ending = "whole",
    pause: float = 0,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """A stream. A frame is an object, or text sent as it is (`[DONE]`, a `: comment`)."""
    writes = [frame_bytes(frame, framing) for frame in frames]
    if framing.split:
        data = b"".join(writes)
        writes = [data[at : at + framing.split] for at in range(0, len(data), framing.split)]
    pieces: list[bytes | float] = []
    for write in writes:
        pieces += [write, pause] if pause else [write]
    return Reply(200, {"content-type": "text/event-stream", **(headers or {})}, pieces, end)


def frame_bytes(frame: Any, framing: Framing = PLAIN_FRAMING) -> bytes:
    end = framing.newline * 2
    if isinstance(frame, str):
        return (frame + end if frame.startswith(":") else framing.prefix + frame + end).encode()
    named = f"event: {frame['type']}{framing.newline}" if framing.event_lines else ""
    return (named + framing.prefix).encode() + orjson.dumps(frame) + end.encode()


# --- Chat Completions -----------------------------------------------------------------


def chat_completion(text: str | None, calls: Sequence[ToolUse] = (), model: str = "m") -> Json:
    message: Json = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [{**_chat_call(call), "type": "function"} for call in calls]
    finish = "tool_calls" if calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": CREATED,
        "model": model,
        "choices": [choice],
        "usage": CHAT_USAGE,
    }


def _chat_call(call: ToolUse) -> Json:
    return {"id": call.id, "function": {"name": call.name, "arguments": call.arguments}}


def chat_chunk(delta: Json, finish: str | None = None, model: str = "m") -> Json:
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def usage_chunk(model: str = "m") -> Json:
    return {**chat_chunk({}, model=model), "choices": [], "usage": CHAT_USAGE}


def chat_stream(
    text: str, calls: Sequence[ToolUse] = (), *, usage: bool = True, model: str = "m"
) -> list[Any]:
    """Frames of an ordinary stream: text in small pieces, calls with interleaved arguments."""
    frames: list[Any] = [chat_chunk({"role": "assistant", "content": ""}, model=model)]
    frames += [chat_chunk({"content": piece}, model=model) for piece in pieces_of(text)]
    frames += [chat_chunk(delta, model=model) for delta in call_deltas(calls)]
    frames.append(chat_chunk({}, "tool_calls" if calls else "stop", model))
    if usage:
        frames.append(usage_chunk(model))
    return [*frames, "[DONE]"]


def call_deltas(calls: Sequence[ToolUse]) -> Iterable[Json]:
    """All calls are announced first; then their arguments come turn by turn, as some models do."""
    for index, call in enumerate(calls):
        function = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}
    rest = {index: pieces_of(call.arguments, 9) for index, call in enumerate(calls)}
    while any(rest.values()):
        for index, pieces in rest.items():
            if pieces:
                yield {"tool_calls": [{"index": index, "function": {"arguments": pieces.pop(0)}}]}


def pieces_of(text: str, size: int = 6) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


# --- Responses ------------------------------------------------------------------------


def message_item(text: str, status: str = "completed") -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [part],
    }


def call_item(call: ToolUse, at: int) -> Json:
    return {
        "id": f"fc_scripted{at}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def response_object(output: Sequence[Json], model: str = "m", status: str = "completed") -> Json:
    return {
        "id": "resp_scripted",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": list(output),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": RESPONSES_USAGE if status == "completed" else None,
    }


def response_items(text: str, calls: Sequence[ToolUse] = ()) -> list[Json]:
    items = [message_item(text)] if text else []
    return items + [call_item(call, at) for at, call in enumerate(calls)]


def response_stream(text: str, calls: Sequence[ToolUse] = (), model: str = "m") -> list[Any]:
    return item_stream(response_items(text, calls), model)


def item_stream(items: Sequence[Json], model: str = "m") -> list[Any]:
    """Events of an ordinary Responses stream with these output items, numbered from 0."""
    started = response_object([], model, "in_progress")
    events: list[Json] = [
        {"type": "response.created", "response": started},
        {"type": "response.in_progress", "response": started},
    ]
    for index, item in enumerate(items):
        events += _item_events(index, item)
    events.append({"type": "response.completed", "response": response_object(items, model)})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


_BEGINS: Json = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}


def _item_events(index: int, item: Json) -> list[Json]:
    place = {"output_index": index, "item_id": item["id"]}
    steps = _text_events(item, place) if item["type"] == "message" else _call_events(item, place)
    opened = {**item, **_BEGINS[item["type"]], "status": "in_progress"}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": opened},
        *steps,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _text_events(item: Json, place: Json) -> list[Json]:
    part = item["content"][0]
    place = {**place, "content_index": 0}
    deltas = [
        {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
        for piece in pieces_of(part["text"])
    ]
    return [
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *deltas,
        {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
    ]


def _call_events(item: Json, place: Json) -> list[Json]:
    custom = item["type"] == "custom_tool_call"
    kind = "response.custom_tool_call_input" if custom else "response.function_call_arguments"
    told = item["input"] if custom else item["arguments"]
    whole = {"input": told} if custom else {"name": item["name"], "arguments": told}
    deltas = [{"type": f"{kind}.delta", **place, "delta": piece} for piece in pieces_of(told, 9)]
    return [*deltas, {"type": f"{kind}.done", **place, **whole}]


# --- the rest -------------------------------------------------------------------------


def model_list(models: Sequence[str]) -> Json:
    entries = [{"id": model, "object": "model", "created": 0, "owned_by": "scripted"} for model in models]
    return {"object": "list", "data": entries}


def embeddings(model: str, count: int) -> Json:
    data = [{"object": "embedding", "index": at, "embedding": [0.25, -0.5, 0.75]} for at in range(count)]
    usage = {"prompt_tokens": 4, "total_tokens": 4}
    return {"object": "list", "model": model, "data": data, "usage": usage}
