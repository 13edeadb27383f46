"""Content of a Chat message on the wire: null, a string, or a list of parts."""

from __future__ import annotations

from typing import Any

from ..ir import Json

MEDIA = frozenset({"image_url", "input_audio", "file", "video_url"})
"""Part types that carry something other than words."""

MARK = "cache_control"
"""Key of a part: what stands up to it is worth caching (Anthropic)."""

_PLAIN = {"type", "text"}


def as_text(content: Any, separator: str = "") -> str | None:
    """The words of content that holds nothing else, else None. Null counts as no words."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list) and all(_is_text(part) for part in content):
        return separator.join(part["text"] for part in content)
    return None


def as_parts(content: Any) -> list[Json]:
    """Content as a list of parts; blank strings give none."""
    if isinstance(content, list):
        return list(content)
    return [{"type": "text", "text": content}] if isinstance(content, str) and content.strip() else []


def is_marked(content: Any) -> bool:
    """Whether some text part says more than its text (`cache_control`, say), so that joining loses it."""
    return isinstance(content, list) and any(_is_text(part) and not part.keys() <= _PLAIN for part in content)


def is_blank(content: Any) -> bool:
    """Whether there is nothing in it but white space. An image or an unknown part is something."""
    text = as_text(content)
    return text is not None and not text.strip()


def joined(first: Any, second: Any, separator: str = "\n\n") -> Any:
    """Two contents as one: a string when both are only words, else all parts in order."""
    if is_blank(first) or is_blank(second):
        return first if is_blank(second) else second
    texts = (as_text(first), as_text(second))
    if None in texts or is_marked(first) or is_marked(second):
        return [*as_parts(first), *as_parts(second)]
    return separator.join(text for text in texts if text is not None)


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)


def string(value: Any) -> str:
    """A string as it is, anything else as none."""
    return value if isinstance(value, str) else ""
