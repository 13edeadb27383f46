"""What a model's name is made of: segments, version, date, maker's prefix; and how it reads to people.

Names are the only thing that every backend tells, and each spells them its own way: `gpt-5.5`,
`databricks-gpt-5-5`, `openai/gpt-5.5-2026-04-23`, `llama3.2:latest`, `qwen35-122b-a10b`. Cut into
segments they are comparable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

Segments = tuple[str, ...]

_VENDORS = """
databricks dbx system ai openai anthropic google meta microsoft nvidia amazon aws azure bedrock vertex
mistralai moonshotai xai zai cohere us eu apac global publishers models latest
"""
_ROOTS = """
chatgpt claude codestral command deepseek devstral ernie exaone gemini gemma glm gpt granite grok hunyuan
jamba kimi lfm llama magistral mimo minimax ministral mistral mixtral nemotron nova olmo phi pixtral qwen
smollm
"""
VENDORS = frozenset(_VENDORS.split())
"""Words in front of a model's own name that say who sells it, and `latest`, which says nothing.
A search ignores them: `anthropic opus` means opus wherever it is served."""
ROOTS = frozenset(_ROOTS.split())
"""Brands that a model's own name begins with."""

_WORD = re.compile(r"\d+(?:\.\d+)?(?:x\d+(?:\.\d+)?)?[bm](?![a-z0-9])|[a-z0-9]+")
"""A parameter count (`0.6b`, `8x7b`, `135m`) is one word, dot or not."""
_FUSED = re.compile(r"([a-z]{3,})(\d\w*)")
_TWO_DIGITS = re.compile(r"[2-9]\d")
_VERSION_HEAD = re.compile(r"([vrkmo]?)([1-9]\d?|0)([ac-jln-z]?)")
_VERSION_NEXT = re.compile(r"([1-9]\d?|0)([ac-jln-z]?)")
_NUMBER = re.compile(r"[vrkm]?(\d+)")
_O_SERIES = re.compile(r"o[1-9]")
_SIZE = re.compile(r"\d+(?:\.\d+)?(?:x\d+(?:\.\d+)?)?[bm]|[ae]\d+(?:\.\d+)?b")
_YEAR = re.compile(r"20[2-9]\d")


@lru_cache(maxsize=4096)
def segments(name: str) -> Segments:
    """The words of a name, lower case: `Qwen3-8B` is qwen, 3, 8b; `gpt-35-turbo` is gpt, 3, 5, turbo."""
    return tuple(_spread(_split(_WORD.findall(name.lower()))))


def _split(words: Sequence[str]) -> Iterator[str]:
    """Numbers written onto a name are cut off: `llama3`, `gemma3n`; `o3`, `r1`, `k2` are names."""
    for word in words:
        fused = _FUSED.fullmatch(word)
        if fused:
            yield from fused.groups()
        else:
            yield word


def _spread(words: Iterator[str]) -> Iterator[str]:
    """A first number of 20 to 99 is a version without its dot: `qwen35` (Databricks), `gpt-35` (Azure)."""
    first = True
    for word in words:
        if first and _TWO_DIGITS.fullmatch(word):
            yield from word
        else:
            yield word
        first = first and not word.isdigit()


def core(name: str) -> Segments:
    """The segments of a model's own name: `databricks-meta-llama-3` is llama, 3; a path counts as a maker."""
    words = segments(name.rstrip("/").rpartition("/")[2])
    start = next((at for at, word in enumerate(words) if word not in VENDORS), 0)
    return words[start:]


def is_date(word: str) -> bool:
    """`20250929`, `0709`, `2411`, and the serial numbers of Gemini (`001`)."""
    return word.isdigit() and (len(word) >= 4 or (len(word) == 3 and word[0] == "0"))


def undated(words: Segments) -> Segments:
    """A name without its snapshot: `grok-4-0709` is grok, 4; `llama3.2:latest` is llama, 3, 2."""
    kept: list[str] = []
    for at, word in enumerate(words):
        if not (word == "latest" or is_date(word) or _is_month_or_day(words, at)):
            kept.append(word)
    return tuple(kept)


def _is_month_or_day(words: Segments, at: int) -> bool:
    """`2026-04-23`, and `08-2024` as Cohere writes it."""
    if not (words[at].isdigit() and len(words[at]) == 2):
        return False
    before = any(_YEAR.fullmatch(word) for word in words[max(0, at - 2) : at])
    return before or (at + 1 < len(words) and _YEAR.fullmatch(words[at + 1]) is not None)


def version(words: Segments) -> tuple[int, ...]:
    """Up to three numbers from the first that is one: (4, 10) is newer than (4, 8); () without any.

    Sizes (`70b`), windows (`32k`) and dates are no versions; `o3`, `v3.2`, `4o` are.
    """
    words = undated(words)
    for at, word in enumerate(words):
        head = _VERSION_HEAD.fullmatch(word)
        if head:
            rest = (_VERSION_NEXT.fullmatch(each) for each in words[at + 1 : at + 3])
            return (int(head[2]), *_while_numbers(rest))
    return ()


def _while_numbers(found: Iterator[re.Match[str] | None]) -> Iterator[int]:
    for match in found:
        if match is None:
            return
        yield int(match[1])


def numbers(words: Segments) -> Segments:
    """The whole numeric segments in their order, `v3` as 3; a size or `4o` is no number."""
    return tuple(match[1] for match in map(_NUMBER.fullmatch, words) if match)


def parameter_count(words: Segments) -> float | None:
    """Parameters that a name tells, the active ones of a mixture aside: `30b-a3b` is 3e10, `8x7b` 5.6e10.

    `e2b` (effective parameters, Gemma 3n) counts where nothing else does.
    """
    for word in words:
        if _SIZE.fullmatch(word) and word[0].isdigit():
            return _size(word)
    return next((_size(word[1:]) for word in words if _SIZE.fullmatch(word) and word[0] == "e"), None)


def _size(word: str) -> float:
    experts, times, each = word[:-1].rpartition("x")
    count = float(each) * (float(experts) if times else 1.0)
    return count * (1e9 if word[-1] == "b" else 1e6)


def is_full_id(name: str) -> bool:
    """Whether somebody means exactly this model: a path, a maker's prefix, a date, or a brand with a number.

    Such a name is never answered by a similar one: whoever asks for `gpt-4o` is not served by a mini.
    """
    if not name or any(character.isspace() for character in name):
        return False
    words = segments(name)
    if "/" in name or not words:
        return "/" in name
    if words[0] in VENDORS and len(words) > 1:
        return True
    if _O_SERIES.fullmatch(words[0]) or any(is_date(word) for word in words):
        return True
    return words[0] in ROOTS and any(mark in name for mark in "-_:@") and any(map(_has_digit, words))


def _has_digit(word: str) -> bool:
    return any(character.isdigit() for character in word)


_SPELLED = {
    "ai": "AI",
    "bge": "BGE",
    "chatgpt": "ChatGPT",
    "dbrx": "DBRX",
    "deepseek": "DeepSeek",
    "en": "EN",
    "glm": "GLM",
    "gpt": "GPT",
    "gte": "GTE",
    "lfm": "LFM",
    "llm": "LLM",
    "minimax": "MiniMax",
    "moe": "MoE",
    "olmo": "OLMo",
    "oss": "OSS",
    "qwq": "QwQ",
    "smollm": "SmolLM",
}


def display_name(name: str) -> str:
    """For people: `databricks-claude-sonnet-4-6` is Claude Sonnet 4.6, `llama3.2:latest` Llama 3.2."""
    words = core(name)
    shown = words[:-1] if len(words) > 1 and words[-1] == "latest" else words
    text = " ".join(map(_spelled, shown))
    text = re.sub(r"\b(20[2-9]\d) (\d\d) (\d\d)\b", r"\1-\2-\3", text)
    text = re.sub(r"(?<![\d.-])(\d{1,2})(?: (\d{1,2}))(?: (\d{1,2}))?(?![\w.-])", _dotted, text)
    return text or name.strip()


def _dotted(found: re.Match[str]) -> str:
    return ".".join(number for number in found.groups() if number)


def _spelled(word: str) -> str:
    if _SIZE.fullmatch(word):
        return word.upper().replace("X", "x")
    if _O_SERIES.fullmatch(word) or word[0].isdigit():
        return word
    return _SPELLED.get(word) or word.capitalize()
