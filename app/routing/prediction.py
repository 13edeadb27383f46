"""What a request would lose on its way to each of several targets, before one of them is asked.

The exact answer is to plan the request for the target and to count its losses: no second table that could
say otherwise. It is kept by the request's *make* (its keys, its tools', parts' and items' types, the values
of its short words), so a client that asks the same way again costs one look-up for each candidate.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from providers.base import Target
from translators.capsule import MARK
from translators.dialect import Loss, LossKind
from translators.errors import ProxyError
from translators.ir import Json

from ..plan import make_plan
from ..request import Request

WEIGHTS: dict[LossKind, float] = {
    "bookkeeping": 0.0,
    "tuning": 1.0,
    "content": 10.0,
    "feature": 10.0,
    "policy": 0.0,
}
"""What is lost, against each other: a knob left out changes an answer less than a part or a tool."""
UNFIT = 1000.0
"""The target cannot carry the request at all: it is asked last, for its words."""
MAX_KEPT = 20_000

_WORD = 32
"""A string as short as that is one word of an enumeration, and its value matters."""
_LISTS = ("input", "messages", "tools", "functions")
_NAMES = ("model", "user", "safety_identifier", "prompt_cache_key", "metadata", "client_metadata")
"""Keys whose values differ from client to client and decide nothing; their presence may."""
_DEPTH = 3
"""As deep as the wire's own keys go; below are schemas."""
_COUNT = 32
"""A whole number as small as that is a count (`n`, `top_logprobs`), and one more may be too many."""


class Prediction(NamedTuple):
    """What one target would cost a request."""

    loss: float
    reasons: tuple[str, ...] = ()


class Predictor:
    """Predictions of one process, by target and make of request."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Prediction] = OrderedDict()

    def predict(self, request: Request, targets: Iterable[Target]) -> list[Prediction]:
        """One for each target, in their order."""
        # What layers a request brings, and what of its sealed reasoning a strict one would lose, is told by
        # no make: a seal is of one target.
        alone = request.overrides or (request.strict and MARK in request.raw)
        made = None if alone else hash(make_of(request.body))
        return [self._predict(request, target, made) for target in targets]

    def _predict(self, request: Request, target: Target, made: int | None) -> Prediction:
        """`made`: the hash of the make, which a client can make as large as it likes."""
        if target.provider.unavailable is not None:
            return Prediction(UNFIT)
        if made is None:
            return _plan(request, target)
        key = (target.id, request.shape, request.strict, _learned(request, target), made)
        found = self._kept.get(key)
        if found is None:
            found = _plan(request, target)
            if found.loss < UNFIT:  # what was refused may have been a value, of which the make tells nothing
                self._kept[key] = found
            if len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
        return found


def _plan(request: Request, target: Target) -> Prediction:
    if request.shape is None:
        return Prediction(0.0)
    fault = ""
    for surface in target.provider.surfaces(target.model, request.shape):
        try:
            plan = make_plan(request, target, surface)
        except ProxyError as error:
            fault = fault or error.message
            continue
        return Prediction(weigh(plan.encoded.losses), _reasons(plan.encoded.losses))
    return Prediction(UNFIT, (fault[:200],))


def _learned(request: Request, target: Target) -> Hashable:
    """What the target turned out not to take: that changes what a request loses there."""
    provider, model = target.provider, target.model
    if request.shape is None:
        return None
    surfaces = tuple(provider.surfaces(model, request.shape))
    return surfaces, *[len(provider.known_rejections(model, each)) for each in surfaces]


def weigh(losses: Iterable[Loss]) -> float:
    """All losses of a request as one number."""
    return sum(WEIGHTS[loss.kind] for loss in losses)


def _reasons(losses: Iterable[Loss]) -> tuple[str, ...]:
    return tuple(f"{loss.pointer}: {loss.reason}"[:120] for loss in losses if WEIGHTS[loss.kind])[:10]


def make_of(body: Json) -> Hashable:
    """What of a request decides what becomes of it: names and kinds, never its texts."""
    own = frozenset((key, _form(value, _DEPTH)) for key, value in body.items() if key not in _LISTS + _NAMES)
    named = tuple(key for key in _NAMES if body.get(key) is not None)
    parts = frozenset(kind for key in _LISTS for kind in _kinds(body.get(key)))
    return own, named, parts


def _form(value: Any, depth: int) -> Hashable:
    if isinstance(value, str):
        return value if len(value) <= _WORD else "text"
    if isinstance(value, dict):
        return frozenset((name, _form(each, depth - 1)) for name, each in value.items()) if depth else "table"
    if isinstance(value, list):
        return "list"
    if isinstance(value, bool) or value is None:
        return value
    return ("count", value) if isinstance(value, int) and 0 <= value <= _COUNT else "number"


def _kinds(entries: Any) -> Iterator[Hashable]:
    """Of messages, items and tools: role, type, keys, and the types of their parts."""
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        yield _word(entry.get("role")), _word(entry.get("type")), *entry
        content, output = entry.get("content"), entry.get("output")
        if isinstance(content, list):
            yield from _parts(content)
        if isinstance(output, list):  # a tool's result may hold images
            yield from _parts(output)


def _parts(parts: Sequence[Any]) -> Iterator[Hashable]:
    for part in parts:
        if isinstance(part, dict):
            yield "part", _word(part.get("type")), *part


def _word(value: Any) -> Hashable:
    """`_form` for what is None or a short string in all but odd requests: it is asked for every turn."""
    if value is None or (type(value) is str and len(value) <= _WORD):
        return value
    return _form(value, 1)
