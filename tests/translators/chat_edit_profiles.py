"""Rules of backends of several kinds, for Chat bodies; a function and a custom tool; a schema."""

from __future__ import annotations

from typing import Any

from tests.translators.chat_edits import OPENAI

Json = dict[str, Any]
CLAUDE: Json = {
    "request": {
        "drop": ["parallel_tool_calls", "store", "metadata", "seed", "user", "reasoning_effort"],
        "rename": {"max_completion_tokens": "max_tokens"},
        "extra_keys": ["thinking", "output_config", "top_k"],
    },
    "messages": {
        "null_content": "omit",
        "drop_empty_text": True,
        "user_name": "drop",
        "trailing_assistant": "drop",
    },
    "tools": {
        "schema": {"top_level_union": "wrap"},
        "choice": {"with_thinking": "auto"},
        "parallel_flag": "drop",
    },
    "output_format": {"json_object": "drop", "json_schema": "tool"},
    "reasoning": {
        "ask": "thinking_budget",
        "efforts": ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
        "drop_sampling": True,
    },
}
OSS: Json = {
    "request": {
        "drop": ["parallel_tool_calls", "store"],
        "rename": {"max_completion_tokens": "max_tokens"},
        "extra_keys": [],
    },
    "messages": {
        "text_parts": "string",
        "user_name": "drop",
        "split_parallel_tool_results": True,
        "null_content": "omit",
    },
    "output_format": {"needs_json_word": True},
}
DEEPSEEK: Json = {
    "messages": {"text_parts": "string", "system": "hoist_all", "tool_name": True},
    "tools": {"choice": {"with_thinking": "auto", "named": "required_single", "required": "auto"}},
    "output_format": {"json_schema": "prompt", "needs_json_word": True},
    "reasoning": {
        "ask": "thinking_toggle",
        "efforts": ["low", "high", "max"],
        "replay": "field",
        "replay_on": "tool_turns",
        "placeholder": " ",
    },
}
MISTRAL: Json = {
    "request": {"rename": {"seed": "random_seed"}, "allow": ["model", "messages", "tools", "random_seed"]},
    "messages": {"null_content": "space", "tool_call_id": {"max": 9, "pattern": "^[A-Za-z0-9]{9}$"}},
    "tools": {"schema": {"drop": ["$id", "strict"], "inline_refs": True}, "choice": {"required": "any"}},
    "reasoning": {"parts": ["thinking"], "replay": "parts", "efforts": ["none", "high"]},
}
PROFILES = {
    "base": {},
    "openai": OPENAI,
    "claude": CLAUDE,
    "oss": OSS,
    "deepseek": DEEPSEEK,
    "mistral": MISTRAL,
}
FUNCTION = {"type": "function", "function": {"name": "f"}}
CUSTOM = {"type": "custom", "custom": {"name": "c"}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
