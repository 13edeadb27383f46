"""Values of profile keys that have the right type and are wrong all the same, told at the start."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from config.overrides import find_problems, without_false
from providers.profiles import resolve
from translators.profile import Profile

JSON = "holds what JSON cannot"


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"request": {"clamp": {"temperature": [0, float("inf")]}}}, f"request.clamp.temperature: {JSON}"),
        ({"errors": {"retry": {"window_s": float("nan")}}}, f"errors.retry.window_s: {JSON}"),
        ({"request": {"force": {"a": {"b": [2**70]}}}}, f"request.force.a.b: {JSON}"),
        ({"request": {"max_body_bytes": -1}}, "request.max_body_bytes: should be greater than 0"),
        ({"request": {"id_max_len": 0}}, "request.id_max_len: should be greater than 0"),
        ({"messages": {"tool_call_id": {"max": 0}}}, "messages.tool_call_id.max: should be greater than 0"),
        ({"tools": {"max": 0}}, "tools.max: should be greater than 0"),
        (
            {"messages": {"tool_call_id": {"pattern": "("}}},
            "messages.tool_call_id.pattern: is no regular expression: missing )",
        ),
    ],
)
def test_a_wrong_value_is_told(table: dict[str, Any], told: str) -> None:
    (problem,) = find_problems(table, "openai")
    assert str(problem).startswith(told)


@pytest.mark.parametrize("most", [-1, 6])
def test_continuations_are_bounded(most: int) -> None:
    (problem,) = find_problems({"answer": {"continuations": most}}, "openai")
    assert str(problem) == "answer.continuations: should be from 0 to 5"


@pytest.mark.parametrize(
    "table",
    [
        {"request": {"max_body_bytes": 1, "id_max_len": 8, "context_window": 1, "chars_per_token": 0.5}},
        {"request": {"max_body_bytes": False, "defaults": {"day": datetime.date(2026, 1, 1)}}},
        {"messages": {"tool_call_id": {"max": 1, "pattern": "^[a-z]+$"}}, "tools": {"max": False}},
        {"messages": {"tool_call_id": {"pattern": False}}},
        {"answer": {"finish_map": {"odd": False}, "continuations": 5}},
        {"answer": {"continuations": 0}},
    ],
)
def test_a_right_value_can_be_resolved(table: dict[str, Any]) -> None:
    assert not list(find_problems(table, "openai"))
    merged = resolve(kind="openai", host="h", model="m", surface="chat", overrides=without_false(table))
    assert isinstance(merged, Profile)


def test_a_word_for_the_end_can_be_no_reason() -> None:
    table = without_false({"answer": {"finish_map": {"stop": False}}, "request": {"force": {"x": False}}})
    assert table == {"answer": {"finish_map": {"stop": None}}, "request": {"force": {"x": False}}}
