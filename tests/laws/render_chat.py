"""A script as a Chat backend would say it: chunks in many odd styles, or one body."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

from hypothesis import strategies as st

from tests.laws.scripts import Counts, Piece, Request, Script, Words, oddities

Json = dict[str, Any]


@dataclass(frozen=True)
class ChatStyle:
    """How this backend departs from OpenAI's stream; each value was seen in the field."""

    thought: Literal["reasoning_content", "reasoning", "parts", "tags"] = "reasoning_content"
    content: Literal["string", "parts"] = "string"
    index: Literal["given", "missing", "zero"] = "given"
    later: Literal["bare", "repeated", "empty"] = "bare"
    """What later deltas of a call have for id, type and name."""
    arguments: Literal["fragments", "object", "told twice"] = "fragments"
    interleaved: bool = False
    usage: Literal["last", "with finish", "in every chunk", "in the choice"] = "last"
    noise: bool = False
    finish_delta: Literal["empty", "null", "last"] = "empty"
    done: bool = True


@st.composite
def chat_styles(draw: st.DrawFn) -> ChatStyle:
    style = draw(oddities(ChatStyle))
    if style.interleaved and (style.index != "given" or style.arguments != "fragments"):
        # without an index only an id can say which of two open calls a fragment is for
        style = replace(style, later="repeated", arguments="fragments")
    return style


def chat_chunks(script: Script, style: ChatStyle) -> list[Json]:
    """The objects of the stream, without `[DONE]`."""
    deltas = [{"role": "assistant", "content": ""}, *_deltas(script, style)]
    reason = "tool_calls" if script.calls and script.reason == "stop" else script.reason
    chunks = [_chunk(delta) for delta in deltas]
    if style.finish_delta == "last" and len(chunks) > 1:
        chunks[-1]["choices"][0]["finish_reason"] = reason
    else:
        chunks.append(_chunk(None if style.finish_delta == "null" else {}, reason))
    _add_usage(chunks, script.usage, style)
    return _with_noise(chunks) if style.noise else chunks


def _chunk(delta: Json | None, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-up",
        "object": "chat.completion.chunk",
        "created": 5,
        "model": "up",
        "choices": [choice],
    }


def _with_noise(chunks: list[Json]) -> list[Json]:
    """Frames that say nothing: Azure's filter results, heartbeats, empty deltas."""
    head = {**chunks[0], "choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    empty = {**chunks[0], "choices": None}
    nothing = _chunk({"content": None, "role": "", "tool_calls": None, "refusal": None})
    return [head, chunks[0], empty, nothing, *chunks[1:]]


def _deltas(script: Script, style: ChatStyle) -> list[Json]:
    if style.thought == "tags":
        return _tagged(script, style)
    groups: list[list[list[Json]]] = []
    number = -1
    for piece in script.pieces:
        number += isinstance(piece, Request)
        deltas = _piece(piece, number, style)
        is_call = "tool_calls" in deltas[0]
        if style.interleaved and is_call and groups and "tool_calls" in groups[-1][0][0]:
            groups[-1].append(deltas)
        else:
            groups.append([deltas])
    return [delta for group in groups for delta in _in_turns(group)]


def _tagged(script: Script, style: ChatStyle) -> list[Json]:
    """Thinking as tags at the start of the text, cut wherever; later thoughts are left out."""
    thoughts = [p for p in script.pieces if isinstance(p, Words) and p.kind == "thought"]
    rest = tuple(p for p in script.pieces if p not in thoughts)
    plain = _deltas(replace(script, pieces=rest), replace(style, thought="reasoning"))
    if not thoughts:
        return plain
    marked = "<think>" + "".join(p.text for p in thoughts) + "</think>"
    return [_content(marked[i : i + 3], style) for i in range(0, len(marked), 3)] + plain


def _in_turns(group: list[list[Json]]) -> list[Json]:
    longest = max(len(deltas) for deltas in group)
    return [deltas[i] for i in range(longest) for deltas in group if i < len(deltas)]


def _piece(piece: Piece, number: int, style: ChatStyle) -> list[Json]:
    if isinstance(piece, Request):
        return _call(piece, number, style)
    if piece.kind == "text":
        return [_content(text, style) for text in piece.fragments]
    if piece.kind == "refusal":
        return [{"refusal": text} for text in piece.fragments]
    return [_thought(text, style) for text in piece.fragments]


def _content(text: str, style: ChatStyle) -> Json:
    return {"content": [{"type": "text", "text": text}] if style.content == "parts" else text}


def _thought(text: str, style: ChatStyle) -> Json:
    if style.thought == "parts":
        summary = [{"type": "summary_text", "text": text, "signature": ""}]
        return {"content": [{"type": "reasoning", "summary": summary}]}
    return {style.thought: text}


def _call(call: Request, number: int, style: ChatStyle) -> list[Json]:
    whole = "".join(call.fragments)
    fragments: list[Any] = ["", *call.fragments]
    if style.arguments == "object":
        fragments = [json.loads(whole)]
    elif style.arguments == "told twice" and len(call.fragments) == 1:
        fragments = [whole, whole]
    entries = [{"function": {"arguments": fragment}} for fragment in fragments]
    named = {"id": call.id, "type": "function"}
    for i, entry in enumerate(entries):
        if i == 0 or style.later == "repeated":
            entry |= named
            entry["function"]["name"] = call.name
        elif style.later == "empty":
            entry |= {"id": "", "type": ""}
            entry["function"]["name"] = ""
        if style.index != "missing":
            entry["index"] = 0 if style.index == "zero" else number
    return [{"tool_calls": [entry]} for entry in entries]


def chat_usage(usage: Counts) -> Json:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _add_usage(chunks: list[Json], usage: Counts | None, style: ChatStyle) -> None:
    if usage is None:
        return
    told = chat_usage(usage)
    match style.usage:
        case "last":
            chunks.append({**chunks[0], "choices": [], "usage": told})
        case "with finish":
            chunks[-1]["usage"] = told
        case "in every chunk":
            for i, chunk in enumerate(chunks):
                chunk["usage"] = told if i == len(chunks) - 1 else {**told, "completion_tokens": 0}
        case "in the choice":
            chunks[-1]["choices"][0]["usage"] = told


def chat_body(script: Script) -> Json:
    """The plain reply with the same content."""
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": "".join(c.fragments)}}
        for c in script.calls
    ]
    message: Json = {"role": "assistant", "content": script.words("text") or None}
    message |= {
        "refusal": script.words("refusal") or None,
        "reasoning_content": script.words("thought") or None,
    }
    message |= {"tool_calls": calls} if calls else {}
    reason = "tool_calls" if calls and script.reason == "stop" else script.reason
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    body = {
        "id": "chatcmpl-up",
        "object": "chat.completion",
        "created": 5,
        "model": "up",
        "choices": [choice],
    }
    return body if script.usage is None else {**body, "usage": chat_usage(script.usage)}
