"""The content of a Chat message or delta, however it is written, as fragments.

Content is a string, or a list of parts with reasoning among them (Databricks always for
Claude and gpt-oss, Mistral's `thinking`). Reasoning also comes in fields of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from ..ir import Json
from ..logprobs import read_logprobs
from .annotations import from_chat

Kind = Literal["text", "refusal", "summary"]


class Fragment(NamedTuple):
    """Some text of one kind; `sealed` is a signature or an encrypted form of reasoning."""

    kind: Kind
    text: str
    sealed: str | None = None
    annotations: tuple[Json, ...] = ()
    part: Json | None = None
    """The content part it is, for reasoning that must go back word for word."""
    details: Sequence[Any] = ()
    """Its piece of `reasoning_details`."""
    said: Sequence[tuple[str, str]] = ()
    """Reasoning in fields of its own: each field's name and text; `text` is the first one's."""


_THOUGHT_TYPES = frozenset({"reasoning", "thinking", "redacted_thinking", "reasoning_text", "summary_text"})
_TEXT_TYPES = frozenset({"text", "output_text", "input_text", ""})
_THOUGHT_KEYS = ("text", "thinking", "summary", "content", "reasoning")
_SEAL_KEYS = ("signature", "encrypted_content", "data")


def read_content(content: Any, thought_types: Sequence[str] = ()) -> Iterator[Fragment]:
    """The fragments of a content that is no plain string: a list of parts, one part, or nothing."""
    parts = content if isinstance(content, list) else [content]
    for part in parts:
        if isinstance(part, str):
            yield Fragment("text", part)
        elif isinstance(part, dict):
            yield from _read_part(part, thought_types)


def read_thought(delta: Json, fields: Iterable[str]) -> Fragment | None:
    """Reasoning in fields of its own (see `thoughts.py` for more than one).

    OpenRouter and MiniMax add `reasoning_details`, which repeats the text and alone holds the encrypted form.
    """
    said: list[tuple[str, str]] = []
    sealed = None
    for name in fields:
        if value := delta.get(name):
            text, seal = _thought(value)
            sealed = sealed or seal
            if text:
                said.append((name, text))
    text = said[0][1] if said else ""
    if details := delta.get("reasoning_details"):
        detailed, seal = _thought(details)
        text, sealed = text or detailed, sealed or seal
    listed = details if isinstance(details, list) else ()
    return Fragment("summary", text, sealed, details=listed, said=said) if text or sealed else None


def read_annotations(value: Any) -> tuple[Json, ...]:
    """Citations in the Responses form."""
    found = (from_chat(entry) for entry in (value if isinstance(value, list) else ()))
    return tuple(_complete(annotation) for annotation in found if annotation is not None)


def content_logprobs(value: Any) -> list[Json]:
    """The content tokens of a choice's `logprobs`."""
    return read_logprobs(value.get("content") if isinstance(value, dict) else None) or []


def _read_part(part: Json, thought_types: Sequence[str]) -> Iterator[Fragment]:
    kind = _string(part.get("type"))
    if kind in _THOUGHT_TYPES or kind in thought_types:
        text, sealed = _thought(part)
        if text or sealed:
            yield Fragment("summary", text, sealed, part=part)
    elif kind == "refusal":
        yield Fragment("refusal", _string(part.get("refusal")))
    elif kind in _TEXT_TYPES or isinstance(part.get("text"), str):
        text = _string(part.get("text"))
        yield Fragment("text", text, annotations=read_annotations(part.get("annotations")) + _cited(part))


def _thought(value: Any, glue: str = "") -> tuple[str, str | None]:
    """Text and seal of a reasoning value: a string, a part, or a list of either."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, list):
        pairs = [_thought(entry) for entry in value]
        seals = [seal for _, seal in pairs if seal]
        return glue.join(text for text, _ in pairs if text), seals[-1] if seals else None
    if not isinstance(value, dict):
        return "", None
    told = next((key for key in _THOUGHT_KEYS if value.get(key)), None)
    # Summaries in one list are paragraphs; in a stream each delta holds one only.
    text, sealed = _thought(value[told], "\n\n" if told == "summary" else "") if told else ("", None)
    own = next((seal for key in _SEAL_KEYS if isinstance(seal := value.get(key), str) and seal), None)
    return text, own or sealed


def _complete(annotation: Json) -> Json:
    """A link with the four keys that typed clients need."""
    if annotation["type"] != "url_citation":
        return annotation
    told = {key: value for key, value in annotation.items() if value is not None}
    return {"start_index": 0, "end_index": 0, "title": "", "url": "", **told}


def _cited(part: Json) -> tuple[Json, ...]:
    """Claude's citations on a text part, as Databricks relays them: those that have a link."""
    entries = part.get("citations")
    return tuple(
        _complete({"type": "url_citation", "url": entry["url"], "title": entry.get("title")})
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("url"), str)
    )


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
