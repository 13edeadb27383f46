"""What the watchers of the pass lane count, mend and leave, and when they know that the end was told."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from tests.backends.replies import Framing, chat_chunk, chat_stream, frame_bytes, response_stream
from tests.laws.pairs import context
from translators.chat.watch import ChatWatcher
from translators.errors import ProxyError
from translators.framing import SseFramer
from translators.profile import AnswerRules, Profile
from translators.responses.watch import ResponsesWatcher

EVENTS = response_stream("hello hello")
DELTA = next(i for i, event in enumerate(EVENTS) if event["type"].endswith("text.delta"))
EXACT = Profile(answer=AnswerRules(exact=True))


def played(
    frames: list[Any], profile: Profile | None = None, together: bool = False
) -> tuple[ResponsesWatcher, bytes]:
    watcher = ResponsesWatcher(profile or Profile(), context())
    written = [
        frame
        if isinstance(frame, bytes)
        else frame_bytes(frame, Framing(event_lines=isinstance(frame, dict)))
        for frame in frames
    ]
    reads = [b"".join(written)] if together else written
    return watcher, b"".join([watcher.feed(read) for read in reads]) + watcher.close()


def with_delta(value: Any) -> list[Any]:
    frames = copy.deepcopy(EVENTS)
    frames[DELTA]["delta"] = value
    return frames


def without(kind: str) -> list[Any]:
    left = [copy.deepcopy(event) for event in EVENTS if event["type"] != "response." + kind]
    return [{**event, "sequence_number": number} for number, event in enumerate(left)]


def skipping() -> list[Any]:
    frames = copy.deepcopy(EVENTS)
    for event in frames[DELTA + 1 :]:
        event["sequence_number"] += 5
    return frames


def raw(old: bytes, new: bytes) -> list[Any]:
    frames: list[Any] = copy.deepcopy(EVENTS)
    frames[DELTA] = frame_bytes(frames[DELTA], Framing(event_lines=True)).replace(old, new)
    return frames


CASES: list[tuple[str, Callable[[], list[Any]], dict[str, int], bytes]] = [
    ("nothing wrong", lambda: EVENTS, {}, b'"delta":"hello "'),
    ("delta null", lambda: with_delta(None), {"bad_delta": 1}, b'"delta":""'),
    ("delta an object", lambda: with_delta({"a": 1}), {"bad_delta": 1}, b'"delta":"{\\"a\\":1}"'),
    ("NaN", lambda: raw(b'"logprobs":[]', b'"logprobs":NaN'), {"not_json": 1}, b'"logprobs":null'),
    ("the word NaN", lambda: raw(b"hello", b"NaN"), {}, b'"delta":"NaN '),
    ("no JSON", lambda: [*EVENTS[:4], b"data: {nope\n\n", *EVENTS[4:]], {"not_json": 1}, b'"delta":"hello "'),
    ("a gap in the numbers", skipping, {"number_gap": 1}, b'"delta":"hello "'),
    ("never added", lambda: without("output_item.added"), {"not_added": 6}, b'"delta":"hello "'),
    ("after the end", lambda: [*EVENTS, EVENTS[4], ": bye", "[DONE]"], {"after_end": 1}, b"[DONE]"),
    (
        "a place that is none",
        lambda: [*EVENTS[:3], {**EVENTS[3], "output_index": []}, *EVENTS[4:]],
        {"not_added": 1},
        b"[]",
    ),
]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    ("frames", "counted", "shown"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_odd_responses_streams(
    frames: Callable[[], list[Any]], counted: dict[str, int], shown: bytes, together: bool
) -> None:
    watcher, out = played(frames(), together=together)
    assert watcher.violations == counted
    assert watcher.error is None
    assert watcher.fault is None
    assert shown in out
    payloads = SseFramer().feed(out)
    assert all(orjson.loads(payload) for payload in payloads if payload != b"[DONE]")


def test_an_exact_backend_keeps_its_own_deltas() -> None:
    watcher, out = played(with_delta(None), EXACT)
    assert b'"delta":null' in out
    assert not watcher.violations


@pytest.mark.parametrize(("frames", "counted"), [(EVENTS[:-1], {}), (EVENTS[:1], {})])
def test_a_missing_end_is_a_failure(frames: list[Any], counted: dict[str, int]) -> None:
    watcher, out = played(frames)
    assert b"response.failed" in out
    assert watcher.error is not None
    assert watcher.violations == counted


def test_a_stream_without_its_beginning_is_translated() -> None:
    watcher, out = played(EVENTS[1:])
    assert out.startswith(b"event: response.created")
    assert (watcher.error, watcher.fault, watcher.violations, watcher.told) == (None, None, {}, False)


def test_a_responses_stream_is_told_with_its_last_event() -> None:
    watcher = ResponsesWatcher(Profile(), context())
    for event in EVENTS[:-1]:
        watcher.feed(frame_bytes(event))
        assert not watcher.told
    watcher.feed(frame_bytes(EVENTS[-1]))
    assert (watcher.told, watcher.ended) == (True, False)
    assert watcher.fail(ProxyError("timeout", "late")) == b""


@pytest.mark.parametrize("profile", [Profile(), EXACT])
@pytest.mark.parametrize("n", [1, 2])
def test_a_chat_stream_is_told_with_the_last_finish_reason(profile: Profile, n: int) -> None:
    asked = context()
    watcher = ChatWatcher(profile, type(asked)(7, "asked", asked.new_id, {"n": n}))
    for index in range(n):
        for chunk in (chat_chunk({"role": "assistant", "content": "a"}), chat_chunk({}, "stop")):
            assert not watcher.told
            chunk["choices"][0]["index"] = index
            watcher.feed(frame_bytes(chunk))
    assert (watcher.told, watcher.ended) == (True, False)
    watcher.feed(b"data: [DONE]\n\n")
    assert watcher.ended


def test_odd_chat_streams_are_counted() -> None:
    frames = chat_stream("ab", usage=False)
    watcher = ChatWatcher(Profile(), context())
    for frame in [frames[0], "{nope", *frames[1:-1], chat_chunk({}, "stop"), "[DONE]"]:
        watcher.feed(frame_bytes(frame))
    assert watcher.violations == {"not_json": 1, "second_finish": 1}
