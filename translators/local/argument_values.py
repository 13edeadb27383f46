"""Arguments of calls that are not written as JSON, as JSON text.

The text of a number, a list or an object is kept as the model wrote it: no digit is lost.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from ..ir import Json
from ..lenient import json_in, read_json

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_GEMMA_TOKEN = re.compile(r'(<\|"\|>|<escape>)(.*?)\1|([{}\[\]:,])|([^{}\[\]:,<]+)', re.DOTALL)
_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
_SCHEMA_LEVELS = 8
"""Levels of anyOf and its like that are looked into; a client may nest them a thousand deep."""


class Offer:
    """The tools of a request, in Chat's shape or flat as in Responses."""

    def __init__(self, tools: Sequence[Json]) -> None:
        self._schemas: dict[str, Any] = {}
        for tool in tools:
            inner = tool.get("function")
            table = inner if isinstance(inner, dict) else tool
            if isinstance(name := table.get("name"), str):
                self._schemas[name] = table.get("parameters")

    def __contains__(self, name: str) -> bool:
        return name in self._schemas

    def schema(self, name: str, key: str) -> Any:
        """The schema of one argument; None where there is none."""
        parameters = self._schemas.get(name)
        properties = parameters.get("properties") if isinstance(parameters, dict) else None
        return properties.get(key) if isinstance(properties, dict) else None


def object_of(pairs: Iterable[tuple[str, str]]) -> str:
    """A JSON object of names and JSON texts."""
    return "{" + ",".join(f"{quoted(key)}:{value}" for key, value in dict(pairs).items()) + "}"


def quoted(text: str) -> str:
    """A JSON string; half a surrogate pair becomes a question mark."""
    return orjson.dumps(text.encode("utf-8", "replace").decode()).decode()


def object_text(text: str) -> str | None:
    """`text` if it is a JSON object, mended if need be (a raw line feed in a string); else None."""
    if isinstance(json_in(text), dict):
        return text
    value, _ = read_json(text.encode("utf-8", "replace"))
    return orjson.dumps(value).decode() if isinstance(value, dict) else None


def coerced(raw: str, schema: Any) -> str:
    """The JSON text of a value written bare, by the types its schema allows.

    Without a schema what reads as JSON is JSON, everything else a string.
    """
    kinds, bare = _kinds(schema, _SCHEMA_LEVELS), raw.strip()
    if kinds != {"string"}:
        for kind, text in _readings(bare):
            if not kinds or kind in kinds or (kind == "number" and "integer" in kinds):
                return text
    return quoted(raw)


def _readings(bare: str) -> Iterable[tuple[str, str]]:
    if bare in ("null", "None"):
        yield "null", "null"
    if bare in ("true", "false", "True", "False"):
        yield "boolean", bare.lower()
    if _NUMBER.fullmatch(bare) and json_in(bare) is not None:
        yield "number", bare
    if bare[:1] in ("[", "{"):
        text = bare if json_in(bare) is not None else literal_text(bare)
        if text is not None:
            yield ("array" if bare[0] == "[" else "object"), text


def literal_text(source: str) -> str | None:
    """The JSON text of a Python literal; None if it is none, or nothing that JSON has."""
    try:
        return json_of(ast.literal_eval(source))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def json_of(value: Any) -> str:
    """Compact JSON; TypeError for what JSON has not."""
    return orjson.dumps(value).decode()


def gemma_object(text: str) -> str | None:
    """The JSON text of Gemma's `{key:<|"|>text<|"|>,n:1}`; None if it is none."""
    out: list[str] = []
    matches = list(_GEMMA_TOKEN.finditer(text))
    for match, following in zip(matches, [*matches[1:], None], strict=True):
        if match[1]:
            out.append(quoted(match[2]))
        elif match[3]:
            out.append(match[3])
        elif bare := match[4].strip():
            out.append(quoted(bare) if following and following[3] == ":" else coerced(bare, None))
    joined = "".join(out)
    whole = sum(len(match[0]) for match in matches) == len(text)
    return joined if whole and isinstance(json_in(joined), dict) else None


def _kinds(schema: Any, levels: int) -> set[str]:
    """The JSON types a schema allows; none if it does not say."""
    if not isinstance(schema, dict) or not levels:
        return set()
    told = schema.get("type")
    kinds = {kind for kind in (told if isinstance(told, list) else [told]) if isinstance(kind, str)}
    for key in ("anyOf", "oneOf", "allOf"):
        options = schema.get(key)
        for option in options if isinstance(options, list) else ():
            kinds |= _kinds(option, levels - 1)
    values = schema.get("enum")
    if not kinds and isinstance(values, list):
        kinds = {_KINDS.get(type(value), "null") for value in values}
    return kinds
