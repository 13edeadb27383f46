"""Databricks model serving: OpenAI's shapes on three surfaces, refused in many words.

GPT has `/responses`, the other families `/open-responses` with gates, all but the Responses-only
GPTs Chat; the rows say so by the model's name. Two things know better. The workspace's listing, where
it names the API types of an endpoint; and the backend itself, whose refusal is remembered: it always
comes before the first chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import structlog

from translators.errors import ProxyError
from translators.ir import Shape
from translators.profile import merge

from .base import ModelInfo, Surface, Upstream
from .databricks_facts import is_served, offered_surfaces, takes_no_tools, with_task
from .databricks_services import list_services
from .http import HttpClient
from .openai import REFUSED_S, OpenAIProvider, Settings
from .quirks import Quirks
from .signing import Signer

ABSENT = (b"passthrough is not supported", b"endpoint_not_found", b"resource_does_not_exist")
"""Words that say the surface, or the model on it, is not there."""
DOUBTFUL = (
    b"not supported",
    b"for the open responses api",  # "This model does not support 'reasoning' for ..."
    b"unknown field",
    b"invalid_parameter_value",
    b"internal_error",
)
"""Words that also come for one odd request: it moves on, the surface is tried again soon."""
DOUBT_S = 60.0
EXPIRED = frozenset({401, 403})
"""Answers to a token that is no longer good; S dbx-tools: also `403 Invalid Token`."""

_log = structlog.get_logger("dragoman")


class DatabricksProvider(OpenAIProvider):
    """A workspace; `signer` signs where the account's own key does not."""

    def __init__(
        self,
        settings: Settings,
        client: HttpClient,
        quirks: Quirks | None = None,
        signer: Signer | None = None,
    ) -> None:
        super().__init__(settings, client, quirks)
        self._signer = signer
        if signer is not None:
            self.private = signer.private
        self._services: Sequence[ModelInfo] = ()
        self._offered: dict[str, frozenset[Surface]] = {}
        self._toolless: frozenset[str] = frozenset()

    def refusal(self, status: int, body: bytes) -> float:
        """404, or 400, 500, 501 with one of the documented phrases (in any case)."""
        if status == 404:
            return REFUSED_S
        if status not in (400, 500, 501):
            return 0.0
        text = body.lower()
        if any(words in text for words in ABSENT):
            return REFUSED_S
        return DOUBT_S if any(words in text for words in DOUBTFUL) else 0.0

    async def open(self, surface: Surface, model: str, body: bytes, stream: bool) -> Upstream:
        signer = self._signer
        if signer is None:
            return await super().open(surface, model, body, stream)
        signed = signer.fresh() or await signer.headers()
        upstream = await self._send(surface, model, body, signed)
        if upstream.status not in EXPIRED:
            return upstream
        try:
            other = await signer.instead_of(signed)
        except BaseException:
            upstream.close()
            raise
        if other is None:
            return upstream
        upstream.close()
        upstream = await self._send(surface, model, body, other)
        if upstream.status in EXPIRED:
            signer.note_useless()
        return upstream

    async def _send(self, surface: Surface, model: str, body: bytes, signed: Mapping[str, str]) -> Upstream:
        url, headers = self._way(model, surface)
        return await self._client.post(self.name, url, {**headers, **signed}, body, self._proxy)

    async def aclose(self) -> None:
        if self._signer is not None:
            await self._signer.aclose()
        await super().aclose()

    async def models(self) -> Sequence[ModelInfo]:
        """What speaks a shape of ours, each with the task it serves, wherever it is told.

        Endpoints first, then services of the gateway.
        """
        endpoints, signed = await self._list_endpoints()
        listed = [with_task(info) for info in (*endpoints, *await self._list_services(endpoints, signed))]
        listed = [info for info in listed if is_served(info.facts.get("task"))]
        offered = {info.id: surfaces for info in listed if (surfaces := offered_surfaces(info.facts))}
        if offered != self._offered:
            self._offered = offered
            self._order.cache_clear()
        toolless = frozenset(info.id for info in listed if takes_no_tools(info.facts))
        if toolless != self._toolless:
            self._toolless = toolless
            self._door.cache_clear()
        return tuple(listed)

    async def _list_endpoints(self) -> tuple[Sequence[ModelInfo], Mapping[str, str]]:
        """And the headers that were good for it."""
        if self._signer is None:
            return await self._list_models({}), {}
        signed = await self._signer.headers()
        try:
            return await self._list_models(signed), signed
        except ProxyError as error:
            other = await self._signer.instead_of(signed) if error.kind == "upstream_auth" else None
            if other is None:
                raise
        return await self._list_models(other), other

    async def _list_services(
        self, endpoints: Sequence[ModelInfo], signed: Mapping[str, str]
    ) -> Sequence[ModelInfo]:
        """Without them there is still everything that the endpoints serve: a failure is no error."""
        profile = self.profile("", "chat")
        if profile.wire.models.kind != "databricks" or profile.wire.models.path is None:
            return ()
        headers = {**self._headers(profile.auth), **signed}
        try:
            self._services = await list_services(self.name, self._base, headers, endpoints)
        except (ProxyError, TimeoutError) as error:
            _log.info(
                "model_services_not_listed", provider=self.name, reason=str(error) or "no answer in time"
            )
        return self._services

    def _listed(self, model: str, overrides: Mapping[str, Any]) -> Mapping[str, Any]:
        return merge({"tools": {"supported": False}}, overrides) if model in self._toolless else overrides

    def _build_order(self, model: str, client: Shape) -> tuple[Surface, ...]:
        order = super()._build_order(model, client)
        offered = self._offered.get(model)
        if offered is None or self._settings.wire != "auto":
            return order
        return narrowed(order, offered, client)


def narrowed(order: Sequence[Surface], offered: frozenset[Surface], client: Shape) -> tuple[Surface, ...]:
    """`order`, without what the listing does not offer and with what it offers besides.

    The cross-provider surface is served without being listed (S dbx-tools: Claude on `/open-responses`
    where `api_types` names Chat and Anthropic's), so its absence there says nothing.
    """
    left = [each for each in order if each in offered or each == "open_responses"]
    native = "responses" in offered and "responses" not in left
    if native and (client == "responses" or "chat" not in offered):
        left.insert(0, "responses")
    return tuple(left) or tuple(order)
