"""`truncation` over HTTP: the oldest turns go before a backend is asked, or after it refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.test_recovery import post
from tests.app.test_state import events_of
from tests.backends.loopback import Reply, Request
from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend

from .conftest import Serve, Served, provider
from .listed import ListedBackend, loaded

Json = dict[str, Any]
WINDOW = {"request": {"context_window": 1000}}
TOO_LONG = {"error": {"message": "prompt is too long", "code": "context_length_exceeded"}}


def turn(number: int, size: int = 800) -> list[Json]:
    """About 400 tokens, with a call and its result."""
    return [
        {"role": "user", "content": f"question {number}"},
        {"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"c{number}", "output": "r" * size},
        {"role": "assistant", "content": "a" * size},
    ]


LONG = [
    {"role": "developer", "content": "D"},
    *turn(1),
    *turn(2),
    *turn(3),
    {"role": "user", "content": "last"},
]


def ask(served: Served, **more: Any) -> Any:
    return post(served, {"model": "p/m", "input": LONG, "store": False, **more}, "/v1/responses")


def questions(sent: Json) -> list[str]:
    given = sent.get("messages", sent.get("input"))
    return [each["content"] for each in given if each.get("role") == "user"]


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("stream", [False, True])
def test_the_oldest_turns_go(serve: Serve, scripted: ScriptedBackend, wire: str, stream: bool) -> None:
    served = serve(providers=[provider(scripted, wire, overrides=WINDOW)])
    reply = ask(served, truncation="auto", stream=stream)
    assert reply.status_code == 200
    assert reply.headers["x-dragoman-dropped"] == "/input/1,/input/2,/input/3,/input/4"
    (sent,) = scripted.bodies()
    assert questions(sent) == ["question 2", "question 3", "last"]
    assert "c1" not in str(sent)
    if wire == "chat":
        response = events_of(reply)[-1]["response"] if stream else reply.json()
        assert response["truncation"] == "auto"
    (line,) = served.log()
    assert line["dropped"] == [f"/input/{place}" for place in range(1, 5)]


def test_the_answers_limit_is_kept_free(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted, overrides=WINDOW)])
    ask(served, truncation="auto", max_output_tokens=400)
    assert questions(scripted.bodies()[-1]) == ["question 3", "last"]
    ask(served, truncation="auto", max_output_tokens=100_000)
    assert questions(scripted.bodies()[-1]) == ["question 3", "last"]


@pytest.mark.parametrize("truncation", [None, "disabled"])
def test_otherwise_it_is_refused_unasked(serve: Serve, scripted: ScriptedBackend, truncation: Any) -> None:
    served = serve(providers=[provider(scripted, overrides=WINDOW)])
    reply = ask(served, truncation=truncation)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "input")
    assert not scripted.requests


def test_what_fits_is_untouched(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted, overrides={"request": {"context_window": 100_000}})])
    reply = ask(served, truncation="auto")
    assert "x-dragoman-dropped" not in reply.headers
    assert len(questions(scripted.bodies()[-1])) == 4


@pytest.mark.parametrize("given", ["x" * 9000, [{"role": "user", "content": "x" * 9000}]])
def test_the_last_turn_does_not_go(serve: Serve, scripted: ScriptedBackend, given: Any) -> None:
    served = serve(providers=[provider(scripted, overrides=WINDOW)])
    reply = ask(served, truncation="auto", input=given)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert not scripted.requests


def test_losses_of_what_stays_keep_their_places(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted, overrides=WINDOW)])
    odd = {"type": "web_search_call", "id": "w", "status": "completed"}
    reply = ask(served, truncation="auto", input=[*LONG[:-1], odd, LONG[-1]], metadata={"a": "b"})
    assert reply.headers["x-dragoman-dropped"].split(",")[-2:] == ["/input/13", "/metadata"]


def takes(most: int) -> Any:
    """A backend that takes so many bytes."""

    def answer(request: Request) -> Reply | None:
        return json_reply(TOO_LONG, 400) if len(request.body) > most else None

    return answer


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize(("most", "left", "times"), [(5000, 3, 2), (3000, 2, 3)])
def test_a_refusal_is_answered_with_less(
    serve: Serve, scripted: ScriptedBackend, wire: str, most: int, left: int, times: int
) -> None:
    scripted.play(takes(most))
    served = serve(providers=[provider(scripted, wire)])
    reply = ask(served, truncation="auto", stream=True)
    assert reply.status_code == 200
    assert len(scripted.requests) == times
    assert len(questions(scripted.bodies()[-1])) == left
    assert reply.headers["x-dragoman-dropped"].split(",")[0] == "/input/1"
    assert len(reply.headers["x-dragoman-dropped"].split(",")) == 4 * (4 - left)


def test_a_refusal_that_nothing_helps_against_is_told(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(takes(10))
    served = serve(providers=[provider(scripted)])
    reply = ask(served, truncation="auto")
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert 2 <= len(scripted.requests) <= 4
    asked = len(scripted.requests)
    assert ask(served).status_code == 400
    assert len(scripted.requests) == asked + 1


@pytest.mark.parametrize(
    ("window", "truncation", "status", "left"),
    [
        (1000, "auto", 200, 3),
        (1000, "disabled", 200, 4),
        (800, "disabled", 400, 0),
        (800, "auto", 200, 2),
        (None, "disabled", 200, 4),
    ],
)
def test_a_window_that_was_listed(
    serve: Serve, window: int | None, truncation: str, status: int, left: int
) -> None:
    """It is no more than a listing's word: only what is far over it is refused."""
    with ListedBackend() as backend:
        backend.lists = {"a": [{"id": "m", **({"max_model_len": window} if window else {})}]}
        served = loaded(serve(fresh=True, providers=[backend.account("a")]))
        reply = post(served, {"model": "a/m", "input": LONG, "truncation": truncation}, "/v1/responses")
        assert reply.status_code == status
        assert [len(questions(sent)) for sent in backend.bodies()] == [left] * (status == 200)


def test_for_chat_clients_it_is_nobodys_word(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted, "responses")])
    body = {"model": "p/m", "messages": [{"role": "user", "content": "x"}], "truncation": "auto"}
    assert post(served, body, "/v1/chat/completions").headers["x-dragoman-dropped"] == "/truncation"
