"""JSON Schemas as the engine's grammar compiler (llguidance) takes them.

What it takes was found by trying keyword by keyword on onnxruntime-genai 0.18. It refuses a
schema for the keywords below and ignores ones that nobody knows. Asked for exactly (`strict`),
a schema that cannot be kept is a 400; else what cannot be kept is left out.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from translators.errors import bad_request
from translators.ir import Json
from translators.schema import object_schema, rebuilt

_UNTAKEN = frozenset(
    {
        *("uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems", "not", "if", "then"),
        *("else", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies"),
        *("unevaluatedProperties", "$dynamicRef"),
    }
)
"""Keywords it answers with "Unimplemented keys"."""
_FORMATS = frozenset(
    {"date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "unknown"}
)
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_UNTAKEN_PATTERN = re.compile(r"\(\?<?[=!]|(?<!\\)(?:\\\\)*\\[1-9]")
"""Look-around and backreferences: its patterns are automata."""
_LAYOUT: Json = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""JSON as Python writes it. With free white space a small model writes line feeds to its limit."""


def grammar_schema(schema: Any, *, strict: bool, param: str) -> Json:
    """The schema, checked or relaxed, with how its JSON is written.

    Raises 400 at `param` naming the keyword.
    """
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
    if not isinstance(schema, dict):
        raise bad_request("A JSON Schema must be an object.", param)
    try:
        edited = _edited(schema, strict, param)
        orjson.dumps(edited)  # has a limit of its own, which a grammar's text must not meet
    except (RecursionError, orjson.JSONEncodeError):
        raise bad_request("This JSON Schema is nested too deeply.", param) from None
    return {**edited, "x-guidance": {**_LAYOUT, **({} if strict else {"coerce_one_of": True})}}


def parameters_schema(tool: Json, param: str) -> Json:
    """The arguments of a Chat Completions tool, an object.

    No further properties where the schema leaves that open: a small model would write some.
    """
    function = tool["function"]
    parameters = object_schema(function.get("parameters"))
    schema = grammar_schema(
        parameters, strict=bool(function.get("strict")), param=f"{param}.function.parameters"
    )
    plain = not any(key in schema for key in ("anyOf", "oneOf", "allOf", "$ref", "patternProperties"))
    return {**({"additionalProperties": False} if plain else {}), **schema}


def _edited(schema: Any, strict: bool, param: str) -> Any:
    inside = rebuilt(schema, lambda each: _edited(each, strict, param))
    if not isinstance(inside, dict):
        return inside
    problems = {key: why for key, value in inside.items() if (why := _problem(key, value))}
    for key, why in problems.items():
        if key == "$ref" or (strict and why != _IDLE):
            raise bad_request(f"The local engine's grammars do not take {why}: leave it out.", param)
    return _finite({key: value for key, value in inside.items() if key not in problems})


def _finite(schema: Json) -> Json:
    """Numbers that end: nothing else keeps a small model from writing digits up to its limit."""
    told = schema.get("type")
    types = told if isinstance(told, list) else [told]
    if "integer" not in types and "number" not in types:
        return schema
    bounds: Json = {}
    if "minimum" not in schema and "exclusiveMinimum" not in schema:
        bounds["minimum"] = min(-_EXACT, _bound(schema, "maximum"), _bound(schema, "exclusiveMaximum"))
    if "maximum" not in schema and "exclusiveMaximum" not in schema:
        bounds["maximum"] = max(_EXACT, _bound(schema, "minimum"), _bound(schema, "exclusiveMinimum"))
    if "number" in types:
        bounds["multipleOf"] = schema.get("multipleOf", _SMALLEST)
    return {**schema, **bounds}


def _bound(schema: Json, key: str) -> float:
    """What is no number is the compiler's to refuse."""
    value = schema.get(key)
    return value if isinstance(value, int | float) else 0


_EXACT = 2**53 - 1
"""Integers up to here are the same in every JSON reader."""
_SMALLEST = 1e-9
"""The finest step that the compiler takes; it leaves a number's fraction and exponent no other end."""
_IDLE = "a keyword without effect"


def _problem(key: str, value: Any) -> str | None:
    """Why a keyword cannot be kept; `_IDLE` for one that asks nothing; None when it can."""
    if key in _UNTAKEN:
        return _IDLE if key == "uniqueItems" and value is False else f"'{key}'"
    if key == "format" and value not in _FORMATS:
        return f"the format '{value}'"
    if key == "type" and not _known_types(value):
        return f"the type '{value}'"
    if key == "pattern" and isinstance(value, str) and _UNTAKEN_PATTERN.search(value):
        return "a 'pattern' with look-around or backreferences"
    if key == "$ref" and not (isinstance(value, str) and value.startswith("#")):
        return f"a '$ref' to '{value}', outside the schema"
    return None


def _known_types(value: Any) -> bool:
    held = value if isinstance(value, list) else [value]
    return all(isinstance(each, str) and each in _TYPES for each in held)
