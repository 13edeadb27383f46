"""What surrounds the answer to one request, whoever listens to it.

`framed` sees that an exchange ends answered, logged and counted. `answer_call` answers a request for a model:
an HTTP client's, or one that comes another way (a `Client` is made from any `send` of ASGI's form).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial

from translators.compaction import asks_for_it, holds_some
from translators.errors import ProxyError
from translators.ir import Shape

from .access.auth import RefusedKey
from .access.limits import Place
from .bodies import ClientGone
from .context.compaction import answer_trigger, compacts_here, open_compactions
from .descriptors import NO_DESCRIPTORS, full
from .errors import unexpected
from .gateway import Gateway
from .pipeline import serve
from .request import Request, parse_request
from .state.background_create import begin_run, is_background
from .state.conversations import enter
from .state.state import Keeping, NotKept, State
from .stream import Client
from .telemetry.trace import GONE, Trace

Work = Coroutine[object, object, None]


async def framed(
    gateway: Gateway, client: Client, trace: Trace, work: Work, name: str, probe: bool = False
) -> None:
    """Do `work`, which answers `client`, and tell the client what went wrong in it.

    `name`: what the path is called where requests are counted; `probe`: an orchestrator's, logged at debug.
    """
    gateway.serving.add(client)
    if gateway.watch is not None and not probe:
        gateway.watch.begin(trace, client, name)
    try:
        trace.error = await _ended(gateway, client, trace, work) or trace.error
        if trace.error is not None and not client.ended:
            await _tell(client, trace.error)
    finally:
        client.release()
        try:
            _record(gateway, trace, name, probe)
        finally:  # last of all: what waits until nothing is under way finds its line in the log
            gateway.serving.discard(client)


async def _ended(gateway: Gateway, client: Client, trace: Trace, work: Work) -> ProxyError | None:
    """What went wrong, as far as there is still someone to tell."""
    try:
        await work
    except RefusedKey as refused:
        trace.key = refused.name
        return refused
    except ProxyError as error:
        return error
    except ClientGone:
        _left(client, trace)
    except OSError as error:
        if client.committed:  # some servers raise it from `send` after a hang-up
            _left(client, trace)
        elif error.errno in NO_DESCRIPTORS:
            return full()
        else:
            gateway.log.fault(trace, error)
            return unexpected()
    except asyncio.CancelledError:
        if client.cause is None:  # not ours: the process ends
            raise
        return client.interrupted()
    except Exception as error:  # a bug: the client gets an answer, the log the stack
        gateway.log.fault(trace, error)
        return unexpected()
    return None


def _left(client: Client, trace: Trace) -> None:
    """Nobody is there to be told."""
    trace.status = GONE
    client.release()


async def _tell(client: Client, error: ProxyError) -> None:
    """Tell the client of a failure, unless it is gone, or takes nothing when the process ends."""
    try:
        await client.fail(error)
    except OSError:
        pass
    except asyncio.CancelledError:
        if client.cause is None:
            raise


def _record(gateway: Gateway, trace: Trace, name: str, probe: bool) -> None:
    trace.cost = gateway.prices.cost(trace.target, trace.usage)
    if trace.watched is not None:
        trace.watched.end(trace)
    gateway.log.exchange(trace, probe=probe)
    if trace.violations:
        gateway.log.odd_stream(trace)
    gateway.metrics.exchange(name, trace)
    if trace.error is not None:
        trace.error.forget()


async def answer_call(
    gateway: Gateway,
    shape: Shape | None,
    raw: bytes,
    headers: Mapping[bytes, bytes],
    client: Client,
    state: State | None = None,
) -> None:
    """Answer the request that `raw` is; `shape` None: embeddings. Raises `ProxyError`.

    `state`: where responses are kept, the gateway's when None.
    """
    access = gateway.keys.access(headers)
    if access is not None:
        client.trace.key = access.name
    if access is None or access.limits is None:
        await _answered(gateway, shape, raw, headers, client, state, None)
        return
    async with gateway.limiter().within(access, client, raw) as place:
        await _answered(gateway, shape, raw, headers, client, state, place)


async def _answered(
    gateway: Gateway,
    shape: Shape | None,
    raw: bytes,
    headers: Mapping[bytes, bytes],
    client: Client,
    state: State | None,
    place: Place | None,
) -> None:
    """`place`: one of those that its key has, None: that has no limits."""
    trace = client.trace
    if trace.watched is not None:
        trace.watched.received(raw, headers)
    request = parse_request(shape, raw, headers, trace, gateway.seal_key)
    if shape != "responses":
        await _answer(gateway, request, headers, client)
        return
    try:
        await _answered_and_kept(gateway, request, headers, client, state or gateway.state, place)
    finally:
        request.keeping = None  # which knows the request: nothing may know itself for longer


async def _answered_and_kept(
    gateway: Gateway,
    request: Request,
    headers: Mapping[bytes, bytes],
    client: Client,
    state: State | None,
    place: Place | None,
) -> None:
    """A Responses request: with what it continues, now or in the background, and stored."""
    keeping = await prepared(request, headers, client, gateway, state)
    if holds_some(request.body.get("input")):
        open_compactions(request, gateway.seal_key)
    if request.body.get("background") and is_background(request, keeping, gateway):
        answer = partial(_in_background, gateway, headers)
        await begin_run(gateway, request, headers, client, answer, place)
        return
    await _answer(gateway, request, headers, client)
    if keeping is not None and keeping.failure is not None:
        client.trace.error = keeping.failure


async def _in_background(
    gateway: Gateway, headers: Mapping[bytes, bytes], request: Request, client: Client
) -> None:
    work = _answer(gateway, request, headers, client)
    await framed(gateway, client, request.trace, work, "background")
    with suppress(ProxyError):  # its key may have been taken away meanwhile
        access = gateway.keys.access(headers)
        if access is not None and access.limits is not None:
            gateway.limiter().count_tokens(access.name, access.limits, request.trace, request.raw)


async def _answer(gateway: Gateway, request: Request, headers: Mapping[bytes, bytes], client: Client) -> None:
    """Answer a request that is complete; raises `ProxyError`."""
    trace, shape = request.trace, request.shape
    route = gateway.router.route(request, headers, gateway.catalog)
    trace.route_source, trace.considered = route.source, route.considered
    try:
        if shape == "responses" and compacts_here(request, route):
            await answer_trigger(request, headers, client, gateway)
        else:
            await serve(request, route, client, gateway)
    except NotKept as failed:
        raise failed.error from None


def within_limits(
    gateway: Gateway, headers: Mapping[bytes, bytes], client: Client, raw: bytes
) -> AbstractAsyncContextManager[Place | None]:
    """What a request is answered in whose key may have limits; entering it raises `ProxyError`."""
    access = gateway.keys.access(headers)
    if access is None or access.limits is None:
        return nullcontext()
    return gateway.limiter().within(access, client, raw)


async def expanded(gateway: Gateway, raw: bytes, headers: Mapping[bytes, bytes], client: Client) -> Request:
    """A Responses request that is not to be answered, with all that it continues. Raises `ProxyError`."""
    request = parse_request("responses", raw, headers, client.trace, gateway.seal_key)
    request.body["store"] = False
    await prepared(request, headers, client, gateway, gateway.state)
    open_compactions(request, gateway.seal_key)
    given = request.body.get("input")
    if asks_for_it(given):
        request.asks_with(given[:-1])
    return request


async def prepared(
    request: Request, headers: Mapping[bytes, bytes], client: Client, gateway: Gateway, state: State | None
) -> Keeping | None:
    """Whatever it continues is in the request afterwards; None: its answer is not kept."""
    if state is None:
        return None
    if request.body.get("store") is False and _stands_alone(request) and not state.remembers:
        return None
    if request.body.get("conversation") is not None and state.keeps:
        await enter(state, request, gateway.keys.owner(headers))
    else:
        await state.prepare(request, gateway.keys.owner(headers))
    if request.keeping is not None:
        client.on_end = request.keeping.on_end
    return request.keeping


def _stands_alone(request: Request) -> bool:
    """Whether it needs nothing that is stored (only a reference that says its type is looked for)."""
    body = request.body
    if body.get("previous_response_id") is not None or body.get("conversation") is not None:
        return False
    return b"item_reference" not in request.raw
