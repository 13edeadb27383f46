"""The catalogue behind a real gateway: late, failing and hanging lists, unknown names, one id twice."""

from __future__ import annotations

import time

import pytest

from tests.app.conftest import Serve
from tests.app.listed import ListedBackend, by_account, loaded, post, target
from tests.backends.loopback import Reply
from tests.backends.replies import json_reply

DOWN = json_reply({"error": {"message": "down"}}, 500)
HANGING = Reply(200, {"content-type": "application/json"}, [], "hang")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/embeddings"])
def test_an_unknown_model_is_404_with_names_that_are_near(
    serve: Serve, backend: ListedBackend, path: str
) -> None:
    names = [f"claude-sonnet-4-{number}" for number in range(9)]
    served = serve(providers=[backend.account("a", *names)])
    reply = post(served, path, model="claude-sonet-4-99")
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert 1 <= sum(name in error["message"] for name in names) <= 5
    assert backend.requests == []


def test_of_two_providers_with_one_model_both_are_reachable(serve: Serve, backend: ListedBackend) -> None:
    served = serve(providers=[backend.account("b", "m"), backend.account("a", "m")])
    assert target(post(served, model="m")) == "b/m", "the first in the file"
    assert target(post(served, model="a/m")) == "a/m"
    assert target(post(served, model="b/m")) == "b/m"
    backend.play(by_account(b=DOWN))
    assert target(post(served, model="m")) == "a/m"


def test_with_every_list_down_what_is_configured_is_served(serve: Serve, backend: ListedBackend) -> None:
    backend.lists = {"a": DOWN, "b": DOWN}
    served = loaded(
        serve(
            fresh=True,
            providers=[backend.account("a"), backend.account("b"), backend.account("c", "m")],
            aliases={"sol": "a/gpt-sol"},
            groups={"all": [{"model": "a/x"}, {"model": "b/x"}]},
            fallbacks={"a/y": ["c/m"]},
        )
    )
    assert target(post(served, model="sol")) == "a/gpt-sol"
    assert target(post(served, model="all")) in ("a/x", "b/x")
    assert target(post(served, model="c/m")) == target(post(served, model="m")) == "c/m"
    assert target(post(served, model="a/never-listed")) == "a/never-listed"
    backend.play(by_account(a=DOWN))
    assert target(post(served, model="a/y")) == "c/m"
    with served.client() as client:
        reply = client.get("/v1/models")
    assert {"sol", "all", "c/m"} <= {each["id"] for each in reply.json()["data"]}
    assert reply.headers["x-dragoman-stale"] == "a,b"
    assert {line["provider"] for line in served.log("model_list_not_loaded")} == {"a", "b"}


def test_a_provider_that_hangs_on_its_list_delays_nobody(serve: Serve, backend: ListedBackend) -> None:
    backend.lists = {"a": HANGING}
    served = serve(fresh=True, providers=[backend.account("a"), backend.account("b", "claude-m")])
    began = time.monotonic()
    for name, answering in {"claude-m": "b/claude-m", "chat-balanced": "b/claude-m", "a/x": "a/x"}.items():
        assert target(post(served, model=name)) == answering
    with served.client() as client:
        assert "b/claude-m" in client.get("/v1/models").text
    reply = post(served, model="perhaps-in-that-list")
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
    assert time.monotonic() - began < 2


def test_a_list_that_fails_later_leaves_the_last_good_one(serve: Serve, backend: ListedBackend) -> None:
    backend.lists = {"a": [{"id": "one"}]}
    served = loaded(serve(fresh=True, providers=[backend.account("a")]))
    with served.client() as client:
        fresh = client.get("/v1/models")
        assert "x-dragoman-stale" not in fresh.headers
        backend.lists = {"a": DOWN}
        stale = client.get("/v1/models?refresh=1")
        assert (stale.status_code, stale.headers["x-dragoman-stale"]) == (200, "a")
        assert stale.json() == fresh.json()
        assert target(post(served, model="one")) == "a/one"
        backend.lists = {"a": [{"id": "two"}]}
        again = client.get("/v1/models?refresh=1")
        assert "x-dragoman-stale" not in again.headers
        assert [each["id"] for each in again.json()["data"]] == ["a/two", "two"]
    (warning,) = served.log("model_list_not_loaded")
    assert (warning["provider"], warning["level"]) == ("a", "warning")
    assert backend.listed == ["a", "a", "a"]


@pytest.mark.parametrize(
    "odd",
    [
        Reply(200, {"content-type": "application/json"}, [b"{"]),
        json_reply([1, None, {"id": 5}, {"id": ""}, {"id": "fine", "context_length": 1e300, "tags": 7}]),
        json_reply({"data": {"id": "x"}}),
        Reply(200, {}, [b"<html>"]),
        Reply(302, {"location": "/elsewhere"}, []),
    ],
    ids=["cut", "entries", "no list", "page", "elsewhere"],
)
def test_an_odd_list_breaks_nothing(serve: Serve, backend: ListedBackend, odd: Reply) -> None:
    backend.lists = {"a": odd}
    served = loaded(serve(fresh=True, providers=[backend.account("a"), backend.account("b", "m")]))
    assert target(post(served, model="m")) == "b/m"
    with served.client() as client:
        assert client.get("/v1/models?refresh=1").status_code == 200
    assert served.log("fault") == []


def test_a_miss_asks_for_the_lists_again_once(
    serve: Serve, backend: ListedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("providers.catalog.RETRY_S", 0.0)
    backend.lists = {"a": [{"id": "old-model"}]}
    served = loaded(serve(fresh=True, providers=[backend.account("a")]))
    backend.lists = {"a": [{"id": "zephyr-new"}]}
    assert post(served, model="zephyr-new").status_code == 404
    deadline = time.monotonic() + 5
    while post(served, model="zephyr-new").status_code == 404 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert target(post(served, model="zephyr-new")) == "a/zephyr-new"


def test_twenty_calls_at_once_ask_for_a_list_once(serve: Serve, backend: ListedBackend) -> None:
    backend.lists = {"a": Reply(200, {"content-type": "application/json"}, [0.3, b'{"data": []}'])}
    served = serve(fresh=True, providers=[backend.account("a")])
    for _ in range(20):
        assert post(served, model="nothing").status_code in (404, 503)
    loaded(served)
    assert backend.listed == ["a"]
