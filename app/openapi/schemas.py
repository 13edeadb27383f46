"""Small words for JSON Schemas, and the schema of a parameter by the rule that it is checked with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from translators.values import Rule

Schema = dict[str, Any]

_NAMES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def text(description: str = "", *examples: str) -> Schema:
    found: Schema = {"type": "string"}
    if description:
        found["description"] = description
    if examples:
        found["examples"] = list(examples)
    return found


def filled(description: str, *examples: str) -> Schema:
    """A string that says something."""
    return {**text(description, *examples), "minLength": 1}


def nullable(schema: Schema) -> Schema:
    kind = schema["type"]
    return {**schema, "type": [kind, "null"] if isinstance(kind, str) else [*kind, "null"]}


def whole(description: str = "") -> Schema:
    return {"type": "integer", **({"description": description} if description else {})}


def const(value: str) -> Schema:
    return {"type": "string", "const": value}


def either(*schemas: Schema, description: str = "") -> Schema:
    return {**({"description": description} if description else {}), "anyOf": list(schemas)}


def array(items: Schema, description: str = "", at_least: int = 0) -> Schema:
    found: Schema = {"type": "array", "items": items}
    if description:
        found["description"] = description
    if at_least:
        found["minItems"] = at_least
    return found


def an_object(properties: Mapping[str, Schema], *required: str, description: str = "") -> Schema:
    """Further members are allowed, as everywhere here: unknown ones pass, or are reported."""
    found: Schema = {"type": "object", "properties": dict(properties)}
    if description:
        found["description"] = description
    if required:
        found["required"] = list(required)
    return found


def by_rule(rule: Rule, empty: bool) -> Schema:
    """What `rule` allows; `empty`: also `""`, which is as good as absent. So is null, always."""
    kinds = {_NAMES[kind] for kind in rule.types}
    if "number" in kinds:
        kinds.discard("integer")
    found: Schema = {}
    if empty and "string" not in kinds:
        kinds.add("string")
        found["maxLength"] = 0
    found = {"type": [*sorted(kinds), "null"], **found, "description": f"{rule.words.capitalize()}."}
    if rule.entry is not None:
        found["items"] = {"type": _NAMES[rule.entry]}
    return found
