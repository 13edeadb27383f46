"""A script as a Responses backend would say it: events in many odd styles, or one response."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from hypothesis import strategies as st

from tests.laws.scripts import Counts, Piece, Request, Script, Words, oddities

Json = dict[str, Any]


@dataclass(frozen=True)
class ResponsesStyle:
    """How this backend departs from OpenAI's stream; each value was seen in the field."""

    thought: Literal["summary", "parts", "raw"] = "summary"
    """One summary part, a part for each fragment, or raw reasoning text."""
    joined: bool = False
    """Neighbouring text and refusal are parts of one message."""
    events: Literal["all", "no parts", "no deltas", "lean"] = "all"
    """`lean`: MLflow agents, nothing but deltas and whole items."""
    output: Literal["full", "empty"] = "full"
    """What the terminal response has for `output`."""
    hosted: bool = False
    numbered: bool = True
    done: bool = False


def tells_its_end(style: object) -> bool:
    """Agents tell of whole items and of nothing else: their end is the end of the bytes."""
    agent = isinstance(style, ResponsesStyle) and style.events == "lean" and not style.numbered
    return not agent


@st.composite
def responses_styles(draw: st.DrawFn) -> ResponsesStyle:
    style = draw(oddities(ResponsesStyle))
    # Lean streams tell nothing of refusals before their item, which would put them last.
    return replace(style, joined=style.joined and style.events != "lean")


def responses_events(script: Script, style: ResponsesStyle) -> list[Json]:
    """The objects of the stream, without `[DONE]`."""
    items = _items(script, style)
    events = [] if style.events == "lean" else _openings(script)
    for index, item in enumerate(items):
        events += _item_events(item, index, script, style)
    output = items if style.output == "full" else []
    events.append(
        {"type": f"response.{_status(script)}", "response": _response(script, output, _status(script))}
    )
    if style.numbered:
        events = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return events


def responses_body(script: Script, style: ResponsesStyle) -> Json:
    """The plain response with the same content."""
    return _response(script, _items(script, style), _status(script))


def responses_usage(usage: Counts) -> Json:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def _status(script: Script) -> str:
    return "completed" if script.reason == "stop" else "incomplete"


def _response(script: Script, output: list[Json], status: str) -> Json:
    reasons = {"length": "max_output_tokens", "content_filter": "content_filter"}
    details = {"reason": reasons[script.reason]} if status == "incomplete" else None
    usage = None if script.usage is None or status == "in_progress" else responses_usage(script.usage)
    return {
        "id": "resp_up",
        "object": "response",
        "created_at": 5,
        "model": "up",
        "status": status,
        "output": output,
        "incomplete_details": details,
        "error": None,
        "usage": usage,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "metadata": {},
    }


def _openings(script: Script) -> list[Json]:
    start = _response(script, [], "in_progress")
    return [{"type": f"response.{kind}", "response": start} for kind in ("created", "in_progress")]


# --- items -----------------------------------------------------------------------------


def _items(script: Script, style: ResponsesStyle) -> list[Json]:
    items: list[Json] = []
    for piece in script.pieces:
        previous = items[-1] if items else {"type": None}
        if isinstance(piece, Request):
            items.append(_call_item(piece, len(items)))
        elif piece.kind == "thought":
            items.append(_reasoning_item(piece, len(items), style))
        elif style.joined and previous["type"] == "message" and len(previous["content"]) < 2:
            previous["content"].append(_part(piece))
        else:
            message = {
                "type": "message",
                "id": f"msg_{len(items)}",
                "role": "assistant",
                "status": "completed",
            }
            items.append({**message, "content": [_part(piece)]})
    if style.hosted:
        action = {"type": "search", "query": "q"}
        items.insert(0, {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action})
    return items


def _part(piece: Piece) -> Json:
    assert isinstance(piece, Words)
    if piece.kind == "refusal":
        return {"type": "refusal", "refusal": piece.text}
    return {"type": "output_text", "text": piece.text, "annotations": [], "logprobs": []}


def _reasoning_item(piece: Words, index: int, style: ResponsesStyle) -> Json:
    item = {"type": "reasoning", "id": f"rs_{index}", "summary": []}
    if style.thought == "raw":
        return {**item, "content": [{"type": "reasoning_text", "text": piece.text}]}
    texts = piece.fragments if style.thought == "parts" else (piece.text,)
    return {**item, "summary": [{"type": "summary_text", "text": text} for text in texts]}


def _call_item(call: Request, index: int) -> Json:
    return {
        "type": "function_call",
        "id": f"fc_{index}",
        "call_id": call.id,
        "name": call.name,
        "arguments": "".join(call.fragments),
        "status": "completed",
    }


# --- events ----------------------------------------------------------------------------


def _item_events(item: Json, index: int, script: Script, style: ResponsesStyle) -> list[Json]:
    place = {"output_index": index, "item_id": item["id"]}
    empty = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": []}}
    added = {**item, **empty.get(item["type"], {}), "status": "in_progress"}
    inside = list(_inside(item, place, script, style))
    whole = [{"type": "response.output_item.done", "output_index": index, "item": item}]
    if style.events == "lean":
        return [event for event in inside if event["type"].endswith("_text.delta")] + whole
    if item["type"] == "reasoning":
        added.pop("content", None)
    return [{"type": "response.output_item.added", "output_index": index, "item": added}, *inside, *whole]


def _inside(item: Json, place: Json, script: Script, style: ResponsesStyle) -> Iterator[Json]:
    match item["type"]:
        case "message":
            for n, part in enumerate(item["content"]):
                yield from _text_events(part, {**place, "content_index": n}, script, style)
        case "reasoning" if style.thought == "raw":
            yield from _text_events(item["content"][0], {**place, "content_index": 0}, script, style)
        case "reasoning":
            for n, part in enumerate(item["summary"]):
                yield from _summary_events(part, {**place, "summary_index": n}, script, style)
        case "function_call":
            kind = "response.function_call_arguments"
            yield from _told(kind, item["arguments"], place, script, style)
            yield {"type": f"{kind}.done", **place, "name": item["name"], "arguments": item["arguments"]}
        case _:
            yield {"type": "response.web_search_call.searching", **place}
            yield {"type": "response.web_search_call.completed", **place}


_TEXTS = {
    "output_text": ("response.output_text", "text", {"logprobs": []}),
    "refusal": ("response.refusal", "refusal", {}),
    "reasoning_text": ("response.reasoning_text", "text", {}),
}


def _text_events(part: Json, place: Json, script: Script, style: ResponsesStyle) -> Iterator[Json]:
    kind, key, more = _TEXTS[part["type"]]
    if style.events != "no parts":
        yield {"type": "response.content_part.added", **place, "part": {**part, key: ""}}
    for event in _told(kind, part[key], place, script, style):
        yield {**event, **more}
    yield {"type": f"{kind}.done", **place, key: part[key], **more}
    if style.events != "no parts":
        yield {"type": "response.content_part.done", **place, "part": part}


def _summary_events(part: Json, place: Json, script: Script, style: ResponsesStyle) -> Iterator[Json]:
    if style.events != "no parts":
        yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
    yield from _told("response.reasoning_summary_text", part["text"], place, script, style)
    yield {"type": "response.reasoning_summary_text.done", **place, "text": part["text"]}
    if style.events != "no parts":
        yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


def _told(kind: str, text: str, place: Json, script: Script, style: ResponsesStyle) -> Iterator[Json]:
    """The deltas: the script's own fragments where they are this text's, else the text whole."""
    if style.events == "no deltas":
        return
    fragments = next((p.fragments for p in script.pieces if "".join(p.fragments) == text), (text,))
    for fragment in fragments:
        yield {"type": f"{kind}.delta", **place, "delta": fragment}
