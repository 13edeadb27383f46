"""The pass lane: what is well formed keeps its bytes."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from tests.translators.chat_streams import (
    DONE,
    EXACT,
    STOP,
    call,
    calls,
    chunk,
    chunks,
    frame,
    play,
    watcher,
    wire,
)

WELL_FORMED: dict[str, tuple[Any, ...]] = {
    "text": (
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "He"}),
        chunk({"content": 'l"\\\\lo\n'}),
        STOP,
    ),
    "text with the same frames over and over": (chunk({"content": "a"}),) * 5
    + (chunk({"content": "\\"}), STOP),
    "reasoning": (
        chunk({"reasoning_content": "hm"}),
        chunk({"reasoning_content": "mh"}),
        chunk({"content": "a"}),
        STOP,
    ),
    "think tags": (chunk({"content": "<think>a"}), chunk({"content": "</think>b"}), STOP),
    "refusal": (chunk({"refusal": "no"}), STOP),
    "length": (chunk({"content": "a"}), chunk({}, "length")),
    "keys nobody knows": (chunk({"content": "a", "x": [1]}, provider="p", timings={"t": 1.5}), STOP),
    "several choices": (
        {
            **chunk(),
            "choices": [{"index": i, "delta": {"content": "a"}, "finish_reason": None} for i in (0, 1)],
        },
        {**chunk(), "choices": [{"index": i, "delta": {}, "finish_reason": "stop"} for i in (0, 1)]},
    ),
    "calls": (
        calls(call(0, "", "a", "f")),
        calls(call(0, '{"k')),
        calls(call(0, '":"')),
        calls(call(0, 'x\\"y')),
        calls(call(0, '"}')),
        calls(call(1, "{}", "b", "g")),
        calls(call(2, None, "c", "h")),
        calls(call(2, "{}")),
        chunk({}, "tool_calls"),
    ),
    "a call whole with its finish": (calls(call(0, "{}", "a", "f"), finish="tool_calls"),),
    "calls in one delta": (
        calls(call(0, "{}", "a", "f"), call(1, '{"a":1}', "b", "g")),
        chunk({}, "tool_calls"),
    ),
    "a call with a signature": (
        calls({**call(0, "{}", "a", "f"), "extra_content": {"google": {"thought_signature": "s"}}}),
        calls({"index": 0, "function": {"arguments": ""}, "extra_content": {"more": 1}}),
        chunk({}, "tool_calls"),
    ),
    "a custom call": (
        calls({"index": 0, "id": "a", "type": "custom", "custom": {"name": "patch", "input": ""}}),
        calls({"index": 0, "custom": {"input": "{x"}}),
        chunk({}, "tool_calls"),
    ),
    "function_call of old": (
        chunk({"function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": "{}"}}),
        chunk({}, "function_call"),
    ),
}
FORMS: list[dict[str, bytes]] = [{}, {"newline": b"\r\n"}, {"newline": b"\r"}, {"prefix": b": hi\ndata:"}]


@pytest.mark.parametrize("form", FORMS, ids=["LF", "CRLF", "CR", "comments, no space"])
@pytest.mark.parametrize("size", [0, 1, 7, 100])
@pytest.mark.parametrize("name", WELL_FORMED)
def test_well_formed_streams_keep_their_bytes(name: str, size: int, form: dict[str, bytes]) -> None:
    body = wire(*WELL_FORMED[name], **form)
    out, watch = play(body + wire("[DONE]", **form), size=size)
    assert out == body + DONE
    assert (watch.ended, watch.error) == (True, None)


@pytest.mark.parametrize("name", WELL_FORMED)
def test_an_exact_backend_is_not_touched(name: str) -> None:
    data = wire(chunk({"content": None, "odd": []}), *WELL_FORMED[name], "[DONE]")
    assert play(data, size=9, profile=EXACT)[0] == data


def test_spaces_in_the_json_are_kept() -> None:
    spaced = [b"data: " + json.dumps(chunk({"content": text})).encode() + b"\n\n" for text in "abc"]
    data = b"".join(spaced) + wire(STOP, "[DONE]")
    assert play(data)[0] == data


def test_a_read_gives_what_it_completes() -> None:
    watch = watcher()
    first, second = frame(chunk({"content": "a"})), frame(chunk({"content": "b"}))
    assert watch.feed(first + second[:9]) == first
    assert watch.feed(second[9:]) == second


def test_ordinary_frames_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = watcher()
    watch.feed(frame(chunk({"content": "a"})))
    monkeypatch.setattr(watch, "_look", None)
    for text in ("b", "\n", 'say \\"x\\"', '"quoted"', "日本", "", "\\"):
        data = frame(chunk({"content": text}))
        assert watch.feed(data) == data


def test_pieces_of_a_known_call_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = watcher()
    watch.feed(wire(calls(call(0, "", "a", "f")), calls(call(0, '{"k')), calls(call(0, '":'))))
    with monkeypatch.context() as patched:
        patched.setattr(watch, "_look", None)
        data = frame(calls(call(0, '"v"}')))
        assert watch.feed(data) == data
    # What was passed on is known all the same: the whole text told again is dropped.
    assert watch.feed(wire(calls(call(0, '{"k":"v"}')), chunk({}, "tool_calls"))) == frame(
        chunk({}, "tool_calls")
    )


TRAPS = [
    chunk({"content": 'x","tool_calls":[{"function":{"name":"f","arguments":"{}"}}],"y":"'}),
    chunk({"content": ["list"]}),
    chunk({"content": ""}, "stop"),
]


def test_a_piece_that_is_no_json_is_not_taken_for_an_ordinary_one() -> None:
    """What it said is lost, so nobody can know the arguments."""
    head = wire(calls(call(0, '{"a":"', "x", "f")), *[calls(call(0, "b"))] * 3)
    broken = frame(calls(call(0, "BROKEN"))).replace(b"BROKEN", rb"\q")
    tail = wire(calls(call(0, '"}')), chunk(finish="tool_calls"))
    *told, error, end = chunks(play(head + broken + tail)[0])
    assert told == chunks(play(head + tail)[0])[: len(told)]
    assert ("error" in error, end) == (True, "[DONE]")


def test_a_piece_that_looks_like_the_first_calls_may_be_of_a_later_one() -> None:
    """A backend that numbers every call 0: pieces of both calls differ in nothing but their text."""
    first = [calls(call(0, "", "a", "f")), calls(call(0, '{"x":')), calls(call(0, "1}"))]
    second = [calls(call(0, "", "b", "g")), calls(call(0, '{"y":')), calls(call(0, "2}"))]
    out, _ = play(wire(*first, *second, chunk(finish="tool_calls")) + DONE)
    told: dict[int, str] = {}
    for delta in (each["choices"][0]["delta"] for each in chunks(out) if each != "[DONE]"):
        for entry in delta.get("tool_calls") or []:
            told[entry["index"]] = told.get(entry["index"], "") + entry["function"]["arguments"]
    assert told == {0: '{"x":1}', 1: '{"y":2}'}


@pytest.mark.parametrize("trap", TRAPS, ids=str)
def test_what_differs_elsewhere_is_looked_at(trap: dict[str, Any]) -> None:
    seen: list[bytes] = []
    watch = watcher()
    watch.feed(frame(chunk({"content": "a"})))
    watch._look = lambda frame, out: seen.append(frame)  # type: ignore[method-assign]
    raw = (
        orjson.dumps(trap).replace(b'\\"', b'"')
        if b"tool_calls" in orjson.dumps(trap)
        else orjson.dumps(trap)
    )
    watch.feed(frame(raw))
    assert seen == [frame(raw)]


def test_a_stream_that_changes_all_the_time_is_not_learned_for_ever() -> None:
    watch = watcher()
    for created in range(200):
        data = frame(chunk({"content": "a"}, created=created))
        assert watch.feed(data) == data
    assert watch._pattern.lessons == 64
