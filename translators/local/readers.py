"""Calls written as one value, or as a name and one value, and which reader a family needs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from .argument_values import Offer, gemma_object, object_text
from .brackets import (
    FUNCTION_GEMMA,
    GEMMA,
    JSON,
    PYTHON,
    Brackets,
    BrokenMarkupError,
    Syntax,
    begins,
    first_of,
)
from .families import Family
from .pieces import Found
from .reader import HEAD_LENGTH, Parsed, Reader
from .stated_calls import known_calls, python_calls, python_lines, stated_calls
from .tag_readers import DsmlReader, GlmReader, XmlReader, XtmlReader

_CALL_KEYS = ('"name"', '"type"', '"function"', '"parameters"', '"arguments"', '"id"')


class BracketReader(Reader):
    """Calls written as one bracketed value: JSON, or a Python list."""

    def __init__(self, syntax: Syntax, calls: Callable[[str], tuple[Found, ...]]) -> None:
        self._syntax = syntax
        self._calls = calls
        self._scan: Brackets | None = None

    def read(self, text: str) -> Parsed | None:
        if self._scan is None:
            head = text[:HEAD_LENGTH]
            start = first_of(head)
            if start == len(head):
                return self.unfinished(text)
            if text[start] not in "[{":
                raise BrokenMarkupError
            self._scan = Brackets(self._syntax, start)
        end = self._scan.end(text)
        return None if end is None else Parsed(end, self._calls(text[self._scan.start : end]))


class LooseReader(BracketReader):
    """A call without a marker: what is no call of an offered tool is told early, and is text."""

    def __init__(
        self,
        syntax: Syntax,
        calls: Callable[[str], tuple[Found, ...]],
        offer: Offer,
        looks: Callable[[str, Offer], bool | None],
    ) -> None:
        super().__init__(syntax, calls)
        self._offer = offer
        self._looks: Callable[[str, Offer], bool | None] | None = looks

    def read(self, text: str) -> Parsed | None:
        if self._looks is not None:
            looks = self._looks(text[:HEAD_LENGTH], self._offer)
            if looks is None:
                return self.unfinished(text)
            if not looks:
                raise BrokenMarkupError
            self._looks = None
        parsed = super().read(text)
        if parsed and not all(call.name in self._offer for call in parsed.calls):
            raise BrokenMarkupError
        return parsed


def looks_like_json(text: str, _: Offer) -> bool | None:
    """Whether the first key is one that calls have: a JSON answer is not held back to its end."""
    return begins(text[1:].lstrip()[:16], _CALL_KEYS)


def looks_like_python(text: str, offer: Offer) -> bool | None:
    name, bracket, _ = text[1:].lstrip().partition("(")
    if bracket:
        return name.rstrip() in offer
    return None if re.fullmatch(r"[\w.]*\s*", name) else False


class Head(NamedTuple):
    """What stands between an opener and the arguments: a name (`name`, or `id` in it), a separator."""

    lead: re.Pattern[str]
    """Matches any text, with what of its beginning can be a head."""
    separator: str = ""
    """Ends the head."""
    longer: str = ""
    """Makes it longer."""


class HeadedReader(Reader):
    """A name, then the arguments as one bracketed object."""

    def __init__(self, head: Head, syntax: Syntax, arguments: Callable[[str], str | None]) -> None:
        self._head = head
        self._syntax = syntax
        self._arguments = arguments
        self._named: tuple[str, str | None] = ("", None)
        self._scan: Brackets | None = None

    def read(self, text: str) -> Parsed | None:
        if self._scan is None:
            start = self._start(text[:HEAD_LENGTH])
            if start is None:
                return self.unfinished(text)
            self._scan = Brackets(self._syntax, start)
        end = self._scan.end(text)
        if end is None:
            return None
        arguments = self._arguments(text[self._scan.start : end])
        if arguments is None:
            raise BrokenMarkupError
        return Parsed(end, (Found(self._named[0], arguments, self._named[1]),))

    def _start(self, text: str) -> int | None:
        """Where the arguments begin; None while the head may go on."""
        match = self._head.lead.match(text)
        end, groups = (match.end(), match.groupdict()) if match else (0, {})
        known = begins(text[end:], (self._head.separator, self._head.longer or self._head.separator))
        if known:
            end += len(self._head.separator)
            end += first_of(text[end:])
        if known is None or end == len(text):
            return None
        if not known or text[end] != "{":
            raise BrokenMarkupError
        self._named = _named(groups)
        return end


def _named(groups: dict[str, str | None]) -> tuple[str, str | None]:
    """Name and id; Kimi's id `functions.NAME:0` holds the name."""
    id_ = groups.get("id") or None
    name = groups.get("name")
    if name is None:
        name, colon, number = (id_ or "").rpartition(":")
        name = name if colon and number.isdecimal() else (id_ or "")
        name = name.removeprefix("functions.")
    if not name:
        raise BrokenMarkupError
    return name, id_


class LinesReader(Reader):
    """OLMo: one Python call a line, up to a closing tag."""

    def __init__(self) -> None:
        self._at = 0

    def read(self, text: str) -> Parsed | None:
        close = "</function_calls>"
        at = text.find(close, self._at)
        if at < 0:
            self._at = max(0, len(text) - len(close) + 1)
            return None
        return Parsed(at + len(close), python_lines(text[:at]))


_HEADS: dict[str, Head] = {
    "mistral": Head(
        re.compile(r"\s*(?P<name>[\w.\-]*)(?:\[CALL_ID\](?P<id>\w*))?\s*"), "[ARGS]", "[CALL_ID]"
    ),
    "kimi": Head(re.compile(r"\s*(?P<id>[\w.\-:]*)\s*"), "<|tool_call_argument_begin|>"),
    "deepseek_v3": Head(re.compile(r"(?P<name>[\w.\-]*)\s*"), "```json"),
    "deepseek_v31": Head(re.compile(r"\s*(?P<name>[\w.\-]*)\s*"), "<｜tool▁sep｜>"),
    "gemma": Head(re.compile(r"\s*(?P<name>[\w.\-]*)\s*")),
    "function_gemma": Head(re.compile(r"\s*(?P<name>[\w.\-]*)\s*")),
}
_GEMMAS = {"gemma": GEMMA, "function_gemma": FUNCTION_GEMMA}


class MistralReader(Reader):
    """`[TOOL_CALLS]` stands before a JSON list of calls (old) or a name and `[ARGS]` (from v11)."""

    def __init__(self) -> None:
        self._reader: Reader | None = None

    def read(self, text: str) -> Parsed | None:
        if self._reader is None:
            head = text[:HEAD_LENGTH]
            start = first_of(head)
            if start == len(head):
                return self.unfinished(text)
            if text[start] == "[":
                self._reader = BracketReader(JSON, stated_calls)
            else:
                self._reader = HeadedReader(_HEADS["mistral"], JSON, object_text)
        return self._reader.read(text)


def reader_of(family: Family, opener: str, offer: Offer) -> Reader:
    """What reads a call of `family` after `opener`, "" for one without a marker."""
    body = family.body
    if body in _HEADS and body != "mistral":
        if syntax := _GEMMAS.get(body):
            return HeadedReader(_HEADS[body], syntax, gemma_object)
        return HeadedReader(_HEADS[body], JSON, object_text)
    if body == "loose_json" and not opener:
        return LooseReader(JSON, known_calls, offer, looks_like_json)
    if body == "loose_pythonic" and not opener:
        return LooseReader(PYTHON, python_calls, offer, looks_like_python)
    made: dict[str, Callable[[], Reader]] = {
        "mistral": MistralReader,
        "pythonic": lambda: BracketReader(PYTHON, python_calls),
        "loose_pythonic": lambda: BracketReader(PYTHON, python_calls),
        "python_lines": LinesReader,
        "xml": lambda: XmlReader(offer, opener),
        "glm": lambda: GlmReader(offer),
        "dsml": lambda: DsmlReader(offer, opener),
        "kimi_k3": lambda: XtmlReader(offer),
    }
    return made.get(body, lambda: BracketReader(JSON, stated_calls))()
