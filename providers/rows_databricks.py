"""Built-in profiles of Databricks model serving, one for each model family; see `rows.py` for the marks."""

from __future__ import annotations

from dataclasses import replace

from translators.profile import merge

from .rows import Layer, Row

_HOSTS = ("*.cloud.databricks.com", "*.azuredatabricks.net", "*.gcp.databricks.com")

# I: the body is `{error_code, message}`. D limits are per minute and Retry-After is usually
# absent; S dbx-tools floors the wait to that window, since a retry resends the whole input.
_ERRORS: Layer = {
    "shapes": ["databricks", "openai"],
    "retry": {"window_s": 60, "codes": ["REQUEST_LIMIT_EXCEEDED"]},
}

# I/S: any other key, at body, message, part or tool level, is 400 ("Extra inputs are not
# permitted", `json: unknown field "x"`). S bifrost, ucode, databricks-sdk 0.162.0: these are taken.
_KEYS = ["top_k", "usage_context", "client_request_id"]

_CHAT_PATHS: Layer = {
    "chat": "/serving-endpoints/chat/completions",  # S ellmer, litellm 1.110.2, databricks-openai 0.18.0
    "embeddings": "/serving-endpoints/embeddings",  # S litellm, bifrost
    "models": {"path": "/api/2.0/serving-endpoints", "kind": "databricks"},
}
# S dbx-tools `invoke.py`: the cross-provider surface; names of other families are refused on /responses.
_OPEN_PATHS: Layer = {
    **_CHAT_PATHS,
    "open_responses": "/serving-endpoints/open-responses",
}
_MAX_BODY = 33554432  # S dbx-tools payload_guard: "Limit(bytes): 33554432"

# D state is off workspace-wide; S dbx-tools: the rest as on Chat.
_ON_OPEN_RESPONSES: Layer = {
    "request": {
        "drop": [
            "store",
            "include",
            "metadata",
            "previous_response_id",
            "conversation",
            "background",
            "prompt",
            "prompt_cache_key",
            "prompt_cache_options",
            "prompt_cache_retention",
            "safety_identifier",
            "client_metadata",
            "context_management",
            "moderation",
            "service_tier",
            "user",
            "text.verbosity",
            # S Codex e2e stub: "does not support the 'parallel_tool_calls' parameter for the
            # Open Responses API" (gpt-oss, Llama).
            "parallel_tool_calls",
        ]
    },
    # The effort is said in this shape's own words here, not in Chat's `thinking` object.
    "reasoning": {"ask": "openai"},
}

# Agents and models of another name, where the listing says that they speak Responses themselves.
_ON_RESPONSES: Layer = merge(_ON_OPEN_RESPONSES, {"wire": {"responses": "/serving-endpoints/responses"}})

# I/S dbx-tools, bifrost, litellm: refused on the Chat surface whatever the family. It keeps
# no state, passes no cache keys on, and gives no sound.
_NEVER_ON_CHAT = [
    "store",
    "metadata",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "client_metadata",
    "web_search_options",
    "moderation",
    "prediction",
    "verbosity",
    "user",
    "modalities",
    "audio",
]

# S/I dbx-tools: refused for Claude. U: neither documented nor seen accepted for the other open families.
_DROP = [
    "parallel_tool_calls",
    *_NEVER_ON_CHAT,
    "seed",
    "logit_bias",
    "frequency_penalty",
    "presence_penalty",
]

DATABRICKS_GPT = Row(
    "databricks-gpt",
    kinds=("databricks",),
    hosts=_HOSTS,
    models=("*gpt-5*", "*gpt-6*", "*codex*", "databricks-o[1-9]*"),
    layer={
        "auth": {"kind": "databricks"},
        "wire": {
            **_CHAT_PATHS,
            "responses": "/serving-endpoints/responses",  # S dbx-tools, bifrost: GPT only
            "responses_first": True,
            # S dbx-tools (`*codex*`, gpt >= 5.4), litellm price map: function tools are
            # refused on Chat for these.
            "responses_only": ["*codex*", "*gpt-5-[4-9]*", "*gpt-5.[4-9]*", "*gpt-[6-9]*"],
        },
        "request": {
            "drop": [  # S dbx-tools, databricks-openai
                "store",
                "metadata",
                "previous_response_id",
                "conversation",
                "background",
                "prompt",
                "prompt_cache_options",
                "safety_identifier",
                "client_metadata",
                "user",
            ],
            "extra_keys": _KEYS,
            "max_body_bytes": _MAX_BODY,
            # S databricks-openai: it returns longer ids and then refuses them as input.
            "id_max_len": 64,
        },
        "tools": {"types": ["function", "custom"], "custom": "keep", "builtin": "keep", "strict": "keep"},
        # S dbx-tools: `input` is searched for the word, `instructions` and system messages are not.
        "output_format": {"needs_json_word": True},
        "reasoning": {"efforts": ["none", "low", "medium", "high", "xhigh"]},
        "errors": _ERRORS,
    },
    surfaces={"chat": {"request": {"drop": _NEVER_ON_CHAT}}},
)

DATABRICKS_CLAUDE = Row(
    "databricks-claude",
    kinds=("databricks",),
    hosts=_HOSTS,
    models=("*claude*",),
    layer={
        "auth": {"kind": "databricks"},
        "wire": _OPEN_PATHS,
        "request": {
            # S/I dbx-tools: "parallel_tool_calls: Extra inputs are not permitted", and so on
            "drop": [*_DROP, "logprobs", "top_logprobs", "reasoning_effort"],
            "rename": {"max_completion_tokens": "max_tokens"},
            # S litellm: `thinking` and, for adaptive-only models, `output_config: {effort}`.
            "extra_keys": ["thinking", "output_config", *_KEYS],
            "max_body_bytes": _MAX_BODY,
        },
        "messages": {
            "null_content": "omit",  # S litellm
            "drop_empty_text": True,  # I: "text content blocks must be non-empty"
            "user_name": "drop",  # I
            "trailing_assistant": "drop",  # S dbx-tools: "does not support assistant message prefill"
            "remote_images": "inline",  # I bifrost#6958
        },
        "tools": {
            "strict": "drop",  # I ellmer#548, #1108: refused, later compiled into a grammar that is too large
            "schema": {
                "top_level_union": "wrap"
            },  # I "does not support oneOf, allOf, or anyOf at the top level"
            "choice": {"with_thinking": "auto"},  # D forced choice is refused while thinking
            "parallel_flag": "drop",
        },
        # S litellm: turned into a tool, never with stream
        "output_format": {"json_object": "drop", "json_schema": "tool"},
        "reasoning": {
            "ask": "thinking_budget",  # I "reasoning_effort: Extra inputs are not permitted"
            "efforts": ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
            "parts": ["reasoning", "thinking", "redacted_thinking"],
            "replay": "never",
            "signature": "content[].summary[].signature",
            "drop_sampling": True,  # D no sampling parameters with thinking
        },
        "errors": _ERRORS,
    },
    surfaces={"open_responses": _ON_OPEN_RESPONSES, "responses": _ON_RESPONSES},
)

DATABRICKS_GEMINI = Row(
    "databricks-gemini",
    kinds=("databricks",),
    hosts=_HOSTS,
    models=("*gemini*",),
    layer={
        "auth": {"kind": "databricks"},
        "wire": _OPEN_PATHS,
        "request": {
            "drop": _DROP,
            "rename": {"max_completion_tokens": "max_tokens"},
            # S bifrost: INVALID_ARGUMENT before any chunk; usage comes on the last chunk anyway.
            "stream_options": "drop",
            "extra_keys": _KEYS,
            "max_body_bytes": _MAX_BODY,
        },
        "messages": {"user_name": "drop"},
        "tools": {"parallel_flag": "drop"},
        "reasoning": {
            "efforts": ["minimal", "low", "medium", "high"],  # D
            "replay": "never",
            "scope": "all",
            "signature": "tool_calls[].thoughtSignature",
        },
        "errors": _ERRORS,
    },
    surfaces={"open_responses": _ON_OPEN_RESPONSES, "responses": _ON_RESPONSES},
)

DATABRICKS_OSS = Row(  # gpt-oss, llama, qwen, gemma, glm, kimi, deepseek, inkling ...
    "databricks-oss",
    kinds=("databricks",),
    hosts=_HOSTS,
    models=("*",),
    layer={
        "auth": {"kind": "databricks"},
        "wire": _OPEN_PATHS,
        "request": {
            "drop": _DROP,
            "rename": {"max_completion_tokens": "max_tokens"},
            "extra_keys": _KEYS,
            "max_body_bytes": _MAX_BODY,
        },
        "messages": {  # S litellm
            "text_parts": "string",
            "system": "merge_leading",
            "user_name": "drop",
            "split_parallel_tool_results": True,  # I litellm#31633 "Multiple tool calls are not supported."
            "null_content": "omit",
        },
        "tools": {"parallel_flag": "drop"},
        "output_format": {"needs_json_word": True},  # S litellm: looked for in the last message only
        "reasoning": {"efforts": ["low", "medium", "high"]},
        "errors": _ERRORS,
    },
    surfaces={"open_responses": _ON_OPEN_RESPONSES, "responses": _ON_RESPONSES},
)

_SERVING: tuple[Row, ...] = (DATABRICKS_GPT, DATABRICKS_CLAUDE, DATABRICKS_GEMINI, DATABRICKS_OSS)

# --- the AI Gateway: the same models under their Unity Catalog names --------------------

_GATEWAY_PATHS: Layer = {
    "chat": "/ai-gateway/mlflow/v1/chat/completions",  # S databricks-openai, litellm, ucode
    "embeddings": "/ai-gateway/mlflow/v1/embeddings",
}
_GATEWAY_GPT: Layer = {
    **_GATEWAY_PATHS,
    "responses": "/ai-gateway/openai/v1/responses",
}  # S databricks-openai
_GATEWAY_CODEX: Layer = {**_GATEWAY_PATHS, "responses": "/ai-gateway/codex/v1/responses"}  # S ucode
# Contested: S a litellm fork has an allow-list there, bifrost says there is no such route. It is tried,
# and its refusal remembered.
_GATEWAY_OPEN: Layer = {**_GATEWAY_PATHS, "open_responses": "/ai-gateway/mlflow/v1/responses"}


def _on_gateway(row: Row, models: tuple[str, ...], wire: Layer, name: str = "") -> Row:
    """`row` for names `catalog.schema.service`: serving endpoints have no dot in theirs, services two."""
    return replace(
        row,
        name=name or row.name.replace("databricks-", "databricks-gateway-"),
        models=models,
        layer=merge(row.layer, {"wire": wire}),
        like=row.name,
    )


_GATEWAY: tuple[Row, ...] = (
    _on_gateway(DATABRICKS_GPT, ("*.*.*codex*",), _GATEWAY_CODEX, "databricks-gateway-codex"),
    _on_gateway(DATABRICKS_GPT, ("*.*.*gpt-5*", "*.*.*gpt-6*", "*.*.o[1-9]*"), _GATEWAY_GPT),
    _on_gateway(DATABRICKS_CLAUDE, ("*.*.*claude*",), _GATEWAY_OPEN),
    _on_gateway(DATABRICKS_GEMINI, ("*.*.*gemini*",), _GATEWAY_OPEN),
    _on_gateway(DATABRICKS_OSS, ("*.*.*",), _GATEWAY_OPEN),
)

DATABRICKS: tuple[Row, ...] = (*_GATEWAY, *_SERVING)
"""In order: services by their dots, then endpoints; the last of each takes every model that is left."""
