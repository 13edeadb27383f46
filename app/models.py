"""`GET /v1/models`: one object that OpenAI clients and Codex both read.

`object` and `data` are OpenAI's list, `models` is Codex's catalogue: a slug for every id that
resolves. Codex refuses the whole catalogue for one bad enum and takes at most 1 MiB, so the
entries are written by hand here, and kept short.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from providers.catalog import Catalog, Entry
from translators.ir import Json
from translators.timestamps import whole_seconds

CREATED = 1735689600
"""OpenAI's `created` of a model whose backend tells none: a constant, so that the list is stable."""

CONTEXT_WINDOW = 128_000
"""Tokens Codex is told of a model whose window nobody knows: it compacts the conversation before
that. Too small costs a summary, too large costs the conversation."""

MAX_BODY_BYTES = (1 << 20) - 1
"""Codex reads no longer catalogue."""

INSTRUCTIONS = (
    "You are a coding agent working with the user in a terminal. Read files before you change them, "
    "make the smallest change that does the job, check it by running what the project offers, and "
    "say plainly what you did and what you could not do. Edit files with apply_patch."
)

_WINDOW_KEYS = ("context_window", "max_model_len", "context_length", "max_context_length", "n_ctx")
"""Names under which listings tell the window: ours, vLLM, OpenRouter, Together, llama.cpp."""

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Listing:
    """The rendered list and its ETag."""

    body: bytes
    etag: bytes


class ModelList:
    """Renders the catalogue; again only when its entries have changed."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._entries: Sequence[Entry] | None = None
        self._listing = Listing(b"", b"")

    def listing(self) -> Listing:
        entries = self._catalog.entries()
        if entries is not self._entries:  # the catalogue replaces its list, it never edits it
            body = _render(entries)
            self._listing = Listing(body, b'"%b"' % hashlib.sha256(body).hexdigest()[:32].encode())
            self._entries = entries
        return self._listing

    def model(self, name: str) -> tuple[bytes, str]:
        """One OpenAI model object, and the `provider/model` that it is.

        Raises `ProxyError` (404) for a name that does not resolve.
        """
        entry = self._catalog.entry(name) or Entry(name, self._catalog.resolve(name)[0])
        return orjson.dumps(_openai_model(entry)), entry.target.id


def _render(entries: Sequence[Entry]) -> bytes:
    data = [_openai_model(entry) for entry in entries]
    models = [_codex_model(entry, priority) for priority, entry in enumerate(entries, 1)]
    body = _dump(data, models)
    while len(body) > MAX_BODY_BYTES and models:
        # The list of names stays whole; the catalogue loses its last entries, which Codex
        # then serves with its fallback settings.
        models = models[: len(models) * MAX_BODY_BYTES // (len(body) + 1)]
        body = _dump(data, models)
    return body


def _dump(data: Sequence[Json], models: Sequence[Json]) -> bytes:
    return orjson.dumps({"object": "list", "data": data, "models": models})


def _openai_model(entry: Entry) -> Json:
    return {
        "id": entry.id,
        "object": "model",
        "created": whole_seconds(entry.facts.get("created")) or CREATED,
        "owned_by": entry.target.provider.name,
    }


def _codex_model(entry: Entry, priority: int) -> Json:
    """An entry of Codex's catalogue (fields and enums as Codex CLI 0.171 parses them)."""
    efforts = _efforts(entry)
    model: dict[str, Any] = {
        "slug": entry.id,
        "display_name": entry.id,
        "supported_reasoning_levels": [{"effort": effort, "description": effort} for effort in efforts],
        "shell_type": "unified_exec",
        "visibility": "list",
        "supported_in_api": True,
        "priority": priority,
        "support_verbosity": False,
        "truncation_policy": {"mode": "tokens", "limit": 10_000},
        "experimental_supported_tools": [],
        "base_instructions": INSTRUCTIONS,
        "apply_patch_tool_type": "freeform",
        "context_window": _window(entry),
    }
    if efforts:
        model["default_reasoning_level"] = "medium" if "medium" in efforts else efforts[len(efforts) // 2]
    return model


def _efforts(entry: Entry) -> list[str]:
    """The levels the model's profile takes and Codex knows."""
    target = entry.target
    surface = next(iter(target.provider.surfaces(target.model, "responses")), None)
    if surface is None:
        return []
    rules = target.provider.profile(target.model, surface).reasoning
    return [effort for effort in _EFFORTS if effort in rules.efforts and rules.ask != "none"]


def _window(entry: Entry) -> int:
    for key in _WINDOW_KEYS:
        value = entry.facts.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return CONTEXT_WINDOW
