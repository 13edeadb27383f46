"""`GET /v1/models`: one object that OpenAI clients and Codex both read.

`object` and `data` are OpenAI's list, `models` is Codex's catalogue: a slug for every id that
resolves. Codex refuses the whole catalogue for one bad enum and takes at most 1 MiB, so the
entries are written by hand here, and kept short.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from providers.catalog import Catalog
from providers.directory import Entry
from translators.ir import Json
from translators.profile import Profile, ReasoningRules
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

_BOTH = ["text", "image"]
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
        self._rendering = asyncio.Lock()

    async def listing(self) -> Listing:
        """Rendered in a thread: thousands of entries would keep every stream of the process waiting."""
        entries = self._catalog.entries()
        if entries is self._entries:  # the catalogue replaces its list, it never edits it
            return self._listing
        async with self._rendering:  # once for all who wait
            if entries is not self._entries:
                self._listing = await asyncio.to_thread(render, entries)
                self._entries = entries
            return self._listing

    def model(self, name: str) -> tuple[bytes, str]:
        """One OpenAI model object, and the `provider/model` that it is.

        Raises `ProxyError` (404) for a name that does not resolve.
        """
        return written(self._catalog.entry(name) or Entry(name, self._catalog.find(name).choices[0].target))


def written(entry: Entry) -> tuple[bytes, str]:
    """One OpenAI model object, and the `provider/model` that it is."""
    return orjson.dumps(openai_model(entry)), entry.target.id


def render(entries: Sequence[Entry]) -> Listing:
    """The list as OpenAI clients and Codex read it."""
    body = within_limit(map(openai_model, entries), map(codex_model, entries, itertools.count(1)))
    return Listing(body, b'"%b"' % hashlib.sha256(body).hexdigest()[:32].encode())


def within_limit(data: Iterable[Json], models: Iterable[Json]) -> bytes:
    """The list, no longer than Codex reads.

    The list of names stays whole; the catalogue loses its last entries, which Codex then serves with its
    fallback settings. Written entry by entry, for orjson holds up all threads until it is done.
    """
    begin = b'{"object":"list","data":[%b],"models":[' % b",".join(map(orjson.dumps, data))
    room = MAX_BODY_BYTES - len(begin) - len(b"]}")
    kept: list[bytes] = []
    for model in map(orjson.dumps, models):
        room -= len(model) + bool(kept)
        if room < 0:
            break
        kept.append(model)
    return begin + b",".join(kept) + b"]}"


def openai_model(entry: Entry) -> Json:
    """OpenAI's model object."""
    return {
        "id": entry.id,
        "object": "model",
        "created": whole_seconds(entry.facts.get("created")) or CREATED,
        "owned_by": entry.target.provider.name,
    }


def codex_model(entry: Entry, priority: int) -> Json:
    """An entry of Codex's catalogue (fields and enums as Codex CLI 0.171 parses them)."""
    profile = _profile(entry)
    efforts = [] if profile is None else _efforts(profile.reasoning)
    model: dict[str, Any] = {
        "slug": entry.id,
        "display_name": _shown(entry),
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
        "context_window": _window(entry, profile),
        "input_modalities": ["text"] if entry.card is not None and entry.card.vision is False else _BOTH,
    }
    if efforts:
        model["default_reasoning_level"] = "medium" if "medium" in efforts else efforts[len(efforts) // 2]
    return model


def _shown(entry: Entry) -> str:
    """The name of the model for people where its own id is shown, with its provider where that is said."""
    card = entry.card
    if card is None or not entry.id.endswith(card.model):
        return entry.id
    return card.display_name if entry.id == card.model else f"{card.display_name} ({card.provider})"


def _profile(entry: Entry) -> Profile | None:
    """The model's, where Codex's requests go first."""
    target = entry.target
    surface = next(iter(target.provider.surfaces(target.model, "responses")), None)
    return None if surface is None else target.provider.profile(target.model, surface)


def _efforts(rules: ReasoningRules) -> list[str]:
    """The levels the model's profile takes and Codex knows."""
    return [effort for effort in _EFFORTS if effort in rules.efforts and rules.ask != "none"]


def _window(entry: Entry, profile: Profile | None) -> int:
    """What the context guard goes by, else what the listing says."""
    if profile is not None and profile.request.context_window is not None:
        return profile.request.context_window
    known = None if entry.card is None else entry.card.context_window
    return known or CONTEXT_WINDOW
