"""Compaction for backends that have none: a summary by a model, sealed, and opened again for any backend.

`compaction_trigger` as the last item of an input asks for it in place of an answer (Codex, where it takes its
provider for OpenAI). Where the backend that is asked first knows it, it is the backend's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

from translators.capsule import Seals
from translators.compaction import INSTRUCTIONS, asks_for_it, halved, opened, record, seal_summary
from translators.errors import ProxyError
from translators.ir import Finished, Foreign, Json, Opaque, Started, Usage
from translators.profile import Profile
from translators.stream import StreamTranslator

from ..errors import JSON
from ..pipeline import serve
from ..plan import BACKENDS, CLIENTS, make_plan
from ..request import Request, new_id, parse_request
from ..routing.routing import Route
from ..stream import Client

if TYPE_CHECKING:
    from ..gateway import Gateway

MAX_HALVES = 3
"""Times a record is made shorter for a model that it is too long for."""
_RECORD = "The record of the conversation:\n\n"
_TOO_LONG = "context_length_exceeded"


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
    summary, usage = await _summed_up(request, headers, gateway)
    given = request.body.get("input")
    over = len(given) if isinstance(given, list) else 1
    sealed = seal_summary(_key(request.context.seals), summary, over)
    return {"type": "compaction", "id": new_id("cmp_"), "encrypted_content": sealed}, usage


def _key(seals: Seals | None) -> Callable[[], bytes]:
    assert seals is not None  # noqa: S101 - every Responses request of a gateway has them
    return seals.key


async def _summed_up(
    request: Request, headers: Mapping[bytes, bytes], gateway: Gateway
) -> tuple[str, Usage | None]:
    """The words of the model that is to write them; of a record that is too long for it the middle goes."""
    text = record(request.call(CLIENTS["responses"]).items)
    for _ in range(MAX_HALVES):
        try:
            return await _written(text, request, headers, gateway)
        except ProxyError as error:
            if error.body()["code"] != _TOO_LONG:
                raise
            text = halved(text)
    return await _written(text, request, headers, gateway)


async def _written(
    text: str, request: Request, headers: Mapping[bytes, bytes], gateway: Gateway
) -> tuple[str, Usage | None]:
    """A summary of a record; the exchange is in the request's trace. Raises `ProxyError`."""
    trace = request.trace
    asked = {
        "model": gateway.compaction.model or request.model,
        "instructions": INSTRUCTIONS,
        "input": _RECORD + text,
        "store": False,
    }
    inner = parse_request("responses", orjson.dumps(asked), headers, trace, gateway.seal_key)
    trace.model, trace.stream = request.model, request.stream
    route = gateway.router.route(inner, headers, gateway.catalog)
    listener, server = _Listener(), gateway.server
    client = Client(listener, trace, server.keepalive_s, server.idle_timeout_s)
    try:
        await serve(inner, route, client, gateway)
    finally:
        client.release()
        trace.first_byte, trace.status = None, 0
    summary = _words(orjson.loads(listener.body))
    if not summary:
        raise ProxyError("upstream", f"{trace.target} wrote no summary of the conversation")
    return summary, trace.usage


class _Listener:
    """A client within the gateway: keeps the body of its answer."""

    def __init__(self) -> None:
        self.body = b""

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        self.body += message.get("body", b"")


def _words(response: Json) -> str:
    parts = [part for item in response.get("output", ()) for part in item.get("content") or ()]
    return "".join(part["text"] for part in parts if part.get("type") == "output_text").strip()
