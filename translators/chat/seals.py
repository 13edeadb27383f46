"""What a Chat backend gave and now refuses: thoughts and signatures of earlier turns.

Anthropic and Google sign them, and answer 400 on every later turn when a signature is another model's, was
cut or stands in another place. The conversation is worth more than its thoughts: it is sent once more
without them, as `responses/seals.py` does on the other wire.
"""

from __future__ import annotations

import re
from typing import Any

from ..dialect import Loss
from ..ir import Json

_Q = r"[`'\"\\]*"
"""Quotes of every kind, or none: gateways put the words in JSON of their own."""

_REFUSED = re.compile(
    rf"invalid {_Q}data{_Q} in {_Q}redacted_thinking{_Q} block"
    rf"|invalid {_Q}signature{_Q} in {_Q}thinking{_Q} block"
    rf"|thinking{_Q} (?:or {_Q}redacted_thinking{_Q} )?blocks?\b[^.]*cannot be modified"
    rf"|thinking\.signature: field required"
    rf"|missing an? {_Q}thought[ _]?signature"
    rf"|thought[ _]?signature{_Q} is (?:not valid|invalid)",
    re.IGNORECASE,
)
"""The words of Anthropic and Google, as gateways quote them in the message."""

_SIGNATURES = (
    "reasoning_details",
    "thinking_blocks",
    "extra_content",
    "thoughtSignature",
    "thought_signature",
)
"""Keys of messages, calls and their functions that hold what only the backend reads."""
_THOUGHTS = frozenset({"reasoning", "thinking", "redacted_thinking"})


def refused(status: int, code: str | None, message: str) -> bool:
    """Whether a backend's error is about thoughts or signatures that it cannot use."""
    return status == 400 and _REFUSED.search(f"{code} {message}") is not None


def without_seals(body: Json) -> Json | None:
    """`body` without parts that hold thoughts and without signatures; None when it has neither."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return None
    bare = [_message(message) for message in messages]
    same = all(new is old for new, old in zip(bare, messages, strict=True))
    return None if same else {**body, "messages": bare}


def sealed(body: Json) -> list[Loss]:
    """What a client's own Chat body loses by that."""
    messages = body.get("messages")
    return [
        Loss(f"/messages/{index}", "this backend cannot use its reasoning", "bookkeeping")
        for index, message in enumerate(messages if isinstance(messages, list) else ())
        if _message(message) is not message
    ]


def _message(message: Any) -> Any:
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return message
    changed: Json = {}
    for key, strip in (("content", _parts), ("tool_calls", _calls)):
        held = message.get(key)
        if isinstance(held, list) and (bare := strip(held)) != held:
            changed[key] = bare or None
    return _unsigned({**message, **changed} if changed else message)


def _parts(parts: list[Any]) -> list[Any]:
    """Without thoughts, also unsigned ones, which Claude refuses too ("signature: Field required")."""
    return [part for part in parts if not (isinstance(part, dict) and part.get("type") in _THOUGHTS)]


def _calls(calls: list[Any]) -> list[Any]:
    return [_call(call) for call in calls]


def _call(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    function = call.get("function")
    if isinstance(function, dict) and (bare := _unsigned(function)) is not function:
        call = {**call, "function": bare}
    return _unsigned(call)


def _unsigned(holder: Json) -> Json:
    """The same object when it holds none of the keys."""
    if holder.keys().isdisjoint(_SIGNATURES):
        return holder
    return {key: value for key, value in holder.items() if key not in _SIGNATURES}
