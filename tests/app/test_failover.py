"""Who is asked next, over a real gateway: chains, rests, places, silence, and what the client is told."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from tests.app.conftest import Serve
from tests.app.listed import CHAT, RESPONSES, ListedBackend, by_account, chain, loaded, post, target
from tests.app.test_streams import types, wait_for_log
from tests.backends.loopback import Reply
from tests.backends.replies import chat_chunk, json_reply, sse_reply

SSE = {"content-type": "text/event-stream"}
BUSY = {"error": {"message": "busy"}}
LONG = {
    "error": {
        "message": "This model's maximum context length is 1000 tokens.",
        "code": "context_length_exceeded",
    }
}


# --- the chain -------------------------------------------------------------------------


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "failing",
    [
        json_reply(BUSY, 503),
        json_reply(BUSY, 500),
        json_reply(BUSY, 429),
        json_reply(BUSY, 429, {"retry-after": "60"}),
        json_reply({"error": {"message": "Incorrect API key"}}, 401),
        json_reply({"error": {"message": "you may not query this endpoint"}}, 403),
        json_reply({"error": {"message": "no such endpoint", "code": "model_not_found"}}, 404),
        json_reply({"error": {"message": "no money", "code": "insufficient_quota"}}, 429),
        json_reply(BUSY),
        sse_reply([BUSY]),
        sse_reply(["[DONE]"]),
        Reply(200, {"content-type": "text/html"}, [b"<html>a proxy's page</html>"]),
        Reply(200, SSE, [], "cut"),
    ],
    ids=[
        "503",
        "500",
        "429",
        "a long 429",
        "401",
        "403",
        "404",
        "quota",
        "whole",
        "event",
        "empty",
        "page",
        "cut",
    ],
)
def test_the_next_answers_before_the_first_byte(
    serve: Serve, backend: ListedBackend, path: str, stream: bool, failing: Reply
) -> None:
    backend.play(by_account(a=failing, b=failing))
    served = serve(
        providers=[backend.account(name, "m") for name in "abc"], fallbacks={"a/m": ["b/m", "c/m"]}
    )
    served.gateway.health.forget("abc")
    began = time.monotonic()
    reply = post(served, path, model="a/m", stream=stream)
    assert target(reply) == "c/m"
    assert "Hello from the backend." in reply.text.replace('"}', "") or stream
    assert (backend.asked(), time.monotonic() - began < 1.5) == (["a", "b", "c"], True)
    (line,) = wait_for_log(served)
    assert [each["target"] for each in line["tries"]] == ["a/m", "b/m", "c/m"]
    assert (line["target"], line["source"], line["output_tokens"]) == ("c/m", "exact", 7)


def test_fallbacks_are_asked_in_their_order(serve: Serve, backend: ListedBackend) -> None:
    """Also where a later one would lose less: the order is the operator's."""
    backend.play(by_account(a=json_reply(BUSY, 503)))
    lossy = {"b": {"overrides": {"request": {"drop": ["seed"]}}}}
    served = chain(serve, backend, "a", "b", "c", options=lossy)
    reply = post(served, model="a/m", seed=1)
    assert (target(reply), reply.headers["x-dragoman-dropped"]) == ("b/m", "/seed")


@pytest.mark.parametrize(
    ("aliases", "fallbacks", "name"),
    [
        ({}, {"a/m": ["b/n"]}, "m"),
        ({}, {"m": ["b/n"]}, "m"),
        ({"x": "a/m"}, {"x": ["b/n"]}, "x"),
        ({"x": "m"}, {"a/m": ["b/n"]}, "x"),
        ({"x": "y", "y": "a/m"}, {"y": ["b/n"]}, "x"),
        ({"x": "all"}, {"all": ["b/n"]}, "x"),
        ({}, {"all": ["b/n"]}, "all"),
        ({"z": "b/n"}, {"all": ["z"]}, "all"),
    ],
)
def test_fallbacks_of_every_kind_of_name(
    serve: Serve, backend: ListedBackend, aliases: Any, fallbacks: Any, name: str
) -> None:
    backend.play(json_reply(BUSY, 503), model="m")
    accounts = [backend.account("a", "m"), backend.account("b", "n")]
    groups = {"all": [{"model": "a/m"}]}
    served = serve(fresh=True, providers=accounts, aliases=aliases, fallbacks=fallbacks, groups=groups)
    assert target(post(served, model=name)) == "b/n"


def test_a_fallback_that_cannot_do_it_is_left_out(serve: Serve, backend: ListedBackend) -> None:
    backend.lists = {"b": [{"id": "m", "supported_parameters": ["temperature"]}]}
    backend.play(by_account(a=json_reply(BUSY, 503)))
    accounts = [backend.account("a", "m"), backend.account("b"), backend.account("c", "m")]
    served = loaded(serve(fresh=True, providers=accounts, fallbacks={"a/m": ["b/m", "c/m"]}))
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    assert target(post(served, model="a/m", tools=tools)) == "c/m"


def test_of_a_class_another_providers_is_among_the_candidates(serve: Serve, backend: ListedBackend) -> None:
    """However many of its first endpoints are of one provider, and that is down."""
    names = [f"claude-{number}" for number in range(30, 50)]
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        down = {**backend.account("a", *names), "base_url": f"http://127.0.0.1:{closed.getsockname()[1]}/v1"}
        served = serve(fresh=True, providers=[down, backend.account("b", "claude-3")])
        assert target(post(served, model="chat-balanced")) == "b/claude-3"


def test_of_a_large_class_the_fallback_is_among_the_candidates(serve: Serve, backend: ListedBackend) -> None:
    names = [f"claude-{number}" for number in range(30, 50)]
    backend.play(by_account(a=json_reply(BUSY, 503)))
    served = serve(
        fresh=True,
        providers=[backend.account("a", *names), backend.account("b", "other")],
        fallbacks={"chat-balanced": ["b/other"]},
        server={"retry_budget_s": 0},
    )
    assert target(post(served, model="chat-balanced")) == "b/other"


# --- what is told ----------------------------------------------------------------------


def test_when_all_fail_the_first_failure_is_told_with_its_target(
    serve: Serve, backend: ListedBackend
) -> None:
    a, b = json_reply({"error": {"message": "of a"}}, 503), json_reply({"error": {"message": "of b"}}, 500)
    backend.play(by_account(a=a, b=b))
    lossy = {"b": {"overrides": {"request": {"drop": ["seed"]}}}}
    served = chain(serve, backend, "a", "b", options=lossy, server={"retry_budget_s": 0})
    reply = post(served, model="a/m", seed=1)
    assert (reply.status_code, reply.json()["error"]["message"]) == (503, "of a")
    assert reply.headers["x-dragoman-model"] == "a/m"
    assert "x-dragoman-dropped" not in reply.headers, "that was lost on the way to another"
    (line,) = wait_for_log(served)
    assert [each["outcome"] for each in line["tries"]] == ["upstream", "upstream"]
    assert line["target"] == "a/m"


@pytest.mark.parametrize("stream", [True, False])
def test_of_limits_everywhere_the_client_is_told_when_to_come_back(
    serve: Serve, backend: ListedBackend, stream: bool
) -> None:
    backend.play(by_account(a=json_reply(BUSY, 429), b=json_reply(BUSY, 429, {"retry-after": "40"})))
    served = chain(serve, backend, "a", "b", server={"retry_budget_s": 0})
    reply = post(served, model="a/m", stream=stream)
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "2")


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("behind", [True, False])
def test_a_refusal_by_content_is_passed_on(
    serve: Serve, backend: ListedBackend, inside: bool, behind: bool
) -> None:
    """It is an answer: nobody else is asked, also where an earlier one was down."""
    words = "The response was filtered due to the prompt triggering content management policy."
    refusal = json_reply({"error": {"message": words, "code": "content_filter"}}, 200 if inside else 400)
    replies = {"a": json_reply(BUSY, 503), "b": refusal} if behind else {"a": refusal}
    backend.play(by_account(**replies))
    served = chain(serve, backend, "a", "b", "c")
    reply = post(served, model="a/m")
    assert reply.json()["error"]["code"] == "content_filter"
    assert backend.asked() == [*replies]
    assert reply.headers["x-dragoman-model"] == f"{[*replies][-1]}/m"


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
def test_a_death_in_the_middle_is_a_clean_failure(serve: Serve, backend: ListedBackend, path: str) -> None:
    frames = [chat_chunk({"role": "assistant", "content": "one"}), chat_chunk({"content": " two"})]
    backend.play(by_account(a=sse_reply(frames, end="cut", pause=0.02)))
    served = chain(serve, backend, "a", "b")
    reply = post(served, path, model="a/m", stream=True)
    assert reply.headers["x-dragoman-model"] == "a/m"
    assert backend.asked() == ["a"]
    if path == RESPONSES:
        assert types(reply.text)[-1] == "response.failed"
        assert "response.completed" not in types(reply.text)
    else:
        assert '"error"' in reply.text
        assert '"finish_reason":"stop"' not in reply.text


# --- one that is too small -------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "asked"),
    [
        ({"a": 1000, "b": 1000, "c": 5000, "d": 9000}, ["a", "c"]),
        ({"a": None, "b": None, "c": 5000, "d": 9000}, ["a", "c"]),
        ({"a": 5000, "b": 1000, "c": None, "d": 5000}, ["a"]),
    ],
)
def test_a_prompt_too_long_goes_to_a_larger_one(
    serve: Serve, backend: ListedBackend, sizes: dict[str, int | None], asked: list[str]
) -> None:
    backend.play(by_account(a=json_reply(LONG, 400), b=json_reply(LONG, 400)))
    options = {
        name: {"overrides": {"request": {"context_window": size}}} for name, size in sizes.items() if size
    }
    served = chain(serve, backend, *"abcd", options=options)
    reply = post(served, model="a/m")
    assert backend.asked() == asked
    assert (reply.status_code == 200) is (len(asked) > 1)
    assert reply.status_code == 200 or reply.json()["error"]["code"] == "context_length_exceeded"
