"""Retries, surfaces, further targets: what is asked next, and what the client is told."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from app.routing.candidates import FIRST_PAUSE_S, pause
from tests.app.conftest import Serve, provider
from tests.backends.loopback import Reply
from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend
from translators.errors import ProxyError

ASK = {"model": "p/m", "input": "hi"}
BUSY = {"error": {"message": "busy", "type": "server_error"}}


@pytest.fixture
def other() -> Iterator[ScriptedBackend]:
    with ScriptedBackend() as backend:
        yield backend


@pytest.fixture
def ask(serve: Serve, scripted: ScriptedBackend) -> Any:
    """Ask one provider; gives the reply."""
    client = serve(providers=[provider(scripted)]).client()

    def send(body: Any = ASK) -> httpx.Response:
        return client.post("/v1/responses", json=body)

    yield send
    client.close()


# --- retries ---------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504])
def test_a_passing_failure_is_asked_again(
    ask: Any, scripted: ScriptedBackend, status: int, stream: bool
) -> None:
    failing = json_reply(BUSY, status, {"retry-after": "0"})
    fine = [failing, failing]
    scripted.play(lambda _: fine.pop() if fine else None)
    reply = ask({**ASK, "stream": stream})
    assert (reply.status_code, len(scripted.requests)) == (200, 3)


@pytest.mark.parametrize(
    ("status", "told"), [(400, 400), (401, 502), (403, 403), (404, 404), (413, 413), (422, 400), (501, 501)]
)
def test_any_other_is_told_at_once(ask: Any, scripted: ScriptedBackend, status: int, told: int) -> None:
    scripted.play(json_reply({"error": {"message": "no", "code": "odd", "param": None}}, status))
    reply = ask()
    assert (reply.status_code, len(scripted.requests)) == (told, 1)
    assert set(reply.json()["error"]) == {"message", "type", "param", "code"}
    assert reply.headers["x-dragoman-model"] == "p/m"


def test_a_refused_key_of_ours_is_not_the_clients_fault(ask: Any, scripted: ScriptedBackend) -> None:
    words = "Incorrect API key provided: sk-abcdef1234567890 at http://10.1.2.3:8000/v1"
    scripted.play(json_reply({"error": {"message": words, "code": "invalid_api_key"}}, 401))
    reply = ask()
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], len(scripted.requests)) == (502, "upstream_auth", 1)
    assert "Incorrect API key" in error["message"]
    assert "sk-abcdef" not in reply.text
    assert "10.1.2.3" not in reply.text


def test_a_retry_after_beyond_the_budget_goes_to_the_client_at_once(
    ask: Any, scripted: ScriptedBackend
) -> None:
    headers = {"retry-after": "30", "x-ratelimit-remaining-requests": "0", "set-cookie": "a=b"}
    scripted.play(json_reply({"error": {"message": "slow", "code": "rate_limit_exceeded"}}, 429, headers))
    began = time.monotonic()
    reply = ask()
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "30")
    assert reply.headers["x-ratelimit-remaining-requests"] == "0"
    assert "set-cookie" not in reply.headers
    assert time.monotonic() - began < 1
    assert len(scripted.requests) == 1


def test_the_budget_ends_the_tries(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply(BUSY, 503))
    began = time.monotonic()
    with serve(providers=[provider(scripted)], server={"retry_budget_s": 1}).client() as client:
        assert client.post("/v1/responses", json=ASK).status_code == 503
    assert time.monotonic() - began < 1.2
    assert len(scripted.requests) == 2


def test_no_budget_no_retry(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply(BUSY, 503))
    with serve(providers=[provider(scripted)], server={"retry_budget_s": 0}).client() as client:
        assert client.post("/v1/responses", json=ASK).status_code == 503
    assert len(scripted.requests) == 1


def test_a_broken_connection_is_asked_again(ask: Any, scripted: ScriptedBackend) -> None:
    cut = [Reply(200, {"content-type": "application/json"}, [b'{"id"'], "cut")]
    scripted.play(lambda _: cut.pop() if cut else None)
    assert (ask().status_code, len(scripted.requests)) == (200, 2)


def test_a_whole_answer_is_never_asked_for_again(ask: Any, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply({"error": {"message": "quota", "code": 429}}))
    reply = ask()
    assert (reply.status_code, reply.json()["error"]["message"]) == (502, "quota")
    assert len(scripted.requests) == 1


@pytest.mark.parametrize(
    ("told", "tries", "waited", "budget", "low", "high"),
    [
        (None, 1, 0, 5, FIRST_PAUSE_S, FIRST_PAUSE_S * 1.5),
        (None, 3, 0, 5, FIRST_PAUSE_S * 4, FIRST_PAUSE_S * 6),
        (2, 1, 0, 5, 2, 2),
        (2, 1, 3, 5, 2, 2),
    ],
)
def test_pauses(
    told: float | None, tries: int, waited: float, budget: float, low: float, high: float
) -> None:
    delay = pause(ProxyError("overloaded", "busy", retry_after=told), tries, waited, budget)
    assert delay is not None
    assert low <= delay <= high


@pytest.mark.parametrize(("told", "tries", "waited"), [(2, 1, 3.1), (None, 5, 0), (None, 1, 5), (30, 1, 0)])
def test_no_pause_beyond_the_budget(told: float | None, tries: int, waited: float) -> None:
    assert pause(ProxyError("overloaded", "busy", retry_after=told), tries, waited, 5) is None


def test_the_body_of_an_exact_backend_is_not_touched(serve: Serve, scripted: ScriptedBackend) -> None:
    odd = b'{"choices": [{"message": {"role": "assistant", "content": [{"type": "text", "text": "a"}]}}]}'
    scripted.play(Reply(200, {"content-type": "application/json"}, (odd,)))
    ask = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
    for exact in (True, False):
        account = provider(scripted, overrides={"answer": {"exact": exact}})
        with serve(providers=[account]).client() as client:
            assert (client.post("/v1/chat/completions", json=ask).content == odd) == exact


# --- further targets -------------------------------------------------------------------


def test_another_provider_of_the_same_model_steps_in(
    serve: Serve, scripted: ScriptedBackend, other: ScriptedBackend
) -> None:
    scripted.play(json_reply(BUSY, 503))
    both = [provider(scripted, name="one"), provider(other, name="two")]
    with serve(providers=both, server={"retry_budget_s": 0}).client() as client:
        reply = client.post("/v1/responses", json={**ASK, "model": "m"})
        assert (reply.status_code, reply.headers["x-dragoman-model"]) == (200, "two/m")
        reply = client.post("/v1/responses", json={**ASK, "model": "m", "stream": True})
        assert (reply.status_code, reply.headers["x-dragoman-model"]) == (200, "two/m")
        named = client.post("/v1/responses", json={**ASK, "model": "one/m"})
        assert named.status_code == 503


def test_a_fault_of_the_request_does_not_travel_on(
    serve: Serve, scripted: ScriptedBackend, other: ScriptedBackend
) -> None:
    scripted.play(json_reply({"error": {"message": "bad", "code": "odd"}}, 400))
    with serve(providers=[provider(scripted, name="one"), provider(other, name="two")]).client() as client:
        assert client.post("/v1/responses", json={**ASK, "model": "m"}).status_code == 400
    assert other.requests == []


def test_when_all_fail_the_first_failure_is_told(
    serve: Serve, scripted: ScriptedBackend, other: ScriptedBackend
) -> None:
    scripted.play(json_reply({"error": {"message": "the first"}}, 503))
    other.play(json_reply({"error": {"message": "the second"}}, 500))
    both = [provider(scripted, name="one"), provider(other, name="two")]
    with serve(providers=both, server={"retry_budget_s": 0}).client() as client:
        reply = client.post("/v1/responses", json={**ASK, "model": "m"})
    assert (reply.status_code, reply.json()["error"]["message"]) == (503, "the first")
    assert reply.headers["x-dragoman-model"] == "one/m"
    assert len(other.requests) == 1


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions", "/v1/embeddings"])
@pytest.mark.parametrize("name", ["off/m", "alias"])
def test_an_unavailable_provider_says_why(
    serve: Serve, path: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("providers.registry.extra_is_installed", lambda: False)
    off = {"name": "off", "kind": "onnx", "path": "models"}
    with serve(fresh=True, providers=[off], aliases={"alias": "off/m"}).client() as client:
        reply = client.post(path, json={**ASK, "model": name})
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "provider_unavailable")
    assert "provider off is unavailable" in reply.json()["error"]["message"]
    assert reply.headers["x-dragoman-model"] == "off/m"


# --- surfaces --------------------------------------------------------------------------

NOT_THERE = {"error_code": "BAD_REQUEST", "message": "Responses API passthrough is not supported for model m"}


@pytest.fixture
def workspace(serve: Serve, scripted: ScriptedBackend) -> Iterator[httpx.Client]:
    """A Databricks workspace with a GPT, which has two surfaces."""
    account = {
        "name": "dbx",
        "kind": "databricks",
        "base_url": scripted.origin,
        "api_key": "dapi-key-of-ours",
        "models": ["databricks-gpt-5-5"],
    }
    with serve(fresh=True, providers=[account], server={"retry_budget_s": 0}).client() as client:
        yield client


def refuse_responses(request: Any) -> Reply | None:
    return json_reply(NOT_THERE, 400) if request.path.endswith("responses") else None


@pytest.mark.parametrize("stream", [True, False])
def test_a_refused_surface_is_left_for_the_next_and_remembered(
    workspace: httpx.Client, scripted: ScriptedBackend, stream: bool
) -> None:
    scripted.play(refuse_responses)
    body = {"model": "dbx/databricks-gpt-5-5", "input": "hi", "stream": stream}
    assert workspace.post("/v1/responses", json=body).status_code == 200
    assert [request.path.rsplit("/", 1)[1] for request in scripted.requests] == ["responses", "completions"]
    assert workspace.post("/v1/responses", json=body).status_code == 200
    assert len(scripted.requests) == 3


def test_when_every_surface_fails_the_first_failure_is_told(
    workspace: httpx.Client, scripted: ScriptedBackend
) -> None:
    def refuse(request: Any) -> Reply:
        return refuse_responses(request) or json_reply({"error_code": "X", "message": "nor here"}, 403)

    scripted.play(refuse)
    reply = workspace.post("/v1/responses", json={"model": "dbx/databricks-gpt-5-5", "input": "hi"})
    assert len(scripted.requests) == 2
    assert "passthrough is not supported" in reply.json()["error"]["message"]


def test_what_one_surface_cannot_carry_goes_to_the_next(
    workspace: httpx.Client, scripted: ScriptedBackend
) -> None:
    """`x-dragoman-strict` makes a loss on the first surface a refusal of ours."""
    body = {"model": "dbx/databricks-gpt-5-5", "input": "hi", "metadata": {"a": "b"}}
    reply = workspace.post("/v1/responses", json=body, headers={"x-dragoman-strict": "true"})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "metadata")
    assert scripted.requests == []


# --- reasoning sealed elsewhere --------------------------------------------------------

SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "made-elsewhere"}
UNREADABLE = {
    "error": {
        "message": "The encrypted content could not be verified.",
        "type": "invalid_request_error",
        "code": "invalid_encrypted_content",
    }
}


@pytest.mark.parametrize(
    ("items", "status", "asked"),
    [
        ([SEALED, {"role": "user", "content": "hi"}], 200, 2),
        ([{"role": "user", "content": "hi"}], 400, 1),
    ],
)
def test_reasoning_another_deployment_sealed_is_taken_out(
    serve: Serve, scripted: ScriptedBackend, items: list[Any], status: int, asked: int
) -> None:
    def refuse(request: Any) -> Reply | None:
        return json_reply(UNREADABLE, 400) if b"made-elsewhere" in request.body or asked == 1 else None

    scripted.play(refuse)
    with serve(providers=[provider(scripted, wire="responses")]).client() as client:
        reply = client.post("/v1/responses", json={"model": "p/m", "input": items})
    assert (reply.status_code, len(scripted.requests)) == (status, asked)


# --- size ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["responses", "chat/completions"])
def test_a_body_over_the_backends_limit_is_refused_with_both_sizes(
    serve: Serve, scripted: ScriptedBackend, path: str
) -> None:
    small = provider(scripted, overrides={"request": {"max_body_bytes": 1 << 20}})
    text = "x" * (1 << 20)
    body = {"model": "p/m", "input": text, "messages": [{"role": "user", "content": text}]}
    with serve(providers=[small]).client() as client:
        reply = client.post(f"/v1/{path}", json=body)
        fine = client.post(f"/v1/{path}", json={**ASK, "messages": [{"role": "user", "content": "hi"}]})
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "request_too_large")
    assert "1.0 MiB" in reply.json()["error"]["message"]
    assert fine.status_code == 200
    assert len(scripted.requests) == 1
