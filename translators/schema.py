"""JSON Schema edits of tool parameters, for backends that take less than the whole language.

Every function gives a new schema and leaves its argument alone; one that needs no edit comes
back as the same object. Only keywords are looked at, never names of properties: a property
may well be called `strict` or `$ref`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from .errors import bad_request
from .ir import Json
from .profile import SchemaRules

_UNIONS = ("anyOf", "oneOf", "allOf")
_DEFINITIONS = ("$defs", "definitions")

_NAMED = frozenset({"properties", "patternProperties", "dependentSchemas", *_DEFINITIONS})
"""Keywords whose value maps free names to schemas."""
_NESTED = frozenset(
    {
        *("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "contentSchema"),
        *("additionalProperties", "unevaluatedProperties", "propertyNames", "not", "if", "then", "else"),
        *_UNIONS,
    }
)
"""Keywords whose value is a schema or a list of schemas."""

_MAX_NODES = 20_000
"""Schemas written out while refs are replaced. A few nested refs can stand for billions."""


def edit_schema(parameters: Any, rules: SchemaRules) -> Any:
    """A tool's parameters as `rules` want them.

    Raises 400 (`ProxyError`, no `param`) for a union at the top where the rules reject it, for
    a `$ref` that leads nowhere, and for schemas too deep or too large to be written out.
    """
    try:
        return _edited(parameters, rules)
    except RecursionError:  # the nesting is the client's, and legal JSON goes deeper than our stack
        raise bad_request("This tool's parameters are nested too deeply.") from None


def _edited(parameters: Any, rules: SchemaRules) -> Any:
    schema = object_schema(parameters) if rules.require_object else parameters
    if not isinstance(schema, dict):
        return schema
    if rules.inline_refs:
        schema = inline_refs(schema)
    if rules.top_level_union != "keep" and has_union(schema):
        if rules.top_level_union == "reject":
            raise bad_request(
                "This model takes no anyOf, oneOf or allOf at the top of a tool's parameters: "
                "make them one object."
            )
        schema = merge_union(schema)
    return drop_keywords(schema, rules.drop) if rules.drop else schema


def object_schema(parameters: Any) -> Json:
    """An object schema with `properties`.

    OpenAI refuses an object without `properties`, LM Studio anything that is no object.
    """
    if not isinstance(parameters, dict):
        return {"type": "object", "properties": {}}
    shaped = "properties" in parameters or has_union(parameters) or "$ref" in parameters
    if shaped and parameters.get("type") == "object":
        return parameters
    return {**parameters, "type": "object", **({} if shaped else {"properties": {}})}


def has_union(schema: Any) -> bool:
    """Whether the schema is a union of others at its top."""
    return isinstance(schema, dict) and any(key in schema for key in _UNIONS)


# --- walking ---------------------------------------------------------------------------


def _children(schema: Json) -> Iterator[Any]:
    """The schemas directly inside."""
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, dict):
            yield from value.values()
        elif key in _NESTED:
            yield from value if isinstance(value, list) else (value,)


def rebuilt(schema: Any, edit: Callable[[Any], Any]) -> Any:
    """`schema` with `edit` applied to the schemas directly inside; the same object if none changed."""
    if not isinstance(schema, dict):
        return schema
    out = {key: _inner(key, value, edit) for key, value in schema.items()}
    return schema if all(out[key] is schema[key] for key in out) else out


def _inner(key: str, value: Any, edit: Callable[[Any], Any]) -> Any:
    if key in _NAMED and isinstance(value, dict):
        named = {name: edit(inner) for name, inner in value.items()}
        return value if all(named[name] is value[name] for name in named) else named
    if key not in _NESTED:
        return value
    if isinstance(value, list):
        listed = [edit(inner) for inner in value]
        return value if all(a is b for a, b in zip(listed, value, strict=True)) else listed
    return edit(value)


def drop_keywords(schema: Any, names: Collection[str]) -> Any:
    """`schema` without these keywords at any depth."""
    edited = rebuilt(schema, lambda inner: drop_keywords(inner, names))
    if not isinstance(edited, dict) or not any(name in edited for name in names):
        return edited
    return {key: value for key, value in edited.items() if key not in names}


# --- references ------------------------------------------------------------------------


def inline_refs(schema: Json) -> Json:
    """Every `$ref` replaced by what it names, and the definitions removed.

    Keywords beside a `$ref` stay and win. Where a definition contains itself, the inner use
    becomes the empty schema: any value, which is the nearest a schema without refs can say.
    """
    return _Inliner(schema).run() if _has_ref(schema) else schema


def _has_ref(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    return isinstance(schema.get("$ref"), str) or any(_has_ref(inner) for inner in _children(schema))


class _Inliner:
    """One schema whose refs are being written out."""

    def __init__(self, root: Json) -> None:
        self._root = root
        self._left = _MAX_NODES

    def run(self) -> Json:
        done: Json = self._expand(_undefined(self._root), ())
        return done

    def _expand(self, schema: Any, within: tuple[str, ...]) -> Any:
        self._left -= 1
        if self._left < 0:
            raise bad_request("The references of this tool's parameters unfold into too large a schema.")
        ref = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(ref, str):
            return rebuilt(schema, lambda inner: self._expand(inner, within))
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        beside = rebuilt(beside, lambda inner: self._expand(inner, within))
        if ref in within:
            return beside
        target = self._expand(_target(self._root, ref), (*within, ref))
        return {**target, **beside} if isinstance(target, dict) else target


def _target(root: Json, ref: str) -> Any:
    """What a local reference names; raises 400 when it names nothing in this schema."""
    found: Any = root if ref == "#" or ref.startswith("#/") else None
    for step in ref.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            found = None
    if found is None:
        raise bad_request(f"The reference '{ref}' in this tool's parameters leads nowhere.")
    return _undefined(root) if found is root else found


def _undefined(schema: Json) -> Json:
    return {key: value for key, value in schema.items() if key not in _DEFINITIONS}


# --- unions at the top -----------------------------------------------------------------


def merge_union(schema: Json) -> Json:
    """One object in place of anyOf, oneOf or allOf at the top, for backends that refuse those.

    It has the properties of every branch. What all branches of anyOf and oneOf require stays
    required, and what any branch of allOf requires. Arguments that fit the union fit it too.
    """
    return _Merger(schema).merged(schema, ())


class _Merger:
    """One union being made an object; refs of its branches look at the whole schema."""

    def __init__(self, root: Json) -> None:
        self._root = root

    def merged(self, schema: Json, within: tuple[str, ...]) -> Json:
        properties = dict(_mapping(schema.get("properties")))
        required = _names(schema.get("required"))
        for union in _UNIONS:
            branches = [self._branch(branch, within) for branch in _listed(schema.get(union))]
            for branch in branches:
                _add_properties(properties, _mapping(branch.get("properties")))
            needs = [_names(branch.get("required")) for branch in branches]
            required += _all_of(needs) if union == "allOf" else _in_each(needs)
        kept = {key: value for key, value in schema.items() if key not in (*_UNIONS, "required")}
        wanted = list(dict.fromkeys(name for name in required if name in properties))
        needed = {"required": wanted} if wanted else {}
        return {**kept, "type": "object", "properties": properties, **needed}

    def _branch(self, branch: Any, within: tuple[str, ...]) -> Json:
        """A branch as one object: its ref followed, its own union merged."""
        ref = branch.get("$ref") if isinstance(branch, dict) else None
        if isinstance(ref, str):
            if ref in within:
                return {}
            branch, within = _target(self._root, ref), (*within, ref)
        return self.merged(branch, within) if has_union(branch) else _mapping(branch)


def _add_properties(known: Json, more: Json) -> None:
    for name, schema in more.items():
        alternatives = _alternatives(known[name]) if name in known else []
        if schema not in alternatives:
            known[name] = {"anyOf": [*alternatives, schema]} if alternatives else schema


def _alternatives(schema: Any) -> list[Any]:
    only_union = isinstance(schema, dict) and list(schema) == ["anyOf"]
    return _listed(schema["anyOf"]) if only_union else [schema]


def _in_each(needs: list[list[str]]) -> list[str]:
    return [name for name in needs[0] if all(name in need for need in needs)] if needs else []


def _all_of(needs: list[list[str]]) -> list[str]:
    return [name for need in needs for name in need]


# A client's schema is data of unknown shape: what is not of the form is passed over.


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _names(value: Any) -> list[str]:
    return [name for name in _listed(value) if isinstance(name, str)]
