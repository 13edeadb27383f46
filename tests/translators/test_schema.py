from __future__ import annotations

import copy
from typing import Any

import pytest

from translators.errors import ProxyError
from translators.profile import SchemaRules
from translators.schema import drop_keywords, edit_schema, has_union, inline_refs, merge_union, object_schema

EMPTY = {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, EMPTY),
        ("string", EMPTY),
        ([], EMPTY),
        ({}, EMPTY),
        ({"type": "object"}, EMPTY),
        ({"type": "string"}, EMPTY),
        ({"type": ["object", "null"], "properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        (
            {"type": "object", "additionalProperties": False},
            {**EMPTY, "additionalProperties": False},
        ),
        ({"anyOf": [{"type": "object"}]}, {"anyOf": [{"type": "object"}], "type": "object"}),
        ({"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A", "type": "object"}),
    ],
)
def test_parameters_become_an_object_schema(given: Any, wanted: Any) -> None:
    assert object_schema(given) == wanted


def test_a_good_schema_comes_back_as_the_same_object() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": [{"type": "string"}]}, "b": {"enum": [1]}},
        "additionalProperties": False,
        "required": ["a"],
    }
    rules = SchemaRules(inline_refs=True, drop=("$id", "strict"), top_level_union="wrap")
    assert edit_schema(schema, rules) is schema


def test_without_require_object_odd_parameters_are_left_alone() -> None:
    rules = SchemaRules(require_object=False, inline_refs=True, drop=("x",))
    assert edit_schema(None, rules) is None
    assert edit_schema({"type": "string", "x": 1}, rules) == {"type": "string"}


# --- keywords --------------------------------------------------------------------------


def test_keywords_are_dropped_at_any_depth_but_names_are_not() -> None:
    schema = {
        "$schema": "s",
        "type": "object",
        "properties": {
            "strict": {"type": "object", "strict": True},  # a property that is called like the keyword
            "list": {"items": {"strict": True, "enum": ["strict"]}, "default": {"strict": 1}},
        },
        "$defs": {"strict": {"strict": False}},
        "anyOf": [{"strict": True, "type": "object"}, True],
        "additionalProperties": {"strict": True},
    }
    before = copy.deepcopy(schema)
    assert drop_keywords(schema, ("strict", "$schema")) == {
        "type": "object",
        "properties": {
            "strict": {"type": "object"},
            "list": {"items": {"enum": ["strict"]}, "default": {"strict": 1}},
        },
        "$defs": {"strict": {}},
        "anyOf": [{"type": "object"}, True],
        "additionalProperties": {},
    }
    assert schema == before


# --- references ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        pytest.param(
            {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}},
            {"properties": {"a": {"type": "string"}}},
            id="a definition",
        ),
        pytest.param(
            {
                "properties": {"a": {"$ref": "#/definitions/A", "description": "mine"}},
                "definitions": {"A": {"type": "string", "description": "its"}},
            },
            {"properties": {"a": {"type": "string", "description": "mine"}}},
            id="what stands beside the ref wins",
        ),
        pytest.param(
            {
                "items": {"$ref": "#/$defs/A"},
                "$defs": {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {"type": "null"}},
            },
            {"items": {"items": {"type": "null"}}},
            id="a definition that uses another",
        ),
        pytest.param(
            {
                "properties": {"n": {"$ref": "#/$defs/Node"}},
                "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
            },
            {"properties": {"n": {"type": "object", "properties": {"next": {}}}}},
            id="a definition that contains itself",
        ),
        pytest.param(
            {"type": "object", "properties": {"child": {"$ref": "#"}}, "$defs": {"A": {}}},
            {
                "type": "object",
                "properties": {"child": {"type": "object", "properties": {"child": {}}}},
            },
            id="the whole schema",
        ),
        pytest.param(
            {"properties": {"a/b~c": {"type": "string"}, "d": {"$ref": "#/properties/a~1b~0c"}}},
            {"properties": {"a/b~c": {"type": "string"}, "d": {"type": "string"}}},
            id="an escaped pointer",
        ),
        pytest.param(
            {"anyOf": [{"type": "string"}, {"type": "null"}], "not": {"$ref": "#/anyOf/1"}},
            {"anyOf": [{"type": "string"}, {"type": "null"}], "not": {"type": "null"}},
            id="into a list",
        ),
        pytest.param(
            {"items": {"$ref": "#/$defs/Any"}, "$defs": {"Any": True}},
            {"items": True},
            id="a boolean schema",
        ),
    ],
)
def test_references_are_written_out(schema: Any, wanted: Any) -> None:
    assert inline_refs(schema) == wanted
    assert inline_refs(wanted) is wanted


@pytest.mark.parametrize("ref", ["#/$defs/Gone", "#/anyOf/7", "#/anyOf/x", "#anchor", "https://x/y.json"])
def test_a_reference_that_leads_nowhere_is_refused(ref: str) -> None:
    with pytest.raises(ProxyError, match="leads nowhere"):
        inline_refs({"items": {"$ref": ref}, "anyOf": [{}]})


def test_references_that_unfold_without_end_are_refused() -> None:
    definitions: dict[str, Any] = {"a0": {"type": "string"}}
    for i in range(1, 40):
        once = {"$ref": f"#/$defs/a{i - 1}"}
        definitions[f"a{i}"] = {"anyOf": [once, once]}
    with pytest.raises(ProxyError, match="too large"):
        inline_refs({"items": {"$ref": "#/$defs/a39"}, "$defs": definitions})


def test_a_schema_deeper_than_the_stack_is_a_fault_of_the_request() -> None:
    schema: dict[str, Any] = {"x": 1}
    for _ in range(3000):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(ProxyError, match="nested too deeply") as caught:
        edit_schema(schema, SchemaRules(drop=("x",)))
    assert caught.value.http_status == 400


# --- unions ----------------------------------------------------------------------------

A = {"type": "object", "properties": {"a": {"type": "string"}, "k": {"const": 1}}, "required": ["a", "k"]}
B = {"type": "object", "properties": {"b": {"type": "string"}, "k": {"const": 2}}, "required": ["b", "k"]}


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        pytest.param(
            {"anyOf": [A, B], "description": "d"},
            {
                "description": "d",
                "type": "object",
                "properties": {
                    "a": {"type": "string"},
                    "k": {"anyOf": [{"const": 1}, {"const": 2}]},
                    "b": {"type": "string"},
                },
                "required": ["k"],
            },
            id="one of several: required is what all require",
        ),
        pytest.param(
            {"allOf": [A, B], "properties": {"own": {}}, "required": ["own"]},
            {
                "type": "object",
                "properties": {
                    "own": {},
                    "a": {"type": "string"},
                    "k": {"anyOf": [{"const": 1}, {"const": 2}]},
                    "b": {"type": "string"},
                },
                "required": ["own", "a", "k", "b"],
            },
            id="all of them: required is what any requires",
        ),
        pytest.param(
            {"oneOf": [{"required": ["x"]}, {"required": ["y"]}], "properties": {"x": {}, "y": {}}},
            {"type": "object", "properties": {"x": {}, "y": {}}},
            id="branches that only require",
        ),
        pytest.param(
            {"anyOf": [{"$ref": "#/$defs/A"}, {"oneOf": [A, A]}], "$defs": {"A": A}},
            {
                "$defs": {"A": A},
                "type": "object",
                "properties": {"a": {"type": "string"}, "k": {"const": 1}},
                "required": ["a", "k"],
            },
            id="refs and unions inside",
        ),
        pytest.param(
            {"anyOf": [{"$ref": "#"}, A]},
            {"type": "object", "properties": {"a": {"type": "string"}, "k": {"const": 1}}},
            id="a union that contains itself",
        ),
        pytest.param(
            {
                "anyOf": [
                    {"properties": {"k": {"anyOf": [1, 2]}}},
                    {"properties": {"k": 3}},
                    {"properties": {"k": 2}},
                ]
            },
            {"type": "object", "properties": {"k": {"anyOf": [1, 2, 3]}}},
            id="alternatives are not nested or repeated",
        ),
        pytest.param(
            {"anyOf": "odd", "oneOf": [True, {"properties": [], "required": {}}], "required": [1, "x"]},
            {"type": "object", "properties": {}},
            id="nonsense is passed over",
        ),
    ],
)
def test_a_union_becomes_one_object(schema: Any, wanted: Any) -> None:
    before = copy.deepcopy(schema)
    assert has_union(schema)
    assert merge_union(schema) == wanted
    assert not has_union(wanted)
    assert schema == before


def test_a_union_at_the_top_is_kept_merged_or_refused() -> None:
    schema = {"type": "object", "anyOf": [A]}
    assert edit_schema(schema, SchemaRules()) is schema
    assert edit_schema(schema, SchemaRules(top_level_union="wrap")) == A
    with pytest.raises(ProxyError, match="anyOf"):
        edit_schema(schema, SchemaRules(top_level_union="reject"))
    inner = {"type": "object", "properties": {"x": {"anyOf": [{}]}}}
    assert edit_schema(inner, SchemaRules(top_level_union="reject")) is inner
    assert not has_union(True)
