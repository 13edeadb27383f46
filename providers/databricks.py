"""Databricks model serving: OpenAI's shapes on three surfaces, refused in many words.

Which endpoint is served where is not listed reliably, so a Responses surface is tried and
its refusal remembered: GPT has `/responses`, the other families `/open-responses` with
gates, all but the Responses-only GPTs Chat. The refusal always comes before the first chunk.
"""

from __future__ import annotations

from .openai import REFUSED_S, OpenAIProvider

ABSENT = (b"passthrough is not supported", b"endpoint_not_found", b"resource_does_not_exist")
"""Words that say the surface, or the model on it, is not there."""
DOUBTFUL = (
    b"not supported",
    b"for the open responses api",  # "This model does not support 'reasoning' for ..."
    b"unknown field",
    b"invalid_parameter_value",
    b"internal_error",
)
"""Words that also come for one odd request: it moves on, the surface is tried again soon."""
DOUBT_S = 60.0


class DatabricksProvider(OpenAIProvider):
    """A workspace, signed with a personal access token."""

    def refusal(self, status: int, body: bytes) -> float:
        """404, or 400, 500, 501 with one of the documented phrases (in any case)."""
        if status == 404:
            return REFUSED_S
        if status not in (400, 500, 501):
            return 0.0
        text = body.lower()
        if any(words in text for words in ABSENT):
            return REFUSED_S
        return DOUBT_S if any(words in text for words in DOUBTFUL) else 0.0
