"""A tool's parameters as Ollama can hold them.

    parameters   type, properties, required, $defs, items
    property     type, description, enum, properties, required, anyOf, items

S ollama api/types.go: the schema is read into typed structs, so every other keyword is lost without a word,
a `$ref` of a property too, and a `type` that is neither a text nor a list of texts is a 400. `items` is
kept whole. What other keywords can say in these words is said so; the rest is named.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..errors import bad_request
from ..ir import Json
from ..schema import inline_refs, merge_union, object_schema

_TOP = frozenset({"type", "properties", "required", "items"})
_PROPERTY = frozenset({"type", "description", "enum", "properties", "required", "anyOf", "items"})
_NOTES = frozenset(
    {"$schema", "$id", "$comment", "title", "description", "examples", "deprecated", "readOnly"}
)
"""Keywords that allow and forbid nothing: they are left out without being told."""


def fit_schema(parameters: Any) -> tuple[Json, list[str]]:
    """`parameters` in Ollama's words, and the keywords that have none there, sorted.

    Raises 400 (`ProxyError`, no `param`) for references that lead nowhere and schemas too deep or too large.
    """
    lost: set[str] = set()
    try:
        schema = inline_refs(object_schema(parameters))
        union = {"anyOf", "oneOf", "allOf"} & schema.keys()
        if union:
            lost |= union
            schema = merge_union(schema)
        fitted = _fitted(schema, _TOP, lost)
    except RecursionError:  # the nesting is the client's, and legal JSON goes deeper than our stack
        raise bad_request("This tool's parameters are nested too deeply.") from None
    fitted.setdefault("type", "object")
    fitted.setdefault("properties", {})
    return fitted, sorted(lost)


def _fitted(schema: Json, known: Collection[str], lost: set[str]) -> Json:
    said = _said_otherwise(schema)
    out = {key: value for key, value in said.items() if key in known}
    lost.update(said.keys() - known - _NOTES)
    if "type" in out and not _is_type(out["type"]):
        del out["type"]
        lost.add("type")
    if "properties" in out:
        properties = out["properties"] if isinstance(out["properties"], Mapping) else {}
        out["properties"] = {name: _property(inner, lost) for name, inner in properties.items()}
    if isinstance(out.get("anyOf"), list):
        out["anyOf"] = [_property(inner, lost) for inner in out["anyOf"]]
    return out


def _property(schema: Any, lost: set[str]) -> Json:
    return _fitted(schema, _PROPERTY, lost) if isinstance(schema, dict) else {}


def _said_otherwise(schema: Json) -> Json:
    """`const` as an `enum` of one, `oneOf` as `anyOf`, `nullable` as a type, an `allOf` of one as itself."""
    out = dict(schema)
    if "const" in out:
        out["enum"] = [out.pop("const")]
    alone = out.get("allOf")
    if isinstance(alone, list) and len(alone) == 1 and isinstance(alone[0], dict):
        del out["allOf"]
        out = {**_said_otherwise(alone[0]), **out}
    if "oneOf" in out and "anyOf" not in out:
        out["anyOf"] = out.pop("oneOf")
    if out.pop("nullable", None) is True and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
    return out


def _is_type(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(each, str) for each in value)
    )
