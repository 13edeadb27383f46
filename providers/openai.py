"""Any backend that speaks OpenAI's HTTP API: where its doors are and which one to knock at.

What differs from server to server is in the profile; this class only joins it with the
account (base URL, key) and remembers which surfaces a model turned out not to have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import orjson
import structlog
from yarl import URL

from translators.effort import ignores_default
from translators.errors import ProxyError
from translators.ir import Shape
from translators.profile import Auth, Profile, merge
from translators.rejections import Rejection

from .base import ModelInfo, Surface, Upstream
from .extra_body import ExtraBody
from .http import HttpClient, environment_proxy
from .listing import list_models
from .private import secrets_in
from .profiles import explain, matches_any, resolve
from .quirks import Quirks
from .quirks_file import host_of
from .signing import MASKED_FROM

REFUSED_S = 900.0
"""How long a surface that a model does not have is left alone; a deployment may gain it."""
_REMEMBERED = 1024
"""Models whose doors are kept: names come from clients, so there is a bound."""

_log = structlog.get_logger("dragoman")

RESPONSES_SURFACES: tuple[Surface, ...] = ("responses", "open_responses")


@dataclass(frozen=True, slots=True)
class Settings:
    """One account, as configured; `overrides` are profile sections."""

    name: str
    base_url: str
    kind: str = "openai"
    api_key: str | None = field(default=None, repr=False)
    wire: Literal["auto", "chat", "responses"] = "auto"
    profile: str | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Door:
    """Everything of a request but its body, for one model on one surface."""

    profile: Profile
    url: URL | None
    headers: Mapping[str, str] = field(repr=False)


class OpenAIProvider:
    """See the module's words; `DatabricksProvider` reads refusals and lists models its own way."""

    unavailable: str | None = None

    def __init__(
        self,
        settings: Settings,
        client: HttpClient,
        quirks: Quirks | None = None,
    ) -> None:
        self.name, self.kind = settings.name, settings.kind
        key = settings.api_key or ""
        known = (key,) if len(key) >= MASKED_FROM else ()
        self.private: Sequence[str] = (*known, *secrets_in(settings.overrides))
        extra = settings.extra_body
        self.extra_body = ExtraBody(settings.name, extra) if extra else None
        self._settings, self._client = settings, client
        self._base = URL(settings.base_url)
        self.origin = f"{self._base.scheme}://{self._base.host_port_subcomponent}" if self._base.host else ""
        self._host = host_of(settings.base_url)
        self._quirks = Quirks() if quirks is None else quirks
        self._proxy = environment_proxy(settings.base_url)
        self._warned: set[str] = set()
        self._door = lru_cache(maxsize=_REMEMBERED)(self._build_door)
        self._order = lru_cache(maxsize=_REMEMBERED)(self._build_order)

    def surfaces(self, model: str, client: Shape) -> Sequence[Surface]:
        return self._quirks.open_surfaces(self._host, model, self._order(model, client))

    def profile(self, model: str, surface: Surface, overrides: Mapping[str, Any] | None = None) -> Profile:
        if overrides:
            return self._resolve(model, surface, merge(self._settings.overrides, overrides))
        return self._door(model, surface).profile

    def explain(self, model: str, surface: Surface) -> Mapping[str, tuple[Any, str]]:
        settings = self._settings
        above = [("listing", self._listed(model, {})), ("configuration", settings.overrides)]
        return explain(
            kind=settings.kind,
            host=self._base.host or "",
            model=model,
            surface=surface,
            profile=settings.profile,
            above=above,
        )

    def learn_refusal(self, model: str, surface: Surface, status: int, body: bytes) -> bool:
        """Only a Responses surface can be refused: there is nothing behind Chat to fall back on."""
        if surface not in RESPONSES_SURFACES:
            return False
        seconds = self.refusal(status, body)
        if not seconds:
            return False
        self._quirks.refuse(self._host, model, surface, seconds)
        return True

    def known_rejections(self, model: str, surface: Surface) -> Sequence[Rejection]:
        return self._quirks.known(self._host, model, surface)

    def learn_rejections(self, model: str, surface: Surface, found: Sequence[Rejection]) -> None:
        self._quirks.learn(self._host, model, surface, found)

    def refusal(self, status: int, body: bytes) -> float:
        """For how many seconds this error says "no such surface"; 0 when it says something else.

        A route that is missing is told apart from a thing that is missing by the error
        object: OpenAI's "Invalid URL", llama.cpp's "File Not Found" (code 404) and FastAPI's
        `{"detail": "Not Found"}` name neither a string `code` nor a `param`.
        """
        if status not in (404, 405, 501):
            return 0.0
        error = _error_object(body)
        return 0.0 if isinstance(error.get("code"), str) or error.get("param") else REFUSED_S

    async def open(self, surface: Surface, model: str, body: bytes, stream: bool) -> Upstream:
        url, headers = self._way(model, surface)
        return await self._client.post(self.name, url, headers, body, self._proxy)

    async def models(self) -> Sequence[ModelInfo]:
        return await self._list_models({})

    def _way(self, model: str, surface: Surface) -> tuple[URL, Mapping[str, str]]:
        """Where a request goes, and its headers as far as they never change."""
        door = self._door(model, surface)
        if door.url is None:
            message = f"provider {self.name} has no {surface} endpoint"
            raise ProxyError("bad_request", message, param="model", code="unsupported_value")
        return door.url, door.headers

    async def _list_models(self, signed: Mapping[str, str]) -> Sequence[ModelInfo]:
        """`signed`: headers beside those that never change."""
        profile = self.profile("", "chat")
        listing = profile.wire.models
        if listing.path is None or listing.kind == "static":
            return ()
        headers = {**self._headers(profile.auth), **signed}
        return await list_models(self.name, listing.kind, join(self._base, listing.path), headers)

    async def aclose(self) -> None:
        await self._client.aclose()

    def _build_door(self, model: str, surface: Surface) -> Door:
        profile = self._resolve(model, surface, self._settings.overrides)
        if ignores_default(profile.reasoning):
            self._warn_of_default(model, str(profile.reasoning.default_effort))
        path: str | None = getattr(profile.wire, surface)
        return Door(profile, join(self._base, path) if path else None, self._headers(profile.auth))

    def _resolve(self, model: str, surface: Surface, overrides: Mapping[str, Any]) -> Profile:
        settings, host = self._settings, self._base.host or ""
        return resolve(
            kind=settings.kind,
            host=host,
            model=model,
            surface=surface,
            profile=settings.profile,
            overrides=self._listed(model, overrides),
        )

    def _listed(self, model: str, overrides: Mapping[str, Any]) -> Mapping[str, Any]:
        """`overrides` over what the backend's listing says of the model; most say nothing."""
        return overrides

    def _warn_of_default(self, model: str, effort: str) -> None:
        """Once for each model: the configured effort is sent to none that cannot be told it."""
        if model in self._warned or len(self._warned) >= _REMEMBERED:
            return
        self._warned.add(model)
        _log.warning("default_effort_not_sent", provider=self.name, model=model, effort=effort)

    def _build_order(self, model: str, client: Shape) -> tuple[Surface, ...]:
        return order_surfaces(self.profile(model, "chat"), model, client, self._settings.wire)

    def _headers(self, auth: Auth) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        key = self._settings.api_key
        if key and auth.kind == "header":
            headers[auth.header] = auth.prefix + key
        elif key and auth.kind != "none":
            headers["Authorization"] = f"Bearer {key}"
        return headers


def order_surfaces(
    profile: Profile, model: str, client: Shape, wire: Literal["auto", "chat", "responses"]
) -> tuple[Surface, ...]:
    """The surfaces to try, best first. `profile` is the model's on Chat: what its row says it has.

    A Responses client prefers a Responses surface where the row trusts it
    (`responses_first`) or nothing else is there; a Chat client is raised to it only for
    models that refuse Chat. A cross-provider Responses surface comes before Chat: it keeps
    the shape.
    """
    paths = profile.wire
    rich: list[Surface] = [each for each in RESPONSES_SURFACES if getattr(paths, each)]
    if wire == "responses":
        return tuple(rich) or ("responses",)
    chat: list[Surface] = ["chat"] if paths.chat else []
    if wire == "chat" or not rich:
        return ("chat",)
    raised = matches_any(model, paths.responses_only)
    if client == "chat" and not raised:
        return tuple(chat or rich)
    if client == "responses" and not (paths.responses_first or raised or paths.open_responses or not chat):
        return tuple(chat)
    return (*rich, *chat)


def join(base: URL, path: str) -> URL:
    """`base` + `path`, without repeating what both have.

    Rows of hosts with several APIs carry the whole path (`/serving-endpoints/responses`,
    `/openai/v1/responses`), and people configure the base with or without its beginning.
    """
    route, _, query = path.partition("?")
    have = [step for step in base.path.split("/") if step]
    want = [step for step in route.split("/") if step]
    shared = next((n for n in range(min(len(have), len(want)), 0, -1) if have[-n:] == want[:n]), 0)
    return base.with_path("/" + "/".join(have + want[shared:])).with_query(query or None)


def _error_object(body: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    error = value.get("error") if isinstance(value, dict) else None
    return error if isinstance(error, dict) else {}
