"""What names a conversation, and for how long its endpoint is remembered."""

from __future__ import annotations

from typing import Any

import pytest

from app.routing.sticky import MAX_CONVERSATIONS, MAX_KEY, TTL_S, Sticky, conversation


@pytest.mark.parametrize(
    ("body", "headers", "key"),
    [
        ({"prompt_cache_key": "k"}, {}, "k"),
        ({"prompt_cache_key": "k"}, {b"session-id": b"s"}, "k"),
        ({"prompt_cache_key": ""}, {b"session-id": b"s"}, "s"),
        ({"prompt_cache_key": 5}, {b"x-session-id": b"x"}, "x"),
        ({}, {b"thread-id": b"t", b"session-id": b"s"}, "s"),
        ({}, {b"conversation_id": b"c"}, "c"),
        ({}, {b"x-request-id": b"r"}, None),
        ({}, {b"session-id": b""}, None),
        ({"prompt_cache_key": "k" * 1000}, {}, "k" * MAX_KEY),
    ],
)
def test_a_conversation_is_named_by(
    body: dict[str, Any], headers: dict[bytes, bytes], key: str | None
) -> None:
    assert conversation(body, headers) == key


def test_the_endpoint_is_remembered_by_name_and_key() -> None:
    sticky = Sticky()
    sticky.set("chat-fast", "k", "a/m")
    assert sticky.get("chat-fast", "k") == "a/m"
    assert sticky.get("chat-thinking", "k") is None
    assert sticky.get("chat-fast", "other") is None


def test_it_is_forgotten_in_time() -> None:
    now = 0.0
    sticky = Sticky(lambda: now)
    sticky.set("m", "k", "a/m")
    now = TTL_S
    assert sticky.get("m", "k") == "a/m"
    now += 1
    assert sticky.get("m", "k") is None


def test_the_oldest_is_forgotten_first() -> None:
    sticky = Sticky()
    for number in range(MAX_CONVERSATIONS + 1):
        sticky.set("m", str(number), "a/m")
    assert sticky.get("m", "0") is None
    assert sticky.get("m", "1") == "a/m"
