"""Endpoints that are silent, tired, full or limited, over a real gateway."""

from __future__ import annotations

import threading
import time
from typing import Any

import httpx
import orjson
import pytest

from tests.app.conftest import Serve, Served
from tests.app.listed import CHAT, HI, RESPONSES, ListedBackend, by_account, chain, post, target
from tests.app.test_streams import types, wait_for_log
from tests.backends.loopback import Reply, Request
from tests.backends.replies import chat_chunk, chat_completion, json_reply, sse_reply

SSE = {"content-type": "text/event-stream"}
SILENT = Reply(200, SSE, [], "hang")
BUSY = {"error": {"message": "busy"}}


# --- silence ---------------------------------------------------------------------------


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_a_stream_that_does_not_begin_is_left_for_the_next(
    serve: Serve, backend: ListedBackend, path: str
) -> None:
    backend.play(by_account(a=SILENT))
    served = chain(serve, backend, "a", "b", options={"a": {"first_token_timeout_s": 0.2}})
    began = time.monotonic()
    reply = post(served, path, model="a/m", stream=True)
    assert (target(reply), backend.asked()) == ("b/m", ["a", "b"])
    assert time.monotonic() - began < 1.5
    assert backend.requests[0].gone.wait(1), "the connection to the silent one is closed"


def test_a_silent_endpoint_is_not_asked_twice(serve: Serve, backend: ListedBackend) -> None:
    backend.play(by_account(a=SILENT))
    served = serve(fresh=True, providers=[backend.account("a", "m", first_token_timeout_s=0.2)])
    reply = post(served, model="a/m", stream=True)
    assert (reply.status_code, reply.json()["error"]["code"]) == (504, "upstream_timeout")
    assert backend.asked() == ["a"]


def test_a_slow_end_is_no_slow_beginning(serve: Serve, backend: ListedBackend) -> None:
    first = chat_chunk({"role": "assistant", "content": "a"})
    backend.play(by_account(a=sse_reply([first, chat_chunk({}, "stop"), "[DONE]"], pause=0.9)))
    served = serve(fresh=True, providers=[backend.account("a", "m", first_token_timeout_s=0.7)])
    assert '"finish_reason":"stop"' in post(served, model="a/m", stream=True).text


def test_no_keep_alive_of_a_failed_try_opens_the_answer_of_the_next(
    serve: Serve, backend: ListedBackend
) -> None:
    """While the next one waits for its place, it would begin in the middle of the other's."""
    slow = Reply(200, {"content-type": "application/json"}, [1.0, orjson.dumps(chat_completion("a"))])
    plain = {"stream": True}
    backend.play(
        lambda request: by_account(a=SILENT, b=None if plain.items() <= request.json.items() else slow)(
            request
        )
    )
    options = {"a": {"first_token_timeout_s": 0.4}, "b": {"max_concurrency": 1}}
    served = chain(serve, backend, "a", "b", options=options, server={"keepalive_s": 0.6})
    occupant = threading.Thread(target=post, args=(served,), kwargs={"model": "b/m"})
    occupant.start()
    time.sleep(0.1)
    reply = post(served, RESPONSES, model="a/m", stream=True)
    occupant.join()
    assert (target(reply), types(reply.text)[-1]) == ("b/m", "response.completed")
    assert types(reply.text).count("response.created") == 1


# --- rests -----------------------------------------------------------------------------


def test_what_fails_again_and_again_is_asked_last_for_a_while(serve: Serve, backend: ListedBackend) -> None:
    backend.play(by_account(a=json_reply(BUSY, 503)))
    served = chain(serve, backend, "a", "b", server={"retry_budget_s": 0})
    for _ in range(4):
        assert target(post(served, model="a/m")) == "b/m"
    assert backend.asked() == [*"abababb"]
    assert [each["resting"] for each in wait_for_log(served, 4)[-1]["candidates"]] == [False, True]
    record = served.gateway.health._records["a/m"]
    backend.play()
    record.rest_until = time.monotonic() - 1
    assert target(post(served, model="a/m")) == "a/m", "after its rest one call tries"
    assert target(post(served, model="a/m")) == "a/m"


def test_a_limit_is_respected_by_the_next_request(serve: Serve, backend: ListedBackend) -> None:
    backend.play(by_account(a=json_reply(BUSY, 429, {"retry-after": "30"})))
    served = chain(serve, backend, "a", "b")
    for _ in range(2):
        assert target(post(served, model="a/m")) == "b/m"
    assert backend.asked() == ["a", "b", "b"]


def test_a_probe_whose_client_left_does_not_keep_the_endpoint_resting(
    serve: Serve, backend: ListedBackend
) -> None:
    backend.play(by_account(a=Reply(200, {}, [], "hang")))
    served = chain(serve, backend, "a", "b")
    health = served.gateway.health
    for _ in range(3):
        health.failed("a/m")
    health._records["a/m"].rest_until = time.monotonic() - 1
    with pytest.raises(httpx.ReadTimeout), served.client() as client:
        client.post(CHAT, json={"model": "a/m", "messages": HI}, timeout=0.6)
    served.again()
    assert not health.resting("a/m")


def test_a_refused_request_shows_that_the_endpoint_lives(serve: Serve, backend: ListedBackend) -> None:
    backend.play(by_account(a=json_reply({"error": {"message": "odd", "code": "odd"}}, 400)))
    served = chain(serve, backend, "a", "b")
    health = served.gateway.health
    health.failed("a/m")
    health.failed("a/m")
    assert post(served, model="a/m").status_code == 400
    health.failed("a/m")
    assert not health.resting("a/m")


# --- places ----------------------------------------------------------------------------


def occupied(served: Served, backend: ListedBackend, count: int) -> list[threading.Thread]:
    """Requests for `a/m` that take their time."""
    slow = Reply(200, {"content-type": "application/json"}, [0.8, orjson.dumps(chat_completion("a"))])
    backend.play(by_account(a=slow))
    threads = [threading.Thread(target=post, args=(served,), kwargs={"model": "a/m"}) for _ in range(count)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 5
    while len(served.gateway.serving) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    return threads


def test_a_full_queue_is_503_with_a_time_to_come_back(serve: Serve, backend: ListedBackend) -> None:
    account = backend.account("a", "m", max_concurrency=1, max_queue=1)
    served = serve(fresh=True, providers=[account])
    threads = occupied(served, backend, 2)
    reply = post(served, model="a/m")
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")
    assert reply.json()["error"]["code"] == "server_is_overloaded"
    for thread in threads:
        thread.join()
    assert len(backend.requests) >= 2


def test_where_one_is_full_another_is_asked(serve: Serve, backend: ListedBackend) -> None:
    limited = {"a": {"max_concurrency": 1, "max_queue": 0}}
    served = chain(serve, backend, "a", "b", options=limited)
    threads = occupied(served, backend, 1)
    assert target(post(served, model="a/m")) == "b/m"
    for thread in threads:
        thread.join()
    assert not served.gateway.health._records["a/m"].in_a_row, "a full queue speaks against nobody"


def test_nobody_queues_where_another_of_the_group_is_free(serve: Serve, backend: ListedBackend) -> None:
    accounts = [backend.account("a", "m", max_concurrency=1), backend.account("b", "m")]
    groups = {"all": [{"model": "a/m", "weight": 1e9}, {"model": "b/m"}]}
    served = serve(fresh=True, providers=accounts, groups=groups)
    threads = occupied(served, backend, 1)
    began = time.monotonic()
    assert target(post(served, model="all")) == "b/m"
    assert time.monotonic() - began < 0.5
    for thread in threads:
        thread.join()


# --- per-minute windows ----------------------------------------------------------------

LIMITED = {
    "error_code": "REQUEST_LIMIT_EXCEEDED",
    "message": "Exceeded workspace output tokens per minute rate limit.",
}


def workspace(backend: ListedBackend) -> dict[str, Any]:
    models = ["databricks-claude-sonnet-4-6"]
    return {
        "name": "dbx",
        "kind": "databricks",
        "base_url": backend.origin,
        "api_key": "dapi-1",
        "models": models,
    }


def test_a_per_minute_limit_goes_to_another_at_once(serve: Serve, backend: ListedBackend) -> None:
    backend.play(json_reply(LIMITED, 429), model="databricks-claude-sonnet-4-6")
    served = serve(
        fresh=True,
        providers=[workspace(backend), backend.account("b", "m")],
        fallbacks={"databricks-claude-sonnet-4-6": ["b/m"]},
    )
    began = time.monotonic()
    for _ in range(3):
        assert target(post(served, model="databricks-claude-sonnet-4-6")) == "b/m"
    assert time.monotonic() - began < 2
    assert len(backend.bodies("databricks-claude-sonnet-4-6")) == 1, "it is left alone for its minute"


def test_a_per_minute_limit_with_nobody_else_is_told_at_once(serve: Serve, backend: ListedBackend) -> None:
    backend.play(json_reply(LIMITED, 429))
    served = serve(fresh=True, providers=[workspace(backend)])
    began = time.monotonic()
    reply = post(served, model="databricks-claude-sonnet-4-6")
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "60")
    assert time.monotonic() - began < 1
    assert len(backend.requests) == 1


def test_a_short_retry_after_is_waited_for(serve: Serve, backend: ListedBackend) -> None:
    said = [json_reply(BUSY, 429, {"retry-after": "1"})]

    def answer(request: Request) -> Reply:
        return said.pop() if said else json_reply(chat_completion("a"))

    backend.play(answer)
    served = serve(fresh=True, providers=[backend.account("a", "m")])
    began = time.monotonic()
    assert target(post(served, model="a/m")) == "a/m"
    assert 1.0 <= time.monotonic() - began < 1.8
