"""A route that reads and plans a request as one for an answer, and answers something else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from ..bodies import read_body
from ..calls import expanded, within_limits
from ..plan import Plan
from ..request import Request
from .doors import first_plan

if TYPE_CHECKING:
    from ..gateway import Gateway
    from ..routes import Exchange

    Serve = Callable[[Exchange], Awaitable[None]]
    Answer = Callable[[Gateway, Exchange, Request, Plan], Awaitable[None]]


def door_method(gateway: Gateway, answer: Answer) -> Mapping[str, Serve]:
    """`answer` gets the request with its whole history, and the plan for the first target of its route.

    The plan's own request may be only what is new, for a backend that keeps the conversation too.
    """

    async def serve(exchange: Exchange) -> None:
        raw = await read_body(exchange.receive, exchange.headers, gateway.server.max_body_bytes)
        exchange.client.watch(exchange.receive)
        async with within_limits(gateway, exchange.headers, exchange.client, raw):
            request = await expanded(gateway, raw, exchange.headers, exchange.client)
            route = gateway.router.route(request, exchange.headers, gateway.catalog)
            await answer(gateway, exchange, request, first_plan(request, route.targets[0]))

    return {"POST": serve}
