"""The blocks of streams: where each begins, grows and ends, fed byte by byte."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from app.telemetry.blocks import Blocks
from tests.backends.replies import ToolUse, chat_chunk, chat_stream, response_stream


def events(frames: list[Any]) -> list[tuple[Any, ...]]:
    told: list[tuple[Any, ...]] = []
    blocks = Blocks(lambda event, fields: told.append((event, *fields.values())))
    for frame in frames:
        data = frame if isinstance(frame, bytes) else b"data: %b\n\n" % _text(frame)
        for byte in data:
            blocks.feed(bytes([byte]))
    blocks.close()
    return told


def _text(frame: Any) -> bytes:
    return frame.encode() if isinstance(frame, str) else orjson.dumps(frame)


def test_a_text() -> None:
    assert events(chat_stream("abcdefgh")) == [
        ("start", 0, "text"),
        ("delta", 0, "text", 1, 6),
        ("delta", 0, "text", 2, 2),
        ("end", 0, "text", 2, 8),
    ]


def test_a_thought_before_a_text_ends_when_that_begins() -> None:
    frames = [chat_chunk({"reasoning_content": "hm"}), chat_chunk({"content": "a"}), chat_chunk({}, "stop")]
    told = [(each[0], each[1], each[2]) for each in events(frames) if each[0] != "delta"]
    assert told == [
        ("start", 0, "reasoning"),
        ("end", 0, "reasoning"),
        ("start", 1, "text"),
        ("end", 1, "text"),
    ]


def test_calls_are_told_apart() -> None:
    told = events(chat_stream("", [ToolUse("a", "f", "{}"), ToolUse("b", "g", '{"x": 1}')]))
    starts = [each for each in told if each[0] == "start"]
    ends = [each for each in told if each[0] == "end"]
    assert {each[2] for each in starts} == {"function_call"}
    assert sum(each[4] for each in ends) == len("{}") + len('{"x": 1}')


def test_items_of_a_responses_stream() -> None:
    told = events(response_stream("abcdefgh"))
    assert (told[0][:3], told[-1][0], told[-1][4]) == (("start", 0, "message"), "end", 8)


@pytest.mark.parametrize(
    "last",
    [
        {"error": {"message": "broken"}},
        {"type": "response.failed", "response": {}},
        {"type": "error", "message": "broken"},
        b"",
    ],
)
def test_what_is_cut_short_is_aborted(last: Any) -> None:
    told = events([chat_chunk({"content": "a"}), last])
    assert told[-1] == ("aborted", 0, "text", 1, 1)


@pytest.mark.parametrize(
    "frame",
    [
        "{not json",
        "3",
        "[DONE]",
        {"choices": None},
        {"choices": [3, {"index": "x", "delta": 4}]},
        {"choices": [{"delta": {"tool_calls": [{}]}}]},
        {"type": "response.output_item.added", "item": 3},
        {"type": "response.output_item.done"},
        {"type": "response.output_text.delta", "output_index": "x", "delta": 3},
    ],
)
def test_oddities_break_nothing(frame: Any) -> None:
    assert events([frame, *chat_stream("ab")])[-1][0] in ("end", "aborted")


@pytest.mark.parametrize(
    ("last", "how"), [("response.failed", "aborted"), ("error", "aborted"), ("response.incomplete", "end")]
)
def test_an_item_that_is_incomplete_is_told_by_what_follows(last: str, how: str) -> None:
    item = {"type": "message", "status": "incomplete"}
    frames = [
        {"type": f"response.output_item.{step}", "output_index": 0, "item": item}
        for step in ("added", "done")
    ]
    assert [each[0] for each in events([*frames, {"type": last}])] == ["start", how]
