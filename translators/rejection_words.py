"""The words in which a backend says that it does not take a field, or not this value of it.

Read from the text of a 400 or 422. What a text names is only a claim: `rejections.py` believes
it where the body that was sent holds such a field. Words about a value go first, because some
of them ("'x' does not support 'y'") look like words about a field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FIELD = r"[A-Za-z_$][\w$]*(?:[.\[\]/-]+[\w$]+)*"
"""`temperature`, `tools.0.custom.strict`, `input[1].content[0].annotations`."""
_BARE = rf"(?<![\w$.\[\]/-])(?P<field>{_FIELD})"
"""A field without quotes before it: from its beginning, or searching costs the square of a word's length."""
_Q = r"[`'\"]"
_NUMBER = r"-?\d+(?:\.\d+)?"


@dataclass(frozen=True, slots=True)
class Named:
    """What a text says is refused: `field` as it writes it, or one value of that field.

    `allowed`: the values that it says it takes; `low` and `high`: the bounds of a number.
    """

    field: str
    value: bool = False
    allowed: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None


def _words(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


_WHOLE = _words(
    rf"unknown field {_Q}?(?P<field>{_FIELD})",  # Go (Databricks' hosted models), serde
    rf"{_BARE}{_Q}?:?\s+Extra (?:inputs are|fields) not permitted",  # pydantic, Anthropic
    r"'loc': [(\[](?P<loc>[^)\]]*)[)\]], 'msg': 'Extra inputs are not permitted'",  # vLLM quotes pydantic
    rf"does not support (?:the )?{_Q}(?P<field>{_FIELD}){_Q}",  # Databricks open-responses
    rf"does not support (?:the )?{_Q}?(?P<field>{_FIELD}){_Q}? (?:parameter|field|argument)\b",  # Databricks
    r"(?:unsupported|unknown|unrecognized|unexpected) (?:request |body )?"
    r"(?:parameter|argument|field|property|key)(?:s|\(s\))?(?: supplied)?:?\s+(?P<list>.*)",  # OpenAI, NIM
    rf"unknown name {_Q}(?P<field>{_FIELD}){_Q}",  # Google
    rf"(?:parameter|property|field|argument) {_Q}?(?P<field>{_FIELD}){_Q}? is (?:not supported|unsupported)",
    rf"{_Q}(?P<field>{_FIELD}){_Q} is (?:not supported|unsupported|not permitted)",  # Groq
    r"additional properties are not allowed \((?P<list>[^)]*?) (?:was|were) unexpected",  # jsonschema
)
"""A field that is refused whatever it holds."""

_CHOICE = _words(
    rf"{_Q}(?P<field>{_FIELD}){_Q} does not support {_Q}?(?P<value>[^`'\"\s]+?){_Q}? with this model"
    r"(?:\. Supported values are:(?P<list>[^.]*))?",  # OpenAI; both words and lists
    rf"invalid value: {_Q}(?P<value>[^`'\"]+){_Q}\.?(?: Supported values are:(?P<list>[^.]*))?",  # OpenAI
    rf"{_BARE}:?\s+Input should be (?P<list>{_Q}[^\n;\[]*)",  # pydantic
    rf"{_BARE}{_Q}? must be one of:? (?P<list>\[?{_Q}[^\n;\]]*)",  # Groq
    rf"{_Q}(?P<value>[^`'\"]+){_Q} is not one of \[(?P<list>[^\]]*)\](?: - {_Q}(?P<field>{_FIELD}){_Q})?",
)
"""One value of a field; where no field is named, the error's `param` names it."""

_BOUND = _words(
    rf"{_BARE}:?\s+Input should be (?P<side>less|greater) than or equal to (?P<number>{_NUMBER})",
    rf"Invalid {_Q}(?P<field>{_FIELD}){_Q}: \w+ (?P<side>above|below) \w+ value\. "
    rf"Expected a value [<>]= (?P<number>{_NUMBER})",  # OpenAI
)
"""A number beyond what the backend takes."""

_QUOTED = re.compile(r"[`'\"]([^`'\"]+)[`'\"]")
_ENTRY = re.compile(rf"\s*(?:and\s+)?(?P<quote>{_Q}?)(?P<name>{_FIELD}){_Q}?\s*(?P<more>,|and\b)?")

_CODES = frozenset({"unsupported_parameter", "unknown_parameter", "unrecognized_parameter"})
"""Codes that say the same of `param` when the words say something else."""


def read_words(message: str, param: str | None = None, code: str | None = None) -> tuple[Named, ...]:
    """What `message` names as refused, each once and in its order; empty: it speaks of something else."""
    named = tuple(dict.fromkeys(_values(message, param))) or tuple(dict.fromkeys(_fields(message)))
    return named or ((Named(param),) if param and code in _CODES else ())


def _values(message: str, param: str | None) -> Iterator[Named]:
    for pattern in _BOUND:
        for found in pattern.finditer(message):
            above = found["side"].lower() in ("less", "above")
            bound = float(found["number"])
            yield Named(found["field"], True, low=None if above else bound, high=bound if above else None)
    for pattern in _CHOICE:
        for found in pattern.finditer(message):
            field = found["field"] if "field" in pattern.groupindex else None
            allowed = tuple(_QUOTED.findall(found["list"] or ""))
            if field or param:
                yield Named(field or param or "", True, allowed)


def _fields(message: str) -> Iterator[Named]:
    for pattern in _WHOLE:
        for found in pattern.finditer(message):
            groups = found.groupdict()
            if groups.get("field"):
                yield Named(groups["field"])
            elif groups.get("loc"):
                yield Named(".".join(re.findall(r"\w+", groups["loc"])))
            else:
                yield from map(Named, _listed(groups["list"]))


def _listed(text: str) -> Iterator[str]:
    """The names that `text` begins with: the first, then after each comma or "and" one quoted like it."""
    entry = _ENTRY.match(text)
    quote = entry["quote"] if entry else ""
    while entry and entry["quote"] == quote:
        yield entry["name"]
        entry = _ENTRY.match(text, entry.end()) if entry["more"] else None
