"""The HTTP surface: which path means what, and the frame around every exchange.

Endpoints are ASGI applications under plain Starlette routes: no pydantic body, no
BaseHTTPMiddleware (together they cost more than the rest of a passed request).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from starlette.routing import Route

from translators.errors import ProxyError
from translators.ir import Shape

from .bodies import ClientGone, Receive, read_body
from .errors import JSON, unexpected
from .events import follow, local_models
from .gateway import Gateway
from .pipeline import serve
from .protocol import CONNECTION
from .ranked import explained, parse_query
from .request import parse_request
from .stream import Client, Send
from .trace import GONE, Trace, request_id

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

    async def answer(self, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
        await self.client.whole(status, [JSON, *self.trace.headers(), *headers], body)


Serve = Callable[[Exchange], Awaitable[None]]


def routes(gateway: Gateway) -> list[Route]:
    """Every route, with and without `/v1`."""
    probes = {"/": _health, "/health": _health, "/ready": _ready(gateway)}
    found = [_route(gateway, path, {"GET": probe}, "probe") for path, probe in probes.items()]
    found.append(_route(gateway, "/metrics", {"GET": _metrics(gateway)}))
    found.append(_route(gateway, "/events", {"GET": _events(gateway)}))
    for prefix in ("/v1", ""):
        responses: dict[str, Serve] = {"POST": _call(gateway, "responses"), "GET": _websocket(gateway)}
        found += [
            _route(gateway, prefix + "/responses", responses),
            _route(gateway, prefix + "/chat/completions", {"POST": _call(gateway, "chat")}),
            _route(gateway, prefix + "/embeddings", {"POST": _call(gateway, None)}),
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


class Endpoint:
    """One path: picks by method, and sees that every exchange ends answered and logged."""

    def __init__(self, gateway: Gateway, methods: Mapping[str, Serve], door: Door, name: str) -> None:
        """`name`: what the path is called where requests are counted."""
        self._gateway, self._door, self._name = gateway, door, name
        self._methods = {"HEAD": methods["GET"], **methods} if "GET" in methods else methods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, gateway = dict(scope["headers"]), self._gateway
        trace = Trace(request_id(headers), f"{scope['method']} {scope['path'][:200]}")
        server = gateway.server
        lent = scope.get("extensions", {}).get(CONNECTION, {}).get("transport")
        client = Client(send, trace, server.keepalive_s, server.idle_timeout_s, lent)
        gateway.serving.add(client)
        try:
            trace.error = await self._serve(Exchange(scope, headers, receive, client, trace)) or trace.error
            if trace.error is not None and not client.ended:
                await _tell(client, trace.error)
        finally:
            client.release()
            try:
                self._record(trace)
            finally:  # last of all: what waits until nothing is under way finds its line in the log
                gateway.serving.discard(client)

    def _record(self, trace: Trace) -> None:
        gateway = self._gateway
        gateway.log.exchange(trace, probe=self._door == "probe")
        if trace.violations:
            gateway.log.odd_stream(trace)
        gateway.metrics.exchange(self._name, trace)

    async def _serve(self, exchange: Exchange) -> ProxyError | None:
        """Serve it; what went wrong, as far as there is still someone to tell."""
        client = exchange.client
        try:
            await self._method(exchange)(exchange)
        except ProxyError as error:
            return error
        except (ClientGone, OSError):  # some servers raise OSError from `send` after a hang-up
            exchange.trace.status = GONE
            client.release()
        except asyncio.CancelledError:
            if client.cause is None:  # not ours: the process ends
                raise
            return client.interrupted()
        except Exception as error:  # a bug: the client gets an answer, the log the stack
            self._gateway.log.fault(exchange.trace, error)
            return unexpected()
        return None

    def _method(self, exchange: Exchange) -> Serve:
        if self._door == "key":
            self._gateway.keys.admit(exchange.headers)
        name = exchange.scope["method"]
        method = self._methods.get(name) or self._methods.get("*")
        if method is None:
            raise _wrong_method(name, exchange.scope["path"], self._methods)
        return method


async def _tell(client: Client, error: ProxyError) -> None:
    """Tell the client of a failure, unless it is gone, or takes nothing when the process ends."""
    try:
        await client.fail(error)
    except OSError:
        pass
    except asyncio.CancelledError:
        if client.cause is None:
            raise


def _call(gateway: Gateway, shape: Shape | None) -> Serve:
    """A request for a model."""

    async def call(exchange: Exchange) -> None:
        raw = await read_body(exchange.receive, exchange.headers, gateway.server.max_body_bytes)
        exchange.client.watch(exchange.receive)
        request = parse_request(shape, raw, exchange.headers, exchange.trace, gateway.seal_key)
        route = gateway.router.route(request, exchange.headers, gateway.catalog)
        exchange.trace.route_source, exchange.trace.considered = route.source, route.considered
        await serve(request, route, exchange.client, gateway)

    return call


def _list_models(gateway: Gateway) -> Serve:
    async def list_models(exchange: Exchange) -> None:
        if b"refresh=1" in exchange.scope.get("query_string", b"").split(b"&"):
            await gateway.catalog.refresh()
        listing = await gateway.models.listing()
        headers = [(b"etag", listing.etag), *_stale(gateway)]
        known = exchange.headers.get(b"if-none-match", b"").split(b",")
        if any(tag.strip().removeprefix(b"W/") == listing.etag for tag in known):
            await exchange.answer(304, b"", *headers)
        else:
            await exchange.answer(200, listing.body, *headers)

    return list_models


def _stale(gateway: Gateway) -> list[tuple[bytes, bytes]]:
    """A header that names the providers whose lists could not be renewed."""
    stale = gateway.catalog.stale
    return [(b"x-dragoman-stale", ",".join(stale).encode())] if stale else []


def _show_model(gateway: Gateway) -> Serve:
    async def show_model(exchange: Exchange) -> None:
        body, exchange.trace.target = gateway.models.model(exchange.scope["path_params"]["id"])
        await exchange.answer(200, body)

    return show_model


def _rank_models(gateway: Gateway) -> Serve:
    async def rank_models(exchange: Exchange) -> None:
        query = parse_query(exchange.scope.get("query_string", b""))
        await exchange.answer(200, await gateway.ranked.answer(query), *_stale(gateway))

    return rank_models


def _explain_model(gateway: Gateway) -> Serve:
    async def explain_model(exchange: Exchange) -> None:
        name = exchange.scope["path_params"]["id"]
        body, exchange.trace.target = gateway.models.model(name)
        found = {**orjson.loads(body), **explained(gateway.catalog, name)}
        await exchange.answer(200, orjson.dumps(found))

    return explain_model


async def _health(exchange: Exchange) -> None:
    await exchange.answer(200, b'{"status":"ok"}')


def _ready(gateway: Gateway) -> Serve:
    async def ready(exchange: Exchange) -> None:
        reason = gateway.not_ready()
        if reason is not None:
            raise ProxyError("unavailable", f"not ready: {reason}", code="not_ready")
        local = local_models(gateway.catalog.providers)
        told = {"status": "ready", "models": local} if local else {"status": "ready"}
        await exchange.answer(200, orjson.dumps(told))

    return ready


def _events(gateway: Gateway) -> Serve:
    """What happens to the models in this process, as it happens."""

    async def events(exchange: Exchange) -> None:
        await follow(gateway, exchange.scope, exchange.receive, exchange.client)

    return events


def _metrics(gateway: Gateway) -> Serve:
    async def metrics(exchange: Exchange) -> None:
        headers = [(b"content-type", gateway.metrics.content_type), *exchange.trace.headers()]
        await exchange.client.whole(200, headers, gateway.metrics.text())

    return metrics


def _websocket(gateway: Gateway) -> Serve:
    """426 makes Codex fall back to POST after one try (404 would cost it seven)."""

    async def refuse(exchange: Exchange) -> None:
        if exchange.headers.get(b"upgrade", b"").lower() != b"websocket":
            raise _wrong_method("GET", exchange.scope["path"], {"POST"})
        found = [each for each in gateway.catalog.providers if each.profile("", "responses").wire.websocket]
        names = ", ".join(each.name for each in found)
        also = f"; the backend of {names} takes one at its own address" if found else ""
        message = f"no WebSocket here; POST to this path instead{also}"
        error = ProxyError("bad_request", message, code="websocket_not_supported", status=426)
        error.headers = {"connection": "close"}
        raise error

    return refuse


async def _unknown(exchange: Exchange) -> None:
    scope = exchange.scope
    message = f"unsupported route {scope['method']} {scope['path'][:200]}"
    raise ProxyError("not_found", message, code="unknown_route")


def _wrong_method(method: str, path: str, allowed: Mapping[str, Any] | set[str]) -> ProxyError:
    names = ", ".join(sorted(allowed))
    message = f"{method} is not supported on {path}; use {names}"
    error = ProxyError("bad_request", message, code="method_not_allowed", status=405)
    error.headers = {"allow": names}
    return error
