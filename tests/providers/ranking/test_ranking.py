"""Names, classes and filters over a whole catalogue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.ranking import CHAT_CLASSES, ModelCard, Ranking
from providers.ranking.classes import this_and_below
from providers.ranking.ranking import CACHED

from .fleet import named, ranking, workspace

WORKSPACE = ranking()


def ids(found: Any) -> list[str]:
    return [each.card.target for each in found]


def test_an_exact_name_goes_before_everything() -> None:
    cards = [
        named("gpt-sol-mini", "a"),
        replace(named("gpt-sol", "b"), aliases=("sol", "fast")),
        named("chat-fast", "c"),
        named("gpt-sol", "c"),
        replace(named("luna", "c"), aliases=("gpt-sol", "b/gpt-sol")),
        named("whisper-1", "c"),
        named("bge-m3", "c"),
    ]
    fleet = Ranking.build(cards)
    expected: dict[str, tuple[str, list[str]]] = {
        "b/gpt-sol": ("exact", ["b/gpt-sol"]),
        "gpt-sol": ("exact", ["b/gpt-sol", "c/gpt-sol"]),  # both, in the order of the file
        "sol": ("alias", ["b/gpt-sol"]),
        "fast": ("alias", ["b/gpt-sol"]),
        "chat-fast": ("exact", ["c/chat-fast"]),
        "whisper-1": ("exact", ["c/whisper-1"]),
        "bge-m3": ("exact", ["c/bge-m3"]),
        "GPT-SOL": ("name", ["b/gpt-sol", "c/gpt-sol"]),
    }
    for name, (match, targets) in expected.items():
        found = fleet.resolve(name)
        assert ids(found) == targets, name
        assert {(each.match, each.score) for each in found} == {(match, 0.0)}, name


def test_a_class_is_a_name() -> None:
    for slug in ("chat-fast", "fast"):
        found = WORKSPACE.resolve(slug)
        assert found[0].card.model == "databricks-llama-4-maverick"
        assert {each.cls for each in found} == {"chat-fast"}
        assert {(each.match, each.score) for each in found} == {("class", None)}
    assert [each.card.model for each in WORKSPACE.resolve("embedding")] == [
        "databricks-gte-large-en",
        "databricks-bge-large-en",
    ]


def test_an_empty_class_falls_downward_only() -> None:
    fleet = Ranking.build([named("claude-opus-4-8"), named("claude-haiku-4-5")])
    assert ids(fleet.resolve("chat-balanced")) == ["p/claude-haiku-4-5"]
    assert ids(Ranking.build([named("claude-opus-4-8")]).resolve("chat-balanced")) == []


def test_a_catalogue_may_be_empty() -> None:
    fleet = Ranking.build([])
    assert (fleet.all, fleet.search(), fleet.search("opus"), fleet.resolve("fast"), fleet.suggest("x")) == (
        (),
    ) * 4 + ([],)


def test_everything_is_listed_in_order() -> None:
    classes = [each.cls for each in WORKSPACE.all]
    assert classes == sorted(
        classes, key=["chat-thinking", "chat-balanced", "chat-fast", None, "embedding"].index
    )
    assert len(classes) == len(workspace())


def test_a_general_ask_has_no_embeddings_and_nothing_without_a_class() -> None:
    assert {each.cls for each in WORKSPACE.search()} == set(CHAT_CLASSES)
    assert WORKSPACE.search("  ") == WORKSPACE.search()
    assert WORKSPACE.search("large") == ()


def test_what_is_not_ready_is_found_last() -> None:
    asleep = {"state": {"ready": "NOT_READY"}, "task": "llm/v1/chat"}
    fleet = Ranking.build(
        [named("claude-opus-5", **asleep), named("claude-haiku-4-5"), named("claude-opus-4-8")]
    )
    for query in ("claude", "claud"):
        assert ids(fleet.resolve(query))[-1] == "p/claude-opus-5"


def test_embeddings_are_searched_as_such() -> None:
    assert ids(WORKSPACE.search("gte", cls="embedding")) == ["dbx/databricks-gte-large-en"]
    assert ids(WORKSPACE.resolve("gte", embeddings=True)) == ["dbx/databricks-gte-large-en"]
    assert WORKSPACE.resolve("opus", embeddings=True) == ()
    assert WORKSPACE.search("opus", cls="embedding") == ()


def test_a_search_within_a_class_goes_no_higher() -> None:
    found = WORKSPACE.search("claude", cls="chat-balanced")
    assert [each.card.version for each in found] == [(4, 5), (4, 5)]
    assert {each.cls for each in found} == {"chat-balanced"}
    assert WORKSPACE.search("databricks-claude-opus-4-8", cls="chat-balanced") == ()
    assert WORKSPACE.search("acme", cls="chat-thinking") == ()


def test_at_most_as_many_as_asked() -> None:
    assert len(WORKSPACE.search(limit=3)) == 3
    assert WORKSPACE.search(limit=3) == WORKSPACE.search()[:3]
    assert ids(WORKSPACE.search("opus", limit=1)) == ["dbx/databricks-claude-opus-4-8"]


KNOWN: dict[str, bool | None] = {"gpt-yes": True, "gpt-no": False, "gpt-silent": None}


@pytest.mark.parametrize(
    ("ability", "wanted", "expected"),
    [
        ("tools", True, {"gpt-yes", "gpt-silent"}),  # refused only where it is known
        ("tools", False, {"gpt-no"}),
        ("vision", True, {"gpt-yes"}),
        ("vision", False, {"gpt-no", "gpt-silent"}),
        ("reasoning", True, {"gpt-yes"}),
        ("reasoning", False, {"gpt-no", "gpt-silent"}),
        ("reasoning", None, set(KNOWN)),
    ],
)
def test_abilities_are_filters(ability: str, wanted: bool | None, expected: set[str]) -> None:
    cards = [replace(named(name), **{ability: known}) for name, known in KNOWN.items()]
    for query in ("", "gpt"):
        found = Ranking.build(cards).search(query, **{ability: wanted})  # type: ignore[arg-type]
        assert {each.card.model for each in found} == expected


def test_of_two_cards_of_one_target_the_first_counts() -> None:
    fleet = Ranking.build([named("m"), replace(named("m"), display_name="other")])
    assert [each.card.display_name for each in fleet.resolve("m")] == ["M"]


def test_the_standing_of_a_target() -> None:
    standing = WORKSPACE.of("dbx/databricks-claude-opus-4-8")
    assert standing is not None
    assert (standing.cls, standing.why) == (
        "chat-thinking",
        "quality 46 is in the top third of the catalogue",
    )
    assert WORKSPACE.of("dbx/none") is None


FOUND = [
    ("databricks-claude-opus-4-8", "its id was asked for"),
    ("claude-opus-4-8", "its name was asked for, spelled otherwise"),
    ("opus", "all words of the search fit (score 0.001, 0 is exact)"),
    ("thinking", "its class, a higher one, or any was asked for"),
]


@pytest.mark.parametrize(("name", "reason"), FOUND)
def test_an_answer_says_how_it_was_found_and_why_it_is_there(name: str, reason: str) -> None:
    found = WORKSPACE.resolve(name)[0]
    assert found.reasons == [
        reason,
        "class chat-thinking: quality 46 is in the top third of the catalogue",
        "quality 46, cost 10, speed 43.7, version 4.8",
    ]
    assert found.breakdown == {"quality": 1.0, "total": 1.0}


def test_an_alias_says_so() -> None:
    found = Ranking.build([replace(named("m"), aliases=("sol",))]).resolve("sol")
    assert found[0].reasons[0] == "an alias of it was asked for"


def test_answers_are_kept_but_not_for_ever() -> None:
    fleet = ranking()
    kept = fleet.resolve("opus")
    assert fleet.resolve("opus") is kept
    for at in range(CACHED):
        fleet.resolve(f"opus {at}")
    assert len(fleet._cache) == CACHED
    again = fleet.resolve("opus")
    assert again == kept
    assert again is not kept


def test_names_too_long_to_be_one_are_not_kept() -> None:
    name = "claude-opus-" * 20
    fleet = Ranking.build([named(name), named("claude-opus-4-8")])
    assert ids(fleet.resolve(name)) == ids(fleet.search(name)) == [f"p/{name}"]
    assert fleet.resolve("opus " * 50) == fleet.search("opus " * 50) == ()
    assert fleet.suggest("claude opus " * 50) == []
    assert not fleet._cache


def test_a_wrong_family_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="medium"):
        Ranking.build([], families={"opus": "medium"})


NAMES = """
claude-opus-4-8 claude-sonnet-4-6 claude-haiku-4-5 gpt-5-5 gpt-5-pro gpt-5-mini gpt-oss-120b acme-7b acme
gemini-3-pro gemini-3-flash bge-m3 whisper-1 llama-3-1-405b llama-3-1-8b
"""
names = st.sampled_from(NAMES.split())
cards = st.builds(
    lambda name, provider, quality, ready: replace(named(name, provider), quality=quality, ready=ready),
    names,
    st.sampled_from(["a", "b", "c"]),
    st.none() | st.sampled_from([1.0, 2.0, 3.0, 4.0]),
    st.sampled_from([True, False, None]),
)
asked = st.sampled_from(
    ["", "claude", "gpt", "opus", "8b", "gemini", "acme", "claude-opus-4-8", "a/gpt-5-pro", "bge"]
)


@given(
    st.lists(cards, max_size=15, unique_by=lambda card: card.target),
    asked,
    st.sampled_from([*CHAT_CLASSES, "embedding"]),
)
def test_a_class_is_a_ceiling(fleet: list[ModelCard], query: str, cls: Any) -> None:
    built = Ranking.build(fleet)
    allowed = this_and_below(cls)
    assert all(each.cls in allowed for each in built.search(query, cls=cls))
    found = built.resolve(cls)
    assert all(each.cls in allowed for each in found)
    assert [each.cls for each in found] == sorted(
        (each.cls for each in found), key=lambda held: allowed.index(held)
    )  # type: ignore[arg-type]
    assert {each.card.target for each in found} == {
        each.card.target for each in built.all if each.cls in allowed
    }


@given(st.lists(cards, max_size=15, unique_by=lambda card: card.target), asked)
def test_no_answer_names_a_model_twice(fleet: list[ModelCard], query: str) -> None:
    built = Ranking.build(fleet)
    for found in (built.all, built.search(query), built.resolve(query), built.resolve("thinking")):
        assert len(set(ids(found))) == len(found)
