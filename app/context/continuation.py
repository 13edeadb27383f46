"""A reply that the token limit cut off is asked to go on, as often as `answer.continuations` says.

The client gets one answer. What fails on the way ends it as what it is: an incomplete one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson
import structlog

from providers.base import SHAPE_OF, Upstream
from translators.continuation import ContinuedTranslator, with_text
from translators.errors import ProxyError

from ..plan import Plan

Write = Callable[[bytes], Awaitable[None]]
Read = Callable[[Plan, Upstream, ContinuedTranslator, Write], Awaitable[None]]
"""Feeds one more reply to the translator and writes what comes of it; raises `ProxyError`."""

_log = structlog.get_logger("dragoman")


async def go_on(plan: Plan, reply: ContinuedTranslator, write: Write, read: Read) -> None:
    """Ask on while `reply` was cut off; it has ended afterwards."""
    trace, most = plan.request.trace, plan.profile.answer.continuations
    while (text := reply.cut) is not None:
        trace.continuations += 1
        _log.info(
            "provider:incomplete_continuation",
            request_id=trace.id.decode(),
            provider=plan.target.provider.name,
            target=plan.target.id,
            response_id=reply.reply_id,
            reason="max_output_tokens",
            continuation_number=trace.continuations,
            max_attempts=most,
        )
        try:
            await _asked_on(plan, text, reply, write, read)
        except ProxyError as error:
            _say_failed(plan, error)
            await write(reply.fail(error))


async def _asked_on(plan: Plan, text: str, reply: ContinuedTranslator, write: Write, read: Read) -> None:
    """Raises `ProxyError`."""
    target = plan.target
    body = with_text(orjson.loads(plan.payload), text, SHAPE_OF[plan.surface], plan.profile)
    plan.request.trace.attempts += 1
    upstream = await target.provider.open(plan.surface, target.model, orjson.dumps(body), plan.stream)
    if plan.request.trace.watched is not None:
        plan.request.trace.watched.answered(upstream)
    try:
        if upstream.status >= 300:
            raise ProxyError("upstream", f"the backend answered {upstream.status} when it was to go on")
        reply.go_on()
        await read(plan, upstream, reply, write)
    finally:
        upstream.close()


def _say_failed(plan: Plan, error: ProxyError) -> None:
    trace = plan.request.trace
    _log.warning(
        "provider:continuation_failed",
        request_id=trace.id.decode(),
        target=plan.target.id,
        continuation_number=trace.continuations,
        error_type=error.kind,
        error_message=str(error)[:500],
    )
