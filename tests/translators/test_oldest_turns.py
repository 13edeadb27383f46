"""Which turns go where a conversation is too long."""

from __future__ import annotations

from typing import Any

import pytest

from translators.compaction import opened, seal_summary
from translators.ir import Json
from translators.truncation import oldest

SYSTEM: Json = {"role": "developer", "content": "d" * 100}
TOOLS: Json = {"type": "additional_tools", "tools": [{"name": "x" * 100}]}
THEIRS: Json = {"type": "compaction", "encrypted_content": "e" * 100}
(OURS,) = opened(
    [{"type": "compaction", "encrypted_content": seal_summary(lambda: b"k", "s" * 100, 9)}], lambda: b"k"
)


def user(size: int = 100) -> Json:
    return {"role": "user", "content": "u" * size}


def said(size: int = 100) -> Json:
    return {"role": "assistant", "content": [{"type": "output_text", "text": "a" * size}]}


def call(id: str) -> Json:
    return {"type": "function_call", "call_id": id, "name": "f", "arguments": "c" * 100}


def result(id: str) -> Json:
    return {"type": "function_call_output", "call_id": id, "output": "r" * 100}


TURN = [user(), call("c"), result("c"), said()]


@pytest.mark.parametrize(
    ("items", "least", "gone"),
    [
        ([user(), said(), user()], 1, {0, 1}),
        ([user(), said(), user(), said(), user()], 200, {0, 1}),
        ([user(), said(), user(), said(), user()], 201, {0, 1, 2, 3}),
        ([user(), said(), user(), said(), user()], 10_000, {0, 1, 2, 3}),
        ([user(), user(), user()], 150, {0, 1}),
        ([said(), user(), said(), user()], 1, {0}),
        ([SYSTEM, TOOLS, *TURN, user()], 1, {2, 3, 4, 5}),
        ([user(), OURS, said(), THEIRS, user()], 1, {0, 2}),
        ([OURS, user(), said(), user()], 1, {1, 2}),
        ([user(), call("c"), user(), result("c"), user(), said(), user()], 1, {4, 5}),
        ([user(), call("c"), user(), said(), result("c")], 1, set()),
        ([*TURN[:-1], user()], 1, {0, 1, 2}),
        ([user(), "odd", {"call_id": 7}, user()], 1, {0, 2}),
        ([user(10_000), said()], 1, set()),
        ([SYSTEM, user()], 1, set()),
        ([], 1, set()),
    ],
)
def test_which_go(items: list[Any], least: float, gone: set[int]) -> None:
    assert oldest(items, least) == gone
