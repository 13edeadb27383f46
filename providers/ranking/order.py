"""The order of models within a class, and why each stands where it stands.

Without measurements: ready before not ready, a model's own endpoint before another way to it, scored
before unscored, loaded before cold; scored ones by quality, then cheaper, faster, newer; unscored ones
hosted before local, larger of the local ones first, then newer, cheaper; embeddings as listed. What a
gateway measures of an endpoint is taken off its score by `Weights`, in steps: noise between two calls must
not reorder a catalogue. What was never measured costs nothing, so a new endpoint gets its turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType

from .cards import ModelCard
from .families import ModelClass

CALLS_HALF_TRUSTED = 5.0
"""Calls after which measurements count half; they count fully in the long run."""
STEP = 0.02
"""Penalties smaller than this don't move an endpoint."""


@dataclass(frozen=True, slots=True)
class LiveProfile:
    """What was measured of an endpoint, decayed by whoever measures; None: not measured."""

    ttft_s: float | None = None
    """Seconds to the first token."""
    tokens_per_s: float | None = None
    error_rate: float = 0.0
    """Share of calls that failed, 0 to 1."""
    samples: float = 0.0
    """Calls that this is drawn from, after decay."""

    @property
    def confidence(self) -> float:
        return self.samples / (self.samples + CALLS_HALF_TRUSTED)


@dataclass(frozen=True, slots=True)
class Weights:
    """Most that each thing takes off a score of 0 to 1 (the published quality, as a share of the best).

    An endpoint whose every call fails ends below one half as good; latency and throughput part equals.
    Cost only breaks ties unless it is given a weight.
    """

    errors: float = 0.5
    latency: float = 0.1
    throughput: float = 0.05
    cost: float = 0.0


PLAIN = Weights()


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a measure begins to count against an endpoint, and where it counts fully."""

    good: float
    bad: float

    def share(self, value: float) -> float:
        return min(1.0, max(0.0, (value - self.good) / (self.bad - self.good)))


ERRORS = Scale(0.0, 1.0)
LATENCY_S = Scale(1.0, 15.0)
TOKENS_PER_S = Scale(50.0, 5.0)
COST = Scale(0.0, 30.0)
"""Dollars per million tokens: the dearest model of a real workspace cost 30."""

NOTHING: Mapping[str, float] = MappingProxyType({})
OrderKey = tuple[bool, bool, bool, bool, bool, float, float, float, tuple[int, int, int], float]


@dataclass(frozen=True, slots=True)
class Standing:
    """A card in its place: what class, what it scores, why."""

    card: ModelCard
    cls: ModelClass | None
    why: str
    """The reason for its class."""
    breakdown: Mapping[str, float]
    """What makes up the score: `quality`, less `errors`, `latency`, `throughput`, `cost`; `total`."""
    live: LiveProfile | None
    key: OrderKey

    def reasons(self) -> list[str]:
        """The same for people, most telling first."""
        card = self.card
        said = [f"class {self.cls}: {self.why}" if self.cls else f"no class: {self.why}"]
        if card.ready is False:
            said.append("not ready, so it comes last")
        if card.twin_of is not None:
            said.append(f"another way to {card.twin_of}, so it comes after the models' own endpoints")
        if card.loaded is False:
            said.append("not loaded, so it comes after those that are")
        if card.quality is None and self.cls and card.task == "chat":
            said.append("no published score, so it comes after those with one")
        said += [text for text in (_published(card), _measured(self.live)) if text]
        return said


def place(
    card: ModelCard,
    classified: tuple[ModelClass | None, str],
    live: LiveProfile | None = None,
    best: float = 0.0,
    weights: Weights = PLAIN,
) -> Standing:
    """The standing of a card; `best` is the highest published quality of the catalogue."""
    cls, why = classified
    if card.quality is None and live is None and not weights.cost:
        return Standing(card, cls, why, NOTHING, None, _key(card, 0.0))
    taken = _taken(card, live, weights)
    quality = {"quality": card.quality / best if best > 0 else 0.0} if card.quality is not None else {}
    total = sum(quality.values()) - _in_steps(sum(taken.values()))
    shown = {**quality, **{name: 0.0 - share for name, share in taken.items()}, "total": total}
    rounded = {name: round(share, 4) for name, share in shown.items()}
    return Standing(card, cls, why, rounded, live, _key(card, total))


def _taken(card: ModelCard, live: LiveProfile | None, weights: Weights) -> dict[str, float]:
    taken: dict[str, float] = {}
    if weights.cost and card.cost is not None:
        taken["cost"] = weights.cost * COST.share(card.cost)
    if live is None:
        return taken
    trust = live.confidence
    taken["errors"] = weights.errors * ERRORS.share(live.error_rate) * trust
    if live.ttft_s is not None:
        taken["latency"] = weights.latency * LATENCY_S.share(live.ttft_s) * trust
    if live.tokens_per_s is not None:
        taken["throughput"] = weights.throughput * TOKENS_PER_S.share(live.tokens_per_s) * trust
    return taken


def _in_steps(share: float) -> float:
    return round(share / STEP) * STEP


def _key(card: ModelCard, total: float) -> OrderKey:
    """Sorts rising; equal keys keep the order of the listing, providers in the order of the file."""
    if card.task == "embedding":  # nothing published compares them: the order of the listing
        return (*_state(card), -total, 0.0, 0.0, (0, 0, 0), 0.0)
    cost = inf if card.cost is None else card.cost
    parts = (*card.version, 0, 0, 0)
    newest = (-parts[0], -parts[1], -parts[2])
    if card.quality is None:
        # Versions of unlike families are hardly comparable, prices even less: the cheapest model
        # of a class is seldom the one meant.
        size = (card.parameter_count or 0.0) if card.local else 0.0
        return (*_state(card), -total, -size, 0.0, newest, cost)
    # Measured speed counts above, in steps; as a tie-breaker it would swap equal models at every call.
    return (*_state(card), -total, cost, -(card.speed or 0.0), newest, 0.0)


def _state(card: ModelCard) -> tuple[bool, bool, bool, bool, bool]:
    """What fails at an endpoint is likely to fail on another way to its model: other models come before."""
    twin = card.twin_of is not None
    return card.ready is False, twin, card.quality is None, card.loaded is False, card.local


def _published(card: ModelCard) -> str:
    scores = {"quality": card.quality, "cost": card.cost, "speed": card.speed}
    said = [f"{name} {value:g}" for name, value in scores.items() if value is not None]
    if card.version:
        said.append(f"version {'.'.join(map(str, card.version))}")
    return ", ".join(said)


def _measured(live: LiveProfile | None) -> str:
    if live is None or not live.samples:
        return ""
    said = [f"{live.error_rate:.0%} of {live.samples:.0f} calls failed"]
    if live.ttft_s is not None:
        said.append(f"first token after {live.ttft_s:.2g} s")
    if live.tokens_per_s is not None:
        said.append(f"{live.tokens_per_s:.3g} tokens/s")
    return "measured: " + ", ".join(said)
