"""Names as backends spell them, taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.ranking.names import (
    core,
    display_name,
    is_full_id,
    numbers,
    parameter_count,
    segments,
    undated,
    version,
)

CORES = [
    ("databricks-claude-sonnet-4-6", "claude sonnet 4 6"),
    ("system.ai.gpt-5-5", "gpt 5 5"),
    ("databricks-meta-llama-3-3-70b-instruct", "llama 3 3 70b instruct"),
    ("us.anthropic.claude-opus-4-7-v1:0", "claude opus 4 7 v1 0"),
    ("openai/gpt-5.5-2026-04-23", "gpt 5 5 2026 04 23"),
    ("accounts/fireworks/models/deepseek-v3p1", "deepseek v3p1"),
    ("deepseek-ai/DeepSeek-V3.2", "deepseek v3 2"),
    ("llama3.2:latest", "llama 3 2 latest"),
    ("gemma3n:e2b", "gemma 3n e2b"),
    ("qwen35-122b-a10b", "qwen 3 5 122b a10b"),
    ("gpt-35-turbo", "gpt 3 5 turbo"),
    ("qwen2.5-0.5b-instruct", "qwen 2 5 0.5b instruct"),
    ("mixtral8x7b", "mixtral 8x7b"),
    ("o3-mini", "o3 mini"),
    ("kimi-k2.5", "kimi k2 5"),
    ("gpt-4o-mini", "gpt 4o mini"),
    ("databricks", "databricks"),
    ("", ""),
]


@pytest.mark.parametrize(("name", "words"), CORES)
def test_a_name_is_cut_into_its_own_words(name: str, words: str) -> None:
    assert " ".join(core(name)) == words


VERSIONS = [
    ("claude-opus-4-10", (4, 10)),
    ("claude-3-5-sonnet-20241022", (3, 5)),
    ("claude-sonnet-4-20250514", (4,)),
    ("gpt-5-5-2026-04-23", (5, 5)),
    ("gpt-4-0613", (4,)),
    ("gpt-4o", (4,)),
    ("gpt-4-32k", (4,)),
    ("gpt-oss-120b", ()),
    ("o3", (3,)),
    ("deepseek-v3.2", (3, 2)),
    ("glm-4.5v", (4, 5)),
    ("minimax-m2.5", (2, 5)),
    ("gemini-2.0-flash-001", (2, 0)),
    ("llama-3-1-8b", (3, 1)),
    ("mixtral-8x7b", ()),
    ("command-r-plus-08-2024", ()),
    ("model-1.2.3.4", (1, 2, 3)),
    ("qwen35-122b", (3, 5)),
    ("gpt-image-100", ()),
]


@pytest.mark.parametrize(("name", "expected"), VERSIONS)
def test_a_version_is_neither_size_nor_window_nor_date(name: str, expected: tuple[int, ...]) -> None:
    assert version(core(name)) == expected


def test_ten_is_newer_than_eight() -> None:
    assert version(core("claude-opus-4-10")) > version(core("claude-opus-4-8"))


SIZES = [
    ("llama-3-1-8b-instruct", 8e9),
    ("qwen3:0.6b", 0.6e9),
    ("smollm2-135m", 135e6),
    ("mixtral-8x7b", 56e9),
    ("qwen3-30b-a3b", 30e9),
    ("gemma3n:e2b", 2e9),
    ("gpt-5-5", None),
    ("model-a3b", None),
]


@pytest.mark.parametrize(("name", "expected"), SIZES)
def test_a_name_may_tell_the_parameter_count(name: str, expected: float | None) -> None:
    assert parameter_count(core(name)) == (None if expected is None else pytest.approx(expected))


UNDATED = [
    ("grok-4-0709", "grok 4"),
    ("gpt-5.5-2026-04-23", "gpt 5 5"),
    ("command-r-08-2024", "command r"),
    ("claude-sonnet-4-20250514", "claude sonnet 4"),
    ("gemini-2.0-flash-001", "gemini 2 0 flash"),
    ("llama3.2:latest", "llama 3 2"),
    ("gpt-4-10", "gpt 4 10"),
]


@pytest.mark.parametrize(("name", "words"), UNDATED)
def test_a_snapshot_is_a_name_with_a_date(name: str, words: str) -> None:
    assert " ".join(undated(core(name))) == words


def test_numbers_keep_their_order_and_leave_out_sizes() -> None:
    assert numbers(segments("deepseek-v3.2-70b-0324")) == ("3", "2", "0324")
    assert numbers(segments("gpt-4o")) == ()


FULL_IDS = [
    "databricks-claude-sonnet-4-5",
    "databricks-sonnet",
    "openai/gpt",
    "nowhere/",
    "gpt-4o",
    "o3",
    "o3-mini",
    "claude-sonnet-4-5",
    "llama3.2:1b",
    "grok-4",
    "sonnet-20250929",
    "qqqq-zzzz-0000",
]
SEARCHES = [
    "opus",
    "claude sonnet",
    "claude 4 8",
    "gpt5",
    "gpt5.5",
    "opus-4-8",
    "gemini-pro",
    "zzz",
    "",
    "databricks",
]


@pytest.mark.parametrize("name", FULL_IDS)
def test_a_full_id_means_one_model(name: str) -> None:
    assert is_full_id(name)


@pytest.mark.parametrize("name", [*SEARCHES, "openai/gpt 4", "-"])
def test_the_rest_is_a_search(name: str) -> None:
    assert not is_full_id(name)


DISPLAYED = [
    ("databricks-claude-sonnet-4-6", "Claude Sonnet 4.6"),
    ("claude-opus-4-10", "Claude Opus 4.10"),
    ("databricks-gpt-oss-120b", "GPT OSS 120B"),
    ("databricks-gte-large-en", "GTE Large EN"),
    ("llama3.2:latest", "Llama 3.2"),
    ("qwen3:0.6b", "Qwen 3 0.6B"),
    ("gemma3n:e2b", "Gemma 3n E2B"),
    ("mixtral-8x7b", "Mixtral 8x7B"),
    ("deepseek-r1:14b", "DeepSeek R1 14B"),
    ("kimi-k2.5", "Kimi K2.5"),
    ("o3-mini", "o3 Mini"),
    ("gpt-4o", "GPT 4o"),
    ("openai/gpt-5.5-2026-04-23", "GPT 5.5 2026-04-23"),
    ("system.ai.gpt-5-5", "GPT 5.5"),
    ("latest", "Latest"),
    ("***", "***"),
]


@pytest.mark.parametrize(("name", "shown"), DISPLAYED)
def test_a_name_for_people(name: str, shown: str) -> None:
    assert display_name(name) == shown


@given(st.text(max_size=40))
def test_any_text_can_be_taken_apart(name: str) -> None:
    words = core(name)
    assert segments("-".join(words)) == words or any(word[0].isdigit() for word in words)
    assert len(version(words)) <= 3
    assert set(undated(words)) <= set(words)
    assert isinstance(is_full_id(name), bool)
    assert isinstance(display_name(name), str)
