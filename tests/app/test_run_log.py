"""The log of a background run: whatever a backend streams comes out as one run, numbered on and ended."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from app.state.run_log import RunLog, is_active
from app.store.runs import Batch
from translators.errors import ProxyError
from translators.responses.frames import END, frame

QUEUED = {
    "id": "resp_run",
    "created_at": 7,
    "status": "queued",
    "background": True,
    "store": True,
    "previous_response_id": None,
    "model": "m",
    "output": [],
    "error": None,
}
ITEM = {"id": "msg_1", "type": "message", "content": []}


def log() -> RunLog:
    made = RunLog(dict(QUEUED))
    made.queued()
    made.start()
    return made


def told(made: RunLog) -> list[dict[str, Any]]:
    batch = made.pending()
    assert batch is not None
    made.written(batch)
    return [orjson.loads(part.partition(b"\ndata: ")[2]) for part in batch.data.split(b"\n\n")[:-1]]


def stream(*events: tuple[str, dict[str, Any]]) -> bytes:
    return b"".join(frame(kind, number + 40, fields) for number, (kind, fields) in enumerate(events)) + END


WHOLE = stream(
    ("response.created", {"response": {"id": "resp_theirs", "status": "in_progress"}}),
    ("response.queued", {"response": {"id": "resp_theirs", "status": "queued"}}),
    ("response.in_progress", {"response": {"id": "resp_theirs", "status": "in_progress"}}),
    ("response.output_item.added", {"output_index": 0, "item": ITEM}),
    ("response.output_text.delta", {"output_index": 0, "item_id": "msg_1", "delta": "hé"}),
    ("response.output_item.done", {"output_index": 0, "item": ITEM}),
    ("response.completed", {"response": {"id": "resp_theirs", "background": False, "output": [ITEM]}}),
    ("response.output_text.delta", {"delta": "after the end"}),
)


@pytest.mark.parametrize("size", [1, 7, len(WHOLE)])
def test_a_whole_stream(size: int) -> None:
    made = log()
    for at in range(0, len(WHOLE), size):
        made.feed(WHOLE[at : at + size])
    events = told(made)
    assert [each["type"].removeprefix("response.") for each in events] == [
        *("created", "queued", "in_progress", "output_item.added"),
        *("output_text.delta", "output_item.done", "completed"),
    ]
    assert [each["sequence_number"] for each in events] == list(range(7))
    assert events[-1]["response"] == {**QUEUED, "status": "completed", "output": [ITEM]} == made.response
    assert made.ended
    assert made.pending() is None


def test_what_is_written_leaves_the_rest() -> None:
    made = log()
    first = made.pending()
    assert first is not None
    assert (first.first, first.last) == (0, 2)
    made.feed(stream(("response.output_text.delta", {"delta": "x"})))
    assert made.size > len(first.data)
    made.written(first)
    rest = made.pending()
    assert isinstance(rest, Batch)
    assert (rest.first, rest.last, len(rest.data)) == (3, 3, made.size)


@pytest.mark.parametrize(
    ("event", "code", "message"),
    [
        ({"code": "server_error", "message": "broken"}, "server_error", "broken"),
        ({"error": {"code": "rate_limit_exceeded", "message": "slow"}}, "rate_limit_exceeded", "slow"),
        ({"code": 7}, "server_error", "The backend failed."),
    ],
)
def test_an_error_event_is_a_failure(event: dict[str, Any], code: str, message: str) -> None:
    made = log()
    made.feed(stream(("response.output_item.done", {"output_index": 0, "item": ITEM}), ("error", event)))
    last = told(made)[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert last["response"]["error"] == {"code": code, "message": message}
    assert last["response"]["output"] == [ITEM]


def test_an_end_from_outside_comes_once() -> None:
    made = log()
    made.end("failed", ProxyError("internal", "why"))
    made.end("cancelled")
    made.feed(WHOLE)
    events = told(made)
    assert [each["type"] for each in events[3:]] == ["response.failed"]
    assert (made.response["status"], made.response["error"]["message"]) == ("failed", "why")


def test_noise_is_no_event() -> None:
    made = log()
    made.feed(b': comment\n\ndata: no json\n\ndata: [1]\n\ndata: {"type":"response.x"}\n\n')
    assert [each["type"] for each in told(made)[3:]] == ["response.x"]


@pytest.mark.parametrize(
    ("response", "active"),
    [
        ({"status": "queued", "background": True}, True),
        ({"status": "in_progress", "background": True}, True),
        ({"status": "in_progress", "background": False}, False),
        ({"status": "completed"}, False),
        ({"status": "completed", "output": [{"status": "in_progress"}]}, False),
        ({}, False),
    ],
)
def test_what_is_still_being_made(response: dict[str, Any], active: bool) -> None:
    assert is_active(orjson.dumps(response)) is active
