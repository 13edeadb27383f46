"""The make of a request: what decides what it would lose, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from app.routing.prediction import make_of

HI = {"messages": [{"role": "user", "content": "hi"}]}

ALIKE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (HI, {"messages": [{"role": "user", "content": "something else, and much longer"}]}),
    ({"model": "a", "user": "x"}, {"model": "b", "user": "y"}),
    ({"temperature": 0.3}, {"temperature": 0.7}),
    ({"max_tokens": 1000}, {"max_tokens": 4000}),
    ({"metadata": {"a": "1"}}, {"metadata": {"b": "2", "c": "3"}}),
    ({"instructions": "a" * 100}, {"instructions": "b" * 200}),
    (
        {"input": [{"type": "message", "role": "user", "content": "a"}] * 2},
        {"input": [{"type": "message", "role": "user", "content": "b"}]},
    ),
]
UNLIKE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (HI, {**HI, "seed": 1}),
    ({"n": 1}, {"n": 2}),
    ({"logprobs": True}, {"logprobs": False}),
    ({"logprobs": True}, {"logprobs": 1}),
    ({"reasoning": {"effort": "low"}}, {"reasoning": {"effort": "high"}}),
    ({"user": "x"}, {"user": None}),
    ({"tools": [{"type": "function"}]}, {"tools": [{"type": "web_search"}]}),
    ({"tools": [{"type": "function"}]}, {"tools": [{"type": "function", "strict": True}]}),
    ({"input": [{"content": [{"type": "input_text"}]}]}, {"input": [{"content": [{"type": "input_image"}]}]}),
    ({"input": [{"output": "x"}]}, {"input": [{"output": [{"type": "input_image"}]}]}),
    (
        {"messages": [{"content": [{"type": "text"}]}]},
        {"messages": [{"content": [{"type": "text", "cache_control": {}}]}]},
    ),
    ({"messages": [{"role": "user"}]}, {"messages": [{"role": "user", "name": "n"}]}),
]
ODD: list[dict[str, Any]] = [
    {"messages": [{"role": {"a": [1]}, "type": ["x"], "content": [{"type": {}}, None]}, 7, None]},
    {"tools": [{"type": {"a": {"b": {"c": {"d": []}}}}}], "input": {"a": 1}},
    {"a": {"b": {"c": {"d": {"e": []}}}}, "f": 1e300, "g": -5, "h": 10**30},
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_alike(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert make_of(one) == make_of(other)


@pytest.mark.parametrize(("one", "other"), UNLIKE)
def test_unlike(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert make_of(one) != make_of(other)


@pytest.mark.parametrize("body", ODD)
def test_anything_has_a_make(body: dict[str, Any]) -> None:
    assert hash(make_of(body)) == hash(make_of(body))
