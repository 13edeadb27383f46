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
_NOUN = r"(?:parameter|field|argument|property|option|key)"
_NO = r"(?:not (?:supported|allowed|permitted|recognized|accepted)|unsupported|(?:an )?unknown|unrecognized)"
_LACKS = r"(?:does not|doesn't|do not|cannot) support"
_START = r"(?:^|[:;.\n]\s*)(?:the )?"


@dataclass(frozen=True, slots=True)
class Named:
    """What a text says is refused: `field` as it writes it, or one value of that field.

    `allowed`: the values that it says it takes; `said`: the value it speaks of; `low` and `high`: the
    bounds of a number; `beside`: it is refused only together with that field.
    """

    field: str
    value: bool = False
    allowed: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    said: str | None = None
    beside: str | None = None


def _words(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns)


_WHOLE = _words(
    rf"unknown field:? {_Q}?(?P<field>{_FIELD})",  # Go (Databricks' hosted models), serde
    rf"{_BARE}{_Q}?:?\s+Extra (?:inputs are|fields) not permitted",  # pydantic, Anthropic
    r"'loc': [(\[](?P<loc>[^)\]]*)[)\]], 'msg': 'Extra inputs are not permitted'",  # vLLM quotes pydantic
    rf"{_LACKS} (?:the )?{_Q}(?P<field>{_FIELD}){_Q}",  # Databricks open-responses
    rf"{_LACKS} (?:the )?{_Q}?(?P<field>{_FIELD}){_Q}? {_NOUN}\b",  # Databricks
    rf"{_LACKS} (?:the )?{_NOUN}(?:s|\(s\))?:?\s+(?P<list>.*)",
    rf"{_LACKS} (?P<field>reasoning effort|{_FIELD})(?=\s*(?:[.;!\n]|$))",
    rf"(?:unsupported|unknown|unrecognized|unexpected) (?:request |body |keyword |input )?"
    rf"{_NOUN}(?:s|\(s\))?(?: in \w+| supplied)?:?\s+(?P<list>.*)",  # OpenAI, NIM, zod, Python
    rf"unknown name {_Q}(?P<field>{_FIELD}){_Q}",  # Google
    rf"\b{_NOUN} {_Q}?(?P<field>{_FIELD}){_Q}? (?:is )?{_NO}\b",
    rf"{_Q}(?P<field>{_FIELD}){_Q} (?:{_NOUN} )?(?:is|are) {_NO}\b",  # Groq
    rf"{_BARE} {_NOUN} is {_NO}\b",
    rf"{_START}(?P<field>{_FIELD}) (?:is|are) {_NO}\b",
    rf"{_BARE}{_Q}?:\s+(?:{_NOUN} )?(?:is )?not (?:supported|allowed|permitted)\b",
    rf"{_NOUN}(?:s|\(s\)) (?:is|are) {_NO}:\s*(?P<list>.*)",
    rf"{_Q}(?P<field>{_FIELD}){_Q} is not a (?:valid|known|supported|recognized) {_NOUN}",
    r"additional ?(?:property|properties) (?:are not allowed )?\(?(?P<list>[`'\"][^)]*?)"
    r"(?: (?:was|were) unexpected| (?:is |are )?not allowed)",  # jsonschema, Go
    r"must not have additional properties[:,]?(?: got| found)?\s*(?P<list>\(?[`'\"].*)",  # ajv
    r"(?P<include>encrypted content is not supported)",  # OpenAI, of models that do not reason
)
"""A field that is refused whatever it holds."""

SYSTEM_FIRST = re.compile(
    r"system (?:message|role|prompt)s?\b.{0,40}\b"
    r"(?:at the (?:beginning|start)|(?:the|come|be) first|first message)"
    r"|(?:only (?:one|a single)|multiple|more than one) system (?:message|prompt)",
    re.IGNORECASE,
)
"""Chat templates (Qwen's "System message must be at the beginning."), vLLM, SGLang, Mistral."""

_VALUE = rf"{_Q}(?P<value>[^`'\"\n]{{1,40}}){_Q}"
_TAKES = r"(?:supported|allowed|valid|expected|accepted|available)[^:.\n]{0,20}:(?P<list>[^.\n]*)"
_CHOICE = _words(
    rf"{_Q}(?P<field>{_FIELD}){_Q} does not support {_Q}?(?P<value>[^`'\"\s]+?){_Q}? with this model"
    r"(?:\. Supported values are:(?P<list>[^.]*))?",  # OpenAI; both words and lists
    rf"invalid value: {_Q}(?P<value>[^`'\"]+){_Q}\.?(?: Supported values are:(?P<list>[^.]*))?",  # OpenAI
    rf"{_BARE}:?\s+Input should be (?P<list>{_Q}[^\n;\[]*)",  # pydantic
    rf"{_BARE}{_Q}? must be one of:? (?P<list>\[?{_Q}[^\n;\]]*)",  # Groq
    rf"(?<![\w$'\"`]){_Q}?(?P<value>[\w.-]+){_Q}? is not one of \[(?P<list>[^\]]*)\]"
    rf"(?: - {_Q}(?P<field>{_FIELD}){_Q})?",  # jsonschema; Azure's DeepSeek quotes no value
    rf"(?:{_BARE}: )?unknown variant {_VALUE}, expected (?:one of )?"
    rf"(?P<list>{_Q}[^\n]*?)(?: at line|\n|$)",  # serde
    rf"(?P<field>reasoning effort|service tier|reasoning_effort|reasoning\.effort|service_tier):?"
    rf" (?:level |value |of )?{_VALUE} (?:is )?"
    r"(?:not (?:supported|available|valid|allowed)|unsupported|invalid)"
    rf"(?:[^.\n]*[.;,:]\s*{_TAKES})?",
)
"""One value of a field; where no field is named, the error's `param` names it, or a role names itself."""

_BOUND = _words(
    rf"{_BARE}{_Q}?:?\s+(?:Input )?(?:must|should) be "
    rf"(?P<side>less|greater) than or equal to (?P<number>{_NUMBER})",  # pydantic
    rf"{_BARE}{_Q}?:? (?:must|should) be (?P<side>at (?:most|least)|[<>]=) ?(?P<number>{_NUMBER})",
    rf"Invalid {_Q}(?P<field>{_FIELD}){_Q}: \w+ (?P<side>above|below) \w+ value\. "
    rf"Expected a value [<>]= (?P<number>{_NUMBER})",  # OpenAI
)
"""A number beyond what the backend takes."""

_RANGE = _words(
    rf"{_BARE}{_Q}?:? (?:must|should) be (?:in|within|between)(?: the)?(?: range)?(?: of| between)?:? ?"
    rf"[\[(]?(?P<low>{_NUMBER})(?:,| and| to|\.\.) ?(?P<high>{_NUMBER})",  # vLLM and others
    rf"{_BARE}: range: (?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})",  # Bedrock
)
"""The two ends of what the backend takes."""

_PAIR = re.compile(
    rf"{_Q}(?P<kept>{_FIELD}){_Q} and {_Q}(?P<field>{_FIELD}){_Q} (?:cannot|can't|can not|may not|must not)"
    rf"(?: both)? be (?:both )?(?:specified|set|used|provided)",
    re.IGNORECASE,
)
"""Two fields of which only one may be there (Claude's newer models: temperature and top_p)."""

_QUOTED = re.compile(r"[`'\"]([^`'\"]+)[`'\"]")
_ENTRY = re.compile(rf"[\s\[(]*(?:and\s+)?(?P<quote>{_Q}?)(?P<name>{_FIELD}){_Q}?\s*(?P<more>,|and\b)?")

_CODES = frozenset({"unsupported_parameter", "unknown_parameter", "unrecognized_parameter"})
"""Codes that say the same of `param` when the words say something else."""


def read_words(message: str, param: str | None = None, code: str | None = None) -> tuple[Named, ...]:
    """What `message` names as refused, each once and in its order; empty: it speaks of something else."""
    named = tuple(dict.fromkeys(_values(message, param))) or tuple(dict.fromkeys(_fields(message)))
    return named or ((Named(param),) if param and code in _CODES else ())


def _values(message: str, param: str | None) -> Iterator[Named]:
    for pattern in _BOUND:
        for found in pattern.finditer(message):
            above = found["side"].lower() in ("less", "above", "at most", "<=")
            bound = float(found["number"])
            yield Named(found["field"], True, low=None if above else bound, high=bound if above else None)
    for pattern in _RANGE:
        for found in pattern.finditer(message):
            yield Named(found["field"], True, low=float(found["low"]), high=float(found["high"]))
    for pattern in _CHOICE:
        for found in pattern.finditer(message):
            groups = found.groupdict()
            said = groups.get("value")
            field = groups.get("field") or param or ("role" if said == "developer" else "")
            if field:
                yield Named(_joined(field), True, _choices(groups["list"] or ""), said=said)


def _choices(text: str) -> tuple[str, ...]:
    """The values of a list in words: the quoted ones, else what stands between commas."""
    return tuple(_QUOTED.findall(text)) or tuple(re.findall(r"[\w-]+", re.sub(r"\b(?:and|or)\b", ",", text)))


def _fields(message: str) -> Iterator[Named]:
    for found in _PAIR.finditer(message):
        yield Named(found["field"], beside=found["kept"])
    for pattern in _WHOLE:
        for found in pattern.finditer(message):
            groups = found.groupdict()
            if groups.get("field"):
                yield Named(_joined(groups["field"]))
            elif groups.get("include"):
                yield Named("include")
            elif groups.get("loc"):
                yield Named(".".join(re.findall(r"\w+", groups["loc"])))
            else:
                yield from map(Named, _listed(groups["list"]))


def _joined(field: str) -> str:
    """`Reasoning effort` as its key."""
    return field.replace(" ", "_").lower() if " " in field else field


def _listed(text: str) -> Iterator[str]:
    """The names that `text` begins with: the first, then after each comma or "and" one quoted like it."""
    entry = _ENTRY.match(text)
    quote = entry["quote"] if entry else ""
    while entry and entry["quote"] == quote:
        yield entry["name"]
        entry = _ENTRY.match(text, entry.end()) if entry["more"] else None
