"""The checks of the bug cases fail when they should: path, operator and value, one by one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.checks import failures

VALUE = {
    "name": "Ada",
    "count": 3,
    "flag": True,
    "twins": ["t", "t"],
    "list": [{"id": "a", "n": 1}, {"id": "b"}],
    "empty": "",
    "nothing": None,
}
HOLDS: list[list[Any]] = [
    ["name", "is", "Ada"],
    ["list.0", "is", {"id": "a", "n": 1}],
    ["list.*.id", "is", ["a", "b"]],
    ["list.?.n", "is", [1]],
    ["list.-1.id", "is", "b"],
    ["list.0", "has", {"id": "a"}],
    ["count", "in", [2, 3]],
    ["missing.deeper", "absent"],
    ["list.?.x", "absent"],
    ["list.7", "absent"],
    ["empty", "blank"],
    ["nothing", "blank"],
    ["name", "present"],
    ["name", "matches", "A.a"],
    ["list.*.id", "each", "[ab]"],
    ["", "contains", "Ada"],
    ["", "lacks", "Bob"],
    ["list", "counts", ["id", 2]],
    ["count", "at least", 3],
    ["count", "at most", 3],
    ["list", "length", 2],
    ["list.0", "within", ["id", "n", "m"]],
    ["list.*.id", "distinct", 2],
    ["twins", "same"],
]
FAILS: list[list[Any]] = [
    ["name", "is", "ada"],
    ["flag", "is", 1],
    ["list.0", "is", {"id": "a"}],
    ["list.*.id", "is", ["a"]],
    ["missing", "is", None],
    ["list.0", "has", {"id": "b"}],
    ["list", "has", [{"id": "a"}]],
    ["count", "in", [1, 2]],
    ["name", "absent"],
    ["name", "blank"],
    ["empty", "present"],
    ["name", "matches", "A"],
    ["count", "matches", "3"],
    ["list.?.x", "each", ".*"],
    ["list.*.id", "each", "a"],
    ["name", "contains", "x"],
    ["name", "lacks", "A"],
    ["list", "counts", ["id", 1]],
    ["count", "at least", 4],
    ["flag", "at least", 0],
    ["count", "at most", 2],
    ["list", "length", 1],
    ["list.0", "within", ["id"]],
    ["list.*.id", "distinct", 1],
    ["list.*.id", "same"],
    ["list.?.x", "same"],
    ["twins.0", "same"],
]


@pytest.mark.parametrize("check", HOLDS, ids=str)
def test_holds(check: list[Any]) -> None:
    assert not failures([check], VALUE)


@pytest.mark.parametrize("check", FAILS, ids=str)
def test_fails(check: list[Any]) -> None:
    assert failures([check], VALUE)
