"""What is remembered of endpoints: averages that age, and when one is left alone."""

from __future__ import annotations

import pytest

from providers.health import (
    FAILURES_TO_REST,
    FIRST_REST_S,
    HALF_LIFE_S,
    LONGEST_REST_S,
    MAX_ENDPOINTS,
    PROBE_S,
    Health,
)
from tests.providers.conftest import Clock

E = "p/m"


@pytest.fixture
def health(clock: Clock) -> Health:
    return Health(clock)


def fail(health: Health, times: int = FAILURES_TO_REST) -> None:
    for _ in range(times):
        health.failed(E)


def test_nothing_is_known_of_what_was_never_asked(health: Health) -> None:
    assert health.live(E) is None
    assert not health.resting(E)


def test_averages_are_those_of_the_calls(health: Health) -> None:
    health.succeeded(E, 0.2, 100, 2.0)
    health.succeeded(E, 0.4, 300, 2.0)
    live = health.live(E)
    assert live is not None
    assert live.ttft_s == pytest.approx(0.3)
    assert live.tokens_per_s == pytest.approx(100.0)
    assert (live.error_rate, live.samples) == (0.0, pytest.approx(2.0))


def test_what_a_call_does_not_tell_is_not_counted(health: Health) -> None:
    health.succeeded(E, None, None, 1.0)
    health.succeeded(E, None, 0, 1.0)
    live = health.live(E)
    assert live is not None
    assert (live.ttft_s, live.tokens_per_s) == (None, None)


def test_older_calls_count_less(health: Health, clock: Clock) -> None:
    health.failed(E)
    clock.now += HALF_LIFE_S
    health.succeeded(E, 0.1, None, 1.0)
    live = health.live(E)
    assert live is not None
    assert live.error_rate == pytest.approx(0.5 / 1.5)
    clock.now += HALF_LIFE_S
    again = health.live(E)
    assert again is not None
    assert again.error_rate == pytest.approx(0.5 / 1.5), "time alone proves nothing"
    assert again.samples == pytest.approx(0.75)


def test_a_few_failures_in_a_row_make_it_rest(health: Health, clock: Clock) -> None:
    fail(health, FAILURES_TO_REST - 1)
    assert not health.resting(E)
    fail(health, 1)
    assert health.resting(E)
    clock.now += FIRST_REST_S
    assert not health.resting(E)


def test_a_success_between_starts_the_count_anew(health: Health) -> None:
    fail(health, FAILURES_TO_REST - 1)
    health.succeeded(E, None, None, 1.0)
    fail(health, FAILURES_TO_REST - 1)
    assert not health.resting(E)


def test_after_the_rest_one_call_tries(health: Health, clock: Clock) -> None:
    fail(health)
    clock.now += FIRST_REST_S
    assert not health.resting(E)
    health.asked(E)
    assert health.resting(E), "a probe is under way"
    health.succeeded(E, None, None, 1.0)
    assert not health.resting(E)


def test_a_failed_probe_doubles_the_rest(health: Health, clock: Clock) -> None:
    fail(health)
    for rest_s in (10.0, 20.0, 40.0, 80.0, LONGEST_REST_S, LONGEST_REST_S):
        clock.now += LONGEST_REST_S
        health.asked(E)
        health.failed(E)
        clock.now += rest_s - 0.1
        assert health.resting(E)
        clock.now += 0.2
        assert not health.resting(E)


def test_a_probe_that_never_comes_back_blocks_nobody_for_ever(health: Health, clock: Clock) -> None:
    fail(health)
    clock.now += FIRST_REST_S
    health.asked(E)
    clock.now += PROBE_S
    assert not health.resting(E)


def test_the_rest_that_it_asks_for_is_given_at_once(health: Health, clock: Clock) -> None:
    health.failed(E, 20.0)
    assert health.resting(E)
    clock.now += 20.0
    assert not health.resting(E)


def test_an_endless_rest_is_not_given(health: Health, clock: Clock) -> None:
    health.failed(E, 86_400.0)
    clock.now += LONGEST_REST_S
    assert not health.resting(E)


def test_it_forgets_what_was_asked_longest_ago(health: Health) -> None:
    for number in range(MAX_ENDPOINTS + 1):
        health.failed(f"p/{number}")
    assert health.live("p/0") is None
    assert health.live("p/1") is not None
    assert len(health.all_live()) == MAX_ENDPOINTS


def test_every_measurement_raises_the_version(health: Health) -> None:
    before = health.version
    health.failed(E)
    health.succeeded(E, None, None, 1.0)
    assert health.version == before + 2
