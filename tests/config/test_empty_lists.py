"""Lists that hold too little, told in the words of the other faults."""

from __future__ import annotations

from typing import Any

import pytest

from config.load import check
from providers.profiles import BY_NAME

EMPTY = "must not be empty: name at least one, or leave the key out"
FILES: list[tuple[dict[str, Any], list[str]]] = [
    ({"fallbacks": {"x": []}}, [f"fallbacks.x: {EMPTY}"]),
    ({"groups": {"g": []}}, [f"groups.g: {EMPTY}"]),
    ({"fallbacks": {"x": [""]}}, ["fallbacks.x[0]: must not be empty"]),
    (
        {"fallbacks": {"x": [1], "y": []}},
        ["fallbacks.x[0]: should be a valid string", f"fallbacks.y: {EMPTY}"],
    ),
    (
        {"groups": {"g": [{"model": "p/m", "weight": -1}]}},
        ["groups.g[0].weight: should be greater than 0"],
    ),
]


@pytest.mark.parametrize(("file", "told"), FILES)
def test_a_list_without_an_entry(file: dict[str, Any], told: list[str]) -> None:
    provider = {"name": "p", "kind": "openai", "base_url": "http://127.0.0.1:9/v1"}
    problems, config = check({"providers": [provider], **file}, {}, BY_NAME)
    assert config is None
    assert sorted(map(str, problems)) == told
