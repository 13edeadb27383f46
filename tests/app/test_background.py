"""`background: true` over HTTP: how a run goes, what its followers see, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.backends.loopback import Reply
from tests.backends.replies import Framing, ToolUse, chat_stream, json_reply, response_stream, sse_reply
from tests.backends.scripted import ScriptedBackend

from .background_asked import ASK, create, ended, events_of, read, replay, running, slow_reply, until
from .conftest import STORES, Serve, Served, provider, store_config

WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    return store_config(request.param, tmp_path)


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend, store: dict[str, Any]) -> Served:
    return serve(fresh=True, providers=[provider(scripted)], store=store, server={"shutdown_grace_s": 0})


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as client:
        yield client


def test_queued_at_once_and_completed_later(client: httpx.Client, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply(0.3))
    made = create(client, temperature=0.5, metadata={"a": "b"}, tools=[WEATHER], instructions="be brief")
    assert (made["status"], made["background"], made["store"]) == ("queued", True, True)
    assert (made["temperature"], made["metadata"], made["output"]) == (0.5, {"a": "b"}, [])
    assert made["tools"][0]["name"] == "weather"
    now = running(client, made["id"])
    assert {**now, "status": "queued"} == made
    done = ended(client, made["id"])
    same = ("id", "created_at", "background", "temperature", "metadata", "tools", "instructions", "model")
    assert {key: done[key] for key in same} == {key: made[key] for key in same}
    assert (done["status"], done["error"]) == ("completed", None)
    assert done["output"][0]["content"][0]["text"] == "some words that come slowly"
    assert done["usage"]["total_tokens"] > 0
    (asked,) = scripted.bodies()
    assert "background" not in asked
    assert asked["stream"] is True


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_stream_is_numbered_through_and_can_be_had_again(
    serve: Serve, scripted: ScriptedBackend, store: dict[str, Any], wire: str
) -> None:
    served = serve(fresh=True, providers=[provider(scripted, wire)], store=store)
    with served.client() as client:
        reply = client.post("/v1/responses", json={**ASK, "stream": True})
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.headers["x-dragoman-model"] == "p/m"
        events = events_of(reply.text)
        kinds = [each["type"] for each in events]
        assert kinds[:3] == ["response.created", "response.queued", "response.in_progress"]
        assert kinds[-1] == "response.completed"
        assert kinds.count("response.in_progress") == kinds.count("response.created") == 1
        assert [each["sequence_number"] for each in events] == list(range(len(events)))
        statuses = [each["response"]["status"] for each in events if "response" in each]
        assert statuses == ["queued", "queued", "in_progress", "completed"]
        assert {each["response"]["id"] for each in events if "response" in each} == {
            id := events[0]["response"]["id"]
        }
        assert read(client, id) == events[-1]["response"]
        assert client.get(f"/v1/responses/{id}?stream=true").content == reply.content
        for after in (0, 2, 5, len(events) - 2):
            assert replay(client, id, after) == events[after + 1 :]
        assert replay(client, id, len(events) - 1) == []
        assert replay(client, id, 10_000) == []


def test_events_come_as_they_are_made(client: httpx.Client, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply(1.0))
    with client.stream("POST", "/v1/responses", json={**ASK, "stream": True}) as reply:
        got = ""
        for text in reply.iter_text():
            got += text
            if "output_item.added" in got:
                break
        id = events_of(got.rpartition("\n\n")[0])[0]["response"]["id"]
        assert read(client, id)["status"] == "in_progress"


def test_a_run_outlives_its_client_and_is_followed_on(
    client: httpx.Client, scripted: ScriptedBackend
) -> None:
    scripted.play(slow_reply(0.6))
    got = ""
    with client.stream("POST", "/v1/responses", json={**ASK, "stream": True}) as reply:
        for text in reply.iter_text():
            got += text
            if "output_item.added" in got:
                break
    seen = events_of(got.rpartition("\n\n")[0])
    id, last = seen[0]["response"]["id"], seen[-1]["sequence_number"]
    rest = replay(client, id, last)  # live: it has not ended yet
    assert rest[0]["sequence_number"] == last + 1
    assert rest[-1]["type"] == "response.completed"
    assert seen + rest == replay(client, id)


def test_several_follow_one_run(client: httpx.Client, served: Served, scripted: ScriptedBackend) -> None:
    import concurrent.futures

    scripted.play(slow_reply(0.4))
    id = create(client)["id"]

    def follow() -> list[dict[str, Any]]:
        with served.client() as own:
            return replay(own, id)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        told = [each.result() for each in [pool.submit(follow) for _ in range(4)]]
    assert all(each == told[0] for each in told)
    assert told[0][-1]["type"] == "response.completed"


def test_cancelling(client: httpx.Client, served: Served, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply())
    made = create(client)
    running(client, made["id"])
    until(lambda: scripted.requests)
    reply = client.post(f"/v1/responses/{made['id']}/cancel")
    assert (reply.status_code, reply.json()["status"]) == (200, "cancelled")
    assert reply.json() == {**made, "status": "cancelled"} == read(client, made["id"])
    assert scripted.requests[0].gone.wait(3)  # the backend's work is not paid for any more
    assert client.post(f"/v1/responses/{made['id']}/cancel").json() == reply.json()
    events = replay(client, made["id"])
    assert (events[-1]["type"], events[-1]["response"]["status"]) == ("response.failed", "cancelled")
    until(lambda: not served.gateway.background._runs)
    statuses = [line["status"] for line in served.log("provider:background_status")]
    assert statuses == ["queued", "in_progress", "cancelled"]


def test_cancelling_keeps_what_was_finished_and_ends_followers(
    serve: Serve, scripted: ScriptedBackend, store: dict[str, Any]
) -> None:
    frames = response_stream("Let me look.", [ToolUse("call_1", "weather", "{}")])
    kinds = [each["type"] for each in frames if isinstance(each, dict)]
    told = sse_reply(frames[: kinds.index("response.output_item.done") + 1], Framing(event_lines=True))
    scripted.play(Reply(200, told.headers, [*told.pieces, 20.0]))
    with serve(fresh=True, providers=[provider(scripted, "responses")], store=store).client() as client:
        got, id = "", ""
        with client.stream("POST", "/v1/responses", json={**ASK, "stream": True}) as reply:
            for text in reply.iter_text():
                got += text
                if not id and "output_item.done" in got:
                    id = events_of(got.rpartition("\n\n")[0])[0]["response"]["id"]
                    assert client.post(f"/v1/responses/{id}/cancel").json()["status"] == "cancelled"
        last = events_of(got)[-1]["response"]
        assert (last["status"], len(last["output"])) == ("cancelled", 1)
        assert last["output"][0]["content"][0]["text"] == "Let me look."
        assert read(client, id) == last
        assert got.endswith("data: [DONE]\n\n")


def test_what_cannot_be_cancelled(client: httpx.Client) -> None:
    done = ended(client, create(client)["id"])
    plain = client.post("/v1/responses", json={"model": "m", "input": "hi"}).json()
    cases = [
        (done["id"], 400, "Cannot cancel a response that has ended: it is completed."),
        (plain["id"], 400, "Cannot cancel a synchronous response."),
        ("resp_x", 404, "Response with id 'resp_x' not found."),
    ]
    for id, status, words in cases:
        reply = client.post(f"/v1/responses/{id}/cancel")
        assert (reply.status_code, reply.json()["error"]["message"]) == (status, words)
    assert read(client, done["id"]) == done


def test_chaining(client: httpx.Client, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply(0.4))
    made = create(client, input="one")
    reply = client.post(
        "/v1/responses", json={"model": "m", "input": "x", "previous_response_id": made["id"]}
    )
    error = reply.json()["error"]
    assert (reply.status_code, error["param"], error["code"]) == (
        400,
        "previous_response_id",
        "previous_response_not_completed",
    )
    ended(client, made["id"])
    scripted.clear()
    second = ended(client, create(client, input="two", previous_response_id=made["id"])["id"])
    assert second["previous_response_id"] == made["id"]
    told = [each["content"] for each in scripted.bodies()[0]["messages"]]
    assert told == ["one", "some words that come slowly", "two"]
    items = client.get(f"/v1/responses/{second['id']}/input_items?order=asc").json()["data"]
    assert [each["role"] for each in items] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"store": False}, "background"),
        ({"background": "yes"}, "background"),
        ({"input": 7}, "input"),
        ({"temperature": "hot"}, "temperature"),
        ({"previous_response_id": "resp_x"}, "previous_response_id"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "no"}, "tools": [WEATHER]}, "tool_choice"),
    ],
)
def test_what_is_wrong_is_told_at_once(
    client: httpx.Client, scripted: ScriptedBackend, body: dict[str, Any], param: str
) -> None:
    reply = client.post("/v1/responses", json={**ASK, **body})
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == param
    assert not scripted.bodies()


def test_an_unknown_model(client: httpx.Client) -> None:
    assert client.post("/v1/responses", json={**ASK, "model": "q/none"}).status_code == 404


def test_without_a_store(serve: Serve, scripted: ScriptedBackend) -> None:
    with serve(providers=[provider(scripted)], store={"kind": "off"}).client() as client:
        error = client.post("/v1/responses", json=ASK)
        assert error.status_code == 400
        assert "there are none here" in error.json()["error"]["message"]
        assert client.post("/v1/responses/resp_x/cancel").status_code == 404


@pytest.mark.parametrize(
    "query", ["stream=true&starting_after=x", "stream=true&starting_after=-1", "starting_after=3"]
)
def test_a_bad_cursor(client: httpx.Client, query: str) -> None:
    made = create(client)
    reply = client.get(f"/v1/responses/{made['id']}?{query}")
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "starting_after")
    assert client.get("/v1/responses/resp_x?stream=true").status_code == 404


@pytest.mark.parametrize(
    ("status", "code"), [(500, "server_error"), (429, "rate_limit_exceeded"), (400, "server_error")]
)
def test_a_backend_that_fails(
    client: httpx.Client, scripted: ScriptedBackend, status: int, code: str
) -> None:
    scripted.play(json_reply({"error": {"message": "it is broken"}}, status, {"retry-after": "60"}))
    done = ended(client, create(client)["id"])
    assert (done["status"], done["output"], done["usage"]) == ("failed", [], None)
    assert done["error"]["code"] in (code, "invalid_prompt")
    assert "it is broken" in done["error"]["message"]
    assert replay(client, done["id"])[-1]["response"] == done


def test_a_stream_that_breaks(client: httpx.Client, scripted: ScriptedBackend) -> None:
    whole = sse_reply(chat_stream("half of it"), end="cut")
    scripted.play(type(whole)(200, whole.headers, list(whole.pieces)[:3], "cut"))
    done = ended(client, create(client)["id"])
    assert done["status"] == "failed"
    assert done["error"]["message"]


def test_deleting_a_run(client: httpx.Client, served: Served, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply())
    id = create(client)["id"]
    running(client, id)
    until(lambda: scripted.requests)
    with client.stream("GET", f"/v1/responses/{id}?stream=true") as reply:
        assert client.delete(f"/v1/responses/{id}").json()["deleted"]
        last = events_of(reply.read().decode())[-1]
    assert (last["type"], last["code"]) == ("error", "response_not_found")
    assert scripted.requests[0].gone.wait(3)
    assert client.get(f"/v1/responses/{id}").status_code == 404
    assert client.get(f"/v1/responses/{id}?stream=true").status_code == 404
    until(lambda: not served.gateway.background._runs)


def test_others_see_nothing_of_it(serve: Serve, scripted: ScriptedBackend, store: dict[str, Any]) -> None:
    scripted.play(slow_reply(0.3))
    keys = {"api_keys": ["alice-key", "bob-key"]}
    served = serve(fresh=True, providers=[provider(scripted)], store=store, server=keys)
    with (
        served.client(headers={"authorization": "Bearer alice-key"}) as alice,
        served.client(headers={"authorization": "Bearer bob-key"}) as bob,
    ):
        id = create(alice)["id"]
        assert bob.get(f"/v1/responses/{id}").status_code == 404
        assert bob.get(f"/v1/responses/{id}?stream=true").status_code == 404
        assert bob.post(f"/v1/responses/{id}/cancel").status_code == 404
        assert ended(alice, id)["status"] == "completed"


def test_it_is_counted_and_logged(client: httpx.Client, served: Served) -> None:
    reply = client.post("/v1/responses", json=ASK, headers={"x-request-id": "mine"})
    id = reply.json()["id"]
    ended(client, id)
    until(lambda: len(served.log()) >= 3)
    lines = [line for line in served.log() if line["request_id"] == "mine"]
    assert [line["route"] for line in lines] == ["POST /v1/responses", "RUN /v1/responses"]
    assert lines[1]["output_tokens"]
    said = [line for line in served.log("provider:background_status") if line["response_id"] == id]
    assert [line["status"] for line in said] == ["queued", "in_progress", "completed"]
    assert said[-1]["target"] == "p/m"
    text = client.get("/metrics").text
    assert 'dragoman_background_runs_total{status="completed"} 1.0' in text
    assert 'route="background"' in text


def test_what_is_left_out_is_told_with_the_answer(serve: Serve, scripted: ScriptedBackend) -> None:
    choosy = provider(scripted, overrides={"request": {"drop": ["metadata"]}})
    served = serve(fresh=True, providers=[choosy], store={"kind": "memory"})
    with served.client() as client:
        for stream in (False, True):
            reply = client.post("/v1/responses", json={**ASK, "metadata": {"a": "b"}, "stream": stream})
            assert reply.headers["x-dragoman-dropped"] == "/metadata"
        strict = {"x-dragoman-strict": "true"}
        reply = client.post("/v1/responses", json={**ASK, "metadata": {"a": "b"}}, headers=strict)
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, "metadata")
        until(lambda: not served.gateway.background._runs)
        text = client.get("/metrics").text
        assert 'dragoman_dropped_total{kind="bookkeeping",provider="p"} 2.0' in text


def test_a_fault_of_ours_leaves_no_run_stuck(
    client: httpx.Client, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.state.background.packed", lambda batch: batch if batch.first == 0 else 1 / 0)
    monkeypatch.setattr("app.state.runs.LEASE_S", -5)
    id = create(client)["id"]
    until(lambda: served.log("fault"))
    until(lambda: not served.gateway.background._runs)
    monkeypatch.setattr("app.state.followers.frames_of", lambda batch: [])
    monkeypatch.setattr("app.state.runs.frames_of", lambda batch: [])
    assert read(client, id)["status"] == "failed"
