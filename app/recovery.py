"""A refusal that can be answered by asking for less: before the first byte, at once, a few times.

Two kinds. A backend names a field that it does not take: that field is left out, and when the backend
then answers, it is remembered, so that later requests leave it out from the start. Or it cannot use the
reasoning of earlier turns: that is left out once. Both are told to the client like any other loss, and
neither is done for one that wants none (`x-dragoman-strict`): it gets the backend's words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import orjson
import structlog

from providers.base import SHAPE_OF
from translators.chat import seals as chat_seals
from translators.dialect import Loss, Repair
from translators.errors import ProxyError
from translators.ir import Json, Shape
from translators.rejection_reading import rejected
from translators.rejections import Rejection
from translators.responses import seals as responses_seals

from .payload import write_body
from .plan import Plan, leave_out

MAX_ROUNDS = 4
"""Refusals of one request that are answered so; a text may name several fields."""

_NAMING = frozenset({400, 422})
"""Statuses with which a field is refused."""

_SEALS: Mapping[Shape, tuple[Callable[[int, str | None, str], bool], Callable[[Json], Json | None]]] = {
    "chat": (chat_seals.refused, chat_seals.without_seals),
    "responses": (responses_seals.refused, responses_seals.without_seals),
}
"""How a backend of each shape refuses reasoning, and its body without any."""
_NO_SEALS = (lambda *_: False, lambda _: None)
"""Ollama's reasoning is words alone."""

_log = structlog.get_logger("dragoman")


def ask_for_less(plan: Plan, status: int, error: ProxyError) -> bool:
    """Take out of `plan` what the backend refuses; whether there is something else to ask now."""
    if plan.request.strict or plan.request.shape is None:
        return False
    return _without_reasoning(plan, status, error) or _without_fields(plan, status, error)


def blames_extra_body(plan: Plan, status: int, error: ProxyError) -> bool:
    """Whether the backend refuses what the provider's `extra_body` sets; `error` then says so.

    Nothing is left out then: these keys are the configuration's own, and asked for as they are.
    """
    extra, provider = plan.target.provider.extra_body, plan.target.provider.name
    if extra is None or status not in _NAMING or error.kind != "bad_request":
        return False
    named = [tuple(re.split(r"[.\[\]]+", error.param))] if error.param else []
    if plan.request.shape is not None:
        body, shape = orjson.loads(plan.payload), SHAPE_OF[plan.surface]
        found = rejected(body, shape, error.message, error.param, error.code, plan.left_out)
        named += [each.path for each in found]
    refused = next((path for path in named if extra.sets(path)), None)
    if refused is None:
        return False
    error.message += f" ({'.'.join(refused)} comes from the extra_body of provider {provider})"
    return True


def remember(plan: Plan) -> None:
    """The backend has answered: what it was asked without is what it does not take."""
    found, plan.refused = plan.refused, []
    plan.request.trace.learned += len(found)
    plan.target.provider.learn_rejections(plan.target.model, plan.surface, found)


def _without_reasoning(plan: Plan, status: int, error: ProxyError) -> bool:
    refused, without_seals = _SEALS.get(SHAPE_OF[plan.surface], _NO_SEALS)
    if plan.unsealed or not refused(status, error.code, error.message):
        return False
    bare = without_seals(orjson.loads(plan.payload))
    if bare is None:
        return False
    plan.unsealed = True
    request = plan.request
    plan.encoded.repairs.append(Repair("request", "sealed_reasoning"))
    request.trace.repairs = plan.encoded.repairs
    sealed = responses_seals.sealed if request.shape == "responses" else chat_seals.sealed
    _ask_with(plan, bare, sealed(request.body))
    return True


def _without_fields(plan: Plan, status: int, error: ProxyError) -> bool:
    learns = plan.profile.request.learn_rejections and plan.rounds < MAX_ROUNDS
    if not learns or status not in _NAMING or error.kind != "bad_request":
        return False
    body, shape = orjson.loads(plan.payload), SHAPE_OF[plan.surface]
    found = rejected(body, shape, error.message, error.param, error.code, plan.left_out)
    if not found:
        return False
    plan.rounds += 1
    plan.left_out += found
    plan.refused += found
    _ask_with(plan, *leave_out(found, body, plan.request, shape))
    _report(plan, found, error)
    return True


def _ask_with(plan: Plan, body: Json, lost: Sequence[Loss]) -> None:
    plan.encoded.losses += lost
    plan.request.trace.losses = plan.encoded.losses
    plan.payload = write_body(body, plan.target.provider)


def _report(plan: Plan, found: Sequence[Rejection], error: ProxyError) -> None:
    """One line for each field, once: later requests leave it out without being refused."""
    for each in found:
        _log.info(
            "provider:field_rejected",
            request_id=plan.request.trace.id.decode(),
            target=plan.target.id,
            surface=plan.surface,
            field=each.field,
            value=each.value,
            instead=each.name or each.instead or each.bounds,
            reason=error.message,
        )
