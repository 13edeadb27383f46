"""Ollama by its own API: what its OpenAI layer leaves out or loses goes through here.

`base_url` is the server's root. Chat goes to `/api/chat`, embeddings to `/api/embed`. What the server says
of a model becomes a layer of its profile, under the configuration: whether it thinks, sees or hears, and how
long a context is asked for. That is asked for always: S ollama, a server's own default is as small as 4,096
tokens on most machines, and what does not fit is an error of ours (`truncate: false`) rather than cut off.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from translators.errors import ProxyError
from translators.ir import Json, Shape
from translators.lenient import read_json
from translators.ollama.embed import from_embed, to_embed
from translators.ollama.refusals import NO_TOOLS
from translators.profile import Auth, merge
from translators.rejections import Rejection

from .base import ModelInfo, Surface, Upstream
from .http import HttpClient
from .ollama_listing import describe, digest_of
from .openai import OpenAIProvider, Settings
from .quirks import Quirks
from .ranking.facts import strings, window

MOST_CONTEXT = 32_768
"""Tokens of context asked for where nobody set another number: a longer one takes memory by the gigabyte."""
BUSY_S = 1.0
"""Retry-After of a full queue: the server names no delay."""
_DIGEST = 12
"""Characters of a digest that tell two models of one name apart."""
_LEVELS_ONLY = ("gptoss", "gpt-oss")
"""S ollama: families that think at a level, and always: they cannot be told not to."""


class OllamaProvider(OpenAIProvider):
    """One server, or Ollama's cloud with a key."""

    def __init__(self, settings: Settings, client: HttpClient, quirks: Quirks | None = None) -> None:
        super().__init__(replace(settings, overrides=_as_sections(settings.overrides)), client, quirks)
        self._shown: dict[str, Mapping[str, Any]] = {}
        self._layers: Mapping[str, Mapping[str, Any]] = {}
        self._digests: Mapping[str, str] = {}
        self._toolless: frozenset[str] = frozenset()

    def known_rejections(self, model: str, surface: Surface) -> Sequence[Rejection]:
        found = self._quirks.known(self._host, self._filed(model), surface)
        return (NO_TOOLS, *found) if self._toolless and _full(model) in self._toolless else found

    def learn_rejections(self, model: str, surface: Surface, found: Sequence[Rejection]) -> None:
        self._quirks.learn(self._host, self._filed(model), surface, found)

    async def open(self, surface: Surface, model: str, body: bytes, stream: bool) -> Upstream:
        if surface != "embeddings":
            return _with_delay(await super().open(surface, model, body, stream))
        asked = orjson.loads(body)
        upstream = await super().open(surface, model, orjson.dumps(to_embed(asked)), stream)
        return _with_delay(upstream) if upstream.status >= 300 else await _embedded(upstream, asked)

    async def models(self) -> Sequence[ModelInfo]:
        """Every model with its capabilities, its context as it is asked for, and whether it is in memory."""
        listed = await self._list_models({})
        if not listed:
            return ()
        headers = self._headers(self.profile("", "ollama").auth)
        found = await describe(self.name, self._base, headers, listed, self._shown)
        self._digests = {_full(info.id): digest_of(info)[:_DIGEST] for info in found if digest_of(info)}
        self._toolless = frozenset(_full(info.id) for info in found if _lacks(info.facts, "tools"))
        layers = {_full(info.id): _layer(info.facts) for info in found}
        if layers != self._layers:
            self._layers = layers
            self._door.cache_clear()
        return tuple(self._as_served(info) for info in found)

    def _as_served(self, info: ModelInfo) -> ModelInfo:
        """With the context that a request gets: a client that plans by the model's own would be refused."""
        if _is_embedding(info.facts):
            return info
        asked = self.profile(info.id, "ollama").request.defaults.get("num_ctx")
        return replace(info, facts={**info.facts, "context_window": asked}) if asked else info

    def _listed(self, model: str, overrides: Mapping[str, Any]) -> Mapping[str, Any]:
        layer = self._layers.get(_full(model))
        return merge(layer, overrides) if layer else overrides

    def _build_order(self, model: str, client: Shape) -> tuple[Surface, ...]:
        return ("ollama",)

    def _headers(self, auth: Auth) -> dict[str, str]:
        return {**super()._headers(auth), "Accept": "application/x-ndjson, application/json"}

    def _filed(self, model: str) -> str:
        """The name under which something is learned: what is pulled anew under an old name may be another."""
        digest = self._digests.get(_full(model))
        return f"{model}@{digest}" if digest else model


def _full(model: str) -> str:
    """A name as the server lists it: without a tag it means the latest."""
    return model if ":" in model.rpartition("/")[2] else f"{model}:latest"


def _as_sections(overrides: Mapping[str, Any]) -> Mapping[str, Any]:
    """`num_ctx` and `keep_alive` beside the sections, as what requests say by default."""
    sections = {key: value for key, value in overrides.items() if key not in ("num_ctx", "keep_alive")}
    own = {key: overrides[key] for key in ("num_ctx", "keep_alive") if key in overrides}
    return merge({"request": {"defaults": own}}, sections) if own else sections


# --- what a model is -------------------------------------------------------------------


def _abilities(facts: Mapping[str, Any]) -> frozenset[str]:
    """Ollama's words for what the model can do; empty where nothing is known."""
    return frozenset(strings(facts, "capabilities"))


def _is_embedding(facts: Mapping[str, Any]) -> bool:
    able = _abilities(facts)
    return "embedding" in able and "completion" not in able


def _lacks(facts: Mapping[str, Any], ability: str) -> bool:
    """Whether the list, which is whole where it names `completion`, leaves `ability` out."""
    able = _abilities(facts)
    return "completion" in able and ability not in able


def _layer(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The profile's sections that follow from what the server says of a model."""
    layer: dict[str, Any] = {}
    tokens = window(facts)
    if tokens is not None:
        # What runs in the cloud takes nobody's own memory.
        asked = tokens if facts.get("remote_model") else min(tokens, MOST_CONTEXT)
        layer["request"] = {"defaults": {"num_ctx": asked}}
    if _lacks(facts, "thinking"):
        layer["reasoning"] = {"ask": "none"}
    elif _family(facts) in _LEVELS_ONLY:
        layer["reasoning"] = {"efforts": ["low", "medium", "high"]}
    media = {} if not _lacks(facts, "vision") else {"image": "refuse"}
    if "audio" in _abilities(facts):
        media["audio"] = "keep"
    if media:
        layer["messages"] = {"media": media}
    return layer


def _family(facts: Mapping[str, Any]) -> str:
    details = facts.get("details")
    return str(details.get("family") or "").lower() if isinstance(details, dict) else ""


# --- answers ---------------------------------------------------------------------------


def _with_delay(upstream: Upstream) -> Upstream:
    if upstream.status == 503 and "retry-after" not in upstream.headers:
        upstream.headers = {**upstream.headers, "retry-after": f"{BUSY_S:g}"}
    return upstream


async def _embedded(upstream: Upstream, asked: Json) -> Upstream:
    """The answer of `/api/embed` as OpenAI's; one that is none stays what it is, for whoever reads errors."""
    try:
        raw = await upstream.read()
    finally:
        upstream.close()
    reply, _ = read_json(raw)
    if isinstance(reply, dict) and not reply.get("error"):
        try:
            raw = orjson.dumps(from_embed(reply, asked))
        except ProxyError as error:
            raw = orjson.dumps({"error": error.body()})
    headers = {name: value for name, value in upstream.headers.items() if name != "content-length"}
    return Upstream(upstream.status, headers, _once(raw), upstream.close)


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
