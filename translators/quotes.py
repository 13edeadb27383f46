"""What a message quotes of a request: enough to know it by, however long it is."""

from __future__ import annotations

import re

MAX_QUOTE = 100
"""Characters of one quoted word."""

_ELLIPSIS = "..."
_QUOTE = re.compile(r"""`[^`]*`|"[^"]*"|(?<!\w)'[^']*'|\S{101,}""")
"""A word in quotes (`model's` begins none), or one without a blank. Short ones too, so that what stands
between two of them is taken for none."""


def with_short_quotes(message: str) -> str:
    """The message with every word in quotes, and every unbroken one, cut to `MAX_QUOTE`."""
    return message if len(message) <= MAX_QUOTE else _QUOTE.sub(_cut, message)


def _cut(found: re.Match[str]) -> str:
    word = found[0]
    mark = word[0] if word[0] in "`\"'" and word[-1] == word[0] else ""
    inner = word[len(mark) : len(word) - len(mark)]
    if len(inner) <= MAX_QUOTE:
        return word
    return f"{mark}{inner[: MAX_QUOTE - len(_ELLIPSIS)]}{_ELLIPSIS}{mark}"
