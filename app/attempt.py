"""Asking one surface of one target once.

Whether it is asked again, and who is asked next, is `candidates.py`'s business. Only what a backend names as
rejected is left out and asked for anew here, at once. An answer that came whole is never asked for again,
whatever it says.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any

import structlog

from providers.base import Upstream
from providers.gate import Gate
from providers.passthrough import PassthroughProvider
from translators.dialect import ReplyStream
from translators.errors import Kind, ProxyError, conceal, decode_error

from .answer import Settled, note_guard, reply_stream, stream_answer, whole_answer
from .errors import relayed
from .plan import Plan
from .recovery import ask_for_less, blames_extra_body, remember
from .routing.candidates import PASSING
from .state.links import breaks
from .stream import Client

MAX_ERROR_BYTES = 1 << 20
"""What is read of a backend's error body; more says nothing more."""

REPEATABLE: frozenset[Kind] = PASSING | {"bad_request"}
"""Kinds that a listed status is believed for; `bad_request` is what a 409 is called."""


_log = structlog.get_logger("dragoman")


class NotHere(Exception):
    """The backend does not have this model on this surface; `error` is what it said."""

    def __init__(self, error: ProxyError) -> None:
        super().__init__(str(error))
        self.error = error


class LinkBroken(Exception):
    """The backend cannot go on from the response that it was asked to; `error` is what it said."""

    def __init__(self, error: ProxyError) -> None:
        super().__init__(str(error))
        self.error = error


class Again(Exception):
    """A failure that may be over in a moment."""

    def __init__(self, error: ProxyError) -> None:
        super().__init__(str(error))
        self.error = error


class _AskForLess(Exception):
    """The backend named what it does not take in `error`; the plan is without it now."""

    def __init__(self, error: ProxyError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class Limits:
    """What the configuration sets for the calls of one provider."""

    gate: Gate | None = None
    first_token_s: float | None = None
    """Longest wait for the first of a stream, in seconds."""


def exchange(plan: Plan, client: Client, limits: Limits | None) -> Coroutine[Any, Any, None]:
    """Ask as `plan` says and answer the client; None: nothing is limited.

    Raises `NotHere` when another surface should be tried, `LinkBroken` when the whole conversation should be
    sent, `Again` when it may be asked again, else `ProxyError`.
    """
    return _ask(plan, client) if limits is None else _within(limits, plan, client)


async def _within(limits: Limits, plan: Plan, client: Client) -> None:
    if limits.gate is not None and limits.gate.full:
        _say_waiting(plan, limits.gate)
    async with limits.gate or contextlib.nullcontext(), _first_token(plan, client, limits.first_token_s):
        await _ask(plan, client)


def _say_waiting(plan: Plan, gate: Gate) -> None:
    """Its provider has as many requests as it takes: this one waits, or is refused at once."""
    trace, provider = plan.request.trace, plan.target.provider.name
    trace.waits += 1
    about = {"request_id": trace.id.decode(), "target": plan.target.id, "provider": provider}
    _log.info("provider:concurrency", **about, limit=gate.limit, waiting=gate.waiting)


async def _ask(plan: Plan, client: Client) -> None:
    watched = plan.request.trace.watched
    while True:
        try:
            if watched is None:
                await _once(plan, client)
            else:
                with watched.attempt(plan, client):
                    await _once(plan, client)
            return
        except _AskForLess as refused:
            if await client.hold():
                raise refused.error from None
        except Settled as settled:
            if plan.link is not None and not client.committed and breaks(0, settled.error):
                raise LinkBroken(settled.error) from None
            raise conceal(settled.error, plan.target.provider.private) from None


@contextlib.asynccontextmanager
async def _first_token(plan: Plan, client: Client, limit_s: float | None) -> AsyncIterator[None]:
    """Fail (504) a stream of which nothing has come within the limit."""
    if limit_s is None or not plan.request.stream:
        yield
        return
    try:
        async with asyncio.timeout(limit_s) as clock:
            client.on_first = lambda: clock.reschedule(None)
            yield
    except TimeoutError:
        raise ProxyError("timeout", f"{plan.target.id} began no answer within {limit_s:g} s") from None
    finally:
        client.on_first = None


async def _once(plan: Plan, client: Client) -> None:
    reply = None
    if plan.request.stream:
        reply = reply_stream(plan)
        client.expect(reply, plan.request.trace.headers())
    try:
        upstream = await _open(plan)
        try:
            if upstream.status >= 300:
                raise await _refusal(plan, upstream, client)
            if plan.refused:
                remember(plan)
            await _answer(plan, upstream, reply, client)
        finally:
            upstream.close()
    except ProxyError as error:  # the exchange broke
        # A silence is not asked for again: it would cost the client the same wait once more.
        if error.kind in PASSING and error.kind != "timeout" and not client.committed:
            raise Again(error) from error
        raise


async def _open(plan: Plan) -> Upstream:
    trace, target = plan.request.trace, plan.target
    trace.attempts += 1
    upstream = await target.provider.open(plan.surface, target.model, plan.payload, plan.stream)
    trace.upstream, trace.upstream_headers = target.provider.origin, upstream.headers
    trace.upstream_id = upstream.headers.get("x-request-id", "")
    if trace.watched is not None:
        trace.watched.answered(upstream)
    return upstream


async def _answer(plan: Plan, upstream: Upstream, reply: ReplyStream | None, client: Client) -> None:
    trace = plan.request.trace
    if reply is None:
        await whole_answer(plan, upstream, client)
        return
    client.expect(reply, trace.headers() + relayed(upstream.headers))
    try:
        await stream_answer(plan, upstream, reply, client)
    finally:
        trace.usage = reply.usage
        note_guard(plan, reply)
    trace.error = reply.error
    if reply.fault is not None:
        raise reply.fault  # the client has been told; the log gets the stack


async def _refusal(
    plan: Plan, upstream: Upstream, client: Client
) -> NotHere | LinkBroken | Again | Settled | _AskForLess:
    """The backend's error, as the exception that says what to do next."""
    body = await read_error(upstream)
    target, status = plan.target, upstream.status
    error = decode_error(status, body, upstream.headers, plan.profile, time.time(), target.provider.private)
    if isinstance(target.provider, PassthroughProvider):
        error = target.provider.blame(error)
    if plan.link is not None and not client.committed and breaks(status, error):
        return LinkBroken(error)
    if blames_extra_body(plan, status, error):
        return Settled(error)
    if not client.committed and ask_for_less(plan, status, error):
        return _AskForLess(error)
    if target.provider.learn_refusal(target.model, plan.surface, status, body):
        return NotHere(error)
    listed = status in plan.profile.errors.retry.statuses
    if error.kind == "rate_limit" or (listed and error.kind in REPEATABLE):
        return Again(error)
    return Settled(error)


async def read_error(upstream: Upstream) -> bytes:
    """The error's body as far as it comes: of a broken one the status says enough."""
    body = b""
    with contextlib.suppress(ProxyError):
        async for chunk in upstream.chunks:
            body += chunk
            if len(body) > MAX_ERROR_BYTES:
                break
    return body
