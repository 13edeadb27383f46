"""Built-in rows of models: what a model takes or refuses whatever its host says of the rest.

Merge order: base < wire < row < row on a surface < the rows here, in their order < configuration.
Every row that applies is merged, so general ones stand before special ones; see `rows.py` for
the marks of evidence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from .base import Surface
from .rows import Layer

_FAMILY = re.compile(
    r"(?<![a-z0-9])(chatgpt|gpt|codex|o[1-9]|claude|gemini|gemma|llama|deepseek|grok|kimi|glm|minimax"
    r"|qwen|mistral|ministral|codestral|magistral|computer-use)(?![a-z])"
)
_SNAPSHOT = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})(?=-|$)")


@dataclass(frozen=True, slots=True)
class ModelRow:
    """What differs by model; it applies under the host or kind rows named in `rows`."""

    name: str
    rows: tuple[str, ...]
    models: tuple[str, ...]
    """Globs over `plain_name`; one with a `/` is over the whole name."""
    evidence: str
    layer: Layer = field(default_factory=dict)
    surfaces: Mapping[Surface, Layer] = field(default_factory=dict)
    but: tuple[str, ...] = ()
    """Globs of variants it does not apply to."""
    drop: tuple[str, ...] = ()
    """Request keys the model refuses besides those of `request.drop` (a layer's list would replace it)."""


def plain_name(model: str) -> str:
    """A model's name as the rows know it, from its family on: `gpt-5-5` for `openai/gpt-5.5`,
    `databricks-gpt-5-5`, `system.ai.gpt-5-5` and `gpt-5.5-2026-04-23`; `o3` for `o3@default`.
    """
    name = model.lower().rpartition("/")[2]
    name = re.split(r"[@:]", name)[0]
    name = re.sub(r"[._]", "-", name)
    found = _FAMILY.search(name)
    return _SNAPSHOT.sub("", name[found.start() :] if found else name)


def model_rows(row: str, model: str) -> tuple[ModelRow, ...]:
    """The rows that apply to `model` under the host or kind row named `row`, in order of merging."""
    plain, whole = plain_name(model), model.lower()
    return tuple(each for each in MODELS if row in each.rows and _applies(each, plain, whole))


def _applies(row: ModelRow, plain: str, whole: str) -> bool:
    if not any(_is(glob, whole if "/" in glob else plain) for glob in row.models):
        return False
    return not any(_is(glob, plain) for glob in row.but)


def _is(glob: str, name: str) -> bool:
    """Whether `name` is of the model `glob`: itself or a variant (`-mini`), not a version (`-5`) of it."""
    return fnmatchcase(name, glob) or fnmatchcase(name, f"{glob}-[!0-9]*")


_GPT = ("openai", "azure-openai", "databricks-gpt")
_CLAUDE = ("databricks-claude", "anthropic-openai")
_SAMPLING = ("temperature", "top_p", "top_k")
_NO_REASONING: Layer = {"reasoning": {"ask": "none", "efforts": []}}
_AT_LEAST_LOW = {"none": "low"}
"""A model that always reasons is told the least it knows when a client wants none."""


def _efforts(*levels: str, **more: object) -> Layer:
    return {"reasoning": {"efforts": list(levels), **more}}


GPTS: tuple[ModelRow, ...] = (
    ModelRow(
        "any hosted tool",
        _GPT,
        ("*",),
        "S a coding agent's capability table: `computer` from gpt-5.4 on, unknown models: no",
        {"tools": {"unknown": ["computer"]}},
    ),
    ModelRow(
        "o-series",
        _GPT,
        ("o[1-9]",),
        "S pydantic-ai 2.68.0: low to high, never off; sampling refused; S no native apply_patch",
        {
            **_efforts("low", "medium", "high", map=_AT_LEAST_LOW),
            "tools": {"unknown": ["apply_patch", "computer"]},
        },
        drop=_SAMPLING,
    ),
    ModelRow(
        "gpt without reasoning",
        _GPT,
        ("gpt-3*", "gpt-4*", "chatgpt*"),
        "S pydantic-ai: no reasoning at all; S no native apply_patch",
        {**_NO_REASONING, "tools": {"unknown": ["apply_patch", "computer"]}},
    ),
    ModelRow(
        "gpt-5",
        _GPT,
        ("gpt-5",),
        "S pydantic-ai 2.68.0: minimal to high, never off; S native apply_patch from 5.1 on",
        {
            **_efforts("minimal", "low", "medium", "high", map={"none": "minimal"}),
            "tools": {"unknown": ["apply_patch", "computer"]},
        },
        but=("gpt-5-chat",),
        drop=_SAMPLING,
    ),
    ModelRow(
        "gpt-5.1",
        _GPT,
        ("gpt-5-1",),
        "S pydantic-ai 2.68.0: off by default, none allowed; sampling refused while reasoning",
        _efforts("none", "low", "medium", "high", drop_sampling=True),
    ),
    ModelRow(
        "gpt-5.2 to 5.4",
        _GPT,
        ("gpt-5-[234]",),
        "S pydantic-ai 2.68.0: off by default, none allowed; sampling refused while reasoning; xhigh U",
        _efforts("none", "low", "medium", "high", "xhigh", drop_sampling=True),
    ),
    ModelRow(
        "gpt-5.5",
        _GPT,
        ("gpt-5-5",),
        "S pydantic-ai 2.68.0: on by default, none allowed; sampling refused while reasoning; xhigh U",
        _efforts("none", "low", "medium", "high", "xhigh", drop_sampling="unless_none"),
    ),
    ModelRow(
        "gpt-5.6, gpt-6, gpt-6.1",
        _GPT,
        ("gpt-5-[6-9]", "gpt-6", "gpt-6-[1-9]"),
        "S pydantic-ai 2.68.0: on by default, none allowed, sampling refused while reasoning; "
        "S dbx-tools catalogue: none and low to max for 5.6; the same for 6 and 6.1 U",
        _efforts("none", "low", "medium", "high", "xhigh", "max", drop_sampling="unless_none"),
        {"chat": _efforts("none", "low", "medium", "high", "xhigh")},  # S `max` is refused on Chat
    ),
    ModelRow(
        "gpt-6-astra, gpt-6.1-sol",
        _GPT,
        ("gpt-6-astra", "gpt-6-1-sol"),
        "S pydantic-ai 2.68.0: cannot be off, low to max (`max` not on Chat)",
        _efforts("low", "medium", "high", "xhigh", "max", map=_AT_LEAST_LOW),
        {"chat": _efforts("low", "medium", "high", "xhigh")},
        drop=_SAMPLING,
    ),
    ModelRow(
        "gpt-5-chat",
        _GPT,
        ("gpt-*-chat",),
        "S pydantic-ai: the chat-latest variants do not reason; S no native apply_patch",
        {
            "reasoning": {"ask": "none", "efforts": [], "drop_sampling": False},
            "tools": {"unknown": ["apply_patch", "computer"]},
        },
    ),
    ModelRow(
        "gpt codex",
        _GPT,
        ("codex", "gpt-*-codex", "codex-mini"),
        "S dbx-tools catalogue: low to high; never off U",
        _efforts("low", "medium", "high", map=_AT_LEAST_LOW),
        drop=_SAMPLING,
    ),
    ModelRow(
        "gpt codex, xhigh",
        _GPT,
        ("gpt-5-1-codex-max", "gpt-5-[2-9]-codex"),
        "U: the newer ones know xhigh",
        _efforts("low", "medium", "high", "xhigh", map=_AT_LEAST_LOW),
    ),
    ModelRow(
        "gpt pro",
        _GPT,
        ("gpt-5-[1-9]-pro", "gpt-[6-9]-pro", "gpt-[6-9]-[1-9]-pro"),
        "S pydantic-ai 2.68.0, S a coding agent for gpt-5.5-pro: medium to xhigh, never off",
        _efforts("medium", "high", "xhigh", map={"none": "medium"}),
        {"chat": _efforts("medium", "high", "xhigh")},
        drop=_SAMPLING,
    ),
    ModelRow(
        "gpt-5-pro",
        _GPT,
        ("gpt-5-pro",),
        "S pydantic-ai 2.68.0: only high",
        _efforts("high", map={"none": "high"}),
        drop=_SAMPLING,
    ),
    ModelRow(
        "gpt-5.4 and newer: computer",
        _GPT,
        ("gpt-5-[4-9]", "gpt-[6-9]", "gpt-[6-9]-[0-9]"),
        "S a coding agent's capability table: they know the `computer` tool",
        {"tools": {"unknown": []}},
    ),
    ModelRow(
        "gpt nano: no computer",
        _GPT,
        ("gpt-*-nano",),
        "S a coding agent's capability table: nano variants do not know the `computer` tool",
        {"tools": {"unknown": ["computer"]}},
    ),
    ModelRow(
        "gpt-5-nano, deep research: no patches",
        _GPT,
        ("gpt-5-nano", "*-deep-research"),
        "S a coding agent's capability table: no native apply_patch",
        {"tools": {"unknown": ["apply_patch", "computer"]}},
    ),
    ModelRow(
        "gpt-5.5 and 5.6: cache retention",
        _GPT,
        ("gpt-5-[56]",),
        "S `in_memory` is refused; left out, the model's default of 24 h applies",
        {"request": {"drop_values": {"prompt_cache_retention": ["in_memory", "in-memory"]}}},
    ),
    ModelRow(
        "gpt-oss",
        (*_GPT, "databricks-oss", "bedrock-openai", "cerebras", "together", "fireworks", "openrouter"),
        ("gpt-oss*",),
        "S dbx-tools catalogue: low to high, never off",
        _efforts("low", "medium", "high", map=_AT_LEAST_LOW),
    ),
)

FOUNDRY: tuple[ModelRow, ...] = (
    ModelRow(
        "Foundry DeepSeek",
        ("azure-openai",),
        ("deepseek*",),
        "I: \"developer is not one of ['system', 'assistant', 'user', 'tool', 'function']\"",
        {"messages": {"developer": "system"}},
    ),
    ModelRow(
        "Foundry Mistral",
        ("azure-openai",),
        ("mistral*", "ministral*", "codestral*", "magistral*"),
        "S pydantic-ai azure.py: 422 for max_completion_tokens",
        {
            "request": {
                "max_tokens_key": "max_tokens",
                "rename": {"max_tokens": "max_tokens", "max_completion_tokens": "max_tokens"},
            }
        },
    ),
    ModelRow(
        "Foundry Grok",
        ("azure-openai",),
        ("grok*",),
        "S pydantic-ai azure.py: `$ref` in schemas is rejected",
        {"tools": {"schema": {"inline_refs": True}}},
    ),
)

_NEW_CLAUDE = (
    "claude-opus-4-[7-9]",
    "claude-opus-[5-9]",
    "claude-opus-[5-9]-[0-9]",
    "claude-sonnet-[5-9]",
    "claude-sonnet-[5-9]-[0-9]",
    "claude-fable*",
)

CLAUDES: tuple[ModelRow, ...] = (
    ModelRow(
        "claude before 3.7",
        _CLAUDE,
        ("claude-[12]*", "claude-instant", "claude-3", "claude-3-5"),
        "S dbx-tools catalogue: thinking begins with 3.7",
        _NO_REASONING,
    ),
    ModelRow(
        "claude, adaptive only",
        _CLAUDE,
        _NEW_CLAUDE,
        "S litellm (supports_sampling_params false), I duckdb-ai#85: `does not support the temperature "
        "parameter`; D thinking {type: adaptive} and output_config {effort}, which knows no minimal",
        surfaces={"chat": {"reasoning": {"ask": "thinking_adaptive", "map": {"minimal": "low"}}}},
        drop=_SAMPLING,
    ),
    ModelRow(
        "claude without forced calls",
        _CLAUDE,
        ("claude-fable-5-1", "claude-opus-5-5"),
        'I: `tool_choice: type "tool" and "any" are not supported for this model.`',
        {"tools": {"choice": {"required": "auto", "named": "auto"}}},
    ),
    ModelRow(
        "claude-opus-5-5",
        _CLAUDE,
        ("claude-opus-5-5",),
        "D query-reason-models: none and disabled are rejected",
        _efforts("minimal", "low", "medium", "high", "xhigh", "max", map=_AT_LEAST_LOW),
    ),
)

OTHERS: tuple[ModelRow, ...] = (
    ModelRow(
        "gemini-4",
        ("databricks-gemini",),
        ("gemini-4", "gemini-4-[0-9]"),
        "D query-reason-models: none and minimal are rejected",
        _efforts("low", "medium", "high", map=_AT_LEAST_LOW),
    ),
    ModelRow(
        "gemini without sampling",
        ("databricks-gemini",),
        ("gemini-3-5-flash-lite", "gemini-3-[6-9]", "gemini-[4-9]", "gemini-[4-9]-[0-9]"),
        "S litellm price map (databricks): 3.5-flash-lite, 3.6 and newer refuse sampling parameters",
        drop=_SAMPLING,
    ),
    ModelRow(
        "llama, gemma",
        ("databricks-oss",),
        ("llama*", "gemma*"),
        "S dbx-tools: `This model does not support 'reasoning' for the Open Responses API.`",
        _NO_REASONING,
    ),
    ModelRow(
        "openrouter developer role",
        ("openrouter",),
        ("openai/*", "anthropic/*"),
        "S pi fork: the developer role is known for these ids only",
        {"messages": {"developer": "keep"}},
    ),
    ModelRow(
        "groq qwen3-32b",
        ("groq",),
        ("qwen3-32b",),
        "S litellm: it knows `none` and `default` only",
        _efforts(
            "none",
            "default",
            map=dict.fromkeys(("minimal", "low", "medium", "high", "xhigh", "max"), "default"),
        ),
    ),
    ModelRow(
        "groq gpt-oss",
        ("groq",),
        ("gpt-oss*",),
        "S dbx-tools catalogue: low to high, never off",
        _efforts("low", "medium", "high", map=_AT_LEAST_LOW),
    ),
    ModelRow(
        "together deepseek-v4",
        ("together",),
        ("deepseek-v4",),
        "S: it refuses a forced choice",
        {"tools": {"choice": {"required": "auto", "named": "auto"}}},
    ),
    ModelRow(
        "kimi that always thinks",
        ("moonshot",),
        ("kimi-k3", "kimi-k2-7"),
        "S pydantic-ai: thinking {type: disabled} is not taken by K3 and K2.7",
        {"reasoning": {"map": _AT_LEAST_LOW}},
    ),
    ModelRow(
        "glm that always thinks",
        ("zai-glm",),
        ("glm-5-3",),
        "S pydantic-ai: 5.3 always thinks",
        {"reasoning": {"map": _AT_LEAST_LOW}},
    ),
    ModelRow(
        "minimax m2",
        ("minimax",),
        ("minimax-m2", "minimax-m2-[0-9]"),
        "S pydantic-ai: M2.x cannot turn thinking off",
        {"reasoning": {"map": _AT_LEAST_LOW}},
    ),
    ModelRow(
        "grok 4.5 and newer",
        ("xai",),
        ("grok-4-[5-9]", "grok-[5-9]", "grok-[5-9]-[0-9]"),
        "S pydantic-ai: reasoning cannot be turned off",
        {"reasoning": {"map": _AT_LEAST_LOW}},
    ),
)

MODELS: tuple[ModelRow, ...] = (*GPTS, *FOUNDRY, *CLAUDES, *OTHERS)
