"""What an Ollama says it cannot do with a model, as rejections to be remembered.

Its errors are plain words. Unknown keys and options it ignores, so these few are all there is to read:

    "m" does not support thinking            "m" does not support tools
    think value "low" is not supported for this model
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..ir import Json
from ..rejections import Rejection

_THINKING = re.compile(r"does not support thinking", re.IGNORECASE)
_TOOLS = re.compile(r"does not support tools", re.IGNORECASE)
_LEVEL = re.compile(r"think value .{0,20} is not supported|invalid think value", re.IGNORECASE)
_LEVELS = ("low", "medium", "high", "max")

NO_TOOLS = Rejection(("tools",))


def refused(body: Json, message: str) -> Iterator[Rejection]:
    """What `message`, the refusal of `body`, asks to leave out."""
    if "tools" in body and _TOOLS.search(message):
        yield NO_TOOLS
    if "think" in body and _THINKING.search(message):
        yield Rejection(("think",))
    elif body.get("think") in _LEVELS and _LEVEL.search(message):
        # Without the key a model that can think does: what it cannot be told is how much. `max` is newer than
        # the others, which an old server may take.
        refused = ("max",) if body["think"] == "max" else _LEVELS
        yield from (Rejection(("think",), value=level) for level in refused)
