"""The resolved profiles, as what differs from base: one line changed in a row shows up as a diff.

Write the snapshot anew with:

    python -m tests.providers.profile_matrix
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import orjson

from providers.base import Surface
from providers.profiles import resolve

SNAPSHOT = Path(__file__).with_name("profile_matrix.json")

DATABRICKS = "adb-1.azuredatabricks.net"
MODELS: tuple[tuple[str, str, str], ...] = (
    ("openai", "api.openai.com", "gpt-5.5"),
    ("openai", "r.openai.azure.com", "gpt-5.5"),
    ("databricks", "proxy.example", "databricks-gpt-5-4"),
    ("databricks", "proxy.example", "databricks-claude-opus-4-8"),
    ("databricks", "proxy.example", "databricks-gemini-3-8-flash"),
    ("databricks", "proxy.example", "databricks-gpt-oss-120b"),
    ("openai", "openrouter.ai", "m"),
    ("openai", "api.deepseek.com", "m"),
    ("openai", "api.groq.com", "m"),
    ("openai", "api.together.xyz", "m"),
    ("openai", "api.fireworks.ai", "m"),
    ("openai", "api.mistral.ai", "m"),
    ("openai", "api.cloudflare.com", "m"),
    ("openai", "generativelanguage.googleapis.com", "m"),
    ("openai", "api.moonshot.ai", "m"),
    ("openai", "dashscope.aliyuncs.com", "m"),
    ("openai", "api.z.ai", "m"),
    ("openai", "api.minimax.io", "m"),
    ("openai", "api.x.ai", "m"),
    ("openai", "integrate.api.nvidia.com", "m"),
    ("openai", "api.anthropic.com", "m"),
    ("openai", "bedrock-runtime.us-east-1.amazonaws.com", "m"),
    ("openai", "api.cerebras.ai", "m"),
    ("onnx", "", "m"),
)
NAMED = ("vllm", "sglang", "llamacpp", "lmstudio", "ollama-openai")
OF_MODELS: tuple[tuple[str, str], ...] = (
    *(
        ("openai", model)
        for model in (
            *("o3", "o3-deep-research", "gpt-3.5-turbo", "gpt-4o", "gpt-4.1-mini", "chatgpt-4o-latest"),
            *("gpt-5", "gpt-5-nano", "gpt-5-pro", "gpt-5-codex", "gpt-5-chat-latest", "gpt-5.1"),
            *(
                "gpt-5.1-chat-latest",
                "gpt-5.1-codex-max",
                "gpt-5.2",
                "gpt-5.2-pro",
                "gpt-5.3-codex",
                "gpt-5.4",
            ),
            *(
                "gpt-5.4-nano",
                "gpt-5.5",
                "gpt-5.5-pro",
                "gpt-5.6-sol",
                "gpt-6-sol",
                "gpt-6-luna",
                "gpt-6-astra",
            ),
            *("gpt-6.1-sol", "gpt-6.1-terra", "gpt-oss-120b", "unheard-of"),
        )
    ),
    ("azure-openai", "gpt-5.5"),
    ("azure-openai", "DeepSeek-V3.2"),
    ("azure-openai", "mistral-large"),
    ("azure-openai", "grok-4"),
    ("databricks-gpt", "databricks-gpt-5-5"),
    ("databricks-claude", "databricks-claude-3-5-sonnet"),
    ("databricks-claude", "databricks-claude-opus-4-8"),
    ("databricks-claude", "databricks-claude-fable-5-1"),
    ("databricks-claude", "databricks-claude-opus-5-5"),
    ("databricks-gemini", "databricks-gemini-3-8-flash"),
    ("databricks-gemini", "databricks-gemini-4-pro"),
    ("databricks-oss", "databricks-meta-llama-3-3-70b-instruct"),
    ("openrouter", "openai/gpt-5.5"),
    ("groq", "qwen/qwen3-32b"),
    ("together", "deepseek-ai/DeepSeek-V4"),
    ("moonshot", "kimi-k3"),
    ("zai-glm", "glm-5.3"),
    ("minimax", "MiniMax-M2.5"),
    ("xai", "grok-4.5"),
)
"""Named rows with a model: what the rows of models add to what the row says of all."""

SURFACES: tuple[Surface, ...] = ("chat", "responses", "open_responses")


def matrix() -> dict[str, dict[str, Any]]:
    """Row and surface -> dotted key -> value, only where it differs from base on Chat."""
    base = _flat(resolve(kind="openai", host="h", model="m", surface="chat"))
    found = {"base chat": base}
    for surface in SURFACES[1:]:
        found[f"base {surface}"] = _delta(base, _of("openai", "h", "m", surface))
    for kind, host, model in MODELS:
        for surface in SURFACES:
            flat = _of(kind, host, model, surface)
            if _is_spoken(flat, surface):
                found[f"{flat['name']} {surface}"] = _delta(base, flat)
    for name in NAMED:
        flat = _flat(resolve(kind="openai", host="h", model="m", surface="chat", profile=name))
        found[f"{name} chat"] = _delta(base, flat)
    for row, model in OF_MODELS:
        for surface in SURFACES:
            host = _named(row, "no-such", surface)
            if _is_spoken(host, surface):
                found[f"{row}: {model} {surface}"] = _delta(host, _named(row, model, surface))
    return found


def _named(row: str, model: str, surface: Surface) -> dict[str, Any]:
    return _flat(resolve(kind="openai", host="h", model=model, surface=surface, profile=row))


def _of(kind: str, host: str, model: str, surface: Surface) -> dict[str, Any]:
    return _flat(resolve(kind=kind, host=host, model=model, surface=surface))


def _is_spoken(flat: dict[str, Any], surface: Surface) -> bool:
    """Every row speaks Chat; a Responses surface where the row has a path of its own for it."""
    if surface == "responses":
        return bool(flat["wire.responses_first"]) or flat["wire.responses"] != "/responses"
    return bool(flat[f"wire.{surface}"])


def _delta(base: dict[str, Any], flat: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in flat.items() if base[key] != value}


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        inner = getattr(value, field.name)
        if dataclasses.is_dataclass(inner):
            out |= _flat(inner, f"{prefix}{field.name}.")
        else:
            out[prefix + field.name] = inner
    return out


def dump(found: dict[str, dict[str, Any]]) -> str:
    """One key a line: a changed row is a changed line."""
    blocks = []
    for name, delta in found.items():
        lines = [
            f"  {orjson.dumps(key).decode()}: {orjson.dumps(value).decode()}" for key, value in delta.items()
        ]
        blocks.append(f"{orjson.dumps(name).decode()}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


if __name__ == "__main__":
    SNAPSHOT.write_text(dump(matrix()))
