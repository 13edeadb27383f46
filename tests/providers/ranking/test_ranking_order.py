"""The order within a class: published scores first, measurements by documented weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.ranking import LiveProfile, ModelCard, Ranking, Weights

from .fleet import named, workspace

BASE = replace(named("m"), quality=40.0, cost=5.0, speed=50.0, version=(4, 5))


def card(name: str, base: ModelCard = BASE, **changes: Any) -> ModelCard:
    return replace(base, model=name, target=f"p/{name}", **changes)


def order(*cards: ModelCard, **options: Any) -> list[str]:
    """The models of one class in their order; all are put into it by a configured family."""
    words = {word: "chat-fast" for each in cards for word in each.segments}
    return [
        each.card.model for each in Ranking.build(cards, families=words, **options).search(cls="chat-fast")
    ]


UNSCORED = card("unscored", quality=None, speed=None, cost=None)

PAIRS: list[tuple[str, ModelCard, ModelCard]] = [
    ("scored before unscored", card("a", quality=0.0), UNSCORED),
    ("better", card("a", quality=41.0, cost=9.0), BASE),
    ("of equals the cheaper", card("a", cost=4.0, speed=1.0), BASE),
    ("a price of nothing is a price", card("a", cost=0.0), card("b", cost=None)),
    ("then the faster", card("a", speed=51.0, version=()), BASE),
    ("no speed is slowest", BASE, card("b", speed=None)),
    ("then the newer", card("a", version=(4, 10)), card("b", version=(4, 8))),
    ("then the newer", card("a", version=(5,)), card("b", version=(4, 9, 9))),
    ("then the newer", card("a", version=(4, 5, 1)), BASE),
    ("unscored: the newer", card("a", UNSCORED, version=(4, 6)), card("b", UNSCORED, cost=0.0)),
    ("unscored: of equals the cheaper", card("a", UNSCORED, cost=1.0), card("b", UNSCORED, cost=2.0)),
    ("unscored: hosted before local", UNSCORED, card("b", UNSCORED, kind="ollama", version=(9,))),
    (
        "local: the larger",
        card("a", UNSCORED, kind="ollama", parameter_count=14e9),
        card("b", UNSCORED, kind="ollama", parameter_count=8e9, version=(9,)),
    ),
    (
        "loaded before cold",
        card("a", UNSCORED, kind="ollama", parameter_count=8e9, loaded=True),
        card("b", UNSCORED, kind="ollama", parameter_count=14e9, loaded=False),
    ),
    (
        "loaded before cold, wherever",
        card("a", UNSCORED, kind="ollama", loaded=True),
        card("b", UNSCORED, loaded=False),
    ),
    ("ready before not ready", card("a", UNSCORED), card("b", quality=99.0, ready=False)),
    ("unknown is ready", card("a", ready=None), card("b", ready=False)),
]


@pytest.mark.parametrize(("rule", "first", "second"), PAIRS)
def test_of_two_models_one_comes_first(rule: str, first: ModelCard, second: ModelCard) -> None:
    assert order(first, second) == order(second, first) == [first.model, second.model], rule


def test_equals_keep_the_order_of_the_listing() -> None:
    names = ["c", "a", "b"]
    assert order(*(card(name) for name in names)) == names


def test_embeddings_are_in_the_order_of_the_listing() -> None:
    cards = [
        named("bge-2"),
        named("text-embedding-9"),
        named("e5-3", state={"ready": "NOT_READY"}),
        named("gte-1"),
    ]
    found = Ranking.build(cards).search(cls="embedding")
    assert [each.card.model for each in found] == ["bge-2", "text-embedding-9", "gte-1", "e5-3"]


A, B = card("a"), card("b", quality=39.0)

MEASURED: list[tuple[str, LiveProfile, list[str]]] = [
    ("nothing of note", LiveProfile(0.8, 60.0, 0.0, 100), ["a", "b"]),
    ("a single failure is no proof", LiveProfile(error_rate=1.0, samples=0.1), ["a", "b"]),
    ("it fails often", LiveProfile(error_rate=0.5, samples=50), ["b", "a"]),
    ("it is slow to begin", LiveProfile(ttft_s=12.0, samples=50), ["b", "a"]),
    ("a bit slow is within the noise", LiveProfile(ttft_s=1.5, tokens_per_s=48.0, samples=50), ["a", "b"]),
    ("it crawls", LiveProfile(tokens_per_s=4.0, samples=500), ["b", "a"]),
    ("nothing was measured", LiveProfile(), ["a", "b"]),
]


@pytest.mark.parametrize(("what", "live", "expected"), MEASURED)
def test_measurements_move_an_endpoint(what: str, live: LiveProfile, expected: list[str]) -> None:
    assert order(A, B, live={"p/a": live}) == expected, what


def test_measured_speed_does_not_swap_equal_models() -> None:
    live = {
        "p/a": LiveProfile(tokens_per_s=49.0, samples=9),
        "p/b": LiveProfile(tokens_per_s=50.0, samples=9),
    }
    assert order(card("a"), card("b"), live=live) == ["a", "b"]


def test_cost_counts_where_it_is_given_a_weight() -> None:
    cheap, dear = card("cheap", quality=38.0, cost=1.0), card("dear", cost=28.0)
    assert order(dear, cheap) == ["dear", "cheap"]
    assert order(dear, cheap, weights=Weights(cost=0.5)) == ["cheap", "dear"]
    assert order(dear, card("free", quality=38.0, cost=None), weights=Weights(cost=0.5)) == ["free", "dear"]


def test_the_breakdown_adds_up() -> None:
    live = LiveProfile(ttft_s=8.0, tokens_per_s=5.0, error_rate=0.25, samples=5)
    ranking = Ranking.build([card("best", quality=80.0), A], {"p/a": live}, weights=Weights(cost=0.3))
    standing = ranking.of("p/a")
    assert standing is not None
    assert standing.breakdown == {
        "quality": 0.5,
        "cost": pytest.approx(-0.05),
        "errors": pytest.approx(-0.0625),
        "latency": pytest.approx(-0.025),
        "throughput": pytest.approx(-0.025),
        "total": pytest.approx(0.34),  # less 0.1625, in steps of 0.02
    }


def test_where_nothing_is_known_there_is_no_breakdown() -> None:
    standing = Ranking.build([named("claude-opus-4-8")]).of("p/claude-opus-4-8")
    assert standing is not None
    assert standing.breakdown == {}


@pytest.mark.parametrize("quality", [0.0, -3.0])
def test_a_catalogue_without_a_good_score_has_no_scale(quality: float) -> None:
    standing = Ranking.build([card("a", quality=quality)]).of("p/a")
    assert standing is not None
    assert standing.breakdown == {"quality": 0.0, "total": 0.0}


def test_reasons_for_people() -> None:
    local = named("qwen3:8b", kind="ollama", loaded=False)
    live = LiveProfile(ttft_s=0.84, tokens_per_s=41.7, error_rate=0.03, samples=20)
    cards = [A, named("gpt-5-5", state={"ready": "NOT_READY"}), local, named("acme")]
    ranking = Ranking.build(cards, {"p/a": live})
    said = {each.card.model: each.standing.reasons() for each in ranking.all}
    assert said == {
        "a": [
            "no class: no quality, family or size is known of it",
            "quality 40, cost 5, speed 50, version 4.5",
            "measured: 3% of 20 calls failed, first token after 0.84 s, 41.7 tokens/s",
        ],
        "gpt-5-5": [
            "class chat-balanced: family 'gpt'",
            "not ready, so it comes last",
            "no published score, so it comes after those with one",
            "version 5.5",
        ],
        "qwen3:8b": [
            "class chat-fast: 8 billion parameters",
            "not loaded, so it comes after those that are",
            "no published score, so it comes after those with one",
            "version 3",
        ],
        "acme": ["no class: no quality, family or size is known of it"],
    }


def test_what_was_not_measured_is_not_told() -> None:
    standing = Ranking.build([A], {"p/a": LiveProfile(error_rate=0.5, samples=2)}).of("p/a")
    assert standing is not None
    assert standing.reasons()[-1] == "measured: 50% of 2 calls failed"


def test_new_measurements_rank_the_same_catalogue_anew() -> None:
    ranking = Ranking.build(workspace())
    best = ranking.resolve("thinking")[0].card.target
    failing = ranking.with_live({best: LiveProfile(error_rate=1.0, samples=100), "gone/model": LiveProfile()})
    assert failing.resolve("thinking")[0].card.target != best
    assert best in [each.card.target for each in failing.resolve("thinking")]
    assert [each.card for each in failing.with_live({}).all] == [each.card for each in ranking.all]


maybe = st.none() | st.floats(0, 100)
profiles = st.builds(LiveProfile, maybe, maybe, st.floats(0, 1), st.floats(0, 1e6))
made = st.builds(
    lambda at, quality, cost, speed, version, kind, flags: card(
        f"m{at}",
        quality=quality,
        cost=cost,
        speed=speed,
        version=version,
        kind=kind,
        loaded=flags[0],
        ready=flags[1],
    ),
    st.integers(0, 50),
    maybe,
    maybe,
    maybe,
    st.lists(st.integers(0, 99), max_size=4).map(tuple),
    st.sampled_from(["openai", "ollama"]),
    st.tuples(*[st.sampled_from([True, False, None])] * 2),
)


@given(st.lists(made, max_size=12, unique_by=lambda each: each.target), st.data())
def test_the_order_is_total_and_does_not_depend_on_the_rest(
    cards: list[ModelCard], data: st.DataObject
) -> None:
    live = {each.target: data.draw(profiles) for each in cards if data.draw(st.booleans())}
    ranking = Ranking.build(cards, live)
    assert sorted(each.card.target for each in ranking.all) == sorted(each.target for each in cards)
    standings = [each.standing for each in ranking.all]
    for cls in {each.cls for each in standings}:
        keys = [each.key for each in standings if each.cls == cls]
        assert keys == sorted(keys)
    assert [each.card for each in Ranking.build(cards, live).all] == [each.card for each in ranking.all]
