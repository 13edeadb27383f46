"""Who is asked next: the order of candidates, the pauses, and what takes one out."""

from __future__ import annotations

import pytest

from app.routing.candidates import AS_TOLD, FIRST_PAUSE_S, Candidate, Candidates, pause
from providers.base import Target
from providers.unavailable import UnavailableProvider
from translators.errors import ProxyError

BUDGET_S = 5.0
P = UnavailableProvider("p", "openai", "not asked in these tests")


def candidates(*names: str, **windows: int) -> Candidates:
    sizes = {f"p/{name}": size for name, size in windows.items()}
    return Candidates([Target(P, name) for name in names], sizes, 0.0, BUDGET_S)


def names_in_order(them: Candidates, now: float) -> list[str]:
    """Who is asked when each fails for good."""
    order = []
    while (found := them.next(now)) is not None:
        order.append(found[0].target.model)
        found[0].spent = True
    return order


def fail(them: Candidates, name: str, kind: str = "upstream", now: float = 0.0, **more: bool) -> float | None:
    candidate = next(each for each in them.all if each.target.model == name)
    candidate.tries += 1
    return them.failed(candidate, ProxyError(kind, "no"), now, **more)  # type: ignore[arg-type]


def told(them: Candidates) -> tuple[str, str]:
    candidate, failure = them.told
    return candidate.target.model, failure.kind


def test_a_passing_failure_lets_the_next_one_go_first_at_once() -> None:
    them = candidates("a", "b")
    fail(them, "a", again=True)
    found = them.next(0.0)
    assert found is not None
    assert (found[0].target.model, found[1]) == ("b", 0.0)


def test_when_all_failed_in_passing_the_soonest_is_waited_for() -> None:
    them = candidates("a", "b")
    first = fail(them, "a", again=True)
    second = fail(them, "b", again=True)
    assert first is not None
    assert second is not None
    found = them.next(0.0)
    assert found is not None
    assert found[1] == pytest.approx(min(first, second))
    assert FIRST_PAUSE_S <= found[1] <= FIRST_PAUSE_S * 1.5


def test_no_candidate_is_asked_again_beyond_the_budget() -> None:
    them = candidates("a")
    assert fail(them, "a", now=BUDGET_S, again=True) is None
    assert them.next(BUDGET_S) is None


def test_a_new_candidate_is_asked_also_beyond_the_budget() -> None:
    them = candidates("a", "b")
    fail(them, "a", "timeout", now=60.0)
    assert names_in_order(them, 60.0) == ["b"]


@pytest.mark.parametrize(
    "kind", ["upstream", "upstream_auth", "quota", "not_found", "forbidden", "too_large", "timeout"]
)
def test_what_is_settled_takes_only_that_endpoint_out(kind: str) -> None:
    them = candidates("a", "b")
    assert fail(them, "a", kind) is None
    assert names_in_order(them, 0.0) == ["b"]


@pytest.mark.parametrize("kind", ["bad_request", "content_filter", "media_type"])
def test_what_blames_the_request_ends_it(kind: str) -> None:
    them = candidates("a", "b")
    fail(them, "a", kind)
    assert them.next(0.0) is None


def test_a_request_that_one_cannot_carry_is_put_to_the_next() -> None:
    them = candidates("a", "b")
    fail(them, "a", "bad_request", asked=False)
    assert names_in_order(them, 0.0) == ["b"]


def test_a_prompt_too_long_goes_only_to_larger_ones() -> None:
    them = candidates("a", "same", "unknown", "larger", a=8000, same=8000, larger=9000)
    fail(them, "a", "context_length")
    assert names_in_order(them, 0.0) == ["larger"]


def test_a_prompt_too_long_for_one_of_unknown_size_goes_to_those_of_known_size() -> None:
    them = candidates("a", "unknown", "known", known=9000)
    fail(them, "a", "context_length")
    assert names_in_order(them, 0.0) == ["known"]


def test_the_first_failure_is_kept_first() -> None:
    them = candidates("a", "b")
    fail(them, "a", "rate_limit")
    fail(them, "b", "not_found")
    assert [failure.kind for _, failure in them.failures] == ["rate_limit", "not_found"]
    assert told(them) == ("a", "rate_limit")


def test_what_blames_the_request_is_told_before_the_first() -> None:
    them = candidates("a", "b", "c")
    fail(them, "a", "overloaded", again=True)
    fail(them, "b", "content_filter")
    assert them.next(0.0) is None
    assert told(them) == ("b", "content_filter")


def test_one_that_asks_for_no_pause_does_not_go_before_one_that_was_not_asked() -> None:
    them = candidates("a", "b")
    them.all[0].tries = 1
    them.failed(them.all[0], ProxyError("upstream", "no", retry_after=0.0), 0.0, again=True)
    found = them.next(0.0)
    assert found is not None
    assert (found[0].target.model, found[1]) == ("b", 0.0)


def test_nobody_is_asked_again_when_others_have_taken_the_budget() -> None:
    them = candidates("a", "b")
    assert fail(them, "a", again=True) is not None
    fail(them, "b", "timeout", now=BUDGET_S + 1)
    assert them.next(BUDGET_S + 1) is None


def test_what_asks_for_no_pause_again_and_again_is_asked_a_few_times() -> None:
    now, tries = 0.0, 0
    while (
        delay := pause(ProxyError("upstream", "no", retry_after=0.0), tries + 1, now, BUDGET_S)
    ) is not None:
        now, tries = now + delay, tries + 1
    assert AS_TOLD < tries <= AS_TOLD + 3


def test_a_candidate_says_nothing_of_its_window_until_it_is_known() -> None:
    assert Candidate(Target(P, "m")).window is None
