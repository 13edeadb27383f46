"""When an endpoint's rest ends: by a probe that came back, by a refusal, by nothing of the kind."""

from __future__ import annotations

import pytest

from providers.health import FAILURES_TO_REST, FIRST_REST_S, Health
from tests.providers.conftest import Clock

E = "p/m"


@pytest.fixture
def health(clock: Clock) -> Health:
    return Health(clock)


def rested(health: Health, clock: Clock) -> Health:
    for _ in range(FAILURES_TO_REST):
        health.failed(E)
    clock.now += FIRST_REST_S
    return health


def test_only_the_first_call_after_a_rest_is_the_probe(health: Health, clock: Clock) -> None:
    rested(health, clock)
    assert [health.asked(E), health.asked(E)] == [True, False]


def test_a_call_during_a_rest_is_none(health: Health) -> None:
    for _ in range(FAILURES_TO_REST):
        assert not health.asked(E)
        health.failed(E)
    assert not health.asked(E)


def test_a_call_after_a_single_failure_is_none(health: Health, clock: Clock) -> None:
    """It did not rest: while it is asked, others may ask it too."""
    health.failed(E)
    clock.now += 1
    assert not health.asked(E)
    assert not health.resting(E)


def test_a_probe_that_is_over_lets_the_next_one_try(health: Health, clock: Clock) -> None:
    rested(health, clock).asked(E)
    assert health.resting(E)
    health.left(E)
    assert not health.resting(E)
    assert health.asked(E)


def test_one_that_answers_is_awake_and_nothing_is_measured(health: Health, clock: Clock) -> None:
    rested(health, clock).asked(E)
    before = health.live(E)
    health.alive(E)
    assert not health.resting(E)
    assert health.live(E) == before
    health.failed(E)
    assert not health.resting(E), "the count begins anew"


def test_of_an_endpoint_never_asked_nothing_is_noted(health: Health) -> None:
    health.alive(E)
    health.left(E)
    assert not health.asked(E)
    assert health.live(E) is None
