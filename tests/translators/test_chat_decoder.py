"""Chat streams as data: each case drives the decoder whole, byte by byte, and with other line ends."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import pytest

from translators.chat.decoder import ChatDecoder
from translators.framing import SseFramer
from translators.ir import Annotated, Closed, Delta, Event, Failed, Finished, Grammar, Opened, Started
from translators.profile import AnswerRules, Profile, ReasoningRules, merge

LOGPROBS = {"content": [{"token": "b", "logprob": -0.5, "bytes": [98], "top_logprobs": []}]}
CASES = json.loads((Path(__file__).parent.parent / "cases" / "chat_streams.json").read_text())
BASE = {"": None, "eos": "stop", "end_turn": "stop", "max_tokens": "length", "error": None}


def profile_of(case: dict[str, Any]) -> Profile:
    told = merge({"answer": {"finish_map": BASE}}, case["profile"])
    reasoning = {k: tuple(v) if isinstance(v, list) else v for k, v in told.get("reasoning", {}).items()}
    return Profile(answer=AnswerRules(**told["answer"]), reasoning=ReasoningRules(**reasoning))


def frames(case: dict[str, Any]) -> list[bytes]:
    return [b"[DONE]" if obj == "[DONE]" else orjson.dumps(obj) for obj in case["upstream"]]


def decode(profile: Profile, payloads: list[bytes]) -> list[Event]:
    """All events, checked against the grammar."""
    decoder, grammar = ChatDecoder(profile), Grammar()
    events: list[Event] = []
    for payload in payloads:
        events += decoder.done() if payload == b"[DONE]" else decoder.feed(orjson.loads(payload))
    events += decoder.close()
    for event in events:
        grammar.see(event)
    return events


def written(event: Event) -> list[Any]:
    """An event as the cases write it; what has its default is left out."""
    match event:
        case Started():
            return ["started", event.id, event.model]
        case Opened():
            named = [event.call_id, event.name] if event.kind == "tool_call" else []
            odd = {"joins": True} if event.joins else {"tool": "custom"} if event.tool == "custom" else {}
            return ["opened", event.index, event.kind, *named, *([odd] if odd else [])]
        case Delta():
            return ["delta", event.index, event.text, *([event.logprobs] if event.logprobs else [])]
        case Annotated():
            return ["cited", event.index, event.annotation]
        case Closed():
            told = {k: v for k, v in (("sealed", event.sealed), ("cut", event.cut)) if v}
            return ["closed", event.index, *([told] if told else [])]
        case Finished():
            return ["finished", event.reason, counts(event)]
        case Failed():
            return [
                "failed",
                event.error.kind,
                event.error.message,
                *([counts(event)] if event.usage else []),
            ]
        case _:
            raise AssertionError(event)


def counts(event: Finished | Failed) -> dict[str, int] | None:
    if event.usage is None:
        return None
    return {k: v for k, v in asdict(event.usage).items() if v or k in ("input", "output")}


def agree(found: list[Any], wanted: list[Any]) -> None:
    """Equal, but a failure's message need only hold the words."""
    if wanted and wanted[-1][0] == "failed" and found and found[-1][0] == "failed":
        assert wanted[-1][2] in found[-1][2]
        found[-1][2] = wanted[-1][2]
    wanted = [[part for part in event if part != {"joins": False}] for event in wanted]
    assert found == wanted


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_events(case: dict[str, Any]) -> None:
    agree([written(event) for event in decode(profile_of(case), frames(case))], case["events"])


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_events_byte_by_byte(case: dict[str, Any], newline: bytes) -> None:
    wire = b"".join(b": ping%b%bdata: %b%b%b" % (newline, newline, f, newline, newline) for f in frames(case))
    framer, payloads = SseFramer(), list[bytes]()
    for byte in wire:
        payloads += framer.feed(bytes([byte]))
    payloads += framer.close()
    agree([written(event) for event in decode(profile_of(case), payloads)], case["events"])


def chunk(**delta: Any) -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def test_started_tells_everything() -> None:
    first = {**chunk(content="a"), "created": 1.9, "service_tier": "flex", "system_fingerprint": "fp"}
    assert next(ChatDecoder(Profile()).feed(first)) == Started("c", "m", 1, "flex", "fp")


@pytest.mark.parametrize(
    "odd",
    [
        {"usage": {"prompt_tokens": 1, "completion_tokens": 1}},
        {"error": {"message": "boom"}},
        {"choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": "stop"}]},
        {"choices": [{"index": 0, "delta": {"content": "b", "refusal": "no"}}]},
        {"choices": [{"index": 0, "delta": {"content": "b"}, "error": {"message": "boom"}}]},
        {"choices": [{"index": 0, "delta": {"content": "b"}, "logprobs": LOGPROBS}]},
        {"choices": [{"index": 1, "delta": {"content": "other"}}]},
        {"choices": [{"index": 0, "delta": "b"}]},
        {"choices": ["b"]},
        {"choices": "b"},
        {"choices": [{"index": 0, "delta": {"content": ["b"]}}]},
    ],
    ids=str,
)
def test_the_short_way_agrees_with_the_long_one(odd: dict[str, Any]) -> None:
    """After text, an odd chunk gives what it gives a decoder that never takes the short way."""
    short, long = ChatDecoder(Profile()), ChatDecoder(Profile())
    results = []
    for decoder, first in ((short, chunk(content="a")), (long, chunk(content="a"))):
        events = list(decoder.feed(first))
        if decoder is long:
            decoder._plain = -1
        events += [*decoder.feed({**chunk(content="b"), **odd}), *decoder.done()]
        results.append([written(event) for event in events])
    assert results[0] == results[1]


def test_plain_text_takes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = ChatDecoder(Profile())
    list(decoder.feed(chunk(content="a")))
    monkeypatch.setattr(decoder, "_read", None)
    assert list(decoder.feed(chunk(content="b"))) == [Delta(0, "b")]


def test_nothing_comes_after_the_end() -> None:
    decoder = ChatDecoder(Profile())
    assert [*decoder.feed({"error": "boom"})] != []
    assert [*decoder.feed(chunk(content="a")), *decoder.done(), *decoder.close()] == []
