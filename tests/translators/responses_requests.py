"""Calls written as Responses request bodies, for the tests of their parts."""

from __future__ import annotations

from typing import Any

from tests.translators.responses_profiles import KEEP
from translators.chat.decode import decode_request as decode_chat
from translators.ir import Call, Item, Json, Message, Shape, Text
from translators.profile import Profile
from translators.responses.encode import encode_request

SAY = Message("user", (Text("hi"),), at="/messages/9")
SAID = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}


def new_id(prefix: str) -> str:
    return f"{prefix}new"


def body(*items: Item, shape: Shape = "chat", profile: Profile = KEEP, **fields: Any) -> Json:
    return encode_request(Call(shape, "m", items or (SAY,), **fields), profile).body


def inputs(*items: Item, shape: Shape = "chat") -> list[Json]:
    written = body(*items, shape=shape)["input"]
    assert isinstance(written, list)
    return written


def lost(
    *items: Item, shape: Shape = "chat", profile: Profile = KEEP, **fields: Any
) -> list[tuple[str, str]]:
    encoded = encode_request(Call(shape, "m", items or (SAY,), **fields), profile)
    return [(loss.pointer, loss.kind) for loss in encoded.losses]


def from_chat(*messages: Json, **fields: Any) -> Json:
    asked = {"model": "m", "messages": list(messages), **fields}
    return encode_request(decode_chat(asked, new_id), KEEP).body
