"""Limits of keys, counted in memory and in Redis, over HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.conftest import Serve, Served, provider
from tests.app.keyed import entry, signed, written
from tests.app.redis_server import RedisServer
from tests.backends.loopback import Reply, Request
from tests.backends.replies import chat_completion, chat_stream, json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend

ASK = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
TOKENS = 18
"""What a reply of the scripted backend takes."""


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisServer]:
    with RedisServer("a-redis-password-1") as running:
        yield running


@pytest.fixture(params=["memory", "redis"])
def storage(request: pytest.FixtureRequest, redis: RedisServer) -> str:
    return redis.url if request.param == "redis" else "memory"


class Limited:
    """A gateway whose keys are those of a test, each under a name that no other test has."""

    count = 0

    def __init__(self, serve: Serve, backend: ScriptedBackend, folder: Path, storage: str = "memory") -> None:
        self._serve, self._backend, self._path = serve, backend, folder / "keys.toml"
        self._limits: dict[str, Any] = {"storage": storage}

    def __call__(self, limits: dict[str, Any], **more: Any) -> tuple[Served, dict[str, str]]:
        Limited.count += 1
        name = f"key-{Limited.count}-{time.time_ns()}"
        server = {"keys_file": written(self._path, entry(name, limits=limits)), **more.pop("server", {})}
        gateway = self._serve(
            fresh=True, server=server, providers=[provider(self._backend)], limits={**self._limits, **more}
        )
        return gateway, signed(name)


@pytest.fixture
def limited(serve: Serve, scripted: ScriptedBackend, tmp_path: Path, storage: str) -> Limited:
    return Limited(serve, scripted, tmp_path, storage)


@pytest.fixture
def in_memory(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> Limited:
    return Limited(serve, scripted, tmp_path)


def ours(answer: httpx.Response) -> dict[str, str]:
    return {name: text for name, text in answer.headers.items() if name.startswith("x-ratelimit-")}


def until_tokens_are_gone(client: httpx.Client, **more: Any) -> httpx.Response:
    """Tokens are counted behind the answer's back, at once but not before it."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        answer = client.post("/v1/chat/completions", json={**ASK, **more})
        if answer.status_code == 429:
            return answer
        time.sleep(0.02)
    raise AssertionError("never refused")


def test_requests(limited: Limited) -> None:
    gateway, headers = limited({"requests_per_minute": 2})
    with gateway.client(headers=headers) as client:
        first, second, third = (client.post("/v1/chat/completions", json=ASK) for _ in range(3))
        models = client.get("/v1/models")
    assert [each.status_code for each in (first, second, third)] == [200, 200, 429]
    assert [each.headers["x-ratelimit-remaining-requests"] for each in (first, second, third)] == [
        "1",
        "0",
        "0",
    ]
    assert first.headers["x-ratelimit-limit-requests"] == "2"
    assert first.headers["x-ratelimit-reset-requests"] in ("1m0s", "60s", "59s")
    assert "x-ratelimit-limit-tokens" not in first.headers
    error = third.json()["error"]
    assert (error["code"], error["type"]) == ("rate_limit_exceeded", "rate_limit_error")
    assert "2 requests a minute" in error["message"]
    assert "Please try again in" in error["message"]
    assert 50 <= int(third.headers["retry-after"]) <= 60
    assert models.status_code == 200, "only requests for a model are counted"


@pytest.mark.parametrize("limit", ["tokens_per_minute", "tokens_per_day"])
@pytest.mark.parametrize("stream", [False, True])
def test_tokens(limited: Limited, scripted: ScriptedBackend, limit: str, stream: bool) -> None:
    gateway, headers = limited({limit: TOKENS + 1})
    with gateway.client(headers=headers) as client:
        first = client.post("/v1/chat/completions", json={**ASK, "stream": stream})
        assert first.headers["x-ratelimit-remaining-tokens"] == str(TOKENS + 1)
        assert first.headers["x-ratelimit-reset-tokens"] == "0ms"
        refused = until_tokens_are_gone(client, stream=stream)
    assert refused.headers["x-ratelimit-limit-tokens"] == str(TOKENS + 1)
    assert refused.headers["x-ratelimit-remaining-tokens"] == "0"
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    longest = 60 if limit == "tokens_per_minute" else 86400
    assert longest - 20 <= int(refused.headers["retry-after"]) <= longest
    assert len(scripted.requests) >= 2, "what goes beyond the limit is counted too"


def test_places_are_taken_and_given_back(in_memory: Limited, scripted: ScriptedBackend) -> None:
    gateway, headers = in_memory({"concurrency": 1})
    asked, go_on = threading.Event(), threading.Event()

    def wait(_: Request) -> Reply:
        asked.set()
        go_on.wait(30)
        return json_reply(chat_completion("late"))

    scripted.play(wait)
    with gateway.client(headers=headers) as client:
        answers: list[httpx.Response] = []
        slow = threading.Thread(target=lambda: answers.append(client.post("/v1/chat/completions", json=ASK)))
        slow.start()
        assert asked.wait(30)
        refused = client.post("/v1/chat/completions", json=ASK)
        go_on.set()
        slow.join()
        assert answers[0].status_code == 200
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert refused.json()["error"]["code"] == "rate_limit_exceeded"
        assert client.post("/v1/chat/completions", json=ASK).status_code == 200


@pytest.mark.parametrize("how", ["refused", "broken", "left", "no-such-model", "no-json"])
def test_a_place_is_given_back_however_it_ends(
    in_memory: Limited, scripted: ScriptedBackend, how: str
) -> None:
    gateway, headers = in_memory({"concurrency": 1, "requests_per_minute": 100}, server={"retry_budget_s": 0})
    frames = chat_stream("a long answer " * 20)
    if how == "refused":
        scripted.play(json_reply({"error": {"message": "no"}}, 400))
    elif how == "broken":
        scripted.play(json_reply({"error": {"message": "broken"}}, 500))
    elif how == "left":
        scripted.play(
            Reply(200, {"content-type": "text/event-stream"}, [*list(sse_reply(frames).pieces)[:3], 30.0])
        )
    body = {**ASK, "model": "p/m" if how != "no-such-model" else "nothing"}
    with gateway.client(headers=headers) as client:
        if how == "left":
            with client.stream("POST", "/v1/chat/completions", json={**body, "stream": True}) as answer:
                next(answer.iter_raw())
        elif how == "no-json":
            assert client.post("/v1/chat/completions", content=b"{").status_code == 400
        else:
            assert client.post("/v1/chat/completions", json=body).status_code >= 400
        scripted.clear()
        deadline = time.monotonic() + 5
        while client.post("/v1/chat/completions", json=ASK).status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert gateway.gateway.limiter().running == {}


def test_a_client_that_leaves_is_counted_by_what_is_known(
    in_memory: Limited, scripted: ScriptedBackend
) -> None:
    """The backend tells its count at the end; without an estimate leaving early would cost nothing."""
    gateway, headers = in_memory({"tokens_per_minute": 500})
    chunks = list(sse_reply(chat_stream("a long answer " * 20)).pieces)[:3]
    scripted.play(Reply(200, {"content-type": "text/event-stream"}, [*chunks, 30.0]))
    long = {**ASK, "messages": [{"role": "user", "content": "word " * 1000}], "stream": True}
    with gateway.client(headers=headers) as client:
        with client.stream("POST", "/v1/chat/completions", json=long) as answer:
            next(answer.iter_raw())
        scripted.clear()
        assert until_tokens_are_gone(client).headers["x-ratelimit-remaining-tokens"] == "0"


def test_what_a_backend_fails_at_costs_no_tokens(in_memory: Limited, scripted: ScriptedBackend) -> None:
    gateway, headers = in_memory({"tokens_per_minute": 500}, server={"retry_budget_s": 0})
    long = {**ASK, "messages": [{"role": "user", "content": "word " * 1000}]}
    scripted.play(json_reply({"error": {"message": "broken"}}, 500), json_reply(chat_completion("ok")))
    with gateway.client(headers=headers) as client:
        assert client.post("/v1/chat/completions", json=long).status_code == 500
        time.sleep(0.1)
        told = ours(client.post("/v1/chat/completions", json=ASK))
    assert told["x-ratelimit-remaining-tokens"] == "500"


@pytest.mark.parametrize("shape", ["chat/completions", "responses"])
def test_the_backends_own_headers_give_way_to_the_keys(
    in_memory: Limited, scripted: ScriptedBackend, shape: str
) -> None:
    theirs = {"x-ratelimit-remaining-requests": "4711", "x-ratelimit-limit-input-tokens": "4711"}
    scripted.play(json_reply(chat_completion("ok"), headers=theirs))
    gateway, headers = in_memory({"requests_per_minute": 7})
    body = ASK if shape != "responses" else {"model": "p/m", "input": "hi", "store": False}
    with gateway.client(headers=headers) as client:
        told = ours(client.post(f"/v1/{shape}", json=body))
    assert set(told) == {f"x-ratelimit-{what}-requests" for what in ("limit", "remaining", "reset")}
    assert told["x-ratelimit-remaining-requests"] == "6"


def test_they_are_relayed_to_a_key_without_limits(in_memory: Limited, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply(chat_completion("ok"), headers={"x-ratelimit-remaining-requests": "4711"}))
    gateway, headers = in_memory({})
    with gateway.client(headers=headers) as client:
        told = ours(client.post("/v1/chat/completions", json=ASK))
    assert told == {"x-ratelimit-remaining-requests": "4711"}
    assert gateway.gateway._limiter is None, "nothing is counted, nothing is imported"


def test_two_gateways_share_what_redis_counts(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, redis: RedisServer
) -> None:
    name = f"shared-{time.time_ns()}"
    keys = written(tmp_path / "keys.toml", entry(name, limits={"requests_per_minute": 1}))
    config = {"providers": [provider(scripted)], "limits": {"storage": redis.url}}
    codes = []
    for workers in (1, 2):
        gateway = serve(fresh=True, server={"keys_file": keys, "workers": workers}, **config)
        with gateway.client(headers=signed(name)) as client:
            codes.append(client.post("/v1/chat/completions", json=ASK).status_code)
    assert codes == [200, 429]


@pytest.mark.parametrize(("on_failure", "status"), [("open", 200), ("closed", 503)])
def test_a_redis_that_is_down(
    serve: Serve,
    scripted: ScriptedBackend,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    on_failure: str,
    status: int,
) -> None:
    monkeypatch.setattr("app.access.limits.AGAIN_S", 0.05)
    with RedisServer("a-redis-password-2") as server:
        limited = Limited(serve, scripted, tmp_path, server.url)
        gateway, headers = limited(
            {"requests_per_minute": 50, "tokens_per_minute": 9000}, on_failure=on_failure
        )
        with gateway.client(headers=headers) as client:
            assert client.post("/v1/chat/completions", json=ASK).status_code == 200
            server.stop()
            down = [client.post("/v1/chat/completions", json=ASK) for _ in range(4)]
            server.start()
            deadline = time.monotonic() + 5
            while not ours(client.post("/v1/chat/completions", json=ASK)):
                assert time.monotonic() < deadline
                time.sleep(0.05)
    assert {each.status_code for each in down} == {status}
    assert not any(map(ours, down))
    if status == 503:
        assert down[0].json()["error"]["code"] == "limits_unavailable"
        assert "retry-after" in down[0].headers
    assert [line["reason"] for line in gateway.log("limits:down")] == ["ConnectionError"]
    assert len(gateway.log("limits:up")) == 1
    assert b"a-redis-password" not in gateway.log_file.getvalue()


def test_the_address_of_redis_is_nowhere(in_memory: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.extras.find_spec", lambda _: None)
    gateway, headers = in_memory(
        {"requests_per_minute": 5}, storage="redis://:a-redis-password-3@127.0.0.1:1/0"
    )
    with gateway.client(headers=headers) as client:
        assert client.post("/v1/chat/completions", json=ASK).status_code == 200
    assert ".[redis]" in gateway.log("limits:unavailable")[0]["reason"]
    assert "a-redis-password" not in gateway.log_file.getvalue().decode() + repr(gateway.gateway._parts)
