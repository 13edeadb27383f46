"""Profiles the laws are tried on: one that takes everything, and every built-in row."""

from __future__ import annotations

from hypothesis import settings

from providers.profiles import BY_NAME, resolve
from translators.ir import Shape
from translators.profile import (
    ChoiceRules,
    MessageRules,
    Profile,
    ReasoningRules,
    RequestRules,
    SchemaRules,
    ToolRules,
)

EXACT = Profile(
    name="exact",
    request=RequestRules(max_tokens_key="max_completion_tokens"),
    messages=MessageRules(developer="keep", system="many", drop_bare_assistant=False),
    tools=ToolRules(
        types=("function", "custom", "namespace", "tool_search"),
        custom="keep",
        builtin="keep",
        strict="keep",
        schema=SchemaRules(require_object=False),
        choice=ChoiceRules(allowed_tools="keep"),
    ),
    reasoning=ReasoningRules(
        efforts=("none", "minimal", "low", "medium", "high", "xhigh", "max"),
        replay="field",
        scope="all",
    ),
)
"""OpenAI's own shape and nothing else: a request comes out as it went in."""


def row(name: str, shape: Shape) -> Profile:
    """A built-in row on a surface of this shape."""
    return resolve(kind="openai", host="", model="m", surface=shape, profile=name)


NAMES = tuple(BY_NAME)
EXAMPLES = 5 * settings.default.max_examples
"""For laws that draw a row among all."""
