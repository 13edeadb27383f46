"""A backend that is asked with the caller's own key (`api_key_from = "client"`).

Nothing of a key is kept here: each request is given a provider of its own that holds it and is gone with the
request. No other provider ever sees it, so neither a fallback nor an alias can take it elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Self

from translators.errors import ProxyError

from .base import Surface, Upstream
from .openai import OpenAIProvider


class PassthroughProvider(OpenAIProvider):
    _key: str | None = None

    def signed_by(self, key: str | None) -> Self:
        """The same, for one request with this key; None: its caller sent none."""
        other = copy(self)
        other._key = key
        other.private = (key, *self.private) if key else self.private
        return other

    async def open(self, surface: Surface, model: str, body: bytes, stream: bool) -> Upstream:
        if self._key is None:
            message = (
                f"provider {self.name} is asked with your own key: send it as `Authorization: Bearer KEY` "
                "(and the gateway's, if it asks for one, as `x-api-key`)"
            )
            raise ProxyError("auth", message, code="missing_provider_key")
        url, headers = self._way(model, surface)
        signed = {**headers, **self._signature(model, surface, self._key)}
        return await self._client.post(self.name, url, signed, body, self._proxy)

    def blame(self, error: ProxyError) -> ProxyError:
        """A refusal of the key is told to the caller as it is: the key is theirs."""
        if error.kind != "upstream_auth":
            return error
        message = f"provider {self.name} refused your key"
        return ProxyError("auth", message, code="invalid_provider_key")

    def _signature(self, model: str, surface: Surface, key: str) -> Mapping[str, str]:
        auth = self.profile(model, surface).auth
        if auth.kind == "header":
            return {auth.header: auth.prefix + key}
        return {"Authorization": f"Bearer {key}"}
