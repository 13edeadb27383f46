"""Histories out of records: pure, cases as data."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest

from app.state.chaining import history, joined, listed, own_items, references, resolved
from app.store import Record


def record(own: list[Any], output: Any, id: str = "resp_ab") -> Record:
    return Record("o", id, "c", None, 1, orjson.dumps(own), orjson.dumps({"id": id, "output": output}))


@pytest.mark.parametrize(
    ("given", "items"),
    [
        ("a", [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}]),
        ([{"x": 1}], [{"x": 1}]),
        (None, []),
    ],
)
def test_own_items(given: Any, items: list[Any]) -> None:
    assert own_items(given) == items


def test_history_is_input_then_output_of_each() -> None:
    assert history([record([1], [2]), record([3, 4], [5]), record([6], None)]) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("before", "own", "whole"),
    [
        ([{"id": "a"}], [{"id": "a"}, {"id": "b"}], [{"id": "a"}, {"id": "b"}]),
        ([{"role": "user"}], [{"role": "user"}], [{"role": "user"}, {"role": "user"}]),
        (["x"], ["x", {"id": 7}], ["x", "x", {"id": 7}]),
        ([{"id": "a"}], [{"id": None}, 3], [{"id": "a"}, {"id": None}, 3]),
    ],
)
def test_an_item_that_comes_again_stands_once(before: list[Any], own: list[Any], whole: list[Any]) -> None:
    assert joined(before, own) == whole


def test_references() -> None:
    items: list[Any] = [
        {"type": "item_reference", "id": "a"},
        {"id": "b"},
        {"id": "c", "role": "user"},
        {"type": "item_reference", "id": 7},
        {"type": "function_call", "id": "d"},
        "e",
    ]
    assert references(items) == ["a", "b"]
    assert resolved(items, {"a": 1})[:2] == [1, {"id": "b"}]


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        (
            {"role": "user", "content": "x"},
            {
                "type": "message",
                "role": "user",
                "status": "completed",
                "id": "msg_ab_0",
                "content": [{"type": "input_text", "text": "x"}],
            },
        ),
        (
            {"role": "assistant", "content": "x", "id": "msg_1", "status": "incomplete"},
            {
                "type": "message",
                "role": "assistant",
                "status": "incomplete",
                "id": "msg_1",
                "content": [{"type": "output_text", "text": "x", "annotations": []}],
            },
        ),
        (
            {"type": "function_call_output", "call_id": "c", "output": "x"},
            {"type": "function_call_output", "call_id": "c", "output": "x", "id": "fco_ab_0"},
        ),
        ({"type": "new_kind", "id": ""}, {"type": "new_kind", "id": "item_ab_0"}),
    ],
)
def test_input_items_are_shown_whole(item: Any, shown: Any) -> None:
    assert listed([record([item], [])]) == [shown]


def test_200_items_take_less_than_a_millisecond_or_so() -> None:
    """1 ms is the aim; what is asserted leaves room for a busy machine."""
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "word " * 20}]}
    said = {**message, "id": "msg_x", "role": "assistant", "status": "completed"}
    records = [record([message], [said]) for _ in range(100)]
    times = []
    for _ in range(20):
        began = time.perf_counter()
        whole = joined(history(records), [message])
        times.append(time.perf_counter() - began)
    assert len(whole) == 201
    assert min(times) < 0.004
