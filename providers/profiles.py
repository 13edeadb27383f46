"""Which built-in row a model gets, and the profile that results: pure, cached, never waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any

import orjson
from pydantic import TypeAdapter

from translators.profile import Profile, merge

from .base import Surface
from .rows import BASE, OPENAI, SELF_HOSTED, WIRES, Row
from .rows_databricks import DATABRICKS
from .rows_hosted import HOSTED
from .rows_models import MODELS, model_rows

ROWS: tuple[Row, ...] = (OPENAI, *DATABRICKS, *HOSTED, *SELF_HOSTED)
"""First match wins: among rows of one host, the one for all models comes last."""

_BASE_ROW = Row("base", layer={})
_MODEL_ROWS = {row.name: row for row in MODELS}
BY_NAME: Mapping[str, Row] = {row.name: row for row in (_BASE_ROW, *ROWS)}


def choose(kind: str, host: str, model: str) -> Row:
    """The row for a model: by kind whatever the host, else by host, else base."""
    by_kind = (row for row in ROWS if kind in row.kinds)
    by_host = (row for row in ROWS if matches_any(host, row.hosts))
    for row in (*by_kind, *by_host):
        if not row.models or matches_any(model, row.models):
            return row
    return _BASE_ROW


def resolve(
    *,
    kind: str,
    host: str,
    model: str,
    surface: Surface,
    profile: str | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Profile:
    """The quirks of `model` on `surface`: base < wire < row < row on this surface < model < overrides.

    `profile` names a row instead of choosing one (KeyError when there is none such).
    """
    row = BY_NAME[profile] if profile is not None else choose(kind, host, model)
    given = orjson.dumps(dict(overrides or {}), option=orjson.OPT_SORT_KEYS)
    return _build(
        row.name, tuple(each.name for each in model_rows(row.like or row.name, model)), surface, given
    )


def matches_any(name: str, globs: Iterable[str]) -> bool:
    """Whether a host or model name matches one of `globs`; case does not count."""
    lowered = name.lower()
    return any(fnmatchcase(lowered, glob.lower()) for glob in globs)


@cache
def adapter() -> TypeAdapter[Profile]:
    """Checks layers against the profile's types; built on first use (a few ms)."""
    return TypeAdapter(Profile)


@lru_cache(maxsize=1024)
def _build(row_name: str, models: tuple[str, ...], surface: Surface, overrides: bytes) -> Profile:
    row = BY_NAME[row_name]
    layer = merge(BASE, WIRES.get(surface, {}), row.layer, row.surfaces.get(surface, {}))
    for each in (_MODEL_ROWS[name] for name in models):
        layer = merge(layer, each.layer, each.surfaces.get(surface, {}))
        if each.drop:
            request = layer["request"]
            request["drop"] = list(dict.fromkeys((*request.get("drop", ()), *each.drop)))
    return adapter().validate_python({**merge(layer, orjson.loads(overrides)), "name": row.name})
