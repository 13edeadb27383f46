"""The line between a client's text and a model's control tokens.

Tokenisers read control tokens out of plain text: a user who writes `<|im_end|>` would end his
own turn and begin the next as the system. So every client string is searched for them before
the template sees it, and a mark is put inside each. The rendered prompt is cut at the marks
and the pieces are tokenised apart: across a cut no token can form.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from translators.ir import Json

MARK = "\ue000"
"""A private-use character: no tokeniser has it in a control token."""
_QUOTED = MARK + "\ue001"
"""The mark when the client himself wrote it."""
_CUT = re.compile(f"{MARK}(?!\ue001)")

_TRUSTED = frozenset({"role"})
"""Keys of a message whose values are checked words; templates build `<|role|>` of them."""


class Boundary:
    """Marks for one set of control tokens. Immutable, shared between requests."""

    __slots__ = ("_beginnings", "_ends", "_longest", "_pattern")

    def __init__(self, special_tokens: Sequence[str]) -> None:
        """A token of one character cannot be cut; none is known outside test vocabularies."""
        tokens = sorted({token for token in special_tokens if len(token) > 1}, key=len, reverse=True)
        # Templates change case (`type | upper`): "[inst]" of a client must not become "[INST]".
        self._pattern = re.compile("|".join(map(re.escape, tokens)), re.IGNORECASE) if tokens else None
        lowered = [token.lower() for token in tokens]
        self._beginnings = {token[:size] for token in lowered for size in range(1, len(token))}
        self._ends = {token[size:] for token in lowered for size in range(1, len(token))}
        self._longest = max(map(len, lowered), default=1) - 1

    def text(self, text: str) -> str:
        """The text with a mark inside every control token, and where it could be half of one."""
        text = text.replace(MARK, _QUOTED)
        if self._pattern is None or not text:
            return text
        return self._edges(self._cut(self._plain(text)))

    def value(self, value: Any) -> Any:
        """A JSON value with every string of it marked, names of keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(key): self.value(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.value(each) for each in value]
        return value

    def message(self, message: Json) -> Json:
        return {key: value if key in _TRUSTED else self.value(value) for key, value in message.items()}

    def _plain(self, text: str) -> str:
        """A tokeniser may normalise before it looks for tokens: full-width signs are `<` to it."""
        if self._pattern is None or text.isascii():
            return text
        folded = unicodedata.normalize("NFKC", text)
        return folded if len(self._pattern.findall(folded)) > len(self._pattern.findall(text)) else text

    def _cut(self, text: str) -> str:
        """Again until none is left: tokens may overlap, or lie inside one another."""
        while self._pattern is not None and self._pattern.search(text):
            text = self._pattern.sub(lambda found: found[0][0] + MARK + found[0][1:], text)
        return text

    def _edges(self, text: str) -> str:
        """Two strings that a template puts side by side must not make a token together."""
        lowered = text.lower()
        sizes = range(1, min(self._longest, len(lowered)) + 1)
        before = MARK if any(lowered[:size] in self._ends for size in sizes) else ""
        after = MARK if any(lowered[-size:] in self._beginnings for size in sizes) else ""
        return f"{before}{text}{after}"


@lru_cache(maxsize=64)
def boundary(special_tokens: tuple[str, ...]) -> Boundary:
    """The boundary of a model; made once, the pattern of a thousand tokens takes milliseconds."""
    return Boundary(special_tokens)


def segments(rendered: str) -> list[str]:
    """The prompt cut at its marks, none empty; to be tokenised one by one."""
    return list(_segments(rendered))


def _segments(rendered: str) -> Iterator[str]:
    for piece in _CUT.split(rendered):
        if piece:
            yield piece.replace(_QUOTED, MARK)
