"""Conversations that a backend keeps too (`wire.chaining`): it is sent what is new.

A link is good for the backend that gave the response, and only until it says otherwise: then the whole
conversation is sent, once. Everything else (who may continue what, the history) is as for any backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from providers.base import Surface, Target
from translators.dialect import ClientDialect, Encoded, Repair
from translators.errors import ProxyError
from translators.profile import Profile
from translators.responses.pairing import Placed, plain_ids, repair_owners, repair_pairs

from ..ids import new_id
from ..request import Request

if TYPE_CHECKING:
    from ..plan import Plan

FIELD = "previous_response_id"
_LOST_CODES = frozenset({"response_not_found", "previous_response_not_found"})
_CALLS = frozenset({"function_call", "custom_tool_call"})

_log = structlog.get_logger("dragoman")


@dataclass(frozen=True, slots=True)
class Link:
    """A response that a backend stored."""

    target: str
    """`provider/model` whose backend that is."""
    id: str
    """Its id there."""
    output: Sequence[Any]
    """Its items, of which the calls wait for results."""


def stored_there(request: Request, profile: Profile, surface: Surface) -> bool | None:
    """Whether the backend is to store the answer; None: that is as the client says."""
    rule = profile.wire.chaining
    if rule is not None and not rule:
        return False
    if rule is None or surface != "responses" or not request.context.stored or profile.answer.continuations:
        return None
    if request.context.conversation is not None or (rule == "auto" and profile.reasoning.ask == "none"):
        return None
    return True


def mark(encoded: Encoded, stored: bool | None, surface: Surface, profile: Profile) -> None:
    """Tell the backend whether to store its answer, where it can be told."""
    unneeded = surface == "chat" and not encoded.body.get("store")  # Chat stores nothing by itself
    if stored is None or unneeded or "store" in profile.request.drop or encoded.body.get("store") is stored:
        return
    encoded.body, encoded.changed = {**encoded.body, "store": stored}, True


def linked(request: Request, target: Target, client: ClientDialect) -> tuple[Request, list[Repair]] | None:
    """The request without what `target` knows, and what was mended in the rest; None: it knows nothing."""
    link = request.link
    if link is None or link.target != target.id:
        return None
    found = _new_items(request.own, link.output)
    if found is None:
        return None
    items, repairs = found
    body = {**request.body, "input": items, "store": True}
    part = replace(request, body=body, raw=orjson.dumps(body), link=None)
    call = client.decode_request(body, new_id)
    # Beside the call, since clients' own ids mean nothing to a backend and are refused in it.
    part.decoded = replace(call, extra={**call.extra, FIELD: link.id})
    return part, repairs


def _new_items(own: list[Any], before: Sequence[Any]) -> tuple[list[Any], list[Repair]] | None:
    """What is new, without reasoning and with results for all calls in `before`; None: it cannot be told."""
    calls = [item for item in before if isinstance(item, dict) and item.get("type") in _CALLS]
    placed = [Placed(item, "") for item in (*calls, *own)]
    placed = [one for one in placed if one.type != "reasoning"]
    plain_ids(placed)
    repairs = repair_owners(placed)
    placed, mended = repair_pairs(placed)
    if any(repair.kind == "duplicate_id" for repair in mended):
        return None  # the backend knows these calls under the ids that it gave
    known = {id(item) for item in calls}
    items = [one.item for one in placed if id(one.item) not in known]
    return (items, repairs + mended) if items else None


def breaks(status: int, error: ProxyError) -> bool:
    """Whether a backend says that it cannot go on from a response, or not within its context.

    `status` 0: it says so inside an answer of status 200.
    """
    if error.kind == "context_length":
        return True
    named = error.code in _LOST_CODES or error.param == FIELD or FIELD in error.message
    return status in (0, 400, 404) and named


def invalidate(plan: Plan, error: ProxyError) -> None:
    """Forget the link of a plan that broke."""
    request, target = plan.request, plan.target
    request.trace.chain_invalidated = True
    about = {"request_id": request.trace.id.decode(), "provider": target.provider.name, "model": target.model}
    code = error.body()["code"] or error.kind
    _log.warning("provider:response_chain_invalidated", **about, invalidated_id=plan.link, error_code=code)
