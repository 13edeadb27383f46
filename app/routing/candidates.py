"""Who is asked next: the candidates of one request and what came of asking each.

A failure that may pass puts a candidate back for a while, and the next one is asked at once; a pause is
only made when nobody else is left. What is settled takes a candidate out: an answer that came whole, a
silence (asking again would cost the client the same wait), a refusal. A prompt too long for one goes only to
those known to take a longer one. What blames the request itself is the end, and what the client is told.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from providers.base import Surface, Target
from translators.errors import Kind, ProxyError

if TYPE_CHECKING:
    from ..plan import Plan

FIRST_PAUSE_S = 0.5
AS_TOLD = 3
"""Tries after which a backend that goes on asking for no pause, or a short one, gets ours."""
JITTER = 0.5
"""A pause is stretched by up to this share, so that clients who failed together come back apart."""

PASSING: frozenset[Kind] = frozenset({"rate_limit", "upstream", "unavailable", "overloaded", "timeout"})
"""Failures that may be over in a moment, or that another endpoint may not have."""

OWN: frozenset[Kind] = PASSING | {"upstream_auth", "quota", "forbidden", "not_found"}
"""Failures that speak against an endpoint: its trouble, or what this account has or may not do there."""

ELSEWHERE: frozenset[Kind] = OWN | {"context_length", "too_large"}
"""Failures after which another candidate is asked: they say something of the endpoint, not of the request."""


@dataclass(slots=True)
class Candidate:
    """A target that may answer, and what is known of it for this request."""

    target: Target
    window: int | None = None
    """Tokens that its model takes, as listed; None: nobody says."""
    plans: dict[Surface, Plan] = field(default_factory=dict)
    """How it was asked; what a backend turned out not to take stays left out."""
    tries: int = 0
    not_before: float = 0.0
    spent: bool = False

    @property
    def tokens(self) -> int | None:
        """Tokens that its model takes: what the context guard goes by, else what was listed."""
        target = self.target
        return target.provider.profile(target.model, "chat").request.context_window or self.window


class Candidates:
    """The candidates of one request, best first. Times are `time.monotonic()` seconds.

    `budget_s`: how long the client may have waited in all for a target still to be asked again.
    """

    def __init__(self, targets: Sequence[Target], windows: Mapping[str, int], began: float, budget_s: float):
        self.all = [Candidate(target, windows.get(target.id)) for target in targets]
        self.failures: list[tuple[Candidate, ProxyError]] = []
        self._began, self._budget_s = began, budget_s
        self._blamed = False

    def next(self, now: float) -> tuple[Candidate, float] | None:
        """The next to ask and the seconds to wait before it; None: nobody is left."""
        for each in self.all:
            if not each.tries and not each.spent:
                return each, 0.0
        # The others may have taken their time: nobody is asked again beyond the budget.
        latest = self._began + self._budget_s
        left = [each for each in self.all if not each.spent and max(now, each.not_before) <= latest]
        if not left:
            return None
        soonest = min(left, key=lambda each: each.not_before)
        return soonest, max(0.0, soonest.not_before - now)

    @property
    def told(self) -> tuple[Candidate, ProxyError]:
        """The failure that the client is told, once all have failed, and whose it is.

        What blames the request; else the first: it belongs to what was asked for, the rest to substitutes.
        """
        return self.failures[-1 if self._blamed else 0]

    def failed(
        self, candidate: Candidate, error: ProxyError, now: float, again: bool = False, asked: bool = True
    ) -> float | None:
        """Note a failure and give the seconds until this one may be asked again, None: it will not be.

        `again`: it may pass; not `asked`: the request could not even be put to it.
        """
        self.failures.append((candidate, error))
        delay = pause(error, candidate.tries, now - self._began, self._budget_s) if again else None
        if delay is None:
            candidate.spent = True
        else:
            candidate.not_before = now + delay
        if error.kind == "context_length":
            self._keep_larger(candidate.tokens or 0)
        elif delay is None and asked and error.kind not in ELSEWHERE:
            self._blamed = True
            for each in self.all:
                each.spent = True
        return delay

    def _keep_larger(self, window: int) -> None:
        for each in self.all:
            each.spent = each.spent or (each.tokens or 0) <= window


def most_retries(budget_s: float) -> int:
    """How many pauses of our own the budget holds, at their shortest; a backend may ask for shorter ones."""
    return int(math.log2(budget_s / FIRST_PAUSE_S + 1))


def pause(failure: ProxyError, tries: int, waited_s: float, budget_s: float) -> float | None:
    """Seconds until the next try after `tries` failed ones; None: the budget does not allow it."""
    told = failure.retry_after
    ours = tries if told is None else tries - AS_TOLD
    delay = told or 0.0
    if ours > 0:
        delay = max(delay, FIRST_PAUSE_S * 2 ** (ours - 1) * (1 + JITTER * random.random()))  # noqa: S311
    return delay if waited_s + delay <= budget_s else None
