"""A Chat client's request, decoded, for the tests of each of its forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from translators.chat.decode import decode_request
from translators.ir import Call

USER = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
FUNCTION = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True},
}
CUSTOM = {
    "type": "custom",
    "custom": {
        "name": "p",
        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}},
    },
}
FLAT = {"type": "function", "name": "f"}
HOSTED = {"type": "web_search"}


def counter() -> Callable[[str], str]:
    ids = iter(range(100))
    return lambda prefix: f"{prefix}{next(ids)}"


def decode(**body: Any) -> Call:
    return decode_request({"model": "m", "messages": [USER], **body}, counter())


def items(*messages: Any) -> tuple[Any, ...]:
    return decode(messages=list(messages)).items
