"""Built-in profiles: what is known of each backend, as data.

A layer holds the sections and keys of `translators.profile.Profile`; a row is a layer and
what it applies to. Merge order: BASE < WIRES[surface] < row < row.surfaces[surface] <
configuration (`providers/profiles.py`). A configuration may override any key.

Every value says where it comes from: S read in source, I issue or pull request, D
documentation, R measured, U unverified (a cautious default).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from translators.profile import merge

from .base import Surface

Layer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A named profile. It matches when the kind or the host does, and the model too (none: any)."""

    name: str
    layer: Layer
    kinds: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    like: str | None = None
    """The row whose models it serves elsewhere: rows of models that name that one apply here too."""
    surfaces: Mapping[Surface, Layer] = field(default_factory=dict)
    """What differs on one surface: `messages` and `tools` of the layer describe Chat."""


# The safest chat backend known, not plain OpenAI; what is not named here is Profile's default.
BASE: Layer = {
    "request": {
        # Chat backends other than OpenAI's own answer 400 to most of these; a client that
        # speaks Chat itself gets them through (I: Databricks, NIM, Fireworks, SGLang).
        "drop_translated": [
            "store",
            "include",
            "client_metadata",
            "prompt_cache_key",
            "prompt_cache_options",
            "prompt_cache_retention",
            "safety_identifier",
            "service_tier",
            "verbosity",
            "metadata",
            "moderation",
            "prediction",
        ]
    },
    "answer": {
        # I: words seen in finish_reason that are not OpenAI's; null: no reason given.
        "finish_map": {
            "": None,
            "eos": "stop",
            "end": "stop",
            "end_turn": "stop",
            "max_tokens": "length",
            "tool_use": "tool_calls",
            "error": None,
        }
    },
}

_RESPONSES: Layer = {
    "request": {"drop_translated": []},
    "reasoning": {"scope": "all"},  # the client's own items, which it keeps as long as it sees fit
    "messages": {"developer": "keep", "system": "many"},
    "tools": {
        "types": ["function", "custom", "namespace", "tool_search"],
        "custom": "keep",
        "builtin": "keep",
        "strict": "keep",
        "choice": {"allowed_tools": "keep"},
    },
}

_OPEN_RESPONSES: Layer = {
    "messages": {
        # S dbx-tools, in this order: old turns' `output_*` parts become `input_*`, reasoning
        # goes ("Invalid `data` in `redacted_thinking` block"), and then no assistant message
        # may be last ("does not support assistant message prefill").
        "assistant_parts": "input",
        "reasoning_items": "drop",
        "trailing_assistant": "drop",
    },
    "tools": {  # S dbx-tools: "Only 'function' is supported."
        "types": ["function"],
        "custom": "function",
        "builtin": "drop",
        "strict": "drop",
        "choice": {"allowed_tools": "filter"},
    },
}

WIRES: Mapping[Surface, Layer] = {
    "responses": merge({"wire": {"responses": "/responses"}}, _RESPONSES),
    "open_responses": merge(_RESPONSES, _OPEN_RESPONSES),
}
"""Over BASE when the backend is spoken to in the Responses shape; `open_responses` is the
cross-provider surface, whatever stands behind it."""

OPENAI = Row(
    "openai",
    hosts=("api.openai.com",),
    layer={
        "answer": {"exact": True},
        "wire": {"responses": "/responses", "responses_first": True, "websocket": True},
        "messages": {"developer": "keep"},
        "tools": {  # S openai 3.57.0 types
            "types": ["function", "custom"],
            "custom": "keep",
            "builtin": "keep",
            "strict": "keep",
            "choice": {"allowed_tools": "keep"},
        },
        "request": {
            "max_tokens_key": "max_completion_tokens",
            "rename": {"max_tokens": "max_completion_tokens"},
        },
        # Per model in truth (S pydantic-ai profiles/openai.py); the union of them here.
        "reasoning": {"efforts": ["none", "minimal", "low", "medium", "high", "xhigh", "max"]},
        "output_format": {"needs_json_word": True},
    },
    surfaces={
        # S openai 3.57.0: both shapes have the other parameters. I: `metadata` is refused on Chat
        # unless `store` is on, and what Chat stores is another list than what Responses stores.
        # S pydantic-ai 2.68.0: `max` is refused on Chat.
        "chat": {
            "request": {"drop_translated": ["store", "metadata"]},
            "reasoning": {"efforts": ["none", "minimal", "low", "medium", "high", "xhigh"]},
        },
        # S openai 3.57.0: the Responses tool union holds these two as well.
        "responses": {"tools": {"types": ["function", "custom", "namespace", "tool_search"]}},
    },
)

FUNCTIONS_ONLY: Layer = {
    "tools": {
        "types": ["function"],
        "custom": "function",
        "builtin": "drop",
        "choice": {"allowed_tools": "filter"},
    }
}
"""A Responses surface that takes function tools and nothing else."""

# --- servers that people run themselves: chosen by name, a host says nothing -----------

VLLM = Row(
    "vllm",
    layer={
        "wire": {"responses": "/responses", "responses_first": False},
        "messages": {"system": "merge_leading"},
        # S litellm hosted_vllm (cautious)
        "tools": {"strict": "drop", "schema": {"drop": ["additionalProperties"]}},
        # I vllm#27752, router#115: renamed late in 2025, replayed in the field it came in
        "reasoning": {
            "fields": ["reasoning", "reasoning_content"],
            "replay": "field",
            "replay_field": "reasoning",
        },
        "errors": {"shapes": ["openai", "fastapi"]},
    },
    # I field reports: namespaces and custom tools of Codex are refused or lost
    surfaces={"responses": FUNCTIONS_ONLY},
)

SGLANG = Row(
    "sglang",
    layer={
        "reasoning": {"fields": ["reasoning_content"], "replay": "field"},  # U
        "errors": {"shapes": ["openai", "fastapi"]},
    },
)

LLAMACPP = Row(
    "llamacpp",
    layer={
        "tools": {"schema": {"inline_refs": True}},  # U
        "reasoning": {"fields": ["reasoning_content"], "replay": "field"},
    },
    # I field reports: everything but functions is skipped silently
    surfaces={"responses": FUNCTIONS_ONLY},
)

LMSTUDIO = Row(
    "lmstudio",
    layer={
        # I lmstudio-bug-tracker#670: "Supported string values: none, auto, required"
        "tools": {"choice": {"named": "required_single"}, "schema": {"require_object": True}},
        "output_format": {"json_object": "drop"},  # U
        "reasoning": {"fields": ["reasoning_content", "reasoning"]},
        "errors": {"shapes": ["string", "openai"]},  # I {"error": "..."}
    },
)

OLLAMA_OPENAI = Row(
    "ollama-openai",
    layer={
        # D: its API takes pictures as base64 and nothing else that is not text.
        "messages": {"media": {"file": "refuse", "audio": "refuse"}},
        "tools": {"strict": "drop"},
        "reasoning": {"fields": ["reasoning", "reasoning_content"]},  # S pydantic-ai
    },
)

SELF_HOSTED: tuple[Row, ...] = (VLLM, SGLANG, LLAMACPP, LMSTUDIO, OLLAMA_OPENAI)
