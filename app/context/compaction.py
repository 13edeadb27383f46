"""Compaction for backends that have none: a summary by a model, sealed, and opened again for any backend.

`compaction_trigger` as the last item of an input asks for it in place of an answer (Codex, where it takes its
provider for OpenAI). Where the backend that is asked first knows it, it is the backend's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from translators.capsule import Seals
from translators.compaction import asks_for_it, opened, seal_summary
from translators.errors import ProxyError
from translators.ir import Finished, Foreign, Json, Opaque, Started, Usage
from translators.profile import Profile
from translators.stream import StreamTranslator

from ..errors import JSON
from ..ids import new_id
from ..plan import BACKENDS, CLIENTS, make_plan
from ..request import Request
from ..routing.routing import Route
from ..stream import Client
from .summary import summed_up

if TYPE_CHECKING:
    from ..gateway import Gateway


def open_compactions(request: Request, key: Callable[[], bytes]) -> None:
    """Put our summaries in words into the request; raises `ProxyError` (400) for one that was changed."""
    given = request.body.get("input")
    if isinstance(given, list) and (told := opened(given, key)) is not given:
        request.asks_with(told)
        request.link = None  # a backend that keeps the conversation has it without the words


def compacts_here(request: Request, route: Route) -> bool:
    """Whether it asks for a compaction that the backend which is asked first does not make itself."""
    if not asks_for_it(request.body.get("input")):
        return False
    target = route.targets[0]
    if target.provider.unavailable is not None:
        return False  # which is told
    surfaces = target.provider.surfaces(target.model, "responses")
    if not surfaces or surfaces[0] != "responses":
        return True
    try:
        plan = make_plan(request, target, "responses")
    except ProxyError:  # in a translation a trigger is a fault, and any other is told when it is gone
        return True
    return plan.lane != "pass" or plan.profile.wire.compact is None


def before_trigger(request: Request) -> Request:
    """The same without the wish to be compacted, which no backend without a compaction of its own reads."""
    given = request.body.get("input")
    if not asks_for_it(given):
        return request
    return replace(request, body={**request.body, "input": given[:-1]}, decoded=None)


async def answer_trigger(
    request: Request, headers: Mapping[bytes, bytes], client: Client, gateway: Gateway
) -> None:
    """Answer with a compaction as the only item; raises `ProxyError`."""
    trace, request = request.trace, before_trigger(request)
    call = request.call(CLIENTS["responses"])
    reply = StreamTranslator(
        BACKENDS["responses"].decoder(Profile()), CLIENTS["responses"].encoder(call, request.context)
    )
    if request.stream:
        client.expect(reply, trace.headers())
    item, usage = await compaction(request, headers, gateway)
    data = reply.take([Started(), Foreign(0, Opaque("responses", item)), Finished("stop", usage)])
    if request.stream:
        client.expect(reply, trace.headers())
        await client.write(data, False)
        return
    response = reply.body()
    whole = orjson.dumps(response)
    if request.keeping is not None:
        await request.keeping.whole(whole, response)
    await client.whole(200, [JSON, *trace.headers()], whole)


async def compaction(
    request: Request, headers: Mapping[bytes, bytes], gateway: Gateway
) -> tuple[Json, Usage | None]:
    """The item that stands for the input of `request`, and what it took. Raises `ProxyError`."""
    summary, usage = await summed_up(request, headers, gateway)
    sealed = seal_summary(_key(request.context.seals), summary, request.body.get("input"))
    return {"type": "compaction", "id": new_id("cmp_"), "encrypted_content": sealed}, usage


def _key(seals: Seals | None) -> Callable[[], bytes]:
    assert seals is not None  # noqa: S101 - every Responses request of a gateway has them
    return seals.key
