"""The reasoning effort a backend is asked for, when it knows fewer levels than the client."""

from __future__ import annotations

from .profile import ReasoningRules

LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")
"""Every level seen on the wire, from least to most."""


def nearest_effort(asked: str, rules: ReasoningRules) -> str | None:
    """`asked`, or the level of `rules.efforts` nearest to it; None: it cannot be asked.

    The declared `map` goes first. `none` is no little thinking but the wish for none at all:
    it is nearest to nothing else, and nothing else to it. Between two levels the lower wins.
    """
    wanted = rules.map.get(asked, asked)
    if wanted in rules.efforts:
        return wanted
    known = [level for level in LEVELS if level in rules.efforts and level != "none"]
    if wanted not in LEVELS or wanted == "none" or not known:
        return None
    rank = LEVELS.index(wanted)
    return min(known, key=lambda level: abs(LEVELS.index(level) - rank))
