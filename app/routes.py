"""The HTTP surface: which path means what, and the frame around every exchange.

Endpoints are ASGI applications under plain Starlette routes: no pydantic body, no
BaseHTTPMiddleware (together they cost more than the rest of a passed request).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal

from starlette.routing import Route

from translators.errors import ProxyError
from translators.ir import Shape

from .bodies import ClientGone, Receive, read_body
from .errors import JSON, unexpected
from .gateway import Gateway
from .pipeline import serve
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
    for prefix in ("/v1", ""):
        responses: dict[str, Serve] = {"POST": _call(gateway, "responses"), "GET": _refuse_websocket}
        found += [
            _route(gateway, prefix + "/responses", responses),
            _route(gateway, prefix + "/chat/completions", {"POST": _call(gateway, "chat")}),
            _route(gateway, prefix + "/embeddings", {"POST": _call(gateway, None)}),
            _route(gateway, prefix + "/models", {"GET": _list_models(gateway)}),
            _route(gateway, prefix + "/models/{id:path}", {"GET": _show_model(gateway)}),
        ]
    return found


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
        client = Client(send, trace, gateway.server.keepalive_s)
        gateway.serving.add(client)
        try:
            trace.error = await self._serve(Exchange(scope, headers, receive, client, trace)) or trace.error
            if trace.error is not None and not client.ended:
                await _tell(client, trace.error)
        finally:
            client.release()
            gateway.serving.discard(client)
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
        targets = gateway.catalog.resolve(request.model, embeddings=shape is None)
        await serve(request, targets, exchange.client, gateway.images, gateway.server.retry_budget_s)

    return call


def _list_models(gateway: Gateway) -> Serve:
    async def list_models(exchange: Exchange) -> None:
        listing = gateway.models.listing()
        known = exchange.headers.get(b"if-none-match", b"").split(b",")
        if any(tag.strip().removeprefix(b"W/") == listing.etag for tag in known):
            await exchange.answer(304, b"", (b"etag", listing.etag))
        else:
            await exchange.answer(200, listing.body, (b"etag", listing.etag))

    return list_models


def _show_model(gateway: Gateway) -> Serve:
    async def show_model(exchange: Exchange) -> None:
        body, exchange.trace.target = gateway.models.model(exchange.scope["path_params"]["id"])
        await exchange.answer(200, body)

    return show_model


async def _health(exchange: Exchange) -> None:
    await exchange.answer(200, b'{"status":"ok"}')


def _ready(gateway: Gateway) -> Serve:
    async def ready(exchange: Exchange) -> None:
        reason = gateway.not_ready()
        if reason is not None:
            raise ProxyError("unavailable", f"not ready: {reason}", code="not_ready")
        await exchange.answer(200, b'{"status":"ready"}')

    return ready


def _metrics(gateway: Gateway) -> Serve:
    async def metrics(exchange: Exchange) -> None:
        headers = [(b"content-type", gateway.metrics.content_type), *exchange.trace.headers()]
        await exchange.client.whole(200, headers, gateway.metrics.text())

    return metrics


async def _refuse_websocket(exchange: Exchange) -> None:
    """426 makes Codex fall back to POST after one try (404 would cost it seven)."""
    if exchange.headers.get(b"upgrade", b"").lower() != b"websocket":
        raise _wrong_method("GET", exchange.scope["path"], {"POST"})
    error = ProxyError("bad_request", "no WebSocket here; POST to this path instead", status=426)
    error.code = "websocket_not_supported"
    error.headers = {"connection": "close"}
    raise error


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
