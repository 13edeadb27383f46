"""The line of a request and the events besides, as a real process writes them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.app.conftest import provider
from tests.backends.gateway import Gateway, config_text
from tests.backends.loopback import Reply, Request
from tests.backends.replies import chat_completion, chat_stream, json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend

LIMITS = {"x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-tokens": "6m0s", "set-cookie": "s=1"}
USAGE = {
    "prompt_tokens": 40,
    "completion_tokens": 7,
    "total_tokens": 47,
    "prompt_tokens_details": {"cached_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
CHAT: dict[str, Any] = {"model": "nick", "messages": [{"role": "user", "content": "my private words"}]}


class Process:
    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway

    def lines(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """Of one event, once there are that many."""
        end = time.monotonic() + 5
        while True:
            said = [orjson.loads(line) for line in self.gateway.log().splitlines() if line.startswith("{")]
            found = [line for line in said if line["event"] == event]
            if len(found) >= count or time.monotonic() > end:
                return found
            time.sleep(0.01)

    def post(self, body: dict[str, Any], path: str = "/v1/chat/completions") -> Any:
        with self.gateway.client() as client:
            return client.post(path, json=body)


def config(backend: ScriptedBackend) -> str:
    providers = [
        provider(backend, max_concurrency=1, overrides={"request": {"drop": ["metadata"]}}),
        provider(backend, name="q"),
    ]
    fallbacks = (
        '\n[fallbacks]\n"p/m" = ["q/m"]\n[prices]\n"p/m" = {input = 2.0, cached_input = 0.5, output = 10}\n'
    )
    return config_text(providers, aliases={"nick": "p/m"}) + fallbacks


@pytest.fixture
def process(tmp_path: Path, scripted: ScriptedBackend) -> Iterator[Process]:
    with Gateway(tmp_path, config(scripted)) as gateway:
        yield Process(gateway)


def test_a_stream_tells_everything(process: Process, scripted: ScriptedBackend) -> None:
    *frames, last, done = chat_stream("a b", usage=True)
    scripted.play(sse_reply([*frames, {**last, "usage": USAGE}, done], pause=0.02, headers=LIMITS))
    asked = {**CHAT, "stream": True, "stream_options": {"include_usage": True}, "metadata": {"a": "b"}}
    process.post(asked)
    (line,) = process.lines("request")
    wanted = {
        "status": 200,
        "route": "POST /v1/chat/completions",
        "model": "nick",
        "target": "p/m",
        "source": "alias",
        "upstream": scripted.origin,
        "surface": "chat",
        "lane": "pass",
        "stream": True,
        "emulated_stream": False,
        "input_tokens": 40,
        "output_tokens": 7,
        "cached_tokens": 10,
        "cached_pct": 25.0,
        "reasoning_tokens": 5,
        "cost_usd": 0.000135,
        "dropped": ["/metadata"],
        "rate_limits": {name: text for name, text in LIMITS.items() if name.startswith("x-")},
        "attempts": 1,
        "error": None,
    }
    assert {key: line[key] for key in wanted} == wanted
    assert 0 < line["ttft_ms"] < line["total_ms"]
    assert line["tokens_per_s"] > 0
    assert "trace_id" not in line


def test_a_whole_answer_played_as_a_stream_is_known_for_one(
    process: Process, scripted: ScriptedBackend
) -> None:
    scripted.play(json_reply(chat_completion("hello")))
    process.post({**CHAT, "stream": True})
    (line,) = process.lines("request")
    assert (line["stream"], line["emulated_stream"]) == (True, True)


def test_a_request_and_its_reply_are_events(process: Process, scripted: ScriptedBackend) -> None:
    busy = json_reply({"error": {"message": "busy"}}, 503, {"retry-after": "0", **LIMITS})
    scripted.play(busy, json_reply(chat_completion("hello"), headers=LIMITS))
    process.post(CHAT)
    first, second = process.lines("llm:request", 2)
    assert (first["target"], first["provider"], first["surface"], first["stream"]) == (
        "p/m",
        "p",
        "chat",
        False,
    )
    assert (first["messages"], first["tools"], first["attempt"], second["attempt"]) == (1, 0, 1, 2)
    failed, answered = process.lines("llm:response", 2)
    assert (failed["status"], failed["error_type"], failed["usage"]) == (503, "upstream", None)
    assert answered["usage"]["output_tokens"] == 7
    assert answered["duration_ms"] > 0
    assert answered["continuation_count"] == 0
    assert answered["rate_limits"]["x-ratelimit-remaining-requests"] == "59"
    (retry,) = process.lines("provider:retry")
    assert {"attempt", "max_retries", "delay", "error_type", "error_message"} <= retry.keys()
    assert "my private words" not in process.gateway.log()
    assert "s=1" not in process.gateway.log()


def test_waiting_for_a_place_is_an_event(process: Process, scripted: ScriptedBackend) -> None:
    def answer(request: Request) -> Reply:
        time.sleep(0.3)
        return json_reply(chat_completion("hello"))

    scripted.play(answer)
    with process.gateway.client() as one:
        other = threading.Thread(target=process.post, args=({**CHAT, "model": "p/m"},))
        other.start()
        time.sleep(0.1)
        one.post("/v1/chat/completions", json=CHAT)
        other.join()
        shown = one.get("/metrics").text
    (event,) = process.lines("provider:concurrency")
    assert (event["provider"], event["limit"], event["waiting"]) == ("p", 1, 0)
    assert 'dragoman_concurrency_waits_total{provider="p"} 1.0' in shown
    assert 'dragoman_events_total{event="provider:concurrency"} 1.0' in shown


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_blocks_of_a_stream_are_events(path: str, process: Process, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply(chat_stream("one two three")))
    body = {"model": "nick", "input": "hi", "stream": True, "store": False}
    process.post(body if path == "/v1/responses" else {**CHAT, "stream": True}, path)
    (start,) = process.lines("llm:stream_block_start")
    deltas = process.lines("llm:stream_block_delta")
    (end,) = process.lines("llm:stream_block_end")
    assert (start["block_index"], end["block_index"], end["deltas"]) == (0, 0, len(deltas))
    assert sum(each["chars"] for each in deltas) == end["chars"] == len("one two three")
    assert "one two" not in process.gateway.log()


def test_a_block_that_is_cut_short_is_an_event(process: Process, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply(chat_stream("one two three")[:3], end="cut", pause=0.05))
    process.post({**CHAT, "stream": True})
    (aborted,) = process.lines("llm:stream_block_aborted")
    assert aborted["block_type"] == "text"
    assert process.lines("llm:stream_block_end", 0) == []


def test_at_level_info_none_of_that_is_done(tmp_path: Path, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply(chat_stream("one two three")))
    with Gateway(tmp_path, config(scripted), env={"DRAGOMAN_LOG_LEVEL": "info"}) as gateway:
        process = Process(gateway)
        process.post({**CHAT, "stream": True})
        assert len(process.lines("request")) == 1
        assert "llm:" not in gateway.log()
