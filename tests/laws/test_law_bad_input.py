"""A request is sent on or refused by a 400 that says where and what to send instead; no third thing."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws import impossible
from tests.laws.everything import every_kind, mutated, single
from tests.laws.impossible import CASES, PASSING, Impossible
from tests.laws.pairs import BACKENDS, CLIENTS, PAIRS, new_ids
from tests.laws.profiles import EXAMPLES, NAMES, row
from tests.laws.test_law_refusal import asked
from translators.capsule import Seals
from translators.errors import ProxyError
from translators.ir import Shape
from translators.profile import Profile
from translators.translate import translate_request

Json = dict[str, Any]

_ADVICE = re.compile(
    r"must|required|remove|leave|send|give|use|name|needs|take|support|set|has |cannot|not (in|found)", re.I
)


def translated(client: Shape, backend: Shape, body: Json, profile: Profile) -> Json | ProxyError:
    """What the translate lane sends, also between equal shapes and with a key to open capsules."""
    try:
        call = CLIENTS[client].decode_request(body, new_ids())
        seals = Seals(lambda: b"k" * 32, "target")
        return translate_request(call, CLIENTS[client], BACKENDS[backend], profile, seals).encoded.body
    except ProxyError as error:
        return error


def judged(outcome: Json | ProxyError, body: Json) -> None:
    if isinstance(outcome, ProxyError):
        assert (outcome.http_status, outcome.body()["type"]) == (400, "invalid_request_error")
        assert leads_somewhere(outcome.param or "", body), (outcome.param, outcome.message)
        assert _ADVICE.search(outcome.message), outcome.message
    else:
        assert orjson.dumps(outcome)


def leads_somewhere(param: str, body: Json) -> bool:
    """Whether `param` is a place in the body, or a key missing from one."""
    steps = [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", param)]
    value: Any = body
    for step in steps[:-1]:
        if isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        elif isinstance(value, dict):
            value = value.get(str(step))
        else:
            return not isinstance(value, list) or isinstance(step, str)  # missing or no holder at all
    return bool(steps)


def seen(outcome: Json | ProxyError) -> Any:
    return outcome.body() if isinstance(outcome, ProxyError) else outcome


@pytest.mark.parametrize(("client", "backend"), PAIRS)
@pytest.mark.parametrize("strategy", [every_kind, mutated], ids=["known", "odd"])
@settings(max_examples=EXAMPLES // 2)
@given(name=st.sampled_from(NAMES), data=st.data())
def test_a_body_is_sent_on_or_refused(
    client: Shape, backend: Shape, strategy: Any, name: str, data: st.DataObject
) -> None:
    body, profile = data.draw(strategy(client)), row(name, backend)
    before = orjson.dumps(body)
    for way in (translated, asked):
        outcome = way(client, backend, body, profile)
        judged(outcome, body)
        assert orjson.dumps(body) == before
        again = way(client, backend, orjson.loads(before), profile)
        assert orjson.dumps(seen(again)) == orjson.dumps(seen(outcome))


TABLE = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.shape}: {case.name}")


def test_every_exception_is_a_row() -> None:
    assert set(PASSING) <= {(case.shape, case.name) for case in CASES}
    assert len({(case.shape, case.name) for case in CASES}) == len(CASES)


@TABLE
def test_no_lane_lets_it_through_or_tells_it_in_other_words(case: Impossible) -> None:
    """Whatever the profile; what passes is said in the table."""
    told = seen(translated(case.shape, case.shape, impossible.body(case), row("openai", case.shape)))
    for name in NAMES:
        outcome = asked(case.shape, case.shape, impossible.body(case), row(name, case.shape))
        if not impossible.passes(case):
            assert seen(outcome) == told, name
        elif name == "openai":
            assert not isinstance(outcome, ProxyError), outcome


@pytest.mark.parametrize("shape", CLIENTS)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_what_is_known_is_never_refused_unread(shape: Shape, data: st.DataObject) -> None:
    """Alone, each kind of item, tool and parameter is right for some backend."""
    body = data.draw(single(shape))
    CLIENTS[shape].check(body)


@pytest.mark.parametrize("backend", BACKENDS)
@TABLE
def test_what_nobody_can_answer_is_a_400(case: Impossible, backend: Shape) -> None:
    outcome = translated(case.shape, backend, impossible.body(case), row("openai", backend))
    assert isinstance(outcome, ProxyError)
    assert (outcome.http_status, outcome.param) == (400, case.param)
    assert _ADVICE.search(outcome.message), outcome.message
