"""Values written bare: what a tool's schema makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from translators.local.argument_values import Offer, coerced

VALUES: list[tuple[str, Any, str]] = [
    ("1", {"type": "integer"}, "1"),
    ("1e20", {"type": ["integer", "null"]}, "1e20"),
    ("01", {"type": "number"}, '"01"'),
    ("1e999", {"type": "number"}, '"1e999"'),
    ("null", {"type": "string"}, '"null"'),
    ("None", {"anyOf": [{"type": "string"}, {"type": "null"}]}, "null"),
    ("True", {"type": "boolean"}, "true"),
    ("True", None, "true"),
    ("1", {"enum": ["1", "2"]}, '"1"'),
    ("1", {"enum": [1, None]}, "1"),
    ("[1, {'a': None}]", {"type": "array"}, '[1,{"a":null}]'),
    ("[1, 2]", {"type": "array"}, "[1, 2]"),
    ("{1, 2}", {"type": "object"}, '"{1, 2}"'),
    ("{oops", {}, '"{oops"'),
    ("[1]", {"type": "object"}, '"[1]"'),
    (" a ", {"type": 7, "anyOf": "no"}, '" a "'),
    ("\ud800", {"type": "string"}, '"?"'),
]


@pytest.mark.parametrize(("raw", "schema", "expected"), VALUES)
def test_bare_value_by_schema(raw: str, schema: Any, expected: str) -> None:
    assert coerced(raw, schema) == expected


def test_odd_schemas() -> None:
    deep: Any = {"type": "integer"}
    for _ in range(500):
        deep = {"anyOf": [deep]}
    assert coerced("1", deep) == "1"
    odd = [
        {"function": {"name": "a", "parameters": 1}},
        {"function": {"name": "b", "parameters": {"properties": 1}}},
        {},
    ]
    offer = Offer(odd)
    assert [offer.schema(name, "k") for name in "abc"] == [None, None, None]
