"""From the name that a client asks for to the order in which endpoints are asked.

A name of exactly one endpoint is that endpoint, and nothing is weighed. Where several may answer (a group, a
class, a search, a model that two providers have), those go first that

1. are not resting after failures,
2. are no fallback, or an earlier one,
3. lose the least of this very request (`prediction.py`),
4. have a place free, where their provider's are limited,
5. answered this conversation before,
6. come first in the group's draw, or in the order of their class (`providers/ranking`).

What is known not to take what the request needs (tools, images, its length) is left out before. A model's
own name may mean several providers, in the order of the file: then neither is weighed, but for fallbacks.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from providers.base import Target
from providers.catalog import Catalog
from providers.directory import Choice, Found
from providers.health import Health
from translators.errors import ProxyError, bad_request

from ..access.passthrough import Sign
from ..access.scopes import Scope
from ..attempt import Limits
from ..request import Request
from .needs import WORDS, Needs, needs_of
from .prediction import Prediction, Predictor
from .sticky import Sticky, conversation

MAX_CANDIDATES = 8
"""More substitutes than that are asked by nobody within the time a client waits."""

NOTHING = Prediction(0.0)
NO_LIMITS: Mapping[str, Limits] = {}

ScopeOf = Callable[[Mapping[bytes, bytes]], Scope | None]

Lot = tuple[float, Choice]
"""A choice and its place in the order, all else being equal: rising."""


@dataclass(slots=True)
class Considered:
    """One endpoint that may answer, and what its place in the order is made of."""

    choice: Choice
    prediction: Prediction
    resting: bool
    busy: bool
    """Whether its provider has as many requests as it takes, so that this one would have to wait."""
    sticky: bool
    draw: float

    def place(self) -> tuple[bool, int, float, bool, bool, float]:
        loss = self.prediction.loss
        return self.resting, self.choice.reserve, loss, self.busy, not self.sticky, self.draw

    def explained(self) -> dict[str, object]:
        """For the log."""
        return {
            "target": self.choice.target.id,
            "loss": self.prediction.loss,
            "reasons": list(self.prediction.reasons),
            "resting": self.resting,
            "busy": self.busy,
            "fallback": self.choice.reserve,
            "sticky": self.sticky,
        }


@dataclass(slots=True)
class Route:
    """Whom to ask, best first, and why in this order."""

    source: str
    """How the name was read: exact, alias, group, class or search."""
    targets: Sequence[Target]
    windows: Mapping[str, int] = field(default_factory=dict)
    """Context windows in tokens by `provider/model`, as far as known."""
    considered: Sequence[Considered] = ()
    on_answer: Callable[[Target], None] | None = None

    def answered(self, target: Target) -> None:
        """Remember for the conversation who answered."""
        if self.on_answer is not None:
            self.on_answer(target)


class Router:
    """Makes routes; what it remembers lives as long as the process."""

    def __init__(
        self,
        health: Health,
        sticky: Sticky | None = None,
        limits: Mapping[str, Limits] = NO_LIMITS,
        scope_of: ScopeOf | None = None,
        sign: Sign | None = None,
    ) -> None:
        """`scope_of`: the models that a request with these headers may be answered by, None: all. `sign`:
        gives its key to the targets that are asked with it.
        """
        self._health, self._limits, self._scope_of, self._sign = health, limits, scope_of, sign
        self._predictor, self._sticky = Predictor(), sticky or Sticky()

    def route(self, request: Request, headers: Mapping[bytes, bytes], catalog: Catalog) -> Route:
        """Raises `ProxyError`: not_found for an unknown name, 400 for a need that no candidate meets."""
        found = self._route(request, headers, catalog)
        if self._sign is not None:
            found.targets = self._sign(found.targets, headers)
        return found

    def _route(self, request: Request, headers: Mapping[bytes, bytes], catalog: Catalog) -> Route:
        embeddings = request.shape is None
        scope = self._scope_of(headers) if self._scope_of is not None else None
        if scope is None:
            found = catalog.find(request.model, embeddings=embeddings)
        else:
            scope.check(request)
            found = scope.find(catalog, request.model, embeddings)
        if len(found.choices) == 1:
            (choice,) = found.choices
            window = choice.window
            return Route(found.source, [choice.target], {choice.target.id: window} if window else {})
        key = conversation(request.body, headers) or request.context.conversation
        picked = self._pick(found, request, key)
        considered = sorted(self._consider(request, found, picked, key), key=Considered.place)
        targets = [each.choice.target for each in considered]
        windows = {each.target.id: each.window for _, each in picked if each.window is not None}
        remember = None if key is None else partial(self._remember, request.model, key)
        return Route(found.source, targets, windows, considered, remember)

    def _pick(self, found: Found, request: Request, key: str | None) -> Sequence[Lot]:
        """At most MAX_CANDIDATES that are able; those that rest only where there are not enough others.

        Some of another provider are among them, and a fallback, where there are any: what is wrong with one
        endpoint is often wrong with all of its provider.
        """
        weighed = not found.fixed or found.choices[-1].reserve
        needs = needs_of(request.body, request.raw) if weighed else Needs()
        fresh, resting = list[Lot](), list[Lot]()
        for lot in _lots(found, key):
            if (lot[1].reserve or not found.fixed) and _missing(needs, lot[1]) is not None:
                continue
            (resting if self._health.resting(lot[1].target.id) else fresh).append(lot)
            if len(fresh) == MAX_CANDIDATES:
                break
        picked = [*fresh, *resting][:MAX_CANDIDATES]
        if not picked:
            raise _none_able(found, needs, request.model)
        if len(found.choices) > MAX_CANDIDATES:
            known = {choice.target.id for _, choice in picked}
            others = [
                lot
                for lot in found.others
                if lot[1].target.id not in known and _missing(needs, lot[1]) is None
            ]
            picked[len(picked) - max(0, len(picked) + len(others) - MAX_CANDIDATES) :] = others
        return picked

    def _consider(
        self, request: Request, found: Found, picked: Sequence[Lot], key: str | None
    ) -> list[Considered]:
        predictions = [NOTHING] * len(picked)
        if not found.fixed:
            predictions = self._predictor.predict(request, [choice.target for _, choice in picked])
        last = None if key is None else self._sticky.get(request.model, key)
        return [
            Considered(
                choice,
                prediction,
                self._health.resting(choice.target.id),
                self._busy(choice),
                choice.target.id == last,
                lot,
            )
            for (lot, choice), prediction in zip(picked, predictions, strict=True)
        ]

    def _busy(self, choice: Choice) -> bool:
        limits = self._limits.get(choice.target.provider.name)
        return limits is not None and limits.gate is not None and limits.gate.full

    def _remember(self, model: str, key: str, target: Target) -> None:
        self._sticky.set(model, key, target.id)


def _lots(found: Found, key: str | None) -> Iterable[Lot]:
    """The choices with their places: of a group those that its members drew, else as they come."""
    if found.choices[0].weight is None:
        return enumerate(found.choices)
    lots = [(draw(choice, place, key), choice) for place, choice in enumerate(found.choices)]
    return sorted(lots, key=lambda lot: (lot[1].reserve, lot[0]))


def draw(choice: Choice, place: int, key: str | None) -> float:
    """The place in the order; of a group's member its lot: the smaller the heavier it weighs.

    Lots are exponentially distributed with the weight as rate, so the first and every next one is drawn in
    proportion to the weights. A conversation draws the same lots in every process.
    """
    if choice.weight is None:
        return float(place)
    if key is None:
        chance = random.random()  # noqa: S311
    else:
        digest = hashlib.blake2b(f"{key}\0{choice.target.id}".encode(), digest_size=8).digest()
        chance = int.from_bytes(digest) / 2**64
    return -math.log(1.0 - chance) / choice.weight


def _missing(needs: Needs, choice: Choice) -> str | None:
    """What it is known not to have of what is needed; its configured window goes before the listed one."""
    missing, listed = needs.missing(choice.card, None), choice.window
    if missing == WORDS["json_schema"] and _writes_schemas_itself(choice.target):
        missing = None
    if missing is None and listed is not None and needs.missing(None, listed):
        missing = needs.missing(None, _window(choice))
    return missing


def _writes_schemas_itself(target: Target) -> bool:
    """Whether a schema is put into other words for it, which every model takes."""
    return target.provider.profile(target.model, "chat").output_format.json_schema in ("tool", "prompt")


def _window(choice: Choice) -> int | None:
    target = choice.target
    return target.provider.profile(target.model, "chat").request.context_window or choice.window


def _none_able(found: Found, needs: Needs, name: str) -> ProxyError:
    missing = {_missing(needs, each) for each in found.choices}
    lacking = {words for words in missing if words is not None}
    what = " or ".join(sorted(lacking))
    too_long = all(words.startswith("a prompt") for words in lacking)
    code = "context_length_exceeded" if too_long else "unsupported_parameter"
    message = (
        f"no model that {name[:128]!r} may mean takes {what}; GET /models?tools=true&vision=true lists those "
        "that do"
    )
    return bad_request(message, "model", code=code)
