"""Values of `overrides.request` that a type alone cannot judge."""

from __future__ import annotations

from typing import Any

import pytest

from config.load import check


def problems(rules: dict[str, Any]) -> list[str]:
    provider = {"name": "p", "kind": "openai", "base_url": "http://h/v1", "overrides": {"request": rules}}
    return [str(problem) for problem in check({"providers": [provider]}, {}, ())[0]]


AT = "providers[0].overrides.request"


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"chars_per_token": 3.5}, [f"{AT}.chars_per_token: needs `request.context_window` beside it"]),
        (
            {"context_window": 0, "chars_per_token": -1},
            [f"{AT}.context_window: should be greater", f"{AT}.chars_per_token: should be greater"],
        ),
        (
            {"rename": {"messages": "m"}, "defaults": {"stream": True, "input": "x"}, "dorp": []},
            [
                f"{AT}.dorp: unknown",
                f"{AT}.rename.messages:",
                f"{AT}.defaults.input",
                f"{AT}.defaults.stream",
            ],
        ),
        ({"context_window": 1000, "chars_per_token": 3.5, "defaults": {"seed": 1}}, []),
        ({"context_window": False, "chars_per_token": False}, []),
        ({"context_window": "x"}, [f"{AT}.context_window: should be a valid integer"]),
        ({"defaults": 5}, [f"{AT}.defaults: should be"]),
    ],
)
def test_every_fault_is_named_at_its_place(rules: dict[str, Any], told: list[str]) -> None:
    found = problems(rules)
    assert len(found) == len(told)
    assert all(any(each.startswith(start) for each in found) for start in told)
