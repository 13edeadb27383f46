"""Levels of effort in a configuration: an unknown one is an error that lists the known."""

from __future__ import annotations

import pytest

from config.load import check

KNOWN = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "default")


def problems(reasoning: dict[str, object]) -> list[str]:
    provider = {
        "name": "p",
        "kind": "openai",
        "base_url": "http://h/v1",
        "overrides": {"reasoning": reasoning},
    }
    return [str(problem) for problem in check({"providers": [provider]}, {}, ())[0]]


@pytest.mark.parametrize("reasoning", [{"efforts": ["low", "hgih"]}, {"default_effort": "ultra"}])
def test_an_unknown_level_is_an_error_that_lists_the_known(reasoning: dict[str, object]) -> None:
    (told,) = problems(reasoning)
    assert all(f"'{level}'" in told for level in KNOWN)


@pytest.mark.parametrize("level", [*KNOWN, False])
def test_a_known_level_is_taken_and_false_asks_for_none(level: object) -> None:
    assert problems({"efforts": [*KNOWN], "default_effort": level}) == []
