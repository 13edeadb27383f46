"""What happens to the models that run here: as a feed of events, and as they are now.

An event's name is `state`, its data `{model, state, progress?, reason?, waiting?}`. A feed begins with
every model as it is. It ends when another configuration takes over; a client then asks again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from providers.base import Provider
from providers.onnx.events import Listener
from providers.onnx.provider import OnnxProvider

from .bodies import Receive
from .stream import Client

if TYPE_CHECKING:
    from .gateway import Gateway

PING_S = 15
"""Between two comments on a quiet feed."""
LOOK_S = 1.0
"""How often a quiet feed looks whether its configuration is still in force, and the process not ending."""


def local_models(providers: Sequence[Provider]) -> Mapping[str, Mapping[str, Any]]:
    """The state of each local model by its public name; a model that isn't loaded is no fault."""
    return {
        f"{provider.name}/{name}": status.fields()
        for provider in _local(providers)
        for name, status in provider.statuses().items()
    }


async def follow(gateway: Gateway, scope: Any, receive: Receive, client: Client) -> None:
    """Send events until the client leaves or the process ends."""
    from sse_starlette import EventSourceResponse  # it changes uvicorn's signal handler: only where needed

    events = _events(gateway)
    try:
        await EventSourceResponse(events, ping=PING_S, sep="\n")(scope, receive, client.lend())
    finally:
        client.release()
        await events.aclose()


async def _events(gateway: Gateway) -> AsyncGenerator[dict[str, str], None]:
    catalog, listener = gateway.catalog, Listener()
    for provider in _local(catalog.providers):
        listener.follow(provider.name, provider.feed)
    try:
        yield {"comment": "models of this machine"}  # the answer's head waits for the first of its body
        for model, state in local_models(catalog.providers).items():
            yield _event({"model": model, **state})
        while gateway.catalog is catalog and not gateway.closing:
            event = await listener.next(LOOK_S)
            if event is not None:
                yield _event(event)
    finally:
        listener.close()


def _event(fields: Mapping[str, Any]) -> dict[str, str]:
    return {"event": "state", "data": orjson.dumps(fields).decode()}


def _local(providers: Sequence[Provider]) -> list[OnnxProvider]:
    return [each for each in providers if isinstance(each, OnnxProvider)]
