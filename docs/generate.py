"""Write the generated parts and files of the documentation, so that they cannot drift from the code.

    python -m docs.generate            rewrite the parts
    python -m docs.generate --check    exit 1 and name the pages that are not up to date

A part stands between `<!-- generated: NAME -->` and `<!-- /generated -->`; NAME is a key of PARTS.
"""

from __future__ import annotations

import ast
import dataclasses
import itertools
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import orjson
from pydantic import BaseModel, SecretStr

from app import openapi
from app.telemetry.metrics import METRICS, PREFIX
from config import schema
from providers import rows, rows_databricks, rows_hosted
from providers.profiles import ROWS
from providers.rows import BASE, WIRES, Row
from providers.rows_models import MODELS, ModelRow
from translators import profile
from translators.errors import CODE, STATUS, TYPE
from translators.ollama.encode import OPTION_OF
from translators.ollama_keys import OPTIONS
from translators.params import PARAMS, Param
from translators.profile import FREE_FORM, Profile

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/mapping.md", "docs/quirks.md", "docs/configuration.md", "docs/observability.md")
_PART = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- /generated -->)", re.DOTALL)


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    cells = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells)


def code(value: Any) -> str:
    if isinstance(value, SecretStr):  # a default is none
        value = value.get_secret_value()
    return f"`{value}`" if isinstance(value, str) else f"`{orjson.dumps(value).decode()}`"


# --- parameters ------------------------------------------------------------------------

_FATE = {
    "tuning": "left out, reported",
    "bookkeeping": "left out, reported",
    "feature": "400 naming it",
    "content": "400 naming it",
}


def params() -> str:
    head = [
        "neutral",
        "Chat Completions",
        "Responses",
        "where a backend has none",
        "says the same as absence",
    ]
    return table(head, map(_param, PARAMS))


def _param(param: Param) -> Sequence[str]:
    sides = [code(path) if path else "" for path in (param.chat, param.responses)]
    return [param.name, *sides, _FATE[param.kind], ", ".join(map(code, param.idle))]


def ollama_options() -> str:
    """What stands in `options` of Ollama's request, by the name that clients use."""
    named = [[code(key), code(option)] for key, option in OPTION_OF.items()]
    own = ", ".join(map(code, sorted(OPTIONS)))
    return table(["Chat Completions", "`options`"], [*named, ["by its own name", own]])


def errors() -> str:
    lines = [[kind, str(status), code(TYPE[kind]), code(CODE.get(kind))] for kind, status in STATUS.items()]
    return table(["kind", "status", "`type`", "`code` unless a backend told one"], lines)


# --- profiles --------------------------------------------------------------------------


def profiles() -> str:
    """One section a row: where it applies, what it sets, and the evidence in its comments."""
    evidence: dict[str, list[str]] = {}
    for source in (rows, rows_databricks, rows_hosted):
        evidence |= _evidence(source.__file__)
    layers = [_layer("base", "every backend", BASE, evidence.get("BASE", []))]
    layers += [
        _layer(f"wire: {name}", "spoken to in the Responses shape", layer, [])
        for name, layer in WIRES.items()
    ]
    rows_of_models = [_model_row(row) for row in MODELS]
    return "\n\n".join(layers + [_row(row, evidence) for row in ROWS] + rows_of_models)


def _model_row(row: ModelRow) -> str:
    globs = f"model {', '.join(map(code, row.models))}"
    but = f", not {', '.join(map(code, row.but))}" if row.but else ""
    applies = f"{globs}{but}; under {', '.join(row.rows)}"
    parts = [_layer(f"model: {row.name}", applies, row.layer, ())]
    parts += [f"On `{surface}`:\n\n{_settings(layer)}" for surface, layer in row.surfaces.items()]
    if row.drop:
        parts.append(f"Besides what `request.drop` holds: {', '.join(map(code, row.drop))}.")
    return "\n\n".join([*parts, f"- {row.evidence}"])


def _row(row: Row, evidence: Mapping[str, list[str]]) -> str:
    places = [("kind", row.kinds), ("host", row.hosts), ("model", row.models)]
    applies = "; ".join(f"{what} {', '.join(map(code, globs))}" for what, globs in places if globs)
    said = evidence.get(row.name.upper().replace("-", "_"), [])
    parts = [_layer(row.name, applies or "by name only", row.layer, said)]
    for surface, layer in row.surfaces.items():
        parts.append(f"On `{surface}`:\n\n{_settings(layer)}")
    return "\n\n".join(parts)


def _layer(name: str, applies: str, layer: Mapping[str, Any], evidence: Sequence[str]) -> str:
    parts = [f"### {name}", f"Applies to: {applies}.", _settings(layer)]
    if evidence:
        parts.append("\n".join(f"- {line}" for line in evidence))
    return "\n\n".join(part for part in parts if part)


def _settings(layer: Mapping[str, Any]) -> str:
    lines = [[code(key), code(value)] for key, value in _flat(layer)]
    return table(["key", "value"], lines) if lines else ""


def _flat(layer: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in layer.items():
        path = f"{above}{key}"
        if isinstance(value, Mapping) and path not in FREE_FORM:
            yield from _flat(value, f"{path}.")
        else:
            yield path, value


def _evidence(source: str | None) -> dict[str, list[str]]:
    """The comments inside (and right above) every top-level assignment of a file, by name."""
    path = Path(source or "")
    comments = _comments(path)
    found = {}
    for node in ast.parse(path.read_text()).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        for target in targets:
            first = node.lineno
            while first - 1 in comments:
                first -= 1
            end = node.end_lineno or node.lineno
            found[ast.unparse(target)] = _paragraphs(comments, range(first, end + 1))
    return found


def _comments(path: Path) -> dict[int, str]:
    with path.open("rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT]
    return {token.start[0]: token.string.lstrip("# ").strip() for token in tokens}


def _paragraphs(comments: Mapping[int, str], lines: Iterable[int]) -> list[str]:
    """Comments on neighbouring lines are one paragraph."""
    found: list[str] = []
    before = -1
    for line in lines:
        if line in comments:
            if line == before + 1 and found:
                found[-1] += f" {comments[line]}"
            else:
                found.append(comments[line])
            before = line
    return found


def profile_keys() -> str:
    """Every key that `[providers.overrides]` takes, with its values and default."""
    notes = _field_notes(profile.__file__)
    return table(["key", "values", "default", "note"], _keys(Profile(), "", notes))


def _keys(section: Any, above: str, notes: Mapping[str, str]) -> Iterator[Sequence[str]]:
    hints = get_type_hints(type(section))
    for field in dataclasses.fields(section):
        value, path = getattr(section, field.name), f"{above}{field.name}"
        if dataclasses.is_dataclass(value):
            yield from _keys(value, f"{path}.", notes)
        elif path != "name":
            default = code(dict(value) if isinstance(value, Mapping) else value)
            note = notes.get(f"{type(section).__name__}.{field.name}", "")
            yield [code(path), _allowed(hints[field.name]), default, note]


def configuration() -> str:
    """The keys of the configuration file, from the checked schema."""
    notes = _field_notes(schema.__file__)
    sections: Mapping[str, type[BaseModel]] = {
        "server.": schema.Server,
        "store.": schema.Store,
        "background.": schema.Background,
        "limits.": schema.RateLimits,
        "compaction.": schema.Compaction,
        "providers.": schema.ProviderConfig,
        "groups.NAME.": schema.Member,
        "telemetry.": schema.Telemetry,
        "prices.NAME.": schema.Price,
        "": schema.Config,  # what is no section has a note
    }
    return table(
        ["key", "default", "note"],
        [line for name, each in sections.items() for line in _section(each, name, notes)],
    )


def _section(model: type[BaseModel], above: str, notes: Mapping[str, str]) -> Iterator[Sequence[str]]:
    for key, field in model.model_fields.items():
        note = notes.get(f"{model.__name__}.{key}", "")
        if note:
            default = field.get_default(call_default_factory=True)
            yield [code(f"{above}{key}"), "required" if field.is_required() else code(default), note]


def _field_notes(source: str | None) -> dict[str, str]:
    """`Class.field` -> the docstring below the field, as one line."""
    found = {}
    classes = (
        node for node in ast.parse(Path(source or "").read_text()).body if isinstance(node, ast.ClassDef)
    )
    for owner in classes:
        for field, below in itertools.pairwise(owner.body):
            if not (isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr)):
                continue
            if isinstance(below.value, ast.Constant):
                text = str(below.value.value)
                found[f"{owner.name}.{ast.unparse(field.target)}"] = " ".join(text.split())
    return found


def _allowed(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return ", ".join(map(code, args))
    if origin in (tuple, list):
        return "list of texts" if args and args[0] is str else "list"
    if origin is not None and issubclass(origin if isinstance(origin, type) else object, Mapping):
        return "table"
    if args:
        return " or ".join(_allowed(arg) for arg in args if arg is not type(None)) + ", or absent"
    return {str: "text", int: "whole number", float: "number", bool: "`true`, `false`"}.get(hint, str(hint))


def metrics() -> str:
    """What `/metrics` tells."""
    total = {"counter": "_total"}
    lines = [
        [
            code(f"{PREFIX}{each.name}{total.get(each.kind, '')}"),
            each.kind,
            ", ".join(map(code, each.labels)),
            each.meaning,
        ]
        for each in METRICS
    ]
    return table(["name", "kind", "labels", "what"], lines)


# --- writing ---------------------------------------------------------------------------

PARTS: Mapping[str, Callable[[], str]] = {
    "params": params,
    "ollama-options": ollama_options,
    "errors": errors,
    "profiles": profiles,
    "profile-keys": profile_keys,
    "configuration": configuration,
    "metrics": metrics,
}


def rendered(text: str) -> str:
    """`text` with every generated part made anew; KeyError for a part nobody makes."""
    return _PART.sub(lambda found: f"{found[1]}{PARTS[found[2]]()}\n{found[3]}", text)


FILES: Mapping[str, Callable[[], bytes]] = {
    "docs/openapi.json": lambda: orjson.dumps(openapi.document(), option=orjson.OPT_INDENT_2) + b"\n"
}
"""Whole files that are made."""


def made() -> dict[str, bytes]:
    """Every page and file by name, as the code says it."""
    pages = {page: rendered((ROOT / page).read_text()).encode() for page in PAGES}
    return pages | {name: make() for name, make in FILES.items()}


def is_stale(name: str, content: bytes) -> bool:
    path = ROOT / name
    return not path.exists() or path.read_bytes() != content


def main() -> int:
    stale = {name: content for name, content in made().items() if is_stale(name, content)}
    if "--check" in sys.argv:
        for page in stale:
            print(f"{page} is not what the code says: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for page, content in stale.items():
        (ROOT / page).write_bytes(content)
        print(f"wrote {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
