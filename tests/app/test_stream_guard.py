"""The guard over HTTP: ends that are told and not ended, our own faults, bytes as they come."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from app import answer
from providers import http
from providers.deadlines import Deadlines
from tests.app.conftest import Serve, Served, provider
from tests.backends.loopback import Reply
from tests.backends.replies import (
    chat_chunk,
    chat_stream,
    frame_bytes,
    response_stream,
    sse_reply,
    usage_chunk,
)
from tests.backends.scripted import ScriptedBackend
from translators.chat.decoder import ChatDecoder
from translators.framing import SseFramer

SSE = {"content-type": "text/event-stream"}
ASK = {"model": "p/m", "input": "hi", "stream": True}
CHAT = {
    "model": "p/m",
    "messages": [{"role": "user", "content": "hi"}],
    "stream": True,
    "stream_options": {"include_usage": True},
}
CASES = [("/v1/responses", ASK), ("/v1/chat/completions", CHAT)]
FINISHED = [chat_chunk({"role": "assistant", "content": "ab"}), chat_chunk({}, "stop")]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "TOLD_S", 0.3)
    monkeypatch.setattr(answer, "REST_S", 0.05)


def objects(text: str) -> list[Any]:
    framer = SseFramer()
    payloads = framer.feed(text.encode()) + framer.close()
    return ["[DONE]" if payload == b"[DONE]" else orjson.loads(payload) for payload in payloads]


def logged(served: Served, event: str = "request") -> list[dict[str, Any]]:
    for _ in range(300):
        if found := served.log(event):
            return found
        time.sleep(0.01)
    raise AssertionError("nothing was logged")


# --- an end that is told, and a connection that stays ------------------------------------


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("usage", [[], [0.1, frame_bytes(usage_chunk())]])
@pytest.mark.parametrize(("path", "ask"), CASES)
def test_a_told_end_is_enough(
    serve: Serve, scripted: ScriptedBackend, path: str, ask: Any, usage: list[Any], exact: bool
) -> None:
    served = serve(providers=[provider(scripted, overrides={"answer": {"exact": exact}})])
    scripted.play(Reply(200, SSE, [*map(frame_bytes, FINISHED), *usage], "hang"))
    began = time.monotonic()
    with served.client() as client:
        found = objects(client.post(path, json=ask).text)
        assert time.monotonic() - began < 2
        assert found[-1] == "[DONE]"
        last = found[-2]
        if path == "/v1/responses":
            assert last["type"] == "response.completed"
            assert (last["response"]["usage"] is not None) == bool(usage)
        else:
            assert (last.get("usage") is not None) == bool(usage)
        assert scripted.requests[0].gone.wait(2)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("path", "ask"), CASES)
def test_a_connection_that_breaks_after_a_told_end_breaks_nothing(
    serve: Serve, scripted: ScriptedBackend, path: str, ask: Any
) -> None:
    served = serve(providers=[provider(scripted)])
    scripted.play(sse_reply(FINISHED, end="cut"))
    with served.client() as client:
        found = objects(client.post(path, json=ask).text)
    assert found[-1] == "[DONE]"
    assert "error" not in found[-2]
    assert found[-2].get("type") in (None, "response.completed")


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_whole_answer_is_not_waited_for_beyond_its_told_end(
    serve: Serve, scripted: ScriptedBackend, wire: str
) -> None:
    served = serve(providers=[provider(scripted, wire)])
    frames: list[Any] = FINISHED if wire == "chat" else response_stream("ab")
    first, *rest = map(frame_bytes, frames)
    scripted.play(Reply(200, SSE, [first[:3], 0.05, first[3:], *rest], "hang"))
    began = time.monotonic()
    with served.client() as client:
        for path, ask in CASES:
            reply = client.post(
                path, json={k: v for k, v in ask.items() if k not in ("stream", "stream_options")}
            )
            assert reply.status_code == 200
            assert b"ab" in reply.content
    assert time.monotonic() - began < 4


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("path", "ask"), CASES)
def test_a_responses_stream_ends_with_its_last_event(
    serve: Serve, scripted: ScriptedBackend, path: str, ask: Any
) -> None:
    served = serve(providers=[provider(scripted, "responses")])
    scripted.play(Reply(200, SSE, list(map(frame_bytes, response_stream("ab"))), "hang"))
    began = time.monotonic()
    with served.client() as client:
        found = objects(client.post(path, json=ask).text)
    assert time.monotonic() - began < 2
    assert found[-1] == "[DONE]" or found[-1]["type"] == "response.completed"


@pytest.mark.usefixtures("quick")
def test_signs_of_life_do_not_prolong_the_grace(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    beats: list[Any] = [b": ping\n\n", 0.05] * 100
    scripted.play(Reply(200, SSE, [*map(frame_bytes, FINISHED), *beats], "hang"))
    began = time.monotonic()
    with served.client() as client:
        client.post("/v1/responses", json=ASK)
    assert time.monotonic() - began < 2


# --- faults of ours, and odd backends ----------------------------------------------------


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that breaks at the word "late"."""
    read = ChatDecoder._read

    def broken(self: ChatDecoder, obj: Any) -> None:
        if b"late" in orjson.dumps(obj):
            raise ZeroDivisionError("planted")
        read(self, obj)

    monkeypatch.setattr(ChatDecoder, "_read", broken)


EARLY = chat_chunk({"role": "assistant", "content": "early"})
LATE = chat_chunk({"reasoning_content": "late"})


@pytest.mark.usefixtures("planted")
def test_a_fault_of_ours_ends_the_stream_as_failed(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    scripted.play(sse_reply([EARLY, LATE, "[DONE]"]))
    with served.client() as client:
        reply = client.post("/v1/responses", json=ASK)
    found = objects(reply.text)
    assert [found[-2]["type"], found[-1]] == ["response.failed", "[DONE]"]
    assert "early" in reply.text
    assert [each["sequence_number"] for each in found[:-1]] == list(range(len(found) - 1))
    assert logged(served, "odd_stream")[0]["violations"] == {"fault": 1}
    assert logged(served)[0]["stream_violations"] == 1
    assert "planted" in json.dumps(logged(served, "fault"))
    assert "planted" not in reply.text


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(("path", "ask"), CASES)
@pytest.mark.parametrize("stream", [True, False])
def test_a_fault_of_ours_before_anything_is_sent_is_a_500(
    serve: Serve, scripted: ScriptedBackend, path: str, ask: Any, stream: bool
) -> None:
    served = serve(providers=[provider(scripted)])
    scripted.play(sse_reply([LATE, "[DONE]"]))
    if stream and path == "/v1/chat/completions":
        return  # that one passes undecoded
    body = {key: value for key, value in ask.items() if key != "stream_options"}
    with served.client() as client:
        reply = client.post(path, json={**body, "stream": stream})
    assert (reply.status_code, reply.json()["error"]["type"]) == (500, "server_error")
    assert "planted" in json.dumps(logged(served, "fault"))
    assert "planted" not in reply.text


def test_odd_streams_are_counted_and_warned_of_once(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    frames = chat_stream("ab")
    scripted.play(sse_reply([frames[0], "{nope", "{nope", *frames[1:]]))
    with served.client() as client:
        assert "{nope" not in client.post("/v1/chat/completions", json=CHAT).text
    (line,) = logged(served, "odd_stream")
    assert (line["violations"], line["lane"]) == ({"not_json": 2}, "pass")
    assert logged(served)[0]["stream_violations"] == 2


def test_a_clean_stream_is_not_warned_of(serve: Serve, scripted: ScriptedBackend) -> None:
    with serve(providers=[provider(scripted)]).client() as client:
        for path, ask in CASES:
            client.post(path, json=ask)
    served = serve(providers=[provider(scripted)])
    assert served.log("odd_stream") == []


# --- whom a reading waits for ----------------------------------------------------------


def test_a_reading_knows_whom_it_waits_for() -> None:
    class Content:
        async def readany(self) -> bytes:
            return b"x"

    class Response:
        content, connection = Content(), None

        def close(self) -> None:
            pass

    async def look() -> tuple[str, str]:
        loop, deadlines = asyncio.get_running_loop(), Deadlines(0.01)
        reading = http._Reading(Response(), "p", 0.01, deadlines, loop)  # type: ignore[arg-type]
        await asyncio.sleep(0.05)
        backend = str(reading._failure)
        reading = http._Reading(Response(), "p", 0.01, deadlines, loop)  # type: ignore[arg-type]
        await anext(reading)
        await asyncio.sleep(0.05)
        return backend, str(reading._failure)

    backend, client = asyncio.run(look())
    assert "silent" in backend
    assert client == "None"  # who takes nothing is looked after on the client's side


# --- bytes as they come ------------------------------------------------------------------


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize(("path", "ask"), CASES)
def test_each_chunk_is_seen_within_50_ms(
    serve: Serve, scripted: ScriptedBackend, path: str, ask: Any, wire: str
) -> None:
    served = serve(providers=[provider(scripted, wire)])
    sent: list[float] = []

    def timed(frames: list[Any]) -> Iterator[bytes | float]:
        for frame in frames:
            sent.append(time.monotonic())
            yield frame_bytes(frame)
            yield 0.15

    frames = chat_stream("abcdefghijklmnopqr") if wire == "chat" else response_stream("abcdefghijklmnopqr")
    scripted.play(Reply(200, SSE, timed(frames)))
    seen: dict[str, float] = {}
    with served.client() as client, client.stream("POST", path, json=ask) as reply:
        for data in reply.iter_raw():
            for piece in ("abcdef", "ghijkl", "mnopqr"):
                if f'"{piece}"'.encode() in data:
                    seen.setdefault(piece, time.monotonic())
    first = next(at for at, frame in enumerate(frames) if "abcdef" in json.dumps(frame))
    late = [seen[piece] - sent[first + at] for at, piece in enumerate(("abcdef", "ghijkl", "mnopqr"))]
    assert max(late) < 0.05


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(("path", "ask"), CASES)
def test_any_framing_gives_the_same_text(
    serve: Serve, scripted: ScriptedBackend, path: str, ask: Any, size: int
) -> None:
    """CRLF, comments, several data lines, no JSON, characters cut in two, no last blank line."""
    served = serve(providers=[provider(scripted)])
    whole = orjson.dumps(chat_chunk({"content": "né€😀"}))
    lines = whole.replace(b'"choices"', b'\r\ndata: "choices"', 1)
    data = b": hello\r\n\r\ndata: " + lines + b"\r\n\r\ndata: {nope\r\n\r\n"
    data += b"".join(frame_bytes(frame).replace(b"\n", b"\r\n") for frame in FINISHED) + b"data: [DONE]"
    scripted.play(Reply(200, SSE, [data[at : at + size] for at in range(0, len(data), size)]))
    with served.client() as client:
        text = client.post(path, json=ask).text
    assert "né€😀" in text
    assert objects(text)[-1] == "[DONE]"
