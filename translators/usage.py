"""Token counts: read from either shape, however partial, and written whole.

Readers give None when the backend told nothing (usage is never made up). Some usage: an
absent count is 0 and the total is the sum, because strict clients refuse a usage object
with a hole in it. Where vendors keep the same number under another name, the names are
listed here, in one place.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from .ir import Json, Usage

_INPUT = ("prompt_tokens", "input_tokens")
_OUTPUT = ("completion_tokens", "output_tokens")
_CACHED = ("cached_tokens", "cache_read_input_tokens", "prompt_cache_hit_tokens")
"""OpenAI and Moonshot; Anthropic's name, kept by Databricks; DeepSeek."""
_WRITTEN = ("cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens")
_REASONING = ("reasoning_tokens",)

_MOST = 2**53 - 1
"""A count above it is nonsense, and no JSON reader takes it (nor a sum of such) as an integer."""


def read_chat_usage(obj: Any, reasoning_in_completion: bool = True) -> Usage | None:
    """The usage object of a Chat reply.

    `reasoning_in_completion` False: the backend counts reasoning apart from
    `completion_tokens` (xAI does). A total, where there is one, tells that by itself.
    """
    return _read(obj, reasoning_in_completion)


def read_responses_usage(obj: Any) -> Usage | None:
    """The usage object of a Responses reply."""
    return _read(obj, reasoning_inside=True)


def write_chat_usage(usage: Usage) -> Json:
    """Chat's usage object, every count an integer."""
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def write_responses_usage(usage: Usage) -> Json:
    """Responses' usage object; typed clients need all of it, `cache_write_tokens` included."""
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def _read(obj: Any, reasoning_inside: bool) -> Usage | None:
    if not isinstance(obj, dict):
        return None
    inside = [obj, *_tables(obj, "prompt_tokens_details", "input_tokens_details")]
    outside = [obj, *_tables(obj, "completion_tokens_details", "output_tokens_details")]
    read, cached, written = _first([obj], _INPUT), _first(inside, _CACHED), _first(inside, _WRITTEN)
    output, reasoning = _first([obj], _OUTPUT), _first(outside, _REASONING)
    total = _count(obj.get("total_tokens"))
    if read is output is cached is written is total is None:
        return None
    usage = Usage(read or 0, output or 0, cached or 0, written or 0, reasoning or 0)
    _take_in(usage, total, reasoning_inside)
    return usage


def _take_in(usage: Usage, total: int | None, reasoning_inside: bool) -> None:
    """Count cache and reasoning tokens in where the backend counted them apart.

    Anthropic's input leaves the cached out, xAI's output the reasoning. A total tells, and so
    do more cached tokens than input ones, or more reasoning than output.
    """
    in_cache = usage.cached + usage.cache_write
    beyond = None if total is None else total - usage.input - usage.output
    if in_cache > usage.input or (in_cache and beyond in (in_cache, in_cache + usage.reasoning)):
        usage.input += in_cache
        beyond = None if beyond is None else beyond - in_cache
    told_apart = not reasoning_inside if beyond is None else beyond == usage.reasoning
    if told_apart or usage.reasoning > usage.output:
        usage.output += usage.reasoning


def _tables(obj: Json, *names: str) -> list[Json]:
    return [table for name in names if isinstance(table := obj.get(name), dict)]


def _first(tables: list[Json], names: tuple[str, ...]) -> int | None:
    """The first count told under one of `names`; a positive one wins over a 0."""
    found = None
    for table in tables:
        for name in names:
            if name not in table:  # most are not
                continue
            count = _count(table[name])
            if count:
                return count
            if count is not None:
                found = 0
    return found


def _count(value: Any) -> int | None:
    """A token count as some backends write it: integer, float, or digits in a string."""
    if type(value) is int:
        if 0 <= value <= _MOST:
            return value
        return min(max(0, value), _MOST)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, float) or not isfinite(value):
        return None
    return min(max(0, int(value)), _MOST)
