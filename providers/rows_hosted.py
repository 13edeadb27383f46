"""Built-in profiles of hosted OpenAI-compatible services; see `rows.py` for the marks."""

from __future__ import annotations

from .rows import FUNCTIONS_ONLY, Row

_TO_MAX_TOKENS = {"max_completion_tokens": "max_tokens"}

AZURE_OPENAI = Row(
    "azure-openai",
    hosts=("*.openai.azure.com", "*.cognitiveservices.azure.com", "*.services.ai.azure.com"),
    layer={
        "auth": {"kind": "header", "header": "api-key", "prefix": ""},
        # S litellm azure/common_utils; the older form is /openai/deployments/{d}/...?api-version=
        "wire": {
            "chat": "/openai/v1/chat/completions",
            "responses": "/openai/v1/responses",
            "responses_first": True,
            "embeddings": "/openai/v1/embeddings",
            "compact": "/openai/v1/responses/compact",  # S codex: sends Azure's hosts the trigger too
        },
        # I: a Foundry DeepSeek rejects developer: override to system for such a model
        "messages": {"developer": "keep"},
        "tools": {"types": ["function", "custom"], "custom": "keep", "builtin": "keep", "strict": "keep"},
        # S: Foundry Mistral wants the reverse (422)
        "request": {
            "max_tokens_key": "max_completion_tokens",
            "rename": {"max_tokens": "max_completion_tokens"},
        },
    },
)

OPENROUTER = Row(
    "openrouter",
    hosts=("openrouter.ai",),
    layer={
        "request": {"rename": _TO_MAX_TOKENS},  # S pydantic-ai
        "tools": {"choice": {"allowed_tools": "filter"}},
        "reasoning": {
            "ask": "reasoning_object",
            "efforts": ["none", "minimal", "low", "medium", "high", "xhigh"],
            "fields": ["reasoning"],
            "replay": "details",
            "replay_field": "reasoning_details",
            "scope": "all",
        },
        "errors": {"shapes": ["openai", "in_band"]},
    },
)

DEEPSEEK = Row(
    "deepseek",
    hosts=("*.deepseek.com",),
    layer={
        "wire": {"responses": "/responses", "responses_first": False},
        "request": {"rename": _TO_MAX_TOKENS},  # S: max_completion_tokens is silently ignored
        "messages": {"text_parts": "string"},
        # S "Thinking mode does not support this tool_choice"
        "tools": {"choice": {"with_thinking": "auto"}},
        # S Chat rejects json_schema; its Responses accepts it
        "output_format": {"json_schema": "prompt"},
        "reasoning": {
            "ask": "thinking_toggle",
            "efforts": ["low", "high", "max"],
            "map": {"xhigh": "max", "medium": "high", "minimal": "low"},
            "fields": ["reasoning_content"],
            "replay": "field",
            "replay_on": "tool_turns",
            "scope": "all",
            "placeholder": " ",
        },
    },
    # S pydantic-ai: function tools only
    surfaces={"responses": {"output_format": {"json_schema": "native"}, **FUNCTIONS_ONLY}},
)

GROQ = Row(
    "groq",
    hosts=("api.groq.com",),
    layer={
        # S null fields on assistant messages are dropped
        "messages": {"null_content": "omit", "drop_bare_assistant": True},
        "output_format": {"with_stream": False},  # S litellm fakes the stream
        "reasoning": {"fields": ["reasoning"], "efforts": ["none", "default", "low", "medium", "high"]},
    },
)

TOGETHER = Row(
    "together",
    hosts=("api.together.xyz", "api.together.ai"),
    layer={
        "request": {"rename": _TO_MAX_TOKENS},  # S pi
        "reasoning": {
            "map": {"none": "low"},
            "fields": ["reasoning_content", "reasoning"],
            "replay": "field",
        },
    },
)

FIREWORKS = Row(
    "fireworks",
    hosts=("api.fireworks.ai",),
    layer={
        "request": {"rename": _TO_MAX_TOKENS},
        "tools": {"strict": "drop", "choice": {"required": "any"}},  # S litellm
        "output_format": {"with_tools": False},  # S
        "reasoning": {"fields": ["reasoning_content"]},
    },
)

MISTRAL = Row(
    "mistral",
    hosts=("api.mistral.ai",),
    layer={
        "request": {
            "rename": {"max_completion_tokens": "max_tokens", "seed": "random_seed"},
            "drop": [
                "user",
                "store",
                "metadata",
                "logprobs",
                "top_logprobs",
                "logit_bias",
                "service_tier",
                "safety_identifier",
            ],
        },
        "messages": {
            "user_name": "drop",
            "tool_call_id": {"max": 9, "pattern": "^[A-Za-z0-9]{9}$"},  # I pi notes
        },
        "tools": {
            "schema": {"drop": ["$id", "$schema", "strict"], "inline_refs": True},
            "choice": {"required": "any"},
        },
        # S content part {type: thinking, thinking: [{type: text, text}]}
        "reasoning": {"parts": ["thinking"], "replay": "parts", "efforts": ["none", "high"]},
    },
)

CLOUDFLARE_WORKERS_AI = Row(
    "cloudflare-workers-ai",
    hosts=("api.cloudflare.com",),
    layer={
        # I "Type mismatch of '/messages/*/content', 'array' not in 'string'"; null is refused too
        "messages": {"text_parts": "string", "null_content": "empty"},
        "errors": {"shapes": ["cloudflare", "openai"]},
    },
)

GEMINI_OPENAI = Row(
    "gemini-openai",
    hosts=("generativelanguage.googleapis.com",),
    layer={
        "request": {  # U
            "drop": [
                "store",
                "metadata",
                "service_tier",
                "prompt_cache_key",
                "safety_identifier",
                "logit_bias",
                "user",
            ]
        },
        "reasoning": {
            "efforts": ["none", "minimal", "low", "medium", "high"],
            # Reported is that the signature must come back (I); no report tells of words that it reads (U).
            "replay": "never",
            "scope": "all",
            "signature": "tool_calls[].extra_content.google.thought_signature",  # I
        },
        "errors": {"shapes": ["google_list", "openai"]},  # I the body is a JSON array
    },
)

MOONSHOT = Row(
    "moonshot",
    hosts=("api.moonshot.ai", "api.moonshot.cn"),
    layer={
        "request": {"rename": _TO_MAX_TOKENS, "clamp": {"temperature": [0, 1]}, "drop": ["functions"]},
        "messages": {"text_parts": "string"},
        "tools": {"choice": {"required": "auto"}},  # S
        "reasoning": {
            "ask": "thinking_toggle",
            "fields": ["reasoning_content"],
            "replay": "field",
            "replay_on": "tool_turns",
            "scope": "all",
            "placeholder": " ",
            "drop_sampling": True,
        },
    },
)

DASHSCOPE = Row(
    "dashscope",
    hosts=("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"),
    layer={
        "output_format": {"needs_json_word": True},  # U
        # I: some models refuse thinking without stream
        "reasoning": {"ask": "enable_thinking", "fields": ["reasoning_content"]},
        "errors": {"shapes": ["openai"]},
    },
)

ZAI_GLM = Row(
    "zai-glm",
    hosts=("api.z.ai", "open.bigmodel.cn"),
    layer={
        "request": {
            "allow": [  # S litellm
                "model",
                "messages",
                "max_tokens",
                "response_format",
                "stream",
                "stream_options",
                "temperature",
                "top_p",
                "stop",
                "tools",
                "tool_choice",
                "thinking",
                "reasoning_effort",
            ],
            "rename": _TO_MAX_TOKENS,
        },
        # refs S, choice U
        "tools": {"schema": {"inline_refs": True}, "choice": {"required": "auto", "named": "auto"}},
        "output_format": {"json_schema": "prompt"},
        "reasoning": {
            "ask": "thinking_toggle",
            "efforts": ["low", "high", "max"],
            "map": {"minimal": "low", "medium": "high", "xhigh": "max"},
            "fields": ["reasoning_content"],
            "replay": "field",
        },
    },
)

MINIMAX = Row(
    "minimax",
    hosts=("api.minimax.io", "api.minimaxi.com"),
    layer={
        "request": {"force": {"reasoning_split": True}},  # S the parameter exists; default U
        "messages": {"system": "merge_leading"},  # U
        "reasoning": {
            "ask": "thinking_toggle",
            "fields": ["reasoning_content", "reasoning"],
            "replay": "details",
            "replay_field": "reasoning_details",
            "scope": "all",
        },
        "errors": {"shapes": ["minimax_base_resp", "openai"]},  # U errors inside HTTP 200
    },
)

XAI = Row(
    "xai",
    hosts=("api.x.ai",),
    layer={
        "wire": {"responses": "/responses", "responses_first": False},
        "request": {"drop": ["web_search_options", "frequency_penalty", "stop"]},  # S grok-4 and newer
        "messages": {"user_name": "drop"},
        "tools": {"choice": {"allowed_tools": "filter"}},
        "reasoning": {"efforts": ["low", "medium", "high"], "fields": ["reasoning_content"]},
        "answer": {"reasoning_in_completion": False},  # S
    },
)

NVIDIA_NIM = Row(
    "nvidia-nim",
    hosts=("integrate.api.nvidia.com",),
    layer={
        "request": {
            "rename": _TO_MAX_TOKENS,
            "stream_options": "drop",  # I DeepTutor#420: hangs with it
            "drop": [  # U
                "store",
                "metadata",
                "service_tier",
                "prompt_cache_key",
                "safety_identifier",
                "parallel_tool_calls",
            ],
        },
        "reasoning": {"fields": ["reasoning_content", "reasoning"]},
        "errors": {"shapes": ["openai", "fastapi"]},
    },
)

ANTHROPIC_OPENAI = Row(
    "anthropic-openai",
    hosts=("api.anthropic.com",),
    layer={
        "request": {"clamp": {"temperature": [0, 1], "n": [1, 1]}},  # D
        "messages": {"system": "hoist_all"},
        "output_format": {"json_object": "drop", "json_schema": "tool"},  # D (older copy: ignored)
        "reasoning": {"ask": "thinking_budget", "replay": "never"},
        "errors": {"shapes": ["openai", "anthropic"]},
    },
)

BEDROCK_OPENAI = Row(
    "bedrock-openai",
    hosts=("bedrock-runtime.*.amazonaws.com", "bedrock-mantle.*.api.aws"),
    layer={
        "wire": {  # D
            "chat": "/openai/v1/chat/completions",
            "responses": "/openai/v1/responses",
            "responses_first": True,
            "models": {"path": None, "kind": "static"},
        },
        "reasoning": {"tags": ["<reasoning>", "</reasoning>"]},  # U
    },
)

CEREBRAS = Row(
    "cerebras",
    hosts=("api.cerebras.ai",),
    layer={
        "request": {"drop": ["logit_bias", "store"]},  # S
        "reasoning": {"fields": ["reasoning"], "replay": "tags"},  # S for GLM; gpt-oss: auto
    },
)

HOSTED: tuple[Row, ...] = (
    AZURE_OPENAI,
    OPENROUTER,
    DEEPSEEK,
    GROQ,
    TOGETHER,
    FIREWORKS,
    MISTRAL,
    CLOUDFLARE_WORKERS_AI,
    GEMINI_OPENAI,
    MOONSHOT,
    DASHSCOPE,
    ZAI_GLM,
    MINIMAX,
    XAI,
    NVIDIA_NIM,
    ANTHROPIC_OPENAI,
    BEDROCK_OPENAI,
    CEREBRAS,
)
