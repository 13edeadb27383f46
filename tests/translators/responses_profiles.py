"""Profiles of Responses backends: one that asks for nothing, and what a test changes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from translators.profile import (
    ChoiceRules,
    MessageRules,
    OutputFormat,
    Profile,
    ReasoningRules,
    RequestRules,
    ToolRules,
)

KEEP = Profile(
    messages=MessageRules(developer="keep", system="many"),
    tools=ToolRules(
        types=("function", "custom", "namespace", "tool_search"),
        custom="keep",
        builtin="keep",
        strict="keep",
        choice=ChoiceRules(allowed_tools="keep"),
    ),
    reasoning=ReasoningRules(
        scope="all", efforts=("none", "minimal", "low", "medium", "high", "xhigh", "max")
    ),
)
"""A Responses backend that asks for nothing."""
OPEN = replace(
    KEEP,
    messages=replace(
        KEEP.messages, assistant_parts="input", reasoning_items="drop", trailing_assistant="drop"
    ),
    tools=ToolRules(types=("function",)),
)
"""The cross-provider surface: function tools and `input_*` parts only, no reasoning, no prefill."""


def request(**rules: Any) -> Profile:
    return replace(KEEP, request=RequestRules(**rules))


def messages(**rules: Any) -> Profile:
    return replace(KEEP, messages=replace(KEEP.messages, **rules))


def tools(**rules: Any) -> Profile:
    return replace(KEEP, tools=replace(KEEP.tools, **rules))


def choice(**rules: Any) -> Profile:
    return tools(choice=replace(KEEP.tools.choice, **rules))


def formats(**rules: Any) -> Profile:
    return replace(KEEP, output_format=OutputFormat(**rules))


def reasoning(**rules: Any) -> Profile:
    return replace(KEEP, reasoning=ReasoningRules(**rules))
