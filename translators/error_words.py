"""A backend's words become a kind of failure: the wordings seen, and where each is believed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `errors` reads this table
    from .errors import Kind


def words(*patterns: str) -> re.Pattern[str]:
    """Any of `patterns`, whatever the case."""
    return re.compile("|".join(patterns), re.IGNORECASE)


WORDS: tuple[tuple[Kind, re.Pattern[str], tuple[int, ...]], ...] = (
    (
        "context_length",
        words(
            r"context_length_exceeded",
            r"exceed_context_size",  # llama.cpp
            r"context[ _](?:length|window|size)",
            r"prompt is too long",  # Anthropic
            r"input is too long",  # Bedrock
            r"too many (?:input )?tokens",
            r"exceed\w* (?:the )?(?:max\w* )?(?:number of tokens|(?:model )?token limit|prompt length)",
            r"token count .{0,40}exceeds",  # Google
            r"model_max_prompt_tokens",
        ),
        (400, 413, 422, 500, 502),
    ),
    (
        "quota",
        words(
            r"insufficient_quota",
            r"exceeded your current quota",
            r"billing_(?:hard_limit|not_active)",
            r"insufficient (?:credit|balance|funds)",
            r"credit balance is too low",
        ),
        (400, 402, 403, 429),
    ),
    (
        "rate_limit",
        words(
            r"request_limit_exceeded",  # Databricks, met with status 400 too
            r"rate_limit_(?:exceeded|error)",
            r"rate[ -]limit(?:ed| exceeded| reached|$)",
            r"exceeded .{0,80}rate limit",
            r"too many requests",
        ),
        (400, 403, 500, 503),
    ),
    (
        "too_large",
        words(
            r"exceeds maximum allowed content length",  # Databricks, from 32 MiB on
            r"request entity too large",
            r"payload too large",
        ),
        (400, 500),
    ),
    (
        "content_filter",
        words(
            r"content_filter",
            r"content_policy",
            r"content (?:management )?policy",
            r"responsibleaipolicy",
            r"prompt_blocked",
            r"(?:blocked|flagged|rejected) .{0,60}(?:safety|moderation|content filter|guardrail)",
        ),
        (400, 403, 422),
    ),
    (
        "overloaded",
        words(r"server_is_overloaded", r"overloaded", r"(?:over|at) capacity", r"server (?:is )?busy"),
        (500, 502, 503, 529),
    ),
    (
        "upstream_auth",
        words(
            r"invalid_api_key",
            r"authentication_error",
            r"unauthenticated",
            r"(?:incorrect|invalid) api key",
            r"api key not valid",  # Google, with status 400
        ),
        (400,),
    ),
)
"""Ordered, first match wins: words tell more than statuses (llama.cpp answers 500 to an
overlong prompt), but only with the statuses they were met with, or inside a 200 reply."""
