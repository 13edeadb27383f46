"""Which models a key may use, judged by the endpoints that a name means, whatever the name was.

Aliases, groups, classes, searches and fallbacks are names like any other: what they lead to is looked at. A
model that is out of reach is told like one that does not exist, so that nobody learns what there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import orjson

from providers.base import Target
from providers.catalog import Catalog
from providers.directory import Directory, Entry, Found
from providers.ranking import Ranked, Ranking
from translators.errors import ProxyError

from ..routing.models import Listing, render

if TYPE_CHECKING:
    from ..request import Request

NAMING = ("models", "fallbacks")
"""Fields in which some backends are told of further models (OpenRouter's, LiteLLM's): past every scope."""
_NAME_LENGTH = 128
_KEPT = 512


class Scope:
    """`models`: patterns of `provider/model`, without a slash of the model's own name; `classes`: of which it
    has to be one. None: any. Whatever it keeps it keeps for one state of the catalogue.
    """

    def __init__(self, models: Sequence[str] | None, classes: Sequence[str] | None) -> None:
        self._models, self._classes = models, classes
        self._found: dict[tuple[str, bool], tuple[Found, Found | None]] = {}
        self._directory: Directory | None = None
        self._listing = Listing(b"", b"")
        self._rendering = asyncio.Lock()

    def allows(self, target: Target, ranking: Ranking) -> bool:
        if self._models is not None and not any(_matches(target, each) for each in self._models):
            return False
        if self._classes is None:
            return True
        standing = ranking.of(target.id)
        return standing is not None and standing.cls in self._classes

    def allows_ranked(self, ranked: Ranked, directory: Directory) -> bool:
        target = directory.target(ranked.card.target)
        return target is not None and self.allows(target, directory.ranking)

    def find(self, catalog: Catalog, name: str, embeddings: bool = False) -> Found:
        """`Catalog.find`, of what is allowed. Raises `ProxyError` that says nothing of what there is."""
        try:
            found = catalog.find(name, embeddings=embeddings)
        except ProxyError as error:
            raise out_of_reach(name) if error.kind == "not_found" else _loading(error) from None
        within = self._within(found, catalog.directory(), (name, embeddings))
        if within is None:
            raise out_of_reach(name)
        return within

    def check(self, request: Request) -> None:
        """Refuse (403) a body that names further models to its backend: no name in it could be judged.

        A parser may take the first of two keys where ours takes the last, or any spelling of one (Go's does).
        """
        layer = (request.overrides or {}).get("request") or {}
        for key in (*request.body, *(layer.get("defaults") or ()), *(layer.get("rename") or {}).values()):
            meant = key.casefold()
            if meant in NAMING or (meant == "model" and key != meant):
                message = f"`{key}` is not for this API key, which may use some models only: leave it out"
                raise ProxyError("forbidden", message, param=key, code="model_not_allowed")
        if request.raw.count(b'"model"') != 1 or b"\\u" in request.raw:
            request.raw = orjson.dumps(request.body)

    def entries(self, directory: Directory) -> Iterator[Entry]:
        """The public list as far as it is allowed; a name that means several leads to the first of those."""
        for entry in directory.entries:
            if entry.id == entry.target.id:
                if self.allows(entry.target, directory.ranking):
                    yield entry
                continue
            found = directory.find(entry.id)
            within = None if found is None else self._only(found, directory.ranking)
            if within is not None:
                yield directory.entry_of(entry.id, within.choices[0])

    async def listing(self, directory: Directory) -> Listing:
        """The list of models as `GET /v1/models` gives it, rendered in a thread."""
        async with self._rendering:
            if directory is not self._directory:
                self._listing = await asyncio.to_thread(lambda: render(tuple(self.entries(directory))))
                self._directory = directory
            return self._listing

    def _within(self, found: Found, directory: Directory, key: tuple[str, bool]) -> Found | None:
        """Kept as long as the catalogue keeps what the name means."""
        whole, within = self._found.get(key, (None, None))
        if whole is found:
            return within
        within = self._only(found, directory.ranking)
        if len(self._found) >= _KEPT:
            self._found.clear()
        self._found[key] = found, within
        return within

    def _only(self, found: Found, ranking: Ranking) -> Found | None:
        choices = [choice for choice in found.choices if self.allows(choice.target, ranking)]
        return found.among(choices) if choices else None


def _matches(target: Target, pattern: str) -> bool:
    return fnmatchcase(target.id if "/" in pattern else target.model, pattern)


def out_of_reach(name: str) -> ProxyError:
    """OpenAI's words, which leave open whether there is such a model."""
    message = f"The model {name[:_NAME_LENGTH]!r} does not exist or you do not have access to it."
    return ProxyError("not_found", message, param="model", code="model_not_found")


def _loading(error: ProxyError) -> ProxyError:
    message = "the list of models is still being loaded; send the request again"
    return ProxyError(error.kind, message, code=error.code, retry_after=error.retry_after)


def entry_within(scope: Scope, catalog: Catalog, name: str) -> Entry:
    """The entry of a name for whoever has this scope; raises `ProxyError` (404)."""
    return catalog.directory().entry_of(name, scope.find(catalog, name).choices[0])
