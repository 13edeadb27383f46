"""What differs by model, whatever its host: names as they are met, and what each row brings."""

from __future__ import annotations

from typing import Any

import pytest

from providers.base import Surface
from providers.profiles import BY_NAME, resolve
from providers.rows_models import MODELS, model_rows, plain_name
from translators.effort import nearest_effort
from translators.profile import Profile

from .test_profiles import _unknown

NAMES = [
    ("gpt-5", "gpt-5"),
    ("openai/gpt-5.5", "gpt-5-5"),
    ("databricks-gpt-5-5", "gpt-5-5"),
    ("system.ai.gpt-5-5", "gpt-5-5"),
    ("GPT-5.5-2026-04-23", "gpt-5-5"),
    ("gpt-5-pro-2025-10-06", "gpt-5-pro"),
    ("my_team.models.gpt-5-6-sol", "gpt-5-6-sol"),
    ("gpt-4o-2024-08-06", "gpt-4o"),
    ("gpt-4-0613", "gpt-4-0613"),
    ("chatgpt-4o-latest", "chatgpt-4o-latest"),
    ("openai/gpt-oss-120b:free", "gpt-oss-120b"),
    ("o3@default", "o3"),
    ("anthropic/claude-3.7-sonnet:thinking", "claude-3-7-sonnet"),
    ("us.anthropic.claude-opus-4-7-v1:0", "claude-opus-4-7-v1"),
    ("claude-sonnet-4-20250514", "claude-sonnet-4"),
    ("qwen/qwen3-32b", "qwen3-32b"),
    ("rig-model", "rig-model"),
    ("foo1-mini", "foo1-mini"),
    ("", ""),
]


@pytest.mark.parametrize(("name", "plain"), NAMES)
def test_a_model_is_known_by_its_family_whoever_names_it(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def _profile(model: str, surface: Surface = "responses", row: str = "openai") -> Profile:
    return resolve(kind="openai", host="h", model=model, surface=surface, profile=row)


LOW = "low medium high"
NONE_TO_XHIGH = "none low medium high xhigh"
NONE_TO_MAX = f"{NONE_TO_XHIGH} max"
EFFORTS = [
    ("o3", LOW),
    ("databricks-o4-mini", LOW),
    ("gpt-5", f"minimal {LOW}"),
    ("gpt-5-mini", f"minimal {LOW}"),
    ("gpt-5-2025-08-07", f"minimal {LOW}"),
    ("gpt-5.1", f"none {LOW}"),
    ("gpt-5-2", NONE_TO_XHIGH),
    ("gpt-5.4-nano", NONE_TO_XHIGH),
    ("gpt-5.5", NONE_TO_XHIGH),
    ("gpt-5.5-prod", NONE_TO_XHIGH),
    ("gpt-5.6-sol", NONE_TO_MAX),
    ("gpt-6-sol", NONE_TO_MAX),
    ("gpt-6-luna", NONE_TO_MAX),
    ("gpt-6.1-terra", NONE_TO_MAX),
    ("gpt-6-astra", f"{LOW} xhigh max"),
    ("gpt-6-1-sol", f"{LOW} xhigh max"),
    ("gpt-5-pro", "high"),
    ("gpt-5.2-pro", "medium high xhigh"),
    ("gpt-5.5-pro", "medium high xhigh"),
    ("gpt-5-codex", LOW),
    ("codex-mini-latest", LOW),
    ("gpt-5.1-codex-max", f"{LOW} xhigh"),
    ("gpt-5.3-codex", f"{LOW} xhigh"),
    ("gpt-oss-20b", LOW),
    ("gpt-4o", ""),
    ("gpt-4.1-mini", ""),
    ("gpt-3.5-turbo", ""),
    ("chatgpt-4o-latest", ""),
    ("gpt-5-chat-latest", ""),
    ("gpt-5.1-chat-latest", ""),
    ("unheard-of", "none minimal low medium high xhigh max"),
]


@pytest.mark.parametrize(("model", "levels"), EFFORTS)
@pytest.mark.parametrize("row", ["openai", "azure-openai", "databricks-gpt"])
def test_the_levels_of_a_gpt(model: str, levels: str, row: str) -> None:
    if model == "unheard-of" and row != "openai":
        return
    rules = _profile(model, row=row).reasoning
    assert " ".join(rules.efforts) == levels
    assert (rules.ask == "none") is (levels == "")


@pytest.mark.parametrize("model", [model for model, _ in EFFORTS])
def test_max_is_never_asked_for_on_openais_chat(model: str) -> None:
    assert nearest_effort("max", _profile(model, "chat").reasoning) != "max"


@pytest.mark.parametrize(
    ("model", "asked", "told"),
    [
        ("gpt-5.5-pro", "low", "medium"),
        ("gpt-5.5-pro", "none", "medium"),
        ("gpt-5-pro", "low", "high"),
        ("gpt-5", "none", "minimal"),
        ("o3", "none", "low"),
        ("gpt-6-astra", "none", "low"),
        ("gpt-5-codex", "none", "low"),
        ("gpt-5.5", "minimal", "low"),
        ("gpt-4o", "high", None),
    ],
)
def test_the_nearest_level_of_a_model(model: str, asked: str, told: str | None) -> None:
    assert nearest_effort(asked, _profile(model).reasoning) == told


@pytest.mark.parametrize(
    ("row", "model", "sampling"),
    [
        ("openai", "gpt-4o", "kept"),
        ("openai", "gpt-5-chat-latest", "kept"),
        ("openai", "gpt-5.1", "while reasoning"),
        ("openai", "gpt-5.5", "unless none"),
        ("openai", "gpt-5", "never"),
        ("openai", "o3", "never"),
        ("openai", "gpt-6-astra", "never"),
        ("databricks-claude", "databricks-claude-opus-4-6", "while reasoning"),
        ("databricks-claude", "databricks-claude-opus-4-7", "never"),
        ("databricks-claude", "databricks-claude-opus-5", "never"),
        ("databricks-claude", "databricks-claude-sonnet-5", "never"),
        ("databricks-claude", "databricks-claude-fable-5-1", "never"),
        ("databricks-gemini", "databricks-gemini-3-5-flash", "kept"),
        ("databricks-gemini", "databricks-gemini-3-5-flash-lite", "never"),
        ("databricks-gemini", "databricks-gemini-3-8-flash", "never"),
        ("databricks-gemini", "databricks-gemini-4-pro", "never"),
    ],
)
def test_who_takes_sampling_parameters(row: str, model: str, sampling: str) -> None:
    profile = _profile(model, "chat", row)
    rule: Any = profile.reasoning.drop_sampling
    told = {True: "while reasoning", "unless_none": "unless none", False: "kept"}[rule]
    dropped = {"temperature", "top_p", "top_k"} <= set(profile.request.drop)
    assert ("never" if dropped else told) == sampling


def test_what_a_row_refuses_adds_to_what_its_host_refuses_and_the_configuration_replaces_both() -> None:
    host = set(BY_NAME["databricks-gpt"].layer["request"]["drop"])
    assert host < set(_profile("gpt-5", row="databricks-gpt").request.drop)
    overrides = {"request": {"drop": ["seed"]}, "reasoning": {"efforts": ["max"]}}
    profile = resolve(
        kind="databricks", host="h", model="databricks-gpt-5", surface="chat", overrides=overrides
    )
    assert (profile.request.drop, profile.reasoning.efforts) == (("seed",), ("max",))
    assert "temperature" not in BY_NAME["databricks-gpt"].layer["request"]["drop"]


@pytest.mark.parametrize(
    ("model", "ask"),
    [
        ("claude-3-5-sonnet", "none"),
        ("claude-3-haiku", "none"),
        ("claude-3-7-sonnet", "thinking_budget"),
        ("claude-sonnet-4-5", "thinking_budget"),
        ("claude-opus-4-1", "thinking_budget"),
        ("claude-opus-4-7", "thinking_adaptive"),
        ("claude-opus-5-5", "thinking_adaptive"),
        ("claude-sonnet-5", "thinking_adaptive"),
    ],
)
def test_how_a_claude_is_asked_to_think(model: str, ask: str) -> None:
    assert _profile(model, "chat", "databricks-claude").reasoning.ask == ask
    on_open = "none" if ask == "none" else "openai"
    assert _profile(model, "open_responses", "databricks-claude").reasoning.ask == on_open


def test_claudes_that_take_no_forced_call() -> None:
    for model in ("claude-opus-5-5", "databricks-claude-fable-5-1"):
        choice = _profile(model, "chat", "databricks-claude").tools.choice
        assert (choice.required, choice.named) == ("auto", "auto")
    assert _profile("claude-opus-5", "chat", "databricks-claude").tools.choice.named == "keep"
    assert "none" not in _profile("claude-opus-5-5", "chat", "databricks-claude").reasoning.efforts


@pytest.mark.parametrize(
    ("model", "unknown"),
    [
        ("gpt-5.4", ""),
        ("gpt-5-4-nano", "computer"),
        ("gpt-6-sol", ""),
        ("gpt-5.1", "computer"),
        ("gpt-5.1-chat-latest", "apply_patch computer"),
        ("gpt-5", "apply_patch computer"),
        ("gpt-5-nano", "apply_patch computer"),
        ("gpt-4.1", "apply_patch computer"),
        ("o3", "apply_patch computer"),
        ("o3-deep-research", "apply_patch computer"),
        ("unheard-of", "computer"),
    ],
)
def test_hosted_tools_that_a_model_does_not_know(model: str, unknown: str) -> None:
    assert " ".join(_profile(model).tools.unknown) == unknown


OTHERS = [
    ("openrouter", "openai/gpt-5.5", "messages.developer", "keep"),
    ("openrouter", "anthropic/claude-opus-5", "messages.developer", "keep"),
    ("openrouter", "deepseek/deepseek-v4", "messages.developer", "system"),
    ("azure-openai", "DeepSeek-V3.2", "messages.developer", "system"),
    ("azure-openai", "gpt-5.5", "messages.developer", "keep"),
    ("azure-openai", "mistral-large", "request.max_tokens_key", "max_tokens"),
    ("azure-openai", "grok-4", "tools.schema.inline_refs", True),
    ("groq", "qwen/qwen3-32b", "reasoning.efforts", ("none", "default")),
    ("groq", "openai/gpt-oss-120b", "reasoning.efforts", ("low", "medium", "high")),
    ("together", "deepseek-ai/DeepSeek-V4", "tools.choice.named", "auto"),
    ("together", "deepseek-ai/DeepSeek-V3", "tools.choice.named", "keep"),
    ("moonshot", "kimi-k3", "reasoning.map", {"none": "low"}),
    ("moonshot", "kimi-k2", "reasoning.map", {}),
    (
        "zai-glm",
        "glm-5.3",
        "reasoning.map",
        {"minimal": "low", "medium": "high", "xhigh": "max", "none": "low"},
    ),
    ("minimax", "MiniMax-M2.5", "reasoning.map", {"none": "low"}),
    ("xai", "grok-4.5", "reasoning.map", {"none": "low"}),
    ("xai", "grok-4", "reasoning.map", {}),
    ("databricks-gemini", "databricks-gemini-4-pro", "reasoning.efforts", ("low", "medium", "high")),
    (
        "databricks-gemini",
        "databricks-gemini-3-pro",
        "reasoning.efforts",
        ("minimal", "low", "medium", "high"),
    ),
    ("databricks-oss", "databricks-meta-llama-3-3-70b-instruct", "reasoning.ask", "none"),
    ("databricks-oss", "databricks-gpt-oss-120b", "reasoning.ask", "openai"),
    ("openai", "gpt-5.5", "request.drop_values", {"prompt_cache_retention": ("in_memory", "in-memory")}),
    ("openai", "gpt-5.4", "request.drop_values", {}),
]


@pytest.mark.parametrize(("row", "model", "key", "value"), OTHERS)
def test_what_else_differs_by_model(row: str, model: str, key: str, value: object) -> None:
    found: Any = _profile(model, "chat", row)
    for step in key.split("."):
        found = getattr(found, step)
    assert found == value


def test_an_unknown_host_gets_nothing_of_the_models() -> None:
    assert model_rows("base", "gpt-5") == ()
    assert model_rows("vllm", "gpt-5") == ()


@pytest.mark.parametrize("row", MODELS, ids=[row.name for row in MODELS])
def test_a_row_is_evident_and_holds_only_known_keys(row: Any) -> None:
    assert row.evidence[0] in "SIDRU"
    assert set(row.rows) <= set(BY_NAME)
    for layer in (row.layer, *row.surfaces.values()):
        assert list(_unknown(layer, Profile, "")) == []


def test_names_are_unique() -> None:
    assert len({row.name for row in MODELS}) == len(MODELS)
