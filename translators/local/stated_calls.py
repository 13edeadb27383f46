"""Calls that are written out as one value: JSON objects, Python calls."""

from __future__ import annotations

import ast
import re
from typing import Any

from ..lenient import json_in, read_json
from .argument_values import json_of
from .brackets import JSON, Brackets, BrokenMarkupError
from .pieces import Found

_KEY = re.compile(r'"(?:arguments|parameters)"\s*:\s*(?=\{)')
_LONG_NUMBER = re.compile(r"\d{16}")


def stated_calls(text: str) -> tuple[Found, ...]:
    """The calls of a JSON object, or of a list of them, under the names that models use."""
    value, _ = read_json(text.encode("utf-8", "replace"))
    found = tuple(_stated(entry) for entry in (value if isinstance(value, list) else [value]))
    return tuple(_exact(call, text) for call in found) if _LONG_NUMBER.search(text) else found


def known_calls(text: str) -> tuple[Found, ...]:
    """The calls of a JSON text that no marker says to be one: they have arguments, if empty ones."""
    value = json_in(text)
    if not isinstance(value, dict) or not value.keys() & {"arguments", "parameters", "function"}:
        raise BrokenMarkupError
    return stated_calls(text)


def _stated(entry: Any) -> Found:
    inner = entry.get("function") if isinstance(entry, dict) else None
    table = inner if isinstance(inner, dict) else entry
    if not isinstance(table, dict) or not isinstance(name := table.get("name"), str) or not name:
        raise BrokenMarkupError
    arguments = table.get("arguments", table.get("parameters"))
    if isinstance(arguments, str):  # encoded twice
        arguments = json_in(arguments)
    elif arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        raise BrokenMarkupError
    told = entry.get("id")
    return Found(name, json_of(arguments), told if isinstance(told, str) else None)


def _exact(call: Found, text: str) -> Found:
    """The arguments as the model wrote them: an integer of over 64 bits has become a float."""
    for match in _KEY.finditer(text):
        raw = text[match.end() : Brackets(JSON, match.end()).end(text)]
        if json_of(json_in(raw)) == call.arguments:
            return call._replace(arguments=raw)
    return call


def python_calls(text: str) -> tuple[Found, ...]:
    """The calls of `[f(a=1), g()]`: literals only, nothing is evaluated."""
    tree = _parsed(text)
    statement = tree.body[0] if len(tree.body) == 1 else None
    listed = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(listed, ast.List) or not listed.elts:
        raise BrokenMarkupError
    return tuple(_python_call(node) for node in listed.elts)


def python_lines(text: str) -> tuple[Found, ...]:
    """The calls of a text with one a line."""
    tree = _parsed(text.strip())
    if not tree.body:
        raise BrokenMarkupError
    return tuple(_python_call(getattr(node, "value", None)) for node in tree.body)


def _parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise BrokenMarkupError from None


def _python_call(node: ast.AST | None) -> Found:
    if not isinstance(node, ast.Call) or node.args or any(word.arg is None for word in node.keywords):
        raise BrokenMarkupError
    try:
        values = {str(word.arg): ast.literal_eval(_Literals().visit(word.value)) for word in node.keywords}
        return Found(ast.unparse(node.func), json_of(values))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise BrokenMarkupError from None


_CONSTANTS = {"true": True, "false": False, "null": None}


class _Literals(ast.NodeTransformer):
    """JSON's names for constants, which models write into Python."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_CONSTANTS[node.id]) if node.id in _CONSTANTS else node
