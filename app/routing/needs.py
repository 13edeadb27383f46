"""What a request asks of a model beyond words, told cheaply from its body.

Only for choosing between candidates; what a backend then takes is the business of its profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from translators.budget import CHARS_PER_TOKEN, prompt_tokens
from translators.ir import Json

_IMAGE_MARK = b"image"
"""In the type of every part that is one: a body without the word needs no closer look."""


@dataclass(slots=True)
class Needs:
    """What is needed; `size` is the body's in bytes, of which each holds one character at most."""

    tools: bool = False
    vision: bool = False
    json_schema: bool = False
    size: int = 0
    body: Json = field(default_factory=dict)
    _wanted: Sequence[str] = ()
    _tokens: int | None = None

    def __post_init__(self) -> None:
        self._wanted = [name for name in WORDS if getattr(self, name)]

    def missing(self, able: Any, window: int | None) -> str | None:
        """What a model cannot do of it, None: nothing that is known.

        `able` has the attributes `tools`, `vision` and `json_schema`, each None where nobody knows; `window`
        are the tokens that it takes.
        """
        for name in self._wanted:
            if getattr(able, name, None) is False:
                return WORDS[name]
        if window is not None and self.size > window * CHARS_PER_TOKEN and self.tokens() > window:
            return f"a prompt of about {self.tokens()} tokens"
        return None

    def tokens(self) -> int:
        """A low estimate of the prompt's length; the body is read for it, once."""
        if self._tokens is None:
            self._tokens = prompt_tokens(self.body)
        return self._tokens


WORDS: Mapping[str, str] = {
    "tools": "function tools",
    "vision": "images",
    "json_schema": "a JSON schema for the answer",
}


def needs_of(body: Json, raw: bytes) -> Needs:
    """`raw` is the body as it came."""
    vision = _IMAGE_MARK in raw and any(_has_image(each) for each in _turns(body))
    tools = bool(body.get("tools") or body.get("functions"))
    size = 0 if body.get("truncation") == "auto" else len(raw)  # then it may be made to fit
    return Needs(tools, vision, _asks_for_schema(body), size, body)


def _asks_for_schema(body: Json) -> bool:
    text = body.get("text")
    for form in (body.get("response_format"), text.get("format") if isinstance(text, dict) else None):
        if isinstance(form, dict) and form.get("type") == "json_schema":
            return True
    return False


def _turns(body: Json) -> Iterable[Any]:
    turns = body.get("messages", body.get("input"))
    return turns if isinstance(turns, list) else ()


def _has_image(turn: Any) -> bool:
    return any(part.get("type") in ("image_url", "input_image") for part in _parts(turn))


def _parts(turn: Any) -> Iterator[Json]:
    for key in ("content", "output"):  # the results of tools may hold images too
        parts = turn.get(key) if isinstance(turn, dict) else None
        if isinstance(parts, list):
            yield from (part for part in parts if isinstance(part, dict))
