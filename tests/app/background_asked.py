"""What tests of background responses ask for, and how they wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import orjson

from tests.backends.loopback import Reply
from tests.backends.replies import chat_stream, sse_reply

Json = dict[str, Any]

ASK: Json = {"model": "m", "input": "hi", "background": True}
ACTIVE = ("queued", "in_progress")
WAIT_S = 15.0


def slow_reply(seconds: float = 20.0, text: str = "some words that come slowly") -> Reply:
    """A Chat stream whose first words come at once, and then nothing for a while."""
    whole = sse_reply(chat_stream(text))
    first, *rest = whole.pieces
    return Reply(200, whole.headers, [first, rest[0], seconds, *rest[1:]])


def events_of(text: str) -> list[Json]:
    lines = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
    return [orjson.loads(line) for line in lines if line != "[DONE]"]


def create(client: httpx.Client, **more: Any) -> Json:
    reply = client.post("/v1/responses", json={**ASK, **more})
    assert reply.status_code == 200, reply.text
    made: Json = reply.json()
    return made


def read(client: httpx.Client, id: str) -> Json:
    reply = client.get(f"/v1/responses/{id}")
    assert reply.status_code == 200, reply.text
    found: Json = reply.json()
    return found


def until(done: Callable[[], Any], seconds: float = WAIT_S) -> Any:
    """What `done` says as soon as it says something."""
    end = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(0.02)
    return found


def ended(client: httpx.Client, id: str) -> Json:
    """The response once it has ended."""
    found: Json = until(lambda: (now := read(client, id))["status"] not in ACTIVE and now)
    return found


def running(client: httpx.Client, id: str) -> Json:
    """The response once a backend works on it."""
    found: Json = until(lambda: (now := read(client, id))["status"] == "in_progress" and now)
    return found


def replay(client: httpx.Client, id: str, after: int | None = None) -> list[Json]:
    query = "" if after is None else f"&starting_after={after}"
    reply = client.get(f"/v1/responses/{id}?stream=true{query}")
    assert reply.status_code == 200, reply.text
    assert reply.text.endswith("data: [DONE]\n\n")
    return events_of(reply.text)
