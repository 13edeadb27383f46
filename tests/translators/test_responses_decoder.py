"""Streams and bodies of Responses backends, good and odd, as neutral events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from translators.framing import SseFramer
from translators.ir import (
    Annotated,
    Closed,
    Delta,
    Event,
    Failed,
    Finished,
    Foreign,
    Grammar,
    Opened,
    Started,
)
from translators.profile import Profile
from translators.responses.decoder import ResponsesDecoder
from translators.responses.reply import decode_reply

STREAMS: dict[str, list[Any]] = orjson.loads(
    (Path(__file__).parents[1] / "cases" / "responses_streams.json").read_bytes()
)


def decoded(objs: list[Any]) -> list[Event]:
    """The events of a stream; `[DONE]` is its end marker. Their order is checked."""
    decoder, grammar = ResponsesDecoder(Profile()), Grammar()
    events = [event for obj in objs for event in (decoder.done() if obj == "[DONE]" else decoder.feed(obj))]
    events += decoder.close()
    assert not [*decoder.feed({"type": "response.output_text.delta", "delta": "x"}), *decoder.done()]
    for event in events:
        grammar.see(event)
    return events


def words(event: Event) -> str:
    """An event in a few words, those that say nothing left out."""
    match event:
        case Started():
            told = (event.id, event.model, event.created, event.service_tier)
            return " ".join(["started", *(str(one) for one in told if one)])
        case Opened(kind="tool_call"):
            tool = event.tool if event.tool != "function" else None
            told = ("tool_call", event.index, event.call_id or "-", event.name, tool, event.namespace)
            return " ".join(str(one) for one in told if one is not None)
        case Opened():
            phase = f"phase {event.phase}" if event.phase else None
            told = (event.kind, event.index, "joins" if event.joins else None, phase)
            return " ".join(str(one) for one in told if one is not None)
        case Delta():
            return f"{event.index} {event.text}" + (" +logprobs" if event.logprobs else "")
        case Annotated():
            return f"{event.index} cites {event.annotation['type']}"
        case Closed():
            sealed = f" sealed {event.sealed}" if event.sealed else ""
            whole = f" whole {event.text}" if event.text is not None else ""
            return f"closed {event.index}{sealed}{whole}{' cut' if event.cut else ''}"
        case Foreign():
            return f"foreign {event.index} {event.item.type}"
        case Finished() | Failed():
            said = event.reason if isinstance(event, Finished) else f"failed: {event.error.message}"
            return said + (f" {event.usage.input}+{event.usage.output}" if event.usage else "")


@pytest.mark.parametrize("name", STREAMS)
def test_streams(name: str) -> None:
    objs, want = STREAMS[name]
    assert [words(event) for event in decoded(objs)] == want


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("name", STREAMS)
def test_any_framing_byte_by_byte(name: str, newline: bytes) -> None:
    objs, _ = STREAMS[name]
    sent = b"".join(
        b"data: " + (obj.encode() if isinstance(obj, str) else orjson.dumps(obj)) + newline * 2
        for obj in objs
    )
    framer = SseFramer()
    payloads = [
        payload for i in range(len(sent)) for payload in framer.feed(sent[i : i + 1])
    ] + framer.close()
    read = [payload.decode() if payload == b"[DONE]" else orjson.loads(payload) for payload in payloads]
    assert [words(event) for event in decoded(read)] == [words(event) for event in decoded(objs)]


def test_a_failure_keeps_its_code() -> None:
    (*_, failed) = decoded(
        [
            {
                "type": "response.failed",
                "response": {"error": {"code": "rate_limit_exceeded", "message": "slow"}},
            }
        ]
    )
    assert isinstance(failed, Failed)
    assert failed.error.kind == "rate_limit"
    assert failed.error.body()["code"] == "rate_limit_exceeded"


# --- whole bodies ----------------------------------------------------------------------

MESSAGE = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}]}

BODIES: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"id": "r", "model": "up", "created_at": 7, "status": "completed", "output": [MESSAGE]},
        ["started r up 7", "text 0", "0 Hi", "closed 0", "stop"],
    ),
    (
        {"output": [MESSAGE], "usage": {"input_tokens": 1}},
        ["started", "text 0", "0 Hi", "closed 0", "stop 1+0"],
    ),
    (
        {
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
            "output": [{"type": "reasoning", "summary": []}],
        },
        ["started", "length"],
    ),
    (
        {"status": "failed", "error": {"code": "server_error", "message": "boom"}, "output": []},
        ["failed: boom"],
    ),
    ({"error": {"message": "in a 200"}}, ["failed: in a 200"]),
    (
        {"status": "in_progress", "output": []},
        ["failed: The backend's answer is not a finished response object."],
    ),
    ({"choices": [{}]}, ["failed: The backend's answer is not a finished response object."]),
]


@pytest.mark.parametrize(("body", "want"), BODIES)
def test_bodies(body: dict[str, Any], want: list[str]) -> None:
    assert [words(event) for event in decode_reply(body, Profile())] == want


def last_events() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, (objs, _) in STREAMS.items():
        ends = [obj for obj in objs if isinstance(obj, dict) and str(obj.get("type")).endswith("completed")]
        if len(objs) == 1 and ends and isinstance(ends[0]["response"].get("output"), list):
            yield name, ends[0]["response"]


@pytest.mark.parametrize(("name", "body"), list(last_events()))
def test_a_body_gives_the_events_of_its_stream(name: str, body: dict[str, Any]) -> None:
    assert [words(event) for event in decode_reply(body, Profile())] == STREAMS[name][1]


def test_an_agent_that_stops_in_the_middle_of_an_item_has_failed() -> None:
    """Without a frame the items alone say whether the reply is whole."""
    *_, last = decoded([{"type": "response.output_text.delta", "item_id": "m", "delta": "Hel"}])
    assert isinstance(last, Failed)
