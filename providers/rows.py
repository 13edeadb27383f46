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

from translators.ollama_keys import OPTIONS, OWN
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
    "request": {
        "drop_translated": [],
        # Codex's ids of the installation, the thread and the turn: OpenAI's published request has
        # no such key.
        "drop": ["client_metadata"],
        # I OpenAI: 400 integer_below_min_value for less; clients test a connection with 1.
        "min_output_tokens": 16,
    },
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
        "wire": {
            "responses": "/responses",
            "responses_first": True,
            "websocket": True,
            "compact": "/responses/compact",  # S openai 3.57.0
            "input_tokens": "/responses/input_tokens",  # S openai 3.57.0
        },
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
        "responses": {
            "request": {"drop": []},
            "tools": {"types": ["function", "custom", "namespace", "tool_search"]},
        },
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
_FUNCTIONS_AND_ANY_LIMIT = merge(FUNCTIONS_ONLY, {"request": {"min_output_tokens": None}})
"""The same where one token may be asked for (U vllm, llama.cpp: no minimum is known of either)."""

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
    # S vllm: old answers need their id, which the sweep takes away from those that lose their reasoning
    surfaces={"responses": merge(_FUNCTIONS_AND_ANY_LIMIT, {"reasoning": {"sweep": False}})},
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
    surfaces={"responses": _FUNCTIONS_AND_ANY_LIMIT},
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

OLLAMA = Row(
    "ollama",
    kinds=("ollama",),
    layer={
        "wire": {
            "chat": None,
            "ollama": "/api/chat",
            "embeddings": "/api/embed",
            "models": {"path": "/api/tags", "kind": "ollama"},
        },
        "request": {
            # S ollama server/routes.go: a key it does not know is ignored without a word, so that what
            # is lost has to be told here. The second half are its own keys, and options of its own.
            "allow": [
                *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "response_format"),
                *("stream", "temperature", "top_p", "seed", "stop", "max_tokens", "presence_penalty"),
                *("frequency_penalty", "logprobs", "top_logprobs", "reasoning_effort"),
                *sorted(OWN | OPTIONS),
            ],
            "rename": {"max_completion_tokens": "max_tokens"},
            # S ollama: its own default is 4,096 on machines with less than 24 GB of video memory, and
            # what does not fit is cut off. Where the model's context is known the lesser of both is asked.
            "defaults": {"num_ctx": 32768},
        },
        "messages": {
            # S ollama: content is one text, pictures are base64 beside it; only some of its renderers
            # know a developer.
            "text_parts": "string",
            "null_content": "empty",
            "user_name": "drop",
            "remote_images": "inline",
            "media": {"file": "refuse", "audio": "refuse"},
        },
        # S ollama: no key makes a model call a tool. One that must call is told so in words, and has the
        # named tool alone.
        "tools": {"choice": {"required": "auto", "named": "required_single"}},
        "reasoning": {
            # S ollama: `think` is a switch or one of these; `minimal` and `xhigh` are a 400. An older server
            # takes no `max`: it says so once, and from then on the model thinks as much as it likes.
            "efforts": ["none", "low", "medium", "high", "max"],
            "map": {"minimal": "low", "xhigh": "max", "ultra": "max"},
            "fields": ["reasoning_content"],
            "replay": "field",
        },
        # Calls come whole, one after another; our own count tells them apart.
        "answer": {"tool_delta": {"index": "exact", "args": "exact"}},
        "errors": {"shapes": ["string"]},  # S ollama: {"error": "..."}
    },
)

ONNX = Row(
    "onnx",
    kinds=("onnx",),
    layer={
        "auth": {"kind": "none"},
        "wire": {"models": {"path": None, "kind": "static"}, "input_tokens": "/input_tokens"},
        "request": {
            # All that the engine is told; what is lost of the rest is said. The second half are keys of
            # other engines that people know.
            "allow": [
                *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "response_format"),
                *("stream", "stream_options", "temperature", "top_p", "seed", "stop", "max_tokens", "n"),
                *("presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs"),
                *("reasoning_effort", "top_k", "min_p", "repetition_penalty", "chat_template_kwargs"),
                "structured_outputs",
            ],
            "rename": {"max_completion_tokens": "max_tokens"},
            "learn_rejections": False,  # its errors are our own: nothing turns out
        },
        # Chat templates of text models; few know a developer.
        "messages": {"media": {"image": "refuse", "file": "refuse", "audio": "refuse"}},
        "tools": {"strict": "keep"},  # a strict tool's arguments are held to its schema by a grammar
        "reasoning": {
            "efforts": ["none", "minimal", "low", "medium", "high"],
            "fields": ["reasoning_content"],
            "tags": None,  # split off already, as each family of models marks them
            "replay": "field",
        },
        "answer": {
            "exact": True,
            "tool_delta": {"index": "exact", "id": "exact", "args": "exact"},
            "sse": {"done": "required"},
        },
    },
)

SELF_HOSTED: tuple[Row, ...] = (VLLM, SGLANG, LLAMACPP, LMSTUDIO, OLLAMA_OPENAI, OLLAMA, ONNX)
