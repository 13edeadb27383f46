"""The one path of a call. Read top to bottom; nothing else decides who answers.

    request -> route -> candidates -> surfaces of a target -> plan -> images -> size -> exchange

Each step down is one function. What fails before a byte has gone to the client moves on: to
the next surface when the backend has no such one, to the next candidate when another endpoint
may not share the trouble (`candidates.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from time import perf_counter

import structlog

from providers.base import Surface, Target
from translators.errors import Kind, ProxyError
from translators.responses.pairing import pairing_ids

from .attempt import Again, LinkBroken, NotHere, exchange
from .context.truncation import MAX_ROUNDS, fitted, may_shorten, shortened
from .downscale import fit_images
from .gateway import Gateway
from .images import inline_images
from .plan import Plan, check_size, make_plan
from .request import Request
from .routing.candidates import OWN, PASSING, Candidate, Candidates, most_retries
from .routing.routing import Route
from .state.links import invalidate
from .stream import Client

_FAULTS: frozenset[Kind] = frozenset({"bad_request", "context_length", "content_filter", "too_large"})
"""Failures for which the client can do something."""


class _Unfit(Exception):
    """The surface cannot carry the request; `error` says what of it."""

    def __init__(self, error: ProxyError) -> None:
        super().__init__(str(error))
        self.error = error


_log = structlog.get_logger("dragoman")


async def serve(request: Request, route: Route, client: Client, gateway: Gateway) -> None:
    """Answer one request from the first candidate of `route` that can.

    Raises `ProxyError` when the request cannot be answered, or its stream cannot be finished.
    """
    candidates = Candidates(route.targets, route.windows, request.began, gateway.server.retry_budget_s)
    while (found := candidates.next(time.monotonic())) is not None:
        candidate, delay_s = found
        if delay_s > 0:
            await asyncio.sleep(delay_s)
        if candidates.failures and await client.hold():  # a keep-alive opened the stream meanwhile
            raise candidates.failures[-1][1]
        if await _try(candidate, candidates, request, client, gateway):
            if request.trace.error is None:
                route.answered(candidate.target)
            return
    failed, error = candidates.told
    request.trace.target = failed.target.id
    _note(next(reversed(failed.plans.values()), None), request)
    raise error


async def _try(
    candidate: Candidate, candidates: Candidates, request: Request, client: Client, gateway: Gateway
) -> bool:
    """Whether it answered; raises `ProxyError` when the client has been told a part of the answer."""
    trace, target, began = request.trace, candidate.target, perf_counter()
    again, asked_before = False, trace.attempts
    candidate.tries += 1
    probing = gateway.health.asked(target.id)
    try:
        await _serve_from(candidate, request, client, gateway)
    except ProxyError as error:
        failure = error
    except Again as passing:
        failure, again = passing.error, True
    else:
        _note_answer(request, target, gateway, began)
        return True
    finally:
        if probing:
            gateway.health.left(target.id)
    asked = trace.attempts > asked_before
    if asked:
        _note_failure(target, failure, gateway)
    if client.committed:
        trace.tried(target.id, failure.kind, began, None)
        raise failure
    failure.forget()
    delay_s = candidates.failed(candidate, failure, time.monotonic(), again, asked)
    trace.tried(target.id, failure.kind, began, delay_s)
    if delay_s is not None:
        most = most_retries(gateway.server.retry_budget_s)
        _say_again(request, target, failure, candidate.tries, most, delay_s)
    return False


def _note_answer(request: Request, target: Target, gateway: Gateway, began: float) -> None:
    trace = request.trace
    first = trace.first_byte or began
    trace.tried(target.id, "ok" if trace.error is None else trace.error.kind, began, None)
    if trace.error is not None:
        _note_failure(target, trace.error, gateway)
        return
    tokens = trace.usage.output if trace.usage is not None else None
    ttft_s = first - began if request.stream else None
    since = first if request.stream else began
    gateway.health.succeeded(target.id, ttft_s, tokens, perf_counter() - since)


def _note_failure(target: Target, failure: ProxyError, gateway: Gateway) -> None:
    if failure.kind in OWN:
        gateway.health.failed(target.id, failure.retry_after)
    elif failure.kind in _FAULTS:
        gateway.health.alive(target.id)


def _say_again(
    request: Request, target: Target, failure: ProxyError, tries: int, most: int, delay_s: float
) -> None:
    """`attempt` is the number of the try that failed."""
    trace = request.trace
    trace.retries += 1
    _log.info(
        "provider:retry",
        request_id=trace.id.decode(),
        target=target.id,
        provider=target.provider.name,
        attempt=tries,
        max_retries=most,
        delay=round(delay_s, 3),
        error_type=failure.kind,
        error_message=str(failure)[:500],
    )


async def _serve_from(candidate: Candidate, request: Request, client: Client, gateway: Gateway) -> None:
    target = candidate.target
    request.trace.target = target.id
    unfit: list[ProxyError] = []
    absent: list[ProxyError] = []
    for surface in _surfaces(target, request):
        try:
            plan = candidate.plans.get(surface) or await _planned(request, candidate, surface, gateway)
        except _Unfit as unfitting:  # this surface cannot carry it; a richer or plainer one may
            unfit.append(unfitting.error)
            continue
        candidate.plans[surface] = plan
        _note(plan, request)
        try:
            await _exchange(plan, candidate, client, gateway)
            return
        except NotHere as refusal:
            if await client.hold():
                raise refusal.error from None
            absent.append(refusal.error)
        except ProxyError as error:
            # A surface that is there and has trouble, or finds fault with the request, says more
            # than one that is not there.
            if client.committed or error.kind in PASSING or error.kind in _FAULTS or not (unfit or absent):
                raise
            break
    raise (unfit or absent)[0]


def plan_ahead(request: Request, targets: Sequence[Target]) -> Plan:
    """How the first of `targets` that can be asked is asked; raises `ProxyError` when none can."""
    failures: list[ProxyError] = []
    for target in targets:
        try:
            for surface in _surfaces(target, request):
                try:
                    return make_plan(request, target, surface)
                except ProxyError as error:
                    failures.append(error)
        except ProxyError as error:
            failures.append(error)
    raise failures[0]


async def _exchange(plan: Plan, candidate: Candidate, client: Client, gateway: Gateway) -> None:
    """Ask as `plan` says, and for less where the backend finds that too long and the client lets it."""
    limits = gateway.limits.get(plan.target.provider.name)
    if plan.request.keeping is not None:
        plan.request.keeping.target = plan.target.id if plan.stored_there else ""
    if plan.link is not None:
        whole = await _go_on(plan, candidate, client, gateway)
        if whole is None:
            return
        plan = whole
    for _ in range(MAX_ROUNDS if may_shorten(plan.request) else 0):
        try:
            await exchange(plan, client, limits)
            return
        except ProxyError as error:
            shorter = shortened(plan) if error.kind == "context_length" and not client.committed else None
            if shorter is None or await client.hold():
                raise
        plan = candidate.plans[plan.surface] = await _ready(shorter, gateway, None)
    await exchange(plan, client, limits)


async def _go_on(plan: Plan, candidate: Candidate, client: Client, gateway: Gateway) -> Plan | None:
    """Have the backend go on from what it stored; where it cannot: the plan that sends it everything."""
    try:
        await exchange(plan, client, gateway.limits.get(plan.target.provider.name))
        return None
    except LinkBroken as broken:
        if await client.hold():
            raise broken.error from None
        invalidate(plan, broken.error)
    request = plan.whole or plan.request
    request.link = None
    try:
        whole = await _planned(request, candidate, plan.surface, gateway)
    except _Unfit as unfit:
        raise unfit.error from None
    candidate.plans[plan.surface] = whole
    return whole


async def _planned(request: Request, candidate: Candidate, surface: Surface, gateway: Gateway) -> Plan:
    """A plan that is ready to be sent; a further try takes the same, less what its backend refused."""
    try:
        plan = make_plan(request, candidate.target, surface)
    except ProxyError as error:
        raise _Unfit(error) from error
    if may_shorten(request) and plan.link is None:  # what is linked is new, and the backend knows the rest
        plan = fitted(plan, candidate.window)
    return await _ready(plan, gateway, candidate.window)


async def _ready(plan: Plan, gateway: Gateway, window: int | None) -> Plan:
    """`plan` with its pictures in it, once its size is known to be taken."""
    _note(plan, plan.request)
    await inline_images(plan, gateway.images)
    await fit_images(plan)
    check_size(plan, window)
    return plan


def _surfaces(target: Target, request: Request) -> Sequence[Surface]:
    provider = target.provider
    if provider.unavailable is not None:
        raise ProxyError("unavailable", f"provider {provider.name} is unavailable: {provider.unavailable}")
    if request.shape is None:
        return ("embeddings",)
    return provider.surfaces(target.model, request.shape)


def _note(plan: Plan | None, request: Request) -> None:
    """What the answer, or the failure that is told, was asked with; None: it was asked nothing."""
    trace = request.trace
    if plan is None:
        trace.lane, trace.surface, trace.losses, trace.repairs = "", "", (), ()
        return
    encoded = plan.encoded
    trace.lane, trace.surface = plan.lane, plan.surface
    trace.losses, trace.repairs, trace.pairing = encoded.losses, encoded.repairs, None
    if encoded.repairs and any(repair.site == "chain_pairing" for repair in encoded.repairs):
        trace.pairing = pairing_ids(encoded.body["input"])
