"""The HTTP surface: which path means what, and the frame around every exchange.

Endpoints are ASGI applications under plain Starlette routes: no pydantic body, no
BaseHTTPMiddleware (together they cost more than the rest of a passed request).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from starlette.routing import Route

from translators.errors import ProxyError, bad_request
from translators.ir import Shape

from .access.auth import Access
from .access.origins import check_page
from .access.scopes import Scope as ModelScope
from .access.scopes import entry_within
from .bodies import Receive, read_body
from .calls import answer_call, framed
from .context.compact import compact
from .context.door_route import door_method
from .context.input_tokens import count_tokens
from .errors import JSON
from .events import follow
from .gateway import Gateway
from .lent import lent_to
from .missing_routes import instead_of
from .readiness import readiness
from .routing.models import written
from .routing.ranked import explained, parse_query, ranked
from .state.conversation_routes import conversation_methods
from .state.stored import cancel_methods, stored_methods
from .stream import Client, Send
from .telemetry.trace import Trace, request_id
from .telemetry.watch import arrival
from .websocket.route import is_handshake

Scope = MutableMapping[str, Any]
Door = Literal["key", "open", "probe"]
"""Who may ask: holders of a key, anyone, or the probes of an orchestrator (logged at debug)."""


@dataclass(slots=True)
class Exchange:
    """One request on its way: what came, and where the answer goes."""

    scope: Scope
    headers: Mapping[bytes, bytes]
    receive: Receive
    client: Client
    trace: Trace
    within: ModelScope | None = None
    """The models that its key may use, None: all."""

    async def answer(self, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
        await self.client.whole(status, [JSON, *self.trace.headers(), *headers], body)


Serve = Callable[[Exchange], Awaitable[None]]

_NO_HANDSHAKE = (
    "no valid WebSocket handshake: it needs `sec-websocket-version: 13` and a `sec-websocket-key` of 16 "
    "bytes in base64"
)


def routes(gateway: Gateway) -> list[Route]:
    """Every route, with and without `/v1`."""
    probes = {"/": _health, "/health": _health, "/ready": _ready(gateway)}
    found = [_route(gateway, path, {"GET": probe}, "probe") for path, probe in probes.items()]
    found.append(_route(gateway, "/metrics", {"GET": _metrics(gateway)}))
    found.append(_route(gateway, "/events", {"GET": _events(gateway)}))
    found.append(_route(gateway, "/openapi.json", {"GET": _openapi}, "open"))
    for prefix in ("/v1", ""):
        responses: dict[str, Serve] = {"POST": _call(gateway, "responses"), "GET": _websocket(gateway)}
        one, items = stored_methods(gateway)
        found += [
            _route(gateway, prefix + "/responses", responses),
            _route(gateway, prefix + "/responses/input_tokens", door_method(gateway, count_tokens)),
            _route(gateway, prefix + "/responses/compact", door_method(gateway, compact)),
            _route(gateway, prefix + "/responses/{id}", one),
            _route(gateway, prefix + "/responses/{id}/input_items", items),
            _route(gateway, prefix + "/responses/{id}/cancel", cancel_methods(gateway)),
            _route(gateway, prefix + "/chat/completions", {"POST": _call(gateway, "chat")}),
            _route(gateway, prefix + "/embeddings", {"POST": _call(gateway, None)}),
            *(
                _route(gateway, f"{prefix}/conversations{path}", methods)
                for path, methods in conversation_methods(gateway).items()
            ),
        ]
    return found + _model_routes(gateway)


def _model_routes(gateway: Gateway) -> list[Route]:
    """With `/v1` what OpenAI's clients and Codex read, without it what a person asks of the ranking."""
    return [
        _route(gateway, "/v1/models", {"GET": _list_models(gateway)}),
        _route(gateway, "/v1/models/{id:path}", {"GET": _show_model(gateway)}),
        _route(gateway, "/models", {"GET": _rank_models(gateway)}),
        _route(gateway, "/models/{id:path}", {"GET": _explain_model(gateway)}),
    ]


def no_route(gateway: Gateway) -> Endpoint:
    """What takes the paths that no route does (a line feed in one fits no pattern)."""
    return Endpoint(gateway, {"*": _unknown}, "open", "other")


def _route(gateway: Gateway, path: str, methods: Mapping[str, Serve], door: Door = "key") -> Route:
    return Route(path, Endpoint(gateway, methods, door, path.removeprefix("/v1")))


_OF_ALL_MODELS = ("/metrics", "/events")
_CONVERSATIONS = "/conversations"
_STORED = ("/responses/{id}", _CONVERSATIONS)


class Endpoint:
    """One path: picks by method, and sees that every exchange ends answered and logged."""

    def __init__(self, gateway: Gateway, methods: Mapping[str, Serve], door: Door, name: str) -> None:
        """`name`: what the path is called where requests are counted."""
        self._gateway, self._door, self._name = gateway, door, name
        self._is_stored = name.startswith(_STORED)
        self.methods = {"HEAD": methods["GET"], **methods} if "GET" in methods else methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, gateway = dict(scope["headers"]), self._gateway
        trace = Trace(request_id(headers), f"{scope['method']} {scope['path'][:200]}")
        client = Client(send, trace, gateway.patience, lent_to(scope))
        exchange = Exchange(scope, headers, receive, client, trace)
        if gateway.watch is not None:
            trace.arrival = arrival(
                headers, scope["path"], scope["method"], scope.get("scheme", "http"), scope["http_version"]
            )
        await framed(gateway, client, trace, self._serve(exchange), self._name, self._door == "probe")

    async def _serve(self, exchange: Exchange) -> None:
        method = self._method(exchange)
        if self._is_stored:
            await self._count(exchange)
        await method(exchange)

    async def _count(self, exchange: Exchange) -> None:
        """Requests for a model are counted where they are answered, these here. Raises `ProxyError`."""
        access = self._gateway.keys.access(exchange.headers)
        if access is not None and access.limits is not None:
            makes = exchange.scope["method"] == "POST" and self._name.startswith(_CONVERSATIONS)
            await self._gateway.limiter().let_in(access, exchange.client, makes)

    def _method(self, exchange: Exchange) -> Serve:
        if self._door == "key":
            access = self._gateway.keys.admit(exchange.headers)
            if access is not None:
                self._narrow(exchange, access)
            elif (
                b"origin" in exchange.headers or b"sec-fetch-site" in exchange.headers
            ) and not self._gateway.keys.asked:
                check_page(exchange.headers, self._gateway.server.cors_origins)
        name = exchange.scope["method"]
        method = self.methods.get(name) or self.methods.get("*")
        if method is None:
            raise _wrong_method(name, exchange.scope["path"], self.methods)
        return method

    def _narrow(self, exchange: Exchange, access: Access) -> None:
        """Note whose request it is; what tells of all models is not for a key that may use some."""
        exchange.trace.key, exchange.within = access.name, access.scope
        if access.scope is not None and self._name in _OF_ALL_MODELS:
            message = f"{self._name} is not for this API key, which may use some models only"
            raise ProxyError("forbidden", message, code="key_not_allowed")


def _call(gateway: Gateway, shape: Shape | None) -> Serve:
    """A request for a model."""

    async def call(exchange: Exchange) -> None:
        raw = await read_body(exchange.receive, exchange.headers, gateway.server.max_body_bytes)
        exchange.client.watch(exchange.receive)
        await answer_call(gateway, shape, raw, exchange.headers, exchange.client)

    return call


def _list_models(gateway: Gateway) -> Serve:
    async def list_models(exchange: Exchange) -> None:
        if b"refresh=1" in exchange.scope.get("query_string", b"").split(b"&"):
            await gateway.catalog.refresh()
        if exchange.within is None:
            listing = await gateway.models.listing()
        else:
            listing = await exchange.within.listing(gateway.catalog.directory())
        headers = [(b"etag", listing.etag), *_stale(gateway, exchange)]
        known = exchange.headers.get(b"if-none-match", b"").split(b",")
        if any(tag.strip().removeprefix(b"W/") == listing.etag for tag in known):
            await exchange.answer(304, b"", *headers)
        else:
            await exchange.answer(200, listing.body, *headers)

    return list_models


def _stale(gateway: Gateway, exchange: Exchange) -> list[tuple[bytes, bytes]]:
    """A header that names the providers whose lists could not be renewed, for whoever may use them all."""
    stale = gateway.catalog.stale if exchange.within is None else ()
    return [(b"x-dragoman-stale", ",".join(stale).encode())] if stale else []


def _show_model(gateway: Gateway) -> Serve:
    async def show_model(exchange: Exchange) -> None:
        body, exchange.trace.target = _model(gateway, exchange)
        await exchange.answer(200, body)

    return show_model


def _model(gateway: Gateway, exchange: Exchange) -> tuple[bytes, str]:
    name = exchange.scope["path_params"]["id"]
    if exchange.within is None:
        return gateway.models.model(name)
    return written(entry_within(exchange.within, gateway.catalog, name))


def _rank_models(gateway: Gateway) -> Serve:
    async def rank_models(exchange: Exchange) -> None:
        query = parse_query(exchange.scope.get("query_string", b""))
        if query.cls == "embedding":
            gateway.dimensions.begin(gateway, ranked(gateway.catalog.directory(), query, exchange.within))
        answer = await gateway.ranked.answer(query, exchange.within)
        await exchange.answer(200, answer, *_stale(gateway, exchange))

    return rank_models


def _explain_model(gateway: Gateway) -> Serve:
    async def explain_model(exchange: Exchange) -> None:
        name = exchange.scope["path_params"]["id"]
        body, exchange.trace.target = _model(gateway, exchange)
        found = {**orjson.loads(body), **explained(gateway.catalog, name, exchange.within)}
        await exchange.answer(200, orjson.dumps(found))

    return explain_model


async def _openapi(exchange: Exchange) -> None:
    from .openapi import rendered  # its tables are of no use to a process that is not asked for it

    await exchange.answer(200, rendered())


async def _health(exchange: Exchange) -> None:
    await exchange.answer(200, b'{"status":"ok"}')


def _ready(gateway: Gateway) -> Serve:
    async def ready(exchange: Exchange) -> None:
        error, body = await readiness(gateway)
        exchange.trace.error = error
        await exchange.answer(200 if error is None else error.http_status, body)

    return ready


def _events(gateway: Gateway) -> Serve:
    """What happens to the models in this process, as it happens."""

    async def events(exchange: Exchange) -> None:
        await follow(gateway, exchange.scope, exchange.receive, exchange.client)

    return events


def _metrics(gateway: Gateway) -> Serve:
    async def metrics(exchange: Exchange) -> None:
        gateway.metrics.in_flight(len(gateway.serving) - 1)  # without this one
        headers = [(b"content-type", gateway.metrics.content_type), *exchange.trace.headers()]
        await exchange.client.whole(200, headers, gateway.metrics.text())

    return metrics


def _websocket(gateway: Gateway) -> Serve:
    """What has become none. 426 makes Codex fall back to POST after one try (404 would cost it seven)."""

    async def refuse(exchange: Exchange) -> None:
        if exchange.headers.get(b"upgrade", b"").lower() != b"websocket":
            raise _wrong_method("GET", exchange.scope["path"], {"POST"})
        if gateway.server.websocket and not is_handshake(exchange.headers):
            raise bad_request(_NO_HANDSHAKE, code="invalid_handshake")
        known = gateway.catalog.providers if exchange.within is None else ()
        found = [each for each in known if each.profile("", "responses").wire.websocket]
        names = ", ".join(each.name for each in found)
        also = f"; the backend of {names} takes one at its own address" if found else ""
        message = f"no WebSocket here; POST to this path instead{also}"
        error = ProxyError("bad_request", message, code="websocket_not_supported", status=426)
        error.headers = {"connection": "close"}
        raise error

    return refuse


async def _unknown(exchange: Exchange) -> None:
    scope = exchange.scope
    message = f"unsupported route {scope['method']} {scope['path'][:200]}{instead_of(scope['path'])}"
    raise ProxyError("not_found", message, code="unknown_route")


def _wrong_method(method: str, path: str, allowed: Mapping[str, Any] | set[str]) -> ProxyError:
    names = ", ".join(sorted(allowed))
    message = f"{method} is not supported on {path}; use {names}"
    error = ProxyError("bad_request", message, code="method_not_allowed", status=405)
    error.headers = {"allow": names}
    return error
