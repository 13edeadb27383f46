"""Asking one surface of one target until it answers, within what a client can be made to wait.

Retried: statuses the profile lists and exchanges that broke, with exponential backoff and
jitter, or after the backend's Retry-After. Only before the first byte went to the client, and
only while the client has waited less than the budget in all; a longer Retry-After goes to the
client at once. An answer that came whole is never asked for again, whatever it says.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time

import structlog

from providers.base import Upstream
from translators.dialect import ReplyStream
from translators.errors import Kind, ProxyError, conceal, decode_error

from .answer import Settled, note_guard, reply_stream, stream_answer, whole_answer
from .errors import relayed
from .plan import Plan
from .recovery import ask_for_less, blames_extra_body, remember
from .stream import Client

FIRST_PAUSE_S = 0.5
JITTER = 0.5
"""A pause is stretched by up to this share, so that clients who failed together come back apart."""

MAX_ERROR_BYTES = 1 << 20
"""What is read of a backend's error body; more says nothing more."""

PASSING: frozenset[Kind] = frozenset({"rate_limit", "upstream", "unavailable", "overloaded", "timeout"})
"""Failures that may be over in a moment, or that another provider may not have."""

REPEATABLE: frozenset[Kind] = PASSING | {"bad_request"}
"""Kinds that a listed status is believed for; `bad_request` is what a 409 is called."""

_log = structlog.get_logger("dragoman")


class NotHere(Exception):
    """The backend does not have this model on this surface; `error` is what it said."""

    def __init__(self, error: ProxyError) -> None:
        super().__init__(str(error))
        self.error = error


class _Again(Exception):
    """A failure that may be over in a moment, or (`at_once`) whose cause has been taken away."""

    def __init__(self, error: ProxyError, at_once: bool = False) -> None:
        super().__init__(str(error))
        self.error, self.at_once = error, at_once


async def exchange(plan: Plan, client: Client, budget_s: float) -> None:
    """Ask as `plan` says and answer the client.

    Raises `NotHere` when another surface should be tried, else `ProxyError`.
    """
    tries = 0
    while True:
        tries += 1
        try:
            await _once(plan, client)
            return
        except _Again as again:
            if again.at_once and not client.committed:
                tries -= 1  # nothing was wrong with the backend: no reason to wait longer for it
                continue
            failure = again.error
        except Settled as settled:
            raise conceal(settled.error, plan.target.provider.private) from None
        delay = pause(failure, tries, time.monotonic() - plan.request.began, budget_s)
        if delay is None or client.committed:
            raise failure
        _say_again(plan, failure, tries, delay)
        await asyncio.sleep(delay)
        if client.committed:  # a keep-alive opened the stream meanwhile
            raise failure


def _say_again(plan: Plan, failure: ProxyError, tries: int, delay_s: float) -> None:
    """`attempt` is the number of the try that failed; how many there may be depends on the time left."""
    trace = plan.request.trace
    trace.retries += 1
    _log.info(
        "provider:retry",
        request_id=trace.id.decode(),
        target=plan.target.id,
        provider=plan.target.provider.name,
        attempt=tries,
        delay=round(delay_s, 3),
        error_type=failure.kind,
        error_message=str(failure)[:500],
    )


def pause(failure: ProxyError, tries: int, waited_s: float, budget_s: float) -> float | None:
    """Seconds until the next try after `tries` failed ones; None: the budget does not allow it."""
    delay = failure.retry_after
    if delay is None:
        delay = FIRST_PAUSE_S * 2 ** (tries - 1) * (1 + JITTER * random.random())  # noqa: S311
    return delay if waited_s + delay <= budget_s else None


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
        if error.kind in PASSING and not client.committed:
            raise _Again(error) from error
        raise


async def _open(plan: Plan) -> Upstream:
    trace, target = plan.request.trace, plan.target
    trace.attempts += 1
    upstream = await target.provider.open(plan.surface, target.model, plan.payload, plan.stream)
    trace.upstream_id = upstream.headers.get("x-request-id", "")
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


async def _refusal(plan: Plan, upstream: Upstream, client: Client) -> NotHere | _Again | Settled:
    """The backend's error, as the exception that says what to do next."""
    body = await _read_error(upstream)
    target, status = plan.target, upstream.status
    error = decode_error(status, body, upstream.headers, plan.profile, time.time(), target.provider.private)
    if blames_extra_body(plan, status, error):
        return Settled(error)
    if not client.committed and ask_for_less(plan, status, error):
        return _Again(error, at_once=True)
    if target.provider.learn_refusal(target.model, plan.surface, status, body):
        return NotHere(error)
    listed = status in plan.profile.errors.retry.statuses
    if error.kind == "rate_limit" or (listed and error.kind in REPEATABLE):
        return _Again(error)
    return Settled(error)


async def _read_error(upstream: Upstream) -> bytes:
    """The error's body as far as it comes: of a broken one the status says enough."""
    body = b""
    with contextlib.suppress(ProxyError):
        async for chunk in upstream.chunks:
            body += chunk
            if len(body) > MAX_ERROR_BYTES:
                break
    return body
