"""Whatever a client asks, an Ollama takes it or the client gets a 400 that says where; no third thing."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from providers.profiles import resolve
from tests.backends.ollama_strict import chat_fault
from tests.laws import impossible
from tests.laws.everything import every_kind, mutated
from tests.laws.impossible import CASES, Impossible
from tests.laws.odd import damage
from tests.laws.pairs import CLIENTS, new_ids
from tests.laws.profiles import EXAMPLES
from tests.laws.requests import bodies
from tests.laws.test_law_bad_input import judged
from translators.capsule import Seals
from translators.errors import ProxyError
from translators.images import with_images
from translators.ir import Json, Shape
from translators.ollama import OllamaBackend
from translators.translate import translate_request

PROFILES = [
    resolve(kind="ollama", host="", model="m", surface="ollama", overrides=overrides)
    for overrides in (
        {},
        {"reasoning": {"ask": "none"}, "messages": {"remote_images": "reject"}},
        {"reasoning": {"efforts": ["low", "medium", "high"], "scope": "all"}, "messages": {"system": "many"}},
    )
]
ABLE = ("completion", "tools", "thinking", "vision")
FETCHED = {"https://example.com/a.png": "data:image/png;base64,AAAA"}


def translated(client: Shape, body: Json, profile: Any) -> Json | ProxyError:
    try:
        call = CLIENTS[client].decode_request(body, new_ids())
        seals = Seals(lambda: b"k" * 32, "target")
        encoded = translate_request(call, CLIENTS[client], OllamaBackend(), profile, seals).encoded
    except ProxyError as error:
        return error
    assert all(loss.pointer.startswith("/") for loss in encoded.losses)
    return with_images(encoded.body, FETCHED)


def taken(outcome: Json | ProxyError) -> None:
    """What is sent is what the typed structs of an Ollama take, and nothing that they lose."""
    if not isinstance(outcome, ProxyError):
        told = {**outcome, "options": {**outcome["options"], "num_ctx": 10**6}}
        assert chat_fault(told, "m", ABLE, "qwen3") is None, outcome


@pytest.mark.parametrize("client", CLIENTS)
@settings(max_examples=EXAMPLES)
@given(profile=st.sampled_from(PROFILES), data=st.data())
def test_what_clients_send_is_taken(client: Shape, profile: Any, data: st.DataObject) -> None:
    body = data.draw(bodies(client, custom=data.draw(st.booleans())))
    before = orjson.dumps(body)
    taken(translated(client, body, profile))
    assert orjson.dumps(body) == before


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("strategy", [every_kind, mutated], ids=["known", "odd"])
@settings(max_examples=EXAMPLES)
@given(profile=st.sampled_from(PROFILES), data=st.data())
def test_a_body_is_sent_on_or_refused(
    client: Shape, strategy: Any, profile: Any, data: st.DataObject
) -> None:
    body = data.draw(strategy(client))
    before = orjson.dumps(body)
    outcome = translated(client, body, profile)
    judged(outcome, body)
    assert orjson.dumps(body) == before


@pytest.mark.parametrize("client", CLIENTS)
@settings(max_examples=EXAMPLES)
@given(profile=st.sampled_from(PROFILES), data=st.data())
def test_a_damaged_request_is_sent_on_or_refused(client: Shape, profile: Any, data: st.DataObject) -> None:
    body = copy.deepcopy(data.draw(bodies(client)))
    for _ in range(data.draw(st.integers(1, 3))):
        damage(data.draw, body)  # type: ignore[arg-type]
    body["model"] = "m"
    outcome = translated(client, body, profile)
    if isinstance(outcome, ProxyError):
        assert outcome.http_status == 400
        assert outcome.param
    else:
        assert orjson.dumps(outcome)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.shape}: {case.name}")
def test_what_nobody_can_answer_is_a_400(case: Impossible) -> None:
    outcome = translated(case.shape, impossible.body(case), PROFILES[0])
    assert isinstance(outcome, ProxyError)
    assert (outcome.http_status, outcome.param) == (400, case.param)
