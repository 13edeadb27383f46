"""Thirds of the whole catalogue, families by whole words, sizes of local models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.ranking import FAMILIES, FamilyRules, ModelCard, parse_class
from providers.ranking.classes import CHAT_CLASSES, classify, this_and_below

from .fleet import databricks, endpoint, named

T, B, F, E = "chat-thinking", "chat-balanced", "chat-fast", "embedding"

SLUGS = [
    ("chat-thinking", T),
    ("thinking", T),
    ("balanced", B),
    ("chat-balanced", B),
    ("Fast", F),
    (" chat-fast ", F),
    ("embedding", E),
    ("chat-embedding", None),
    ("medium", None),
    ("chat", None),
    ("chat-", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "expected"), SLUGS)
def test_a_class_is_named_in_full_or_short(text: str, expected: str | None) -> None:
    assert parse_class(text) == expected


def test_a_class_falls_downward_only() -> None:
    assert [this_and_below(cls) for cls in CHAT_CLASSES] == [(T, B, F), (B, F), (F,)]
    assert this_and_below("embedding") == ("embedding",)


def scored(*qualities: float) -> list[ModelCard]:
    return [databricks(endpoint(f"m{at}", scores=(q, 1, 1))) for at, q in enumerate(qualities)]


def classes(cards: list[ModelCard]) -> list[str | None]:
    found = classify(cards)
    return [found[card.target][0] for card in cards]


THIRDS = [
    ((10, 20, 30, 40, 50, 60, 70, 80, 90), [F] * 3 + [B] * 3 + [T] * 3),
    ((1, 2, 3), [F, B, T]),
    ((1, 2, 3, 4), [F, F, T, T]),  # both borders lie on a value: the top is looked at first
    ((5, 5, 5, 1, 9), [T, T, T, F, T]),
    ((1, 1, 1, 1, 2, 3), [F, F, F, F, T, T]),
    (tuple(range(100)), [F] * 34 + [B] * 32 + [T] * 34),
]


@pytest.mark.parametrize(("qualities", "expected"), THIRDS)
def test_the_thirds_of_published_quality(qualities: tuple[float, ...], expected: list[str]) -> None:
    assert classes(scored(*qualities)) == expected


@pytest.mark.parametrize("qualities", [(5,), (5, 5), (5, 5, 5, 5), (4, 5), (4, 4, 5)])
def test_with_fewer_than_three_distinct_scores_the_family_decides(qualities: tuple[float, ...]) -> None:
    names = ["databricks-claude-haiku-4-5", "claude-opus-4-8", "claude-sonnet-4-6", "acme"]
    cards = [databricks(endpoint(name, scores=(q, 1, 1))) for name, q in zip(names, qualities, strict=False)]
    assert classes(cards) == [F, T, B, None][: len(qualities)]


def test_scores_are_compared_over_chat_models_only() -> None:
    cards = [*scored(10, 20, 30), databricks(endpoint("e", "llm/v1/embeddings", scores=(99, 1, 1)))]
    assert classes(cards) == [F, B, T, E]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_better_models_are_in_no_lower_class(qualities: list[float]) -> None:
    found = classes(scored(*qualities))
    if len(set(qualities)) < 3:
        assert found == [None] * len(qualities)
        return
    ranks = [cls for _, cls in sorted(zip(qualities, map(CHAT_CLASSES.index, found), strict=True))]  # type: ignore[arg-type]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[-1] == 0


FAMILY = [
    ("claude-opus-4-8", T),
    ("claude-sonnet-4-6", B),
    ("claude-haiku-4-5", F),
    ("claude-fable-5-1", T),
    ("claude-instant-1.2", F),
    ("databricks-gpt-oss-120b", B),
    ("databricks-gpt-oss-20b", F),
    ("gpt-5.5-pro", T),
    ("gpt-5-mini", F),
    ("gpt-5-nano", F),
    ("gpt-5.5", B),
    ("gpt-5.6-sol", B),
    ("gpt-4o-mini", F),
    ("gpt-5-3-codex", B),
    ("gpt-5.1-codex-max", T),
    ("gpt-5.1-codex-mini", F),
    ("chatgpt-4o-latest", B),
    ("gpt-5-prod", B),
    ("gpt-5-improved", B),
    ("o3", T),
    ("o3-pro", T),
    ("o4-mini", F),
    ("o3-deep-research", None),
    ("o4-mini-deep-research", None),
    ("gemini-3-1-pro", T),
    ("gemini-3-1-flash-lite", F),
    ("gemini-3-flash", B),
    ("gemma-3-27b", F),
    ("llama-4-maverick", T),
    ("llama-3-1-405b", T),
    ("llama-3-3-70b-instruct", B),
    ("llama-3-1-8b", F),
    ("llama-3-2-1b", F),
    ("llama-3.2-11b-vision", B),
    ("llama-4-scout", B),
    ("qwen3-next-80b-a3b-instruct", B),
    ("qwen3-coder", B),
    ("qwen3-max", T),
    ("qwen3-0.6b", F),
    ("glm-5", B),
    ("glm-4.5-air", F),
    ("deepseek-v3.2", B),
    ("deepseek-r1", T),
    ("deepseek-r1-distill-llama-70b", B),
    ("mistral-large-2411", T),
    ("mistral-small", F),
    ("magistral-medium", T),
    ("magistral-small", B),
    ("devstral-2", B),
    ("phi-4", F),
    ("phi-4-reasoning", B),
    ("grok-4", B),
    ("grok-4-fast-reasoning", F),
    ("grok-code-fast-1", F),
    ("kimi-k2.5", B),
    ("kimi-k2-thinking", T),
    ("command-a-03-2025", B),
    ("nova-premier-v1:0", T),
    ("nova-pro", B),
    ("nova-lite", F),
    ("granite-4-small", F),
    ("nemotron-ultra-253b", T),
    ("nemotron-nano-9b", F),
    ("lfm2-8b", F),
    ("olmo-3-32b-think", B),
    ("smollm2-135m", F),
    ("acme-7b", F),
    ("acme-70b", B),
    ("acme-300b", T),
    ("acme", None),
    ("gpt-image-2", None),
    ("whisper-1", None),
    ("llama-guard-4", None),
    ("gpt-3.5-turbo-instruct", None),
    ("text-embedding-3-small", E),
    ("qwen3-embedding-0-6b", E),
]


@pytest.mark.parametrize(("name", "expected"), FAMILY)
def test_a_hosted_model_without_score_is_in_the_class_of_its_family(name: str, expected: str | None) -> None:
    assert classes([named(name)]) == [expected]


LOCAL = [
    ("qwen3:0.6b", {}, F),
    ("llama3.2:latest", {"details": {"parameter_size": "3.2B"}}, F),
    ("gpt-oss:20b", {"details": {"parameter_size": "20.9B"}}, F),
    (
        "gpt-oss:120b",
        {"details": {"parameter_size": "116.8B"}, "capabilities": ["completion", "thinking"]},
        B,
    ),
    ("gemma3:27b", {"details": {"parameter_size": "27.4B"}}, B),
    ("mistral-small:24b", {}, B),
    ("qwen3:235b", {"capabilities": ["completion", "thinking"]}, T),
    ("qwen3:235b", {"capabilities": ["completion"]}, B),
    ("qwen3:235b", {}, T),
    ("llama3.1:405b", {"capabilities": ["completion", "tools"]}, T),
    ("nomic-embed-text", {"details": {"parameter_size": "137M"}, "capabilities": ["embedding"]}, E),
    ("mine", {"parameter_count": 800_000}, F),
    ("qwen3:latest", {}, B),
    ("mine", {}, None),
]


@pytest.mark.parametrize(("name", "facts", "expected"), LOCAL)
def test_a_local_model_is_in_the_class_of_its_size(
    name: str, facts: dict[str, object], expected: str | None
) -> None:
    assert classes([named(name, kind="ollama", **facts)]) == [expected]


OVERRIDES = [
    ({"acme": "chat-thinking"}, "acme-x", "openai", T),
    ({"GPT Mini": "chat-balanced"}, "gpt-5-mini", "openai", B),
    ({"gpt": "chat-fast"}, "gpt-5-5", "openai", F),
    ({"gpt": "chat-fast"}, "gpt-5-pro", "openai", F),
    ({"gpt": "chat-fast", "gpt pro": "chat-thinking"}, "gpt-5-pro", "openai", T),
    ({"opus": "never"}, "claude-opus-4-8", "openai", None),
    ({"qwen": "never"}, "qwen3:8b", "ollama", None),
    ({"claude opus": "chat-fast"}, "claude-opus-4-8", "openai", F),
]


@pytest.mark.parametrize(("families", "name", "kind", "expected"), OVERRIDES)
def test_a_configuration_says_more_than_the_table(
    families: dict[str, str], name: str, kind: str, expected: str | None
) -> None:
    card = named(name, kind=kind)
    assert classify([card], FamilyRules(families))[card.target][0] == expected


@pytest.mark.parametrize(
    ("families", "message"),
    [
        (
            {"opus": "thinking"},
            "family 'opus': 'thinking' is none of chat-thinking, chat-balanced, chat-fast, never",
        ),
        ({"opus": "embedding"}, "family 'opus'"),
        ({" ": "chat-fast"}, "at least one word"),
    ],
)
def test_a_wrong_family_is_refused(families: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FamilyRules(families)


def test_every_key_of_the_table_decides_for_itself() -> None:
    rules = FamilyRules()
    for key, value in FAMILIES.items():
        rule = rules.find(tuple(key.split()))
        assert rule is not None
        assert (rule.value, rule.configured) == (value, False), key


REASONS = [
    (named("claude-opus-4-8"), "family 'opus'"),
    (named("acme-7b"), "7 billion parameters"),
    (named("o3-deep-research"), "family 'deep research' is never picked unless named"),
    (named("acme"), "no quality, family or size is known of it"),
    (named("whisper-1"), "is no chat model"),
    (named("bge-m3"), "makes embeddings"),
]


@pytest.mark.parametrize(("card", "reason"), REASONS)
def test_a_class_has_a_reason(card: ModelCard, reason: str) -> None:
    assert classify([card])[card.target][1] == reason


def test_a_third_has_a_reason() -> None:
    reasons = [why for _, why in classify(scored(1, 2, 3)).values()]
    assert reasons == [
        "quality 1 is in the bottom third of the catalogue",
        "quality 2 is in the middle third of the catalogue",
        "quality 3 is in the top third of the catalogue",
    ]
