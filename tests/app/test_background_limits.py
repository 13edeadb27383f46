"""Limits of background responses, and responses of the foreground that are played again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.backends.replies import ToolUse, chat_stream, sse_reply
from tests.backends.scripted import ScriptedBackend

from .background_asked import ASK, create, ended, events_of, read, replay, running, slow_reply, until
from .conftest import STORES, Serve, provider, store_config

WEATHER = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    return store_config(request.param, tmp_path)


def test_a_silent_run_keeps_its_followers(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply(0.8))
    config: dict[str, Any] = {"server": {"keepalive_s": 0.1}, "store": {"kind": "memory"}}
    served = serve(fresh=True, providers=[provider(scripted)], **config)
    with served.client() as client:
        reply = client.post("/v1/responses", json={**ASK, "stream": True})
        assert reply.text.count(": keep-alive\n\n") >= 3
        events = events_of(reply.text)
        assert [each["sequence_number"] for each in events] == list(range(len(events)))
        assert (
            ": keep-alive" not in client.get(f"/v1/responses/{events[0]['response']['id']}?stream=true").text
        )


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_response_of_the_foreground_as_a_stream(
    serve: Serve, scripted: ScriptedBackend, store: dict[str, Any], wire: str
) -> None:
    frames = chat_stream("Hello there", [ToolUse("call_1", "weather", '{"a":1}')])
    if wire == "chat":
        scripted.play(sse_reply(frames))
    with serve(fresh=True, providers=[provider(scripted, wire)], store=store).client() as client:
        body = {"model": "m", "input": "hi", "stream": True, "tools": [WEATHER]}
        made = events_of(client.post("/v1/responses", json=body).text)[-1]["response"]
        events = replay(client, made["id"])
        assert events[0]["type"] == "response.created"
        assert [each["sequence_number"] for each in events] == list(range(len(events)))
        assert events[-1] == {
            "type": "response.completed",
            "sequence_number": len(events) - 1,
            "response": made,
        }
        done = [each["item"] for each in events if each["type"] == "response.output_item.done"]
        assert done == made["output"]
        named = {each["item_id"] for each in events if "item_id" in each}
        assert named <= {each["id"] for each in made["output"]}
        assert "response.output_text.delta" in {each["type"] for each in events}
        assert replay(client, made["id"], 3) == events[4:]


def test_more_than_may_wait(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply(0.5))
    background = {"max_running": 1, "max_queue": 1}
    config: dict[str, Any] = {"store": {"kind": "memory"}, "background": background}
    served = serve(fresh=True, providers=[provider(scripted)], **config)
    with served.client() as client:
        first, second = create(client), create(client)
        reply = client.post("/v1/responses", json=ASK)
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
        assert reply.json()["error"]["code"] == "background_queue_full"
        running(client, first["id"])
        assert read(client, second["id"])["status"] == "queued"
        assert ended(client, first["id"])["status"] == "completed"
        assert ended(client, second["id"])["status"] == "completed"
        assert len(scripted.bodies()) == 2


def test_a_run_that_waits_is_cancelled(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply(0.5))
    background = {"max_running": 1, "max_queue": 1}
    config: dict[str, Any] = {"store": {"kind": "memory"}, "background": background}
    served = serve(fresh=True, providers=[provider(scripted)], **config)
    with served.client() as client:
        first, second = create(client), create(client)
        assert client.post(f"/v1/responses/{second['id']}/cancel").json()["status"] == "cancelled"
        third = create(client)  # its place is free again
        assert {ended(client, each["id"])["status"] for each in (first, third)} == {"completed"}
        assert read(client, second["id"])["status"] == "cancelled"
        assert len(scripted.bodies()) == 2


def test_a_run_that_takes_too_long(serve: Serve, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply())
    config: dict[str, Any] = {"store": {"kind": "memory"}, "background": {"max_run_s": 0.3}}
    served = serve(fresh=True, providers=[provider(scripted)], **config)
    with served.client() as client:
        done = ended(client, create(client)["id"])
        assert done["status"] == "failed"
        assert "longer than 0.3 s" in done["error"]["message"]
        assert scripted.requests[0].gone.wait(3)
        (line,) = until(lambda: [line for line in served.log() if line["route"].startswith("RUN")])
        assert line["error"] == done["error"]["message"]
