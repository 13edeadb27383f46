"""What a search finds, and what it must not: the tables of names that were once sent to the wrong model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.ranking import ModelCard, Ranking
from providers.ranking.names import VENDORS, is_full_id, numbers, segments
from providers.ranking.search import THRESHOLD

from .fleet import named, ranking

WORKSPACE = ranking()

GOLD = [
    ("opus", "databricks-claude-opus-4-8"),
    ("claude sonnet", "databricks-claude-sonnet-4-6"),
    ("claude-sonnet", "databricks-claude-sonnet-4-6"),
    ("claude 4 8", "databricks-claude-opus-4-8"),
    ("claude 4.8", "databricks-claude-opus-4-8"),
    ("opus-4-7", "databricks-claude-opus-4-7"),
    ("sonet", "databricks-claude-sonnet-4-6"),
    ("claud sonet", "databricks-claude-sonnet-4-6"),
    ("hiaku", "databricks-claude-haiku-4-5"),
    ("codex", "databricks-gpt-5-3-codex"),
    ("llama 70b", "databricks-meta-llama-3-3-70b-instruct"),
    ("lama 70b", "databricks-meta-llama-3-3-70b-instruct"),
    ("Llama Maverick", "databricks-llama-4-maverick"),
    ("gemini pro", "databricks-gemini-3-1-pro"),
    ("gemni", "databricks-gemini-3-1-pro"),
    ("gpt5", "databricks-gpt-5-5"),
    ("gpt 5.5", "databricks-gpt-5-5"),
    ("gpt 5 mini", "databricks-gpt-5-4-mini"),
    ("gpt mini", "databricks-gpt-5-4-mini"),
    ("mini", "databricks-gpt-5-4-mini"),
    ("gpt oss", "databricks-gpt-oss-120b"),
    ("gpt 20b", "databricks-gpt-oss-20b"),
    ("anthropic opus", "databricks-claude-opus-4-8"),
    ("claude-opus-latest", "databricks-claude-opus-4-8"),
    ("glm", "databricks-glm-5"),
    ("acme", "databricks-acme-chat"),
    ("claude-sonnet-4-6", "databricks-claude-sonnet-4-6"),
    ("GPT-5.5", "databricks-gpt-5-5"),
    ("databricks-gpt-5.5", "databricks-gpt-5-5"),
]


@pytest.mark.parametrize(("query", "model"), GOLD)
def test_a_search_finds_what_is_meant(query: str, model: str) -> None:
    assert WORKSPACE.resolve(query)[0].card.model == model


NOTHING = [
    "gpt 5 6",
    "claude opus 5",
    "claude 5",
    "gpt-4o",
    "gpt 4",
    "o3",
    "claude-sonnet-4-5",
    "databricks-claude-sonnet-4-5",
    "databricks-sonnet",
    "claude-sonnet-4-6-20260301",
    "openai/gpt-5-5",
    "nowhere/claude-opus-4-8",
    "zzz",
    "a",
    "5",
    "4 8",
    "databricks",
    "anthropic",
    "latest",
    "gte",
    "bge",
    "churn",
    "opus sonnet",
    "opus 4 8 4 8",
    "claude 8",
    "llama 1b",
    "llama 0b",
    "gpt pro",
    "ge",
    "op",
    "medium",
    "qwn",
    "",
    " ",
    "---",
    "x" * 5000,
]


@pytest.mark.parametrize("query", NOTHING)
def test_what_is_not_served_is_not_replaced_by_something_like_it(query: str) -> None:
    assert WORKSPACE.resolve(query) == ()
    assert not query.strip() or WORKSPACE.search(query) == ()


def models(query: str, **options: object) -> list[str]:
    return [each.card.model.removeprefix("databricks-") for each in WORKSPACE.search(query, **options)]  # type: ignore[arg-type]


def test_a_search_for_a_brand_is_for_its_newest() -> None:
    assert models("gpt") == ["gpt-5-5", "gpt-5-4-mini", "gpt-5-3-codex"]
    assert models("claude")[:2] == ["claude-opus-4-8", "claude-opus-4-7"]
    assert models("llama")[0] == "llama-4-maverick"
    # only if it is all that is said
    assert models("claude instruct") == []
    assert models("gpt 120b") == ["gpt-oss-120b"]


SCORES = [
    ("databricks-claude-opus-4-8", 0.0),
    ("claude-opus-4-8", 0.0),
    ("opus", 0.001),
    ("claude opus", 0.001),
    ("claude 4 8", 0.001),
    ("opu", 0.002),
    ("opis", 0.25),
    ("claude opis", 0.1255),
]


@pytest.mark.parametrize(("query", "score"), SCORES)
def test_a_score_says_how_far_the_name_is(query: str, score: float) -> None:
    found = WORKSPACE.search(query)[0]
    assert found.card.model == "databricks-claude-opus-4-8"
    assert found.score == pytest.approx(score)


def test_the_threshold_is_the_highest_score_of_a_word() -> None:
    assert models("sonet", threshold=0.2) == ["claude-sonnet-4-6"]
    assert models("sonet", threshold=0.19) == []
    assert models("sonnet", threshold=0.0) == ["claude-sonnet-4-6"]
    assert models("gemni", threshold=0.4) == ["gemini-3-1-pro", "gemini-3-flash", "gemma-3-12b"]


def test_a_name_is_resolved_to_the_best_matches_only() -> None:
    assert [each.card.model for each in WORKSPACE.resolve("gemni")] == [
        "databricks-gemini-3-1-pro",
        "databricks-gemini-3-flash",
    ]


def build(*names: str) -> Ranking:
    return Ranking.build([named(name) for name in names])


def first(fleet: Ranking, query: str) -> str | None:
    return next((each.card.model for each in fleet.resolve(query)), None)


OF_OTHER_FLEETS: list[tuple[list[str], str, str | None]] = [
    (["grok-4-fast-reasoning", "grok-4-0709"], "grok-4", "grok-4-0709"),
    (["gpt-4o-mini"], "gpt-4", None),
    (["gpt-4o-mini"], "gpt-4o", None),
    (["gpt-4o-2024-08-06", "gpt-4o-2024-11-20"], "gpt-4o", "gpt-4o-2024-11-20"),
    (["command-r-08-2024", "command-r-03-2025"], "command-r", "command-r-03-2025"),
    (["gpt-sol-mini", "gpt-sol"], "GPT Sol", "gpt-sol"),
    (["gpt-4o", "gpt-4o-2024-11-20"], "gpt-4o", "gpt-4o"),
    (["gpt-4o"], "gpt-4o-2024-08-06", None),
    (["gpt-sol-2026-01-01", "gpt-sol-latest"], "gpt-sol", "gpt-sol-latest"),
    (["llama3.2:1b", "llama3.2:latest"], "llama3.2", "llama3.2:latest"),
    (["qwen35-122b-a10b"], "qwen 3.5", "qwen35-122b-a10b"),
    (["deepseek-v3.2", "deepseek-r1"], "deepseek 3.2", "deepseek-v3.2"),
    (["deepseek-v3.2", "deepseek-r1"], "deepseek 2", None),
    (["deepseek-v3.2", "deepseek-r1"], "deepseek v3", "deepseek-v3.2"),
    (["anthropic/claude-opus-4.8"], "claude-opus-4-8", "anthropic/claude-opus-4.8"),
    (["anthropic/claude-opus-4.8"], "anthropic/claude-opus-4-8", "anthropic/claude-opus-4.8"),
    (["anthropic/claude-opus-4.8"], "openai/claude-opus-4-8", None),
    (["gpt-5-prod", "gpt-5-pro"], "gpt pro", "gpt-5-pro"),
    (["minimax-m2", "gpt-5-mini"], "mini", "gpt-5-mini"),
    (["minimax-m2"], "mini", "minimax-m2"),
    (["grok-4-0709"], "grok 0709", "grok-4-0709"),
    (["grok-4-0709"], "grok 709", None),
    (["llama-3-2-11b"], "llama 1b", None),
    (["mistral-large"], "mistal", "mistral-large"),
    (["ollama-x"], "llama", None),
    (["phi-4"], "pho", None),
    (["gpt-image-2", "whisper-1"], "gpt image", None),
]


@pytest.mark.parametrize(("fleet", "query", "model"), OF_OTHER_FLEETS)
def test_a_search_in_other_fleets(fleet: list[str], query: str, model: str | None) -> None:
    assert first(build(*fleet), query) == model


SUGGESTED = [
    ("gpt-4o", "databricks-gpt-5-4-mini"),
    ("claude-sonnet-4-5", "databricks-claude-sonnet-4-6"),
    ("databricks-claude-sonnet-4-5", "databricks-claude-sonnet-4-6"),
    ("chat-fst", "chat-fast"),
    ("gte", "databricks-gte-large-en"),
]


@pytest.mark.parametrize(("name", "near"), SUGGESTED)
def test_up_to_five_names_are_suggested(name: str, near: str) -> None:
    found = WORKSPACE.suggest(name)
    assert near in found
    assert len(found) <= 5
    assert len(set(found)) == len(found)
    assert all(WORKSPACE.resolve(each) for each in found)


def test_nothing_is_suggested_for_nonsense() -> None:
    assert WORKSPACE.suggest("qqqq-zzzz") == []
    assert WORKSPACE.suggest("") == []
    assert WORKSPACE.suggest("/" * 500) == []


def test_a_class_without_models_is_not_suggested() -> None:
    fleet = Ranking.build([named("gpt-sol", "a")])
    assert fleet.resolve("chat-fast") == ()
    assert fleet.suggest("chat-fst") == ["chat-thinking"]


def test_a_name_of_two_providers_is_suggested_by_id() -> None:
    fleet = Ranking.build([named("gpt-sol", "a"), named("gpt-sol", "b"), named("gpt-luna", "b")])
    assert set(fleet.suggest("gpt-solo")) >= {"a/gpt-sol", "b/gpt-sol"}


WORDS = """
claude opus sonnet haiku gpt oss mini pro codex gemini flash lite llama qwen3 coder deepseek v3 r1 k2 4o o3
8b 70b 3 4 5 10 2025 0709 databricks meta system.ai x latest
"""
words = st.sampled_from(WORDS.split())
model_names = st.lists(words, min_size=1, max_size=6).map("-".join)
queries = st.lists(words | st.text("abcglmnopstu5", min_size=1, max_size=6), min_size=1, max_size=4).map(
    " ".join
)


def _distance(one: str, two: str) -> int:
    """Letters to change, drop, add, or swap with their neighbour (restricted)."""
    rows = [list(range(len(two) + 1))]
    for at, letter in enumerate(one, 1):
        row = [at]
        for to, other in enumerate(two, 1):
            row.append(min(row[-1] + 1, rows[-1][to] + 1, rows[-1][to - 1] + (letter != other)))
            if at > 1 and to > 1 and (letter, other) == (two[to - 2], one[at - 2]):
                row[-1] = min(row[-1], rows[-2][to - 2] + 1)
        rows.append(row)
    return rows[-1][-1]


def _fits(word: str, card: ModelCard) -> bool:
    if word in card.segments:
        return True
    if len(word) < 3 or word[0].isdigit():
        return False
    near = (
        each for each in card.segments if _distance(word, each) <= THRESHOLD * len(word) and len(word) >= 4
    )
    return any(each.startswith(word) for each in card.segments) or any(near)


@given(st.lists(model_names, max_size=8, unique=True), queries)
def test_no_model_fails_a_word_of_the_search(names: list[str], query: str) -> None:
    said = [word for word in segments(query) if word not in VENDORS]
    for found in build(*names).search(query):
        card = found.card
        if found.match != "search":
            continue
        assert not is_full_id(query)
        assert all(_fits(word, card) for word in said if not word.isdigit()), card.model
        held, wanted = numbers(card.segments), numbers(tuple(said))
        assert any(held[at : at + len(wanted)] == wanted for at in range(len(held) + 1)), card.model
        assert found.score is not None
        assert 0 < found.score <= THRESHOLD


@given(st.lists(model_names, min_size=1, max_size=8, unique=True), st.data())
def test_a_whole_name_is_found_exactly(names: list[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(names))
    found = build(*names).resolve(name)
    assert [(each.card.model, each.score, each.match) for each in found] == [(name, 0.0, "exact")]


@given(st.text(max_size=200))
def test_any_text_may_be_asked_for(query: str) -> None:
    WORKSPACE.resolve(query)
    WORKSPACE.search(query)
    assert len(WORKSPACE.suggest(query)) <= 5
