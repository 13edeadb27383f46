"""`truncation: auto`: the oldest turns go where a conversation is longer than the model's context.

By estimate where the context is known (the profile's `request.context_window`, else what the backend lists);
by the backend's own word where it refuses the prompt as too long: then a quarter goes, a few times.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import count

import orjson

from translators.budget import CHARS_PER_TOKEN, prompt_tokens
from translators.dialect import Loss
from translators.truncation import oldest

from ..plan import Plan, make_plan
from ..request import Request

MAX_ROUNDS = 3
"""Refusals of one prompt that are answered by a shorter one."""
_LESS = 0.75
_EXACT = 2
"""Further rounds that take what is over by estimate; each later one takes twice as much as the one before.
What the turns hold may be what the backend does not get: one by one, thousands of them took minutes."""
_ANSWER = 0.5
"""The most of a context that is kept free for the answer's own limit."""
_REASON = "the conversation is longer than the model's context, and truncation is auto"


def may_shorten(request: Request) -> bool:
    body = request.body
    return (
        body.get("truncation") == "auto" and request.shape == "responses" and type(body.get("input")) is list
    )


def fitted(plan: Plan, window: int | None) -> Plan:
    """`plan`, or one without the oldest turns; `window` are the tokens that its model takes, as listed."""
    window = plan.profile.request.context_window or window
    if window is None:
        return plan
    limit = plan.request.body.get("max_output_tokens")
    free = min(limit if type(limit) is int else 0, int(window * _ANSWER))
    return _down_to(plan, window - free)


def shortened(plan: Plan) -> Plan | None:
    """A plan for less than what the backend found too long; None: no turn may go."""
    shorter = _down_to(plan, int(_tokens(plan) * _LESS))
    return None if shorter is plan else shorter


def _tokens(plan: Plan) -> int:
    return prompt_tokens(orjson.loads(plan.payload), plan.profile.request)


def _down_to(plan: Plan, most: int) -> Plan:
    """`plan` with as many turns less as bring it to `most` tokens, or as many as may go."""
    least = float(plan.profile.request.chars_per_token or CHARS_PER_TOKEN)
    for number in count():
        over = _tokens(plan) - most
        more = oldest(plan.request.body["input"], over * least) if over > 0 else ()
        if not more:
            break
        plan = _without(plan, more)
        least *= 1 if number < _EXACT else 2
    return plan


def _without(plan: Plan, gone: Collection[int]) -> Plan:
    """The same asked without the items at `gone`; what is told of the others is told by their own places."""
    request, items = plan.request, plan.request.body["input"]
    stay = [place for place in range(len(items)) if place not in gone]
    body = {**request.body, "input": [items[place] for place in stay]}
    own = request.places or range(len(items))
    places = [own[place] for place in stay]
    short = replace(request, body=body, raw=orjson.dumps(body), decoded=None, places=places, link=None)
    made = make_plan(short, plan.target, plan.surface)
    before = [each for each in plan.encoded.losses if each.reason == _REASON]
    lost = [Loss(f"/input/{own[place]}", _REASON, "content") for place in sorted(gone)]
    made.encoded.losses = [*before, *lost, *(_moved(each, places) for each in made.encoded.losses)]
    return made


def _moved(loss: Loss, places: list[int]) -> Loss:
    head, _, rest = loss.pointer.removeprefix("/input/").partition("/")
    if not loss.pointer.startswith("/input/") or not head.isdigit():
        return loss
    return loss._replace(pointer="/".join(["/input", str(places[int(head)]), *([rest] if rest else [])]))
