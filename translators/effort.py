"""The reasoning effort a backend is asked for, when it knows fewer levels than the client.

Who may name the level, first wins: the body's `reasoning.effort`, its `reasoning_effort`, and
then `reasoning.default_effort` of the profile (a request header, the provider's overrides and
the built-in rows are layers of that one key). Nothing named, or `none` as the default: nothing
is sent. What a body says, an explicit `none` included, is never replaced by a default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .profile import ReasoningRules

SCALE: Mapping[str, float] = {
    "none": 0.0,
    "minimal": 0.05,
    "low": 0.2,
    "medium": 0.5,
    "high": 0.75,
    "xhigh": 0.9,
    "max": 1.0,
    "ultra": 1.1,  # Codex knows it; no backend does
}
"""The levels on a scale, so that "nearest" means something where levels are missing between."""

LEVELS = tuple(SCALE)
"""Every level seen on the wire, from least to most."""


def nearest_effort(asked: str, rules: ReasoningRules) -> str | None:
    """`asked`, or the level of `rules.efforts` nearest to it; None: it cannot be asked.

    The declared `map` goes first. `none` is no little thinking but the wish for none at all:
    it is nearest to nothing else, and nothing else to it. Between two levels the first listed wins.
    """
    if rules.ask == "none":
        return None
    return nearest_level(rules.map.get(asked, asked), rules.efforts)


def nearest_level(wanted: str, levels: Sequence[str]) -> str | None:
    """The one of `levels` that is `wanted` or nearest to it, see above."""
    if wanted in levels:
        return wanted
    known = [level for level in levels if level in SCALE and level != "none"]
    if wanted not in SCALE or wanted == "none" or not known:
        return None
    return min(known, key=lambda level: abs(SCALE[level] - SCALE[wanted]))


def default_effort(rules: ReasoningRules) -> str | None:
    """The level to ask for where the client names none; None: nothing is asked."""
    default = rules.default_effort
    return None if default in (None, "none") else nearest_effort(default, rules)


def ignores_default(rules: ReasoningRules) -> bool:
    """Whether a default is set for a model that cannot be told any level."""
    return rules.default_effort not in (None, "none") and default_effort(rules) is None
