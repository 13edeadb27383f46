"""Limits of keys for what asks no model: stored responses, conversations, warm-ups over a WebSocket."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.access.limits import LEAST_LOOKUPS, LOOKUPS
from tests.app.conftest import Serve, Served, provider
from tests.app.keyed import entry, signed, written
from tests.app.sockets import Talk
from tests.backends.scripted import ScriptedBackend

ITEM = {"type": "message", "role": "user", "content": "hi"}
MADE = "/v1/conversations"


class Keyed:
    """A gateway with a store, a key with these limits, and another of the same owner without any."""

    def __init__(self, serve: Serve, backend: ScriptedBackend, folder: Path, limits: dict[str, Any]) -> None:
        self.name = name = f"key-{time.time_ns()}"
        entries = [entry(name, limits=limits, owner="us"), entry("free", owner="us")]
        keys = {"keys_file": written(folder / "keys.toml", *entries)}
        self.served: Served = serve(
            fresh=True, server=keys, providers=[provider(backend)], store={"kind": "memory"}
        )
        self.signed, self.free = signed(name), signed("free")

    def stored(self) -> tuple[str, str]:
        """The paths of a response and a conversation, made with the other key."""
        with self.served.client(headers=self.free) as client:
            response = client.post("/v1/responses", json={"model": "p/m", "input": "hi"}).json()["id"]
            conversation = client.post(MADE, json={"items": [ITEM]}).json()["id"]
        return f"/v1/responses/{response}", f"{MADE}/{conversation}"


@pytest.fixture
def one(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> Keyed:
    return Keyed(serve, scripted, tmp_path, {"requests_per_minute": 1})


@pytest.fixture
def client(one: Keyed) -> Iterator[httpx.Client]:
    with one.served.client(headers=one.signed) as client:
        yield client


WRITES: dict[str, tuple[str, dict[str, Any]]] = {
    "a new one": ("", {}),
    "metadata": ("/{id}", {"metadata": {"a": "b"}}),
    "items": ("/{id}/items", {"items": [ITEM]}),
}


@pytest.mark.parametrize("what", WRITES)
@pytest.mark.parametrize("prefix", ["/v1", ""])
def test_what_is_written_counts_as_a_request(
    one: Keyed, client: httpx.Client, what: str, prefix: str
) -> None:
    _, conversation = one.stored()
    path, body = WRITES[what]
    path = prefix + "/conversations" + path.replace("{id}", conversation.rpartition("/")[2])
    first, second = client.post(path, json=body), client.post(path, json=body)
    answer = client.post("/v1/chat/completions", json={"model": "p/m", "messages": [ITEM]})
    assert (first.status_code, second.status_code, answer.status_code) == (200, 429, 429)
    assert first.headers["x-ratelimit-remaining-requests"] == "0"
    assert second.json()["error"]["code"] == "rate_limit_exceeded"
    assert "1 requests a minute" in second.json()["error"]["message"]
    assert 50 <= int(second.headers["retry-after"]) <= 60
    assert client.get(conversation).status_code == 200, "what is there can be read"


LOOKED_UP = {
    "a response": ("GET", "{response}"),
    "its items": ("GET", "{response}/input_items"),
    "its events": ("GET", "{response}?stream=true"),
    "an end": ("POST", "{response}/cancel"),
    "a deletion": ("DELETE", "{response}"),
    "a conversation": ("GET", "{conversation}"),
    "its list": ("GET", "{conversation}/items"),
    "one item": ("GET", "{conversation}/items/x"),
    "an item's deletion": ("DELETE", "{conversation}/items/x"),
    "all of it": ("DELETE", "{conversation}"),
    "a head": ("HEAD", "{conversation}"),
}


def test_lookups_are_counted_by_themselves(
    one: Keyed, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them together, however they end; requests go on."""
    monkeypatch.setattr("app.access.limits.LEAST_LOOKUPS", len(LOOKED_UP))
    response, conversation = one.stored()
    paths = [
        (method, path.format(response=response, conversation=conversation))
        for method, path in LOOKED_UP.values()
    ]
    answers = [client.request(method, path) for method, path in paths]
    assert 429 not in [each.status_code for each in answers]
    left = [each.headers["x-ratelimit-remaining-lookups"] for each in answers]
    assert left == [str(count) for count in reversed(range(len(LOOKED_UP)))]
    refused = [client.request(method, path) for method, path in paths]
    assert {each.status_code for each in refused} == {429}
    assert "lookups a minute" in refused[0].json()["error"]["message"]
    assert int(refused[0].headers["retry-after"]) <= 60
    assert client.post(MADE, json={}).status_code == 200


def test_there_are_enough_to_wait_for_a_background_response(one: Keyed, client: httpx.Client) -> None:
    made = client.post("/v1/responses", json={"model": "p/m", "input": "hi", "background": True})
    path = f"/v1/responses/{made.json()['id']}"
    answers = [client.get(path) for _ in range(61)]
    assert {each.status_code for each in answers} == {200}
    assert answers[0].headers["x-ratelimit-limit-lookups"] == str(LEAST_LOOKUPS)


@pytest.mark.parametrize(
    ("limits", "most"), [({"requests_per_minute": 50}, str(50 * LOOKUPS)), ({"concurrency": 1}, None)]
)
def test_how_many(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, limits: dict[str, Any], most: str | None
) -> None:
    keyed = Keyed(serve, scripted, tmp_path, limits)
    response, _ = keyed.stored()
    with keyed.served.client(headers=keyed.signed) as client:
        assert client.get(response).headers.get("x-ratelimit-limit-lookups") == most


def test_a_key_without_limits_is_not_counted(one: Keyed) -> None:
    response, _ = one.stored()
    with one.served.client(headers=one.free) as client:
        answer = client.get(response)
    assert not [name for name in answer.headers if name.startswith("x-ratelimit-")]
    assert one.served.gateway._limiter is None


@pytest.mark.parametrize("store", [True, False])
def test_a_warm_up_counts_as_a_request(one: Keyed, store: bool) -> None:
    with Talk(one.served, additional_headers=one.signed) as talk:
        talk.answer(input="before", generate=False, store=store)
        error = talk.error(input="before", generate=False, store=store)
    assert (error["status"], error["error"]["code"]) == (429, "rate_limit_exceeded")
    assert int(error["headers"]["retry-after"]) <= 60
    assert error["headers"]["x-ratelimit-remaining-requests"] == "0"
    one.served.settled()
    assert [line["key"] for line in one.served.log() if "WEBSOCKET" in line["route"]] == [one.name] * 2
    assert one.served.gateway.limiter().running == {}
