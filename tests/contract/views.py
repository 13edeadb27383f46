"""A reply as a client sees it, taken apart once so that a check is one short path.

status, headers, raw      as they came
body, error               the JSON body; the error object wherever it was (body, frame, response)
events, types, last       the parsed frames of a stream, without the end marker; `done`: whether it came
final                     the whole reply: the body, the terminal event's response, or the folded chunks
text, reasoning, refusal  all deltas joined (or the parts of the body)
calls                     `{type, id, name, namespace, arguments}` of every tool call
finish, usage             finish_reason (Chat) or status (Responses); token counts
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpx
import orjson

Json = dict[str, Any]
TERMINAL = ("response.completed", "response.incomplete", "response.failed")


def look(reply: httpx.Response) -> Json:
    view: Json = {
        "status": reply.status_code,
        "headers": dict(reply.headers),
        "raw": reply.text,
        "size": len(reply.content),
    }
    stream = reply.headers.get("content-type", "").startswith("text/event-stream")
    view |= _stream(reply.content) if stream else _whole(reply.content)
    view |= _parts(view)
    return view


def _whole(content: bytes) -> Json:
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError:
        body = None
    return {"stream": False, "body": body, "events": [], "types": [], "done": False, "final": body or {}}


def _stream(content: bytes) -> Json:
    frames = [_data(block) for block in content.split(b"\n\n")]
    payloads = [frame for frame in frames if frame]
    done = bool(payloads) and payloads[-1] == b"[DONE]"
    events = [orjson.loads(payload) for payload in payloads if payload != b"[DONE]"]
    types = [event.get("type") for event in events]
    last = events[-1] if events else {}
    final = last.get("response") or {} if last.get("type") else fold_chunks(events)
    return {
        "stream": True,
        "body": None,
        "events": events,
        "types": types,
        "done": done,
        "last": last,
        "final": final,
    }


def _data(block: bytes) -> bytes:
    lines = [line[6:] for line in block.split(b"\n") if line.startswith(b"data: ")]
    return b"\n".join(lines)


def fold_chunks(chunks: Iterable[Json]) -> Json:
    """A chat.completion made of the first choice of its chunks (independent of the product's own fold)."""
    message: Json = {"role": "assistant", "content": None}
    whole: Json = {"choices": [{"message": message, "finish_reason": None}]}
    for chunk in chunks:
        whole |= {key: chunk[key] for key in ("id", "model", "created", "usage", "error") if chunk.get(key)}
        for choice in chunk.get("choices") or []:
            _add_delta(message, choice.get("delta") or {})
            if choice.get("finish_reason"):
                whole["choices"][0]["finish_reason"] = choice["finish_reason"]
    return whole


def _add_delta(message: Json, delta: Json) -> None:
    for key in ("content", "reasoning_content", "refusal"):
        if delta.get(key):
            message[key] = (message.get(key) or "") + delta[key]
    calls = message.setdefault("tool_calls", []) if delta.get("tool_calls") else []
    for piece in delta.get("tool_calls") or []:
        while len(calls) <= piece["index"]:
            calls.append({"id": "", "function": {"name": "", "arguments": ""}})
        call, function = calls[piece["index"]], piece.get("function") or {}
        call["id"] += piece.get("id") or ""
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""


def _parts(view: Json) -> Json:
    final = view["final"]
    if "choices" in final:
        return _chat_parts(final)
    if "output" in final:
        return _responses_parts(view, final)
    return {"error": final.get("error")}


def _chat_parts(final: Json) -> Json:
    choice = final["choices"][0]
    message = choice["message"]
    calls = [
        {"type": call.get("type", "function"), "id": call["id"], **call["function"]}
        for call in message.get("tool_calls") or []
    ]
    return {
        "text": message.get("content") or "",
        "reasoning": message.get("reasoning_content") or "",
        "refusal": message.get("refusal"),
        "calls": calls,
        "finish": choice["finish_reason"],
        "usage": final.get("usage"),
        "error": final.get("error"),
    }


def _responses_parts(view: Json, final: Json) -> Json:
    output = final["output"]
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    thoughts = [part for item in output if item["type"] == "reasoning" for part in _thoughts(item)]
    text = "".join(part["text"] for part in parts if part["type"] == "output_text")
    reasoning = "".join(part["text"] for part in thoughts)
    if view["stream"]:
        text = _deltas(view, "response.output_text.delta")
        reasoning = _deltas(view, "response.reasoning_summary_text.delta", "response.reasoning_text.delta")
    return {
        "text": text,
        "reasoning": reasoning,
        "refusal": "".join(part["refusal"] for part in parts if part["type"] == "refusal") or None,
        "calls": [_call(item) for item in output if item["type"].endswith("_call")],
        "finish": final["status"],
        "usage": final.get("usage"),
        "error": final.get("error"),
    }


def _thoughts(item: Json) -> list[Json]:
    return [*item.get("summary", []), *(item.get("content") or [])]


def _deltas(view: Json, *types: str) -> str:
    return "".join(event["delta"] for event in view["events"] if event["type"] in types)


def _call(item: Json) -> Json:
    named = {key: item[key] for key in ("name", "namespace") if item.get(key)}
    told = item.get("arguments", item.get("input"))
    return {"type": item["type"], "id": item.get("call_id"), **named, "arguments": told}
