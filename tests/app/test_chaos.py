"""Every fault of the chaos backend, over both wires, for both shapes, streamed and not.

Each ends in the failure that its client can see, in time; nothing is left of it in the gateway.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest

from app import answer
from tests.app.conftest import Serve, Served, provider
from tests.backends.chaos import FAULTS, ChaosBackend
from tests.backends.chaos_fault import Fault
from tests.backends.loopback import Reply
from tests.backends.replies import chat_chunk, frame_bytes
from tests.backends.scripted import ScriptedBackend
from translators import framing
from translators.framing import SseFramer

Json = dict[str, Any]
HEAVY = {"huge-event"}
"""So much that it is no silence of the backend when this process is busy with another one: one at a time."""
IDLE_S = 1.5
LIMIT = 20 << 20
"""Of an answer's body and of one event, here."""
SETTLED_S = 0.1
"""Until what a backend sends too much has come."""
LATE_S = 6.0
"""What a fault may take besides the idle limit."""
BODIES: dict[str, Json] = {
    "/v1/responses": {"input": "hi", "store": False},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
}
WAYS = list(itertools.product(("chat", "responses"), BODIES, (True, False)))


@pytest.fixture(scope="module")
def chaos() -> Iterator[ChaosBackend]:
    with ChaosBackend() as backend:
        yield backend


def providers(chaos: ChaosBackend) -> list[Json]:
    url = f"{chaos.origin}/v1"
    return [
        {"name": wire, "kind": "openai", "base_url": url, "wire": wire, "models": ["well"]}
        for wire in ("chat", "responses")
    ]


@pytest.fixture
def served(serve: Serve, chaos: ChaosBackend, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(answer, "MAX_BODY_BYTES", LIMIT)
    monkeypatch.setattr(framing, "MAX_EVENT_BYTES", LIMIT)
    limits = {"retry_budget_s": 0, "idle_timeout_s": IDLE_S, "keepalive_s": 30}
    served = serve(providers=providers(chaos), server=limits)
    yield served
    assert served.log("fault") == served.log("library") == []


def told(reply: httpx.Response) -> tuple[Any, str]:
    """The outcome of an answer, and its text."""
    if reply.status_code != 200:
        assert set(reply.json()["error"]) == {"message", "type", "param", "code"}
        return reply.status_code, ""
    if not reply.headers["content-type"].startswith("text/event-stream"):
        return "ok", whole_text(reply.json())
    framer = SseFramer()
    payloads = framer.feed(reply.content) + framer.close()
    frames = [orjson.loads(payload) for payload in payloads if payload != b"[DONE]"]
    ends = [frame for frame in frames if ended(frame)]
    assert ends == frames[-1:], "one end, and nothing after it"
    text = "".join(delta for frame in frames for delta in deltas(frame))
    return ("failed" if is_failure(ends[0]) else "ok"), text


def whole_text(body: Json) -> str:
    if body["object"] == "response":
        return "".join(part["text"] for item in body["output"] for part in item["content"])
    return str(body["choices"][0]["message"]["content"])


def deltas(frame: Json) -> Iterator[str]:
    if frame.get("type") == "response.output_text.delta":
        yield frame["delta"]
    yield from (choice["delta"].get("content") or "" for choice in frame.get("choices", ()))


def ended(frame: Json) -> bool:
    finished = any(choice["finish_reason"] for choice in frame.get("choices", ()))
    return finished or is_failure(frame) or frame.get("type") == "response.completed"


def is_failure(frame: Json) -> bool:
    return frame.get("type") == "response.failed" or ("error" in frame and "type" not in frame)


async def asked(client: httpx.AsyncClient, fault: Fault, wire: str, path: str, stream: bool) -> None:
    began = time.monotonic()
    reply = await client.post(path, json={**BODIES[path], "model": f"{wire}/{fault.name}", "stream": stream})
    took = time.monotonic() - began
    outcome, text = told(reply)
    assert outcome == (fault.streamed if stream else fault.whole), (wire, path, stream, reply.text[:300])
    assert outcome != "ok" or text == fault.text
    assert fault.text.startswith(text)
    assert IDLE_S * fault.slow * 0.9 < took < IDLE_S + LATE_S, (wire, path, stream)


@pytest.mark.parametrize("name", FAULTS)
async def test_a_fault_ends_as_it_should(served: Served, chaos: ChaosBackend, name: str) -> None:
    async with httpx.AsyncClient(base_url=served.base, trust_env=False, timeout=20) as client:
        for ways in [WAYS] if name not in HEAVY else [[way] for way in WAYS]:
            await asyncio.gather(*(asked(client, FAULTS[name], *way) for way in ways))
        await asyncio.sleep(SETTLED_S)
        await asyncio.gather(*(asked(client, FAULTS["well"], *way) for way in WAYS))
    assert len([model for model in chaos.asked if model == name]) >= len(WAYS)


BUDGET_S = 1.0
AGAIN = {"close", "reset", "reset-in-head", "reset-after-head", "garbage"}


@pytest.mark.parametrize("name", sorted(AGAIN))
async def test_what_may_pass_is_asked_again_within_the_budget(
    serve: Serve, chaos: ChaosBackend, name: str
) -> None:
    limits = {"retry_budget_s": BUDGET_S, "idle_timeout_s": IDLE_S}
    served = serve(providers=providers(chaos), server=limits)
    before = chaos.asked.count(name)
    async with httpx.AsyncClient(base_url=served.base, trust_env=False, timeout=20) as client:
        began = time.monotonic()
        await asyncio.gather(*(asked(client, FAULTS[name], *way) for way in WAYS))
        took = time.monotonic() - began
    tries = chaos.asked.count(name) - before
    assert len(WAYS) < tries <= 6 * len(WAYS)
    assert took < BUDGET_S + LATE_S
    assert served.log("fault") == served.log("library") == []


@pytest.mark.parametrize("path", BODIES)
def test_events_for_ever_make_no_body(
    serve: Serve, scripted: ScriptedBackend, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backend that streams to a client that asked for none, and does not stop."""
    monkeypatch.setattr(answer, "MAX_BODY_BYTES", 1 << 20)
    piece = frame_bytes(chat_chunk({"role": "assistant", "content": "x" * 50_000}))
    scripted.play(Reply(200, {"content-type": "text/event-stream"}, itertools.repeat(piece)))
    served = serve(providers=[provider(scripted)], server={"retry_budget_s": 0})
    with served.client() as client:
        reply = client.post(path, json={**BODIES[path], "model": "p/m"})
    assert (reply.status_code, reply.json()["error"]["type"]) == (502, "upstream_error")
    assert "longer than 1 MiB" in reply.json()["error"]["message"]
    assert scripted.requests[0].gone.wait(5)
