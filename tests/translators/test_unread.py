"""Keys of parts that a translation cannot carry are named, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from translators.ir import Shape
from translators.unread import unread_keys

MARK = {"cache_control": {"type": "ephemeral"}}
CASES: list[tuple[Shape, Any, list[str]]] = [
    ("chat", {"messages": [{"role": "user", "content": "x"}]}, []),
    ("chat", {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, []),
    (
        "chat",
        {
            "messages": [
                {},
                {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", **MARK}]},
            ]
        },
        ["/messages/1/content/1/cache_control"],
    ),
    ("responses", {"input": "x"}, []),
    ("responses", {}, []),
    (
        "responses",
        {
            "input": [
                {"type": "function_call_output", "output": [{"type": "input_text", "text": "r", **MARK}]}
            ]
        },
        ["/input/0/output/0/cache_control"],
    ),
    (
        "responses",
        {"input": [{"content": [{"type": "input_text", "text": "x", "prompt_cache_breakpoint": None}]}]},
        [],
    ),
    (
        "responses",
        {"input": [{"content": [{"type": "output_text", "text": "x", "logprobs": [], "annotations": []}]}]},
        [],
    ),
    ("responses", {"input": [{"content": ["odd", {"type": 3}, {"type": "input_novel", **MARK}]}]}, []),
]


@pytest.mark.parametrize(("shape", "body", "pointers"), CASES, ids=range(len(CASES)))
def test_unread_keys(shape: Shape, body: Any, pointers: list[str]) -> None:
    assert [loss.pointer for loss in unread_keys(body, shape, "responses")] == pointers


def test_marks_of_texts_are_carried_between_chat_and_chat() -> None:
    parts = [
        {"type": "text", "text": "x", **MARK},
        {"type": "image_url", **MARK},
        {"type": "text", "cache_control": 1},
    ]
    lost = unread_keys({"messages": [{"role": "user", "content": parts}]}, "chat", "chat")
    assert [loss.pointer for loss in lost] == [f"/messages/0/content/{i}/cache_control" for i in (1, 2)]
