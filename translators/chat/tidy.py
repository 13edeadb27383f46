"""Odd Chat replies written by the book, in place: for replies that pass.

The SDK's helpers break on list content, `choices: null`, tool deltas without an index; typed
clients on a missing `object`, a role of "", a finish reason they don't know. Each function
mends one object and says whether it had to, so that what was well formed stays byte for byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import orjson

from ..ir import Json, Usage
from ..profile import Profile
from ..timestamps import whole_seconds
from ..toolcalls import Piece, ToolCallAssembler
from ..usage import read_chat_usage, write_chat_usage
from .annotations import from_chat, to_chat
from .chunk import first_choice
from .finish import chat_reason, failure_in, nameless_call, no_choices, read_finish, stopped_by_failure
from .parts import read_content, read_thought

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")


def tidy_choices(obj: Json) -> bool:
    """`choices` becomes a list of objects, each with its integer index."""
    told = obj.get("choices")
    if type(told) is list and len(told) == 1 and type(told[0]) is dict and type(told[0].get("index")) is int:
        return False
    choices = told if isinstance(told, list) else [told]
    kept = [choice for choice in choices if isinstance(choice, dict)]
    changed = kept != told
    if changed:
        obj["choices"] = kept
    for place, choice in enumerate(kept):
        if type(choice.get("index")) is not int:
            choice["index"], changed = place, True
    return changed


def tidy_message(message: Json, profile: Profile) -> bool:
    """A message or delta: role, content a string, reasoning a string."""
    changed = "role" in message and message["role"] != "assistant"
    if changed:
        del message["role"]
    changed |= _tidy_thought(message, profile.reasoning.fields) | _tidy_citations(message)
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        _flatten(message, content, profile)
        changed = True
    return changed


def _tidy_thought(message: Json, fields: Sequence[str]) -> bool:
    odd = [name for name in fields if name in message and isinstance(message[name], dict | list)]
    for name in odd:
        thought = read_thought(message, (name,))
        message[name] = thought.text if thought else ""
    return bool(odd)


def _tidy_citations(message: Json) -> bool:
    """Citations nested under their type, with the keys that typed clients require."""
    told = message.get("annotations")
    if not told:
        return False
    found = map(from_chat, told if isinstance(told, list) else [told])
    whole = [to_chat(annotation) for annotation in found if annotation is not None]
    message["annotations"] = whole
    return bool(whole != told)


def _flatten(message: Json, content: Any, profile: Profile) -> None:
    """Parts become the keys that Chat clients read; reasoning goes where most look for it."""
    texts: dict[str, str] = {"text": "", "refusal": "", "summary": ""}
    annotations: list[Json] = []
    for fragment in read_content(content, profile.reasoning.parts):
        texts[fragment.kind] += fragment.text
        annotations += fragment.annotations
    message["content"] = texts["text"]
    if texts["refusal"]:
        message["refusal"] = texts["refusal"]
    if texts["summary"] and not any(message.get(name) for name in profile.reasoning.fields):
        message["reasoning_content"] = texts["summary"]
    if annotations:
        message["annotations"] = [to_chat(annotation) for annotation in annotations]


def tidy_usage(obj: Json, profile: Profile) -> tuple[Usage | None, bool]:
    """The usage told in an object (or, by Moonshot, in its first choice), written whole."""
    changed = False
    for choice in obj["choices"]:
        if (inside := choice.pop("usage", None)) is not None:
            changed = True
            if profile.answer.usage == "any":
                obj["usage"] = obj.get("usage") or inside
    told: Any = obj.get("usage")
    if told is None:
        return None, changed
    usage = read_chat_usage(told, profile.answer.reasoning_in_completion)
    if usage is None:
        obj["usage"] = None
    elif all(type(told.get(name)) is int for name in _COUNTS):
        return usage, changed
    else:
        obj["usage"] = {**told, **write_chat_usage(usage)}
    return usage, True


def call_delta(piece: Piece, call_id: str) -> Json:
    """One entry of a delta's `tool_calls`; `call_id` is read when the piece opens its call."""
    call = piece.call
    inner = {"input" if call.kind == "custom" else "arguments": piece.text}
    head: Json = {"index": call.position}
    if piece.opens:
        head |= {"id": call_id, "type": call.kind}
        inner = {"name": call.name, **inner}
    return {**head, call.kind: inner, **piece.extra}


def whole_call(piece: Piece, call_id: str) -> Json:
    """One entry of a message's `tool_calls`."""
    delta = call_delta(piece, call_id)
    del delta["index"]
    return delta


# --- whole replies ---------------------------------------------------------------------


def tidy_reply(body: Json, profile: Profile) -> tuple[Json, Usage | None]:
    """A `chat.completion` that passes, and its usage; the same object when nothing was odd.

    Raises the `ProxyError` that a body of status 200 carries, or one for a body without choices.
    """
    error = failure_in(body, first_choice(body.get("choices")), profile.answer.content)
    if error is not None:
        raise error
    changed = tidy_choices(body)
    if not body["choices"]:
        raise no_choices()
    usage, mended = tidy_usage(body, profile)
    if mended and usage is None:
        del body["usage"]
    changed |= mended | _tidy_head(body)
    for choice in body["choices"]:
        changed |= _tidy_choice(choice, profile, body["id"])
    return (dict(body) if changed else body), usage


def _tidy_head(body: Json) -> bool:
    created, ident, model = body.get("created"), body.get("id"), body.get("model")
    named = type(ident) is str and ident and type(model) is str
    if named and type(created) is int and body.get("object") == "chat.completion":
        return False
    head: Json = {"object": "chat.completion"}
    if not isinstance(ident, str) or not ident:
        head["id"] = f"chatcmpl-{_digest(body)}"
    if type(created) is not int:
        head["created"] = whole_seconds(created) or 0
    if not isinstance(model, str):
        head["model"] = ""
    changed = any(body.get(key) != value for key, value in head.items())
    body |= head
    return changed


def _tidy_choice(choice: Json, profile: Profile, reply_id: str) -> bool:
    message, changed = choice.get("message"), False
    if not isinstance(message, dict):
        delta = choice.pop("delta", None)
        message = choice["message"] = delta if isinstance(delta, dict) else {}
        changed = True
    changed |= tidy_message(message, profile)
    if "role" not in message or "content" not in message:
        message.update(role="assistant", content=message.get("content"))
        changed = True
    changed |= _tidy_calls(message, f"{reply_id}/{choice['index']}")
    return _tidy_reason(choice, message, profile) or changed


def _tidy_calls(message: Json, place: str) -> bool:
    calls = message.get("tool_calls")
    if not calls:
        return False
    entries = [call for call in (calls if isinstance(calls, list) else [calls]) if isinstance(call, dict)]
    idents = [call.get("id") for call in entries]
    if entries == calls and len({*map(str, idents)}) == len(idents) and all(map(_well_formed, entries)):
        return False
    seen: set[str] = set()
    message["tool_calls"] = [
        _mended(entry, seen, f"call_{_digest([place, number])}") for number, entry in enumerate(entries)
    ]
    return True


def _well_formed(call: Json) -> bool:
    kind, key = call.get("type"), "input" if call.get("type") == "custom" else "arguments"
    inner = call.get(kind) if isinstance(kind, str) else None
    named = isinstance(inner, dict) and isinstance(inner.get(key), str) and bool(inner.get("name"))
    return named and isinstance(call.get("id"), str) and bool(call["id"])


def _mended(entry: Json, seen: set[str], spare_id: str) -> Json:
    """One call by the book; raises when it has no name, for then nobody can run it."""
    assembler = ToolCallAssembler()
    pieces = assembler.feed([{**entry, "index": 0}]) + assembler.settle()
    if not pieces:
        raise nameless_call()
    call = pieces[0].call
    ident = call.id if call.id not in seen | {""} else spare_id
    seen.add(ident)
    return whole_call(Piece(call, True, call.arguments or "{}", pieces[0].extra), ident)


def _tidy_reason(choice: Json, message: Json, profile: Profile) -> bool:
    """Raises the error that the reason stands for, if it stands for one."""
    told = choice.get("finish_reason")
    finish = read_finish(told, profile.answer.finish_map)
    if finish == "failed":
        raise stopped_by_failure(told)
    implied = profile.answer.tool_calls_imply_finish
    choice["finish_reason"] = chat_reason(told, finish, bool(message.get("tool_calls")), implied)
    return bool(choice["finish_reason"] != told)


def _digest(value: Any) -> str:
    """An id out of what it names: nothing here may make up a random one."""
    return hashlib.sha256(orjson.dumps(value)).hexdigest()[:24]
