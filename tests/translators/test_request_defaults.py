"""`request.defaults`: sent where the client says nothing, never reported, never in its way."""

from __future__ import annotations

from typing import Any

import pytest

from app.ids import new_id
from tests.translators.chat_edits import profile
from translators.chat import ChatBackend, ChatClient
from translators.errors import ProxyError
from translators.ir import Json, Shape
from translators.responses import ResponsesBackend, ResponsesClient

CLIENTS: dict[Shape, Any] = {"chat": ChatClient(), "responses": ResponsesClient()}
BACKENDS: dict[Shape, Any] = {"chat": ChatBackend(), "responses": ResponsesBackend()}
WIRES: tuple[Shape, ...] = ("chat", "responses")
ASKED: dict[Shape, Json] = {
    "chat": {"messages": [{"role": "user", "content": "x"}]},
    "responses": {"input": "x"},
}


def request(client: Shape, **more: Any) -> Json:
    return {"model": "m", **ASKED[client], **more}


def sent(client: Shape, wire: Shape, body: Json, rules: Json, **beside: Json) -> tuple[Json, list[str]]:
    """What is sent, from the pass lane where the shapes are one, and the places that were lost."""
    resolved, backend = profile(request=rules, **beside), BACKENDS[wire]
    if client == wire:
        encoded = backend.edit_request(body, resolved)
    else:
        encoded = backend.encode_request(CLIENTS[client].decode_request(body, new_id), resolved)
    again = backend.edit_request(encoded.body, resolved)
    assert (again.body, again.losses) == (encoded.body, [])
    return encoded.body, [loss.pointer for loss in encoded.losses]


LANES = [(client, wire) for client in WIRES for wire in WIRES]


@pytest.mark.parametrize(("client", "wire"), LANES)
@pytest.mark.parametrize(
    ("given", "told"), [({}, 0.5), ({"temperature": None}, 0.5), ({"temperature": 0}, 0)]
)
def test_the_body_wins_over_a_default(client: Shape, wire: Shape, given: Json, told: float) -> None:
    body, lost = sent(client, wire, request(client, **given), {"defaults": {"temperature": 0.5}})
    assert (body["temperature"], lost) == (told, [])


@pytest.mark.parametrize(("client", "wire"), LANES)
@pytest.mark.parametrize("given", [{}, {"prompt_cache_key": ""}])
@pytest.mark.parametrize("exact", [False, True])
def test_an_empty_cache_key_is_not_sent(client: Shape, wire: Shape, given: Json, exact: bool) -> None:
    body, lost = sent(client, wire, request(client, **given), {}, answer={"exact": exact})
    assert ("prompt_cache_key" in body, lost) == (False, [])
    body, lost = sent(client, wire, request(client, **given), {"defaults": {"prompt_cache_key": "k"}})
    assert (body["prompt_cache_key"], lost) == ("k", [])


@pytest.mark.parametrize(("client", "wire"), LANES)
def test_nothing_is_sent_that_nobody_named(client: Shape, wire: Shape) -> None:
    body, _ = sent(client, wire, request(client), {})
    assert not {"max_tokens", "max_completion_tokens", "max_output_tokens", "truncation"} & set(body)


@pytest.mark.parametrize("wire", WIRES)
def test_a_default_that_is_not_taken_is_left_out_without_a_word(wire: Shape) -> None:
    rules = {"defaults": {"seed": 1}, "drop": ["seed"]}
    assert sent(wire, wire, request(wire), rules) == (request(wire), [])
    assert sent(wire, wire, request(wire, seed=2), rules) == (request(wire), ["/seed"])


@pytest.mark.parametrize("wire", WIRES)
def test_a_default_is_moved_into_range_without_a_word(wire: Shape) -> None:
    rules = {"defaults": {"temperature": 2}, "clamp": {"temperature": [0, 1]}}
    body, lost = sent(wire, wire, request(wire), rules)
    assert (body["temperature"], lost) == (1, [])


@pytest.mark.parametrize("wire", WIRES)
def test_a_default_is_known_to_a_closed_schema(wire: Shape) -> None:
    body, lost = sent(wire, wire, request(wire, other=1), {"defaults": {"odd": 1}, "extra_keys": []})
    assert (body["odd"], lost) == (1, ["/other"])


def test_one_limit_by_two_names_is_one_limit() -> None:
    rules = {"defaults": {"max_tokens": 9}}
    body, _ = sent("chat", "chat", request("chat", max_completion_tokens=5), rules)
    assert (body.get("max_tokens"), body["max_completion_tokens"]) == (None, 5)


def test_an_effort_by_its_chat_name_wins_over_a_default_object() -> None:
    rules = {"defaults": {"reasoning": {"effort": "high"}}}
    body, _ = sent("responses", "responses", request("responses", reasoning_effort="low"), rules)
    assert body["reasoning"]["effort"] == "low"


@pytest.mark.parametrize("client", WIRES)
@pytest.mark.parametrize("mode", ["x", 1, ["implicit"]])
def test_an_unknown_mode_of_the_cache_is_refused_in_every_lane(client: Shape, mode: Any) -> None:
    body = request(client, prompt_cache_options={"mode": mode, "ttl": "7d"})
    for read in (CLIENTS[client].check, lambda body: CLIENTS[client].decode_request(body, new_id)):
        with pytest.raises(ProxyError) as refused:
            read(body)
        assert (refused.value.kind, refused.value.param) == ("bad_request", "prompt_cache_options.mode")


@pytest.mark.parametrize(("client", "wire"), LANES)
@pytest.mark.parametrize("options", [{"mode": "implicit", "ttl": "7d"}, {"mode": "explicit"}, {"ttl": "30m"}])
def test_known_modes_go_on_with_any_duration(client: Shape, wire: Shape, options: Json) -> None:
    CLIENTS[client].check(request(client, prompt_cache_options=options))
    body, _ = sent(client, wire, request(client, prompt_cache_options=options), {})
    assert body["prompt_cache_options"] == options
