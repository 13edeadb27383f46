"""Who may import whom: app -> providers -> translators; config is read by app and the registry."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("app", "config", "providers", "translators")
ALLOWED = {
    "app": {"app", "config", "providers", "translators"},
    "config": {"config", "providers", "translators"},
    "providers": {"providers", "translators"},
    "translators": {"translators"},
}
# The one place below app that builds providers from configuration, and so knows its schema.
READS_CONFIG = {"providers/registry.py"}
PURE = {"orjson"}
"""All that translators may import from outside the standard library."""
WITHOUT_IO = {
    "__future__",
    "abc",
    "ast",
    "base64",
    "binascii",
    "bisect",
    "collections",
    "contextlib",
    "copy",
    "dataclasses",
    "email",
    "enum",
    "fnmatch",
    "functools",
    "hashlib",
    "heapq",
    "hmac",
    "html",
    "itertools",
    "json",
    "math",
    "operator",
    "re",
    "string",
    "struct",
    "types",
    "typing",
    "zlib",
}
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Top-level names of every module a file imports, wherever in the file it does so."""
    home = path.relative_to(ROOT).parts[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield home if node.level else (node.module or "").split(".")[0]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_its_layer_may(path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    allowed = ALLOWED[name.split("/")[0]] | ({"config"} if name in READS_CONFIG else set())
    ours = {module for module in imports(path) if module in PACKAGES}
    assert ours <= allowed


@pytest.mark.parametrize("path", sorted((ROOT / "translators").rglob("*.py")), ids=lambda path: path.stem)
def test_translators_are_sans_io(path: Path) -> None:
    assert set(imports(path)) <= {"translators"} | PURE | WITHOUT_IO


def test_relative_imports_stay_inside_their_package() -> None:
    """`from ..x` may climb to the package, never out of it."""
    for path in SOURCES:
        depth = len(path.relative_to(ROOT).parts) - 1
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.level <= depth, path
