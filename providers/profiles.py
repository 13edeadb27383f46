"""Which built-in row a model gets, and the profile that results: pure, cached, never waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from typing import Any, get_args

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
_SURFACES: tuple[Surface, ...] = get_args(Surface)
BY_NAME: Mapping[str, Row] = {row.name: row for row in (_BASE_ROW, *ROWS)}


def choose(kind: str, host: str, model: str) -> Row:
    """The row for a model: by kind whatever the host, else by host, else base."""
    return next(row for row in _choices(kind, host) if not row.models or matches_any(model, row.models))


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


def reachable(
    kind: str, host: str, profile: str | None, overrides: Mapping[str, Any]
) -> Iterator[tuple[Surface, Profile]]:
    """Every profile that a model of an account can get, whatever its name; `profile` as for `resolve`.

    Each row that its kind and host can choose, with none and with each of the rows of models that apply
    under it, on every surface.
    """
    given = orjson.dumps(dict(overrides))
    for row in [BY_NAME[profile]] if profile is not None else _choices(kind, host):
        under = row.like or row.name
        for models in ((), *((each.name,) for each in MODELS if under in each.rows)):
            yield from ((surface, _merged(row.name, models, surface, given)) for surface in _SURFACES)


def _choices(kind: str, host: str) -> Iterator[Row]:
    """Rows for a kind and host, those of the kind first, up to one that is for every model."""
    by_kind = (row for row in ROWS if kind in row.kinds)
    by_host = (row for row in ROWS if matches_any(host, row.hosts))
    for row in (*by_kind, *by_host):
        yield row
        if not row.models or "*" in row.models:
            return
    yield _BASE_ROW


def matches_any(name: str, globs: Iterable[str]) -> bool:
    """Whether a host or model name matches one of `globs`; case does not count."""
    lowered = name.lower()
    return any(fnmatchcase(lowered, glob.lower()) for glob in globs)


@cache
def adapter() -> TypeAdapter[Profile]:
    """Checks layers against the profile's types; built on first use (a few ms)."""
    return TypeAdapter(Profile)


def explain(
    *,
    kind: str,
    host: str,
    model: str,
    surface: Surface,
    profile: str | None = None,
    above: Sequence[tuple[str, Mapping[str, Any]]] = (),
) -> dict[str, tuple[Any, str]]:
    """Every key of a profile (`request.drop`, ...): its value and the layer that set it.

    `above` are named layers over those of `resolve`, which gets them merged as its overrides.
    """
    row = BY_NAME[profile] if profile is not None else choose(kind, host, model)
    models = tuple(each.name for each in model_rows(row.like or row.name, model))
    layers = [*_layers(row.name, models, surface), *above]
    setters = {key: name for name, layer in layers for key, _ in _leaves(layer)}
    over = merge(*(layer for _, layer in above))
    found = resolve(kind=kind, host=host, model=model, surface=surface, profile=profile, overrides=over)
    values = adapter().dump_python(found, mode="json")
    values.pop("name")
    return {key: (value, _setter(key, setters)) for key, value in _leaves(values)}


def _setter(key: str, setters: Mapping[str, str]) -> str:
    """Tables that are data as a whole (`request.rename`) are set by their entries, or were before."""
    own = setters.get(key) or next(
        (name for each, name in setters.items() if each.startswith(f"{key}.")), None
    )
    return own or next((name for each, name in setters.items() if key.startswith(f"{each}.")), "default")


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _layers(
    row_name: str, models: tuple[str, ...], surface: Surface
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The layers under a configuration's, lowest first, by the names that people are told."""
    row = BY_NAME[row_name]
    yield "base", BASE
    yield f"wire {surface}", WIRES.get(surface, {})
    yield f"row {row.name}", row.layer
    yield f"row {row.name} on {surface}", row.surfaces.get(surface, {})
    for each in (_MODEL_ROWS[name] for name in models):
        yield f"models {each.name}", each.layer
        yield f"models {each.name} on {surface}", each.surfaces.get(surface, {})
        if each.drop:
            yield f"models {each.name}", {"request": {"drop": _Added(each.drop)}}


class _Added(tuple[str, ...]):
    """Entries that come to a list rather than replace it."""


def _merged(row_name: str, models: tuple[str, ...], surface: Surface, overrides: bytes) -> Profile:
    layer: dict[str, Any] = {}
    for _, each in _layers(row_name, models, surface):
        added = each.get("request", {}).get("drop")
        if isinstance(added, _Added):
            request = layer["request"]
            request["drop"] = list(dict.fromkeys((*request.get("drop", ()), *added)))
        else:
            layer = merge(layer, each)
    return adapter().validate_python({**merge(layer, orjson.loads(overrides)), "name": row_name})


_build = lru_cache(maxsize=1024)(_merged)
