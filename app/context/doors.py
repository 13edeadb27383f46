"""Asking a backend at a door of its own beside the one where it answers: what it counts, what it compacts."""

from __future__ import annotations

import time
from collections.abc import Collection

import orjson

from providers.base import SHAPE_OF, Surface, Target
from translators.errors import ProxyError, conceal, decode_error

from ..attempt import read_error
from ..plan import Plan, make_plan
from ..request import Request

_NOT_HERE = (404, 405, 501)


def first_plan(request: Request, target: Target) -> Plan:
    """As `target` would be asked for an answer; raises `ProxyError` for what it cannot carry."""
    request.trace.target = target.id
    if target.provider.unavailable is not None:
        reason = f"provider {target.provider.name} is unavailable: {target.provider.unavailable}"
        raise ProxyError("unavailable", reason)
    unfit: ProxyError | None = None
    for surface in target.provider.surfaces(target.model, "responses"):
        try:
            plan = make_plan(request, target, surface)
        except ProxyError as error:
            unfit = unfit or error
        else:
            request.trace.lane, request.trace.surface = plan.lane, plan.surface
            return plan
    raise unfit or ProxyError("bad_request", f"{target.id} answers no such request", param="model")


def has(plan: Plan, door: Surface) -> bool:
    """Whether the backend has `door` for the body of `plan`."""
    wire = plan.profile.wire
    path = wire.compact if door == "compact" else wire.input_tokens
    return path is not None and plan.surface != "open_responses"


async def ask(plan: Plan, door: Surface, keys: Collection[str]) -> bytes | None:
    """What the backend says there, asked with `keys` of the body; None: it has no such door after all.

    Raises `ProxyError`, its own refusals too.
    """
    body, trace, target = orjson.loads(plan.payload), plan.request.trace, plan.target
    if SHAPE_OF[plan.surface] == "responses":
        body = {key: value for key, value in body.items() if key in keys}
    trace.attempts += 1
    upstream = await target.provider.open(door, target.model, orjson.dumps(body), False)
    try:
        if upstream.status in _NOT_HERE:
            return None
        if upstream.status < 300:
            return await upstream.read()
        said, private = await read_error(upstream), target.provider.private
        error = decode_error(upstream.status, said, upstream.headers, plan.profile, time.time(), private)
        raise conceal(error, private)
    finally:
        upstream.close()
