"""Which class a model is in: by published quality where there is one, by family or size elsewhere.

chat-thinking > chat-balanced > chat-fast; embeddings stand apart. Quality has no unit and no fixed
scale (0 to 46 in one workspace, 1 to 5 in others), so only its rank in the whole catalogue counts:
tertiles, by linearly interpolated quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .cards import ModelCard
from .families import FAST_UP_TO, NEVER, THINKING_FROM, FamilyRules, ModelClass, Rule

CHAT_CLASSES: tuple[ModelClass, ...] = ("chat-thinking", "chat-balanced", "chat-fast")
"""From the highest to the lowest."""
CLASSES: tuple[ModelClass, ...] = (*CHAT_CLASSES, "embedding")
_BY_NAME: Mapping[str, ModelClass] = {
    **{name: name for name in CLASSES},
    **{name.removeprefix("chat-"): name for name in CHAT_CLASSES},
}

MIN_SCORES = 3
"""Distinct scores below which there are no thirds: with all equal everything would be chat-thinking."""

Classified = tuple[ModelClass | None, str]
"""A class (None: never picked unless named) and why."""


def parse_class(text: str) -> ModelClass | None:
    """`chat-fast` and `fast` alike, in any case; None for what is no class (`medium`)."""
    return _BY_NAME.get(text.strip().lower())


def this_and_below(cls: ModelClass) -> tuple[ModelClass, ...]:
    """The classes that may answer for `cls`, in order; never a higher one."""
    return CHAT_CLASSES[CHAT_CLASSES.index(cls) :] if cls in CHAT_CLASSES else (cls,)


def classify(cards: Sequence[ModelCard], rules: FamilyRules | None = None) -> dict[str, Classified]:
    """Target id -> class and reason, for a whole catalogue: filter afterwards, never before.

    A model that is listed twice counts once in the thirds.
    """
    rules = rules or FamilyRules()
    targets = {card.target for card in cards}
    own = (card for card in cards if card.task == "chat" and card.twin_of not in targets)
    scores = sorted(card.quality for card in own if card.quality is not None)
    thirds = _thirds(scores) if len(set(scores)) >= MIN_SCORES else None
    return {card.target: _class_of(card, thirds, rules) for card in cards}


def _thirds(ordered: Sequence[float]) -> tuple[float, float]:
    return _third(ordered, 1), _third(ordered, 2)


def _third(ordered: Sequence[float], count: int) -> float:
    """The quantile `count`/3 of values in rising order, between two of them on the line that joins them."""
    # In whole numbers as far as it goes: 0.333... would miss the place of a value by a hair.
    at, rest = divmod((len(ordered) - 1) * count, 3)
    low = ordered[at]
    return low + (ordered[at + 1] - low) * rest / 3 if rest else low


def _class_of(card: ModelCard, thirds: tuple[float, float] | None, rules: FamilyRules) -> Classified:
    if card.task == "embedding":
        return "embedding", "makes embeddings"
    if card.task == "other":
        return None, "is no chat model"
    if card.quality is not None and thirds is not None:
        return _by_quality(card.quality, *thirds)
    rule, by_size = rules.find(card.segments), _by_size(card)
    by_family = _by_family(rule) if rule else None
    # A maker's name tells the tier of what it hosts; of a local model its size tells more. What the
    # configuration says of a family goes before both.
    size_first = card.local and not (rule and rule.configured)
    found = (by_size or by_family) if size_first else (by_family or by_size)
    return found or (None, "no quality, family or size is known of it")


def _by_quality(quality: float, low: float, high: float) -> Classified:
    if quality >= high:
        return "chat-thinking", f"quality {quality:g} is in the top third of the catalogue"
    if quality <= low:
        return "chat-fast", f"quality {quality:g} is in the bottom third of the catalogue"
    return "chat-balanced", f"quality {quality:g} is in the middle third of the catalogue"


def _by_family(rule: Rule) -> Classified:
    if rule.value == NEVER:
        return None, f"family {rule.key!r} is never picked unless named"
    return _BY_NAME[rule.value], f"family {rule.key!r}"


def _by_size(card: ModelCard) -> Classified | None:
    count = card.parameter_count
    if count is None:
        return None
    reason = f"{count / 1e9:.3g} billion parameters"
    if count <= FAST_UP_TO:
        return "chat-fast", reason
    return ("chat-thinking" if count >= THINKING_FROM[card.reasoning] else "chat-balanced"), reason
