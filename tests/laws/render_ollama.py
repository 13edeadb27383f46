"""A script as an Ollama would say it: lines of `/api/chat` in its several styles, or one body."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from hypothesis import strategies as st

from tests.laws.scripts import Called, Counts, Request, Said, Script, Words, oddities, said, scripts

Json = dict[str, Any]


@dataclass(frozen=True)
class OllamaStyle:
    """What differs from server to server and from model to model."""

    calls: Literal["a line each", "one line", "the last line"] = "a line each"
    """Its own parsers tell a call as it is read; its llama-server path tells all of them at the end."""
    ids: bool = True
    """Old servers give none."""
    both: bool = False
    """A thought and the text behind it in one line."""
    timings: bool = True


STYLES = oddities(OllamaStyle)


@st.composite
def ollama_scripts(draw: st.DrawFn) -> Script:
    """Replies that this wire can say: it has no refusals and no filter, and counts two things."""
    script = draw(scripts(("text", "thought", "call")) | scripts(("text", "call", "call")))
    reason = "stop" if script.reason == "content_filter" else script.reason
    counts = script.usage and Counts(script.usage.input, script.usage.output, 0, 0, 0)
    return replace(script, reason=reason, usage=counts if counts and any(counts) else None)


def ollama_lines(script: Script, style: OllamaStyle) -> list[Json]:
    messages = list(_messages(script, style))
    calls = [_call(piece, style) for piece in script.calls]
    last: Json = {"role": "assistant", "content": ""}
    if calls and style.calls == "one line":
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
    elif calls and style.calls == "the last line":
        last["tool_calls"] = calls
    return [*(_line(message) for message in messages), _end(script, style, last)]


def ollama_body(script: Script, style: OllamaStyle) -> Json:
    message: Json = {"role": "assistant", "content": script.words("text")}
    if script.words("thought"):
        message["thinking"] = script.words("thought")
    if script.calls:
        message["tool_calls"] = [_call(piece, style) for piece in script.calls]
    return _end(script, style, message)


def told(script: Script, style: OllamaStyle) -> Said:
    """What a client must be told; calls without ids have empty ones here."""
    whole = said(script)
    calls = tuple(
        Called(call.id if style.ids else "", call.name, _compact(call.arguments)) for call in whole.calls
    )
    # Where there are durations there is no count only because it is 0.
    usage = whole.usage or (Counts(0, 0, 0, 0, 0) if style.timings else None)
    return replace(whole, calls=calls, usage=usage)


def _compact(arguments: str) -> str:
    return json.dumps(json.loads(arguments), ensure_ascii=False, separators=(",", ":"))


def _messages(script: Script, style: OllamaStyle) -> Iterator[Json]:
    held = ""
    for piece in script.pieces:
        if isinstance(piece, Request):
            if held:
                yield _thought(held)
            held = ""
            if style.calls == "a line each":
                yield {"role": "assistant", "content": "", "tool_calls": [_call(piece, style)]}
            continue
        for text in piece.fragments:
            if style.both and piece.kind == "thought" and not held:
                held = text
                continue
            yield _words(piece, text, held)
            held = ""
    if held:
        yield _thought(held)


def _thought(text: str) -> Json:
    return {"role": "assistant", "content": "", "thinking": text}


def _words(piece: Words, text: str, before: str) -> Json:
    if piece.kind == "thought":
        return _thought(before + text)
    return {"role": "assistant", "content": text, **({"thinking": before} if before else {})}


def _call(piece: Request, style: OllamaStyle) -> Json:
    # Its index begins at 0 in every line, which says nothing.
    function = {"index": 0, "name": piece.name, "arguments": json.loads("".join(piece.fragments))}
    return {"id": piece.id, "function": function} if style.ids else {"function": function}


def _line(message: Json) -> Json:
    return {"model": "up", "created_at": "2025-08-01T10:11:12.123456789Z", "message": message, "done": False}


def _end(script: Script, style: OllamaStyle, message: Json) -> Json:
    line = {**_line(message), "done": True, "done_reason": script.reason}
    if style.timings:
        line |= {"total_duration": 9_000_000, "load_duration": 1_000_000, "eval_duration": 5_000_000}
    if script.usage is not None:
        counts = {"prompt_eval_count": script.usage.input, "eval_count": script.usage.output}
        line |= {key: value for key, value in counts.items() if value}
    return line
