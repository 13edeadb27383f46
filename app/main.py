"""The service as one ASGI application."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from config.schema import Config
from providers.base import Provider
from providers.health import Health
from providers.quirks import Quirks

from .gateway import Gateway, assemble
from .log import Log, Sink
from .routes import no_route, routes


class Application(FastAPI):
    """FastAPI, with a short way to every route whose path is fixed.

    Its middleware stack and the walk through the routes cost as much as reading a request;
    nothing of ours needs either of them.
    """

    fixed: Mapping[str, ASGIApp] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self.fixed.get(scope["path"]) if scope["type"] == "http" else None
        if endpoint is None:
            await super().__call__(scope, receive, send)
        else:
            await endpoint(scope, receive, send)


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
    from .metrics import Metrics  # a worker is told by its parent where counts are shared: see there

    health, learned = Health(), Quirks() if quirks is None else quirks
    parts = assemble(config, learned, health, providers)
    gateway = Gateway(parts, health, Log(sink or Sink()), Metrics(), learned)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await gateway.catalog.start()
        # What start-up made stays for good: the collector need not walk it again and again.
        gc.collect()
        gc.freeze()
        yield
        await gateway.aclose()

    app = Application(title="Dragoman", openapi_url=None, lifespan=lifespan)
    app.router.redirect_slashes = False
    found = routes(gateway)
    app.router.routes.extend(found)
    app.router.default = no_route(gateway)
    app.fixed = {route.path: route.app for route in found if "{" not in route.path}
    app.state.gateway = gateway
    return app
