"""The service as one ASGI application."""

from __future__ import annotations

import gc
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from config.schema import Config
from providers.base import Provider
from providers.health import Health
from providers.quirks import Quirks

from .access.origins import Cors
from .gateway import Gateway, assemble
from .routes import no_route, routes
from .telemetry.log import Log, Sink
from .telemetry.telemetry import open_telemetry, open_watch
from .websocket.route import opens_websocket, websocket_routes

GARBAGE = 10_000
"""Objects that may be garbage before it is looked for; Python's own 700 cost a request 2 to 4 %."""


class Application(FastAPI):
    """FastAPI, with a short way to every route whose path is fixed.

    Its middleware stack and the walk through the routes cost as much as reading a request;
    nothing of ours needs either of them.
    """

    fixed: Mapping[str, ASGIApp] = {}
    gateway: Gateway
    cors: Cors

    def opens_websocket(self, method: str, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> int:
        """Asked by `protocol.py` of every upgrade: bytes of a message at most; 0: it is none."""
        return opens_websocket(self.state.gateway, method, target, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origins = self.gateway.server.cors_origins
        if origins and scope["type"] == "http":
            await self.cors(scope, receive, send, origins)
        else:
            await self._endpoint(scope)(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What lies behind CORS."""
        await self._endpoint(scope)(scope, receive, send)

    def _endpoint(self, scope: Scope) -> ASGIApp:
        endpoint = self.fixed.get(scope["path"]) if scope["type"] == "http" else None
        return super().__call__ if endpoint is None else endpoint


def create_app(
    config: Config,
    providers: Sequence[Provider] | None = None,
    sink: Sink | None = None,
    quirks: Quirks | None = None,
) -> Application:
    """The application for `config`; its `state.gateway` is the `Gateway`.

    `providers`, when given, stand in for the configured ones; `sink` is what `log.configure` gave;
    `quirks` is what was learned of backends, None: nothing yet, and none of it outlives the application.
    """
    gateway = _gateway(config, providers, sink or Sink(), quirks)
    app = Application(title="Dragoman", openapi_url=None, lifespan=partial(_lifespan, gateway))
    app.router.redirect_slashes = False
    found = routes(gateway)
    app.router.routes.extend([*found, *websocket_routes(gateway)])
    app.router.default = no_route(gateway)
    app.fixed = {route.path: route.app for route in found if "{" not in route.path}
    app.state.gateway = app.gateway = gateway
    app.cors = Cors(app.answer)
    return app


def _gateway(
    config: Config, providers: Sequence[Provider] | None, said: Sink, quirks: Quirks | None
) -> Gateway:
    from .telemetry.metrics import (
        Metrics,  # a worker is told by its parent where counts are shared: see there
    )

    health, learned = Health(), Quirks() if quirks is None else quirks
    parts = assemble(config, learned, health, providers)
    gateway = Gateway(parts, health, Log(said), Metrics(), learned)
    said.count = gateway.metrics.event
    gateway.telemetry = open_telemetry(config.telemetry, os.environ)
    gateway.watch = open_watch(config.telemetry, gateway.telemetry, said.level, os.environ)
    return gateway


@asynccontextmanager
async def _lifespan(gateway: Gateway, _: FastAPI) -> AsyncIterator[None]:
    await gateway.catalog.start()
    # What start-up made stays for good: the collector need not walk it again and again. A request leaves
    # nothing that only the collector can free (`lent.py`), so it need not look after every third of them.
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)
    yield
    await gateway.aclose()
