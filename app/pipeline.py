"""The one path of a call. Read top to bottom; nothing else decides who answers.

    request -> targets -> surfaces of a target -> plan -> images -> size -> exchange

Each step down is one function. What fails before a byte has gone to the client moves on: to
the next surface when the backend has no such one, to the next target when another provider
may not share the trouble. When all fail the client is told of the first failure: it belongs
to what was asked for, the rest to substitutes.
"""

from __future__ import annotations

from collections.abc import Sequence

from providers.base import Surface, Target
from providers.images import Images
from translators.errors import Kind, ProxyError
from translators.responses.pairing import pairing_ids

from .attempt import PASSING, NotHere, exchange
from .downscale import fit_images
from .images import inline_images
from .plan import Plan, check_size, make_plan
from .request import Request
from .stream import Client

_FAULTS: frozenset[Kind] = frozenset({"bad_request", "context_length", "content_filter", "too_large"})
"""Failures for which the client can do something."""


async def serve(
    request: Request, targets: Sequence[Target], client: Client, images: Images, budget_s: float
) -> None:
    """Answer one request from the first of `targets` that can.

    `budget_s`: how long the client may have waited in all for a retry still to be made.
    Raises `ProxyError` when the request cannot be answered, or its stream cannot be finished.
    """
    failures: list[ProxyError] = []
    for target in targets:
        try:
            await _serve_from(target, request, client, images, budget_s)
            return
        except ProxyError as error:
            if client.committed:
                raise
            failures.append(error)
            if error.kind not in PASSING:
                break
    request.trace.target = targets[0].id
    raise failures[0]


async def _serve_from(
    target: Target, request: Request, client: Client, images: Images, budget_s: float
) -> None:
    request.trace.target = target.id
    unfit: list[ProxyError] = []
    absent: list[ProxyError] = []
    for surface in _surfaces(target, request):
        try:
            plan = make_plan(request, target, surface)
        except ProxyError as error:  # this surface cannot carry it; a richer or plainer one may
            unfit.append(error)
            continue
        _note(plan)
        await inline_images(plan, images)
        await fit_images(plan)
        check_size(plan)
        try:
            await exchange(plan, client, budget_s)
            return
        except NotHere as refusal:
            if client.committed:
                raise refusal.error from None
            absent.append(refusal.error)
        except ProxyError as error:
            # A surface that is there and has trouble, or finds fault with the request, says more
            # than one that is not there.
            if client.committed or error.kind in PASSING or error.kind in _FAULTS or not (unfit or absent):
                raise
            break
    raise (unfit or absent)[0]


def _surfaces(target: Target, request: Request) -> Sequence[Surface]:
    provider = target.provider
    if provider.unavailable is not None:
        raise ProxyError("unavailable", f"provider {provider.name} is unavailable: {provider.unavailable}")
    if request.shape is None:
        return ("embeddings",)
    return provider.surfaces(target.model, request.shape)


def _note(plan: Plan) -> None:
    trace, encoded = plan.request.trace, plan.encoded
    trace.lane, trace.surface = plan.lane, plan.surface
    trace.losses, trace.repairs, trace.pairing = encoded.losses, encoded.repairs, None
    if any(repair.site == "chain_pairing" for repair in encoded.repairs):
        trace.pairing = pairing_ids(encoded.body["input"])
