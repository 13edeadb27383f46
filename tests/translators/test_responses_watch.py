"""Responses streams that pass: bytes as they came, and what is added where they do not do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import orjson
import pytest

from translators.dialect import ReplyContext
from translators.errors import ProxyError
from translators.framing import SseFramer
from translators.ir import Usage
from translators.profile import AnswerRules, Profile
from translators.responses.watch import ResponsesWatcher, tidy_reply

ANY = Profile()
EXACT = replace(ANY, answer=AnswerRules(exact=True))
ERROR = ProxyError("timeout", "too slow")

HEAD: dict[str, Any] = {
    "id": "resp_up",
    "object": "response",
    "created_at": 5,
    "model": "up",
    "parallel_tool_calls": True,
    "tools": [],
    "tool_choice": "auto",
}
CREATED: dict[str, Any] = {
    "type": "response.created",
    "sequence_number": 0,
    "response": {**HEAD, "status": "in_progress", "output": [], "error": None},
}
DELTA = {"type": "response.output_text.delta", "sequence_number": 1, "delta": '"error":{ response.completed'}
USAGE = {
    "input_tokens": 3,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 2,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 5,
}
COMPLETED: dict[str, Any] = {
    "type": "response.completed",
    "sequence_number": 2,
    "response": {**HEAD, "status": "completed", "output": [], "usage": USAGE},
}


def ended(*output: Any, **more: Any) -> dict[str, Any]:
    """`response.completed` with this output."""
    return {**COMPLETED, "response": {**COMPLETED["response"], "output": list(output), **more}}


def watcher(profile: Profile = ANY) -> ResponsesWatcher:
    numbers = count(1)
    context = ReplyContext(created=7, model="m", new_id=lambda prefix: f"{prefix}{next(numbers)}")
    return ResponsesWatcher(profile, context)


def stream(*objs: Any, newline: bytes = b"\n", named: bool = True) -> bytes:
    """Frames as a backend sends them; strings and bytes go as they are."""
    out = b""
    for obj in objs:
        if isinstance(obj, bytes):
            out += obj
            continue
        event = b"event: " + obj["type"].encode() + newline if named and "type" in obj else b""
        out += event + b"data: " + orjson.dumps(obj) + newline * 2
    return out


def run(watch: ResponsesWatcher, sent: bytes, size: int = 0) -> bytes:
    """Everything the client gets, `size` bytes to a read (0: all in one)."""
    step = size or len(sent) or 1
    return b"".join([watch.feed(sent[i : i + step]) for i in range(0, len(sent), step)]) + watch.close()


def events(data: bytes) -> list[dict[str, Any]]:
    framer = SseFramer()
    return [orjson.loads(p) for p in (*framer.feed(data), *framer.close()) if p != b"[DONE]"]


def sizes() -> Iterator[int]:
    yield from (0, 1, 7, 50)


# --- what passes -----------------------------------------------------------------------

WHOLE: list[bytes] = [
    stream(CREATED, DELTA, COMPLETED),
    stream(CREATED, DELTA, COMPLETED, named=False),
    stream(CREATED, DELTA, COMPLETED, newline=b"\r\n"),
    stream(CREATED, DELTA, COMPLETED, newline=b"\r"),
    stream(
        b": a comment\n\n",
        CREATED,
        b": another\n\n",
        DELTA,
        COMPLETED,
        b"data: [DONE]\n\n",
    ),
    stream(CREATED, {**COMPLETED, "type": "response.incomplete"}),
    stream(CREATED, {"type": ["odd"], "item": {}}, DELTA, COMPLETED, named=False),
]


@pytest.mark.parametrize("size", list(sizes()))
@pytest.mark.parametrize("profile", [ANY, EXACT])
@pytest.mark.parametrize("sent", WHOLE)
def test_a_good_stream_passes_byte_for_byte(sent: bytes, profile: Profile, size: int) -> None:
    watch = watcher(profile)
    assert run(watch, sent, size) == sent
    assert (watch.ended, watch.error, watch.usage) == (True, None, Usage(3, 2))
    assert (watch.keepalive(), watch.start(), watch.fail(ERROR)) == (b"", b"", b"")


def test_the_end_marker_after_the_last_event_is_waited_for() -> None:
    watch = watcher()
    watch.feed(stream(CREATED))
    watch.feed(stream(COMPLETED))
    assert (watch.ended, watch.keepalive(), watch.usage) == (False, b"", Usage(3, 2))
    assert watch.feed(b"data: [DONE]\n\n") == b"data: [DONE]\n\n"
    assert watch.ended
    late = watcher()
    late.feed(stream(CREATED, COMPLETED))
    assert (late.fail(ERROR), late.ended, late.error) == (b"", True, None)
    exact = watcher(EXACT)
    exact.feed(stream(CREATED, COMPLETED))
    assert exact.ended  # OpenAI sends none


def test_whole_frames_leave_as_they_come() -> None:
    watch, first, second = watcher(), stream(CREATED), stream(DELTA)
    assert watch.feed(first + second[:10]) == first
    assert not watch.ended
    assert watch.feed(second[10:]) == second


@pytest.mark.parametrize("named", [True, False])
def test_a_delta_alone_in_its_read_is_counted(named: bool) -> None:
    watch, delta = watcher(), stream(DELTA, named=named)
    watch.feed(stream(CREATED))
    assert watch.feed(delta) == delta
    (failed,) = events(watch.close())
    assert failed["sequence_number"] == 2


def test_a_comment_keeps_the_client_waiting() -> None:
    watch = watcher()
    assert watch.start() == watch.keepalive() == b": keep-alive\n\n"
    assert not watch.begun
    watch.feed(stream(CREATED))
    assert watch.begun
    assert watch.keepalive() == b": keep-alive\n\n"


def test_a_last_frame_without_its_blank_line_gets_it() -> None:
    sent = stream(CREATED, COMPLETED)
    watch = watcher()
    assert run(watch, sent[:-2]) == sent
    assert watch.ended
    assert run(watcher(), sent[:-1]) == sent
    assert run(watcher(), sent + b"data: [DONE]") == sent + b"data: [DONE]\n\n"


def test_a_backends_own_failure_passes_and_is_known() -> None:
    error = {"code": "rate_limit_exceeded", "message": "slow down"}
    failed = {"type": "response.failed", "response": {"status": "failed", "error": error, "usage": USAGE}}
    watch = watcher()
    assert run(watch, stream(CREATED, failed)) == stream(CREATED, failed)
    assert watch.error is not None
    assert (watch.error.kind, watch.error.message, watch.usage) == ("rate_limit", "slow down", Usage(3, 2))


def test_a_cancelled_reply_is_a_failure_without_words() -> None:
    watch = watcher()
    run(watch, stream(CREATED, {"type": "response.cancelled", "response": None}))
    assert watch.error is not None
    assert watch.ended


# --- a stream that stops ---------------------------------------------------------------


@pytest.mark.parametrize("size", list(sizes()))
@pytest.mark.parametrize("profile", [ANY, EXACT])
def test_an_early_end_becomes_a_failure_with_the_next_number(profile: Profile, size: int) -> None:
    sent = stream(CREATED, DELTA, b": a comment\n\n")
    watch = watcher(profile)
    out = run(watch, sent + b'data: {"type":"response.output_text.del', size)
    assert out.startswith(sent)
    (failed,) = events(out[len(sent) :])
    assert failed["type"] == "response.failed"
    assert failed["sequence_number"] == 2
    assert failed["response"] == {
        **CREATED["response"],
        "status": "failed",
        "error": {"code": "server_error", "message": "The backend's stream ended before its reply did."},
    }
    assert watch.ended
    assert watch.error is not None


def test_a_failure_from_outside_ends_the_stream_and_nothing_follows_it() -> None:
    watch = watcher()
    watch.feed(stream(CREATED))
    (failed,) = events(watch.fail(ERROR))
    assert (failed["sequence_number"], failed["response"]["error"]["message"]) == (1, "too slow")
    assert watch.error is ERROR
    assert watch.feed(stream(DELTA, COMPLETED)) == b""
    assert watch.close() == b""


def test_numbers_begin_at_0_where_the_backend_counts_nothing() -> None:
    created = {"type": "response.created", "response": {"id": "r"}}
    (_, failed) = events(run(watcher(EXACT), stream(created, b": comment\n\n")))
    assert failed["sequence_number"] == 0


@pytest.mark.parametrize("profile", [ANY, EXACT])
@pytest.mark.parametrize("sent", [b"", b": ping\n\n", b"data: {"])
def test_a_stream_that_never_began_still_has_a_beginning(sent: bytes, profile: Profile) -> None:
    watch = watcher(profile)
    types = [event["type"] for event in events(run(watch, sent))]
    assert types == ["response.created", "response.in_progress", "response.failed"]
    assert watch.error is not None


# --- errors in the stream --------------------------------------------------------------

FLAT = {"type": "error", "code": "server_error", "message": "boom", "sequence_number": 2}
ODD_ERRORS = [FLAT, {"type": "error", "error": {"message": "boom"}}, {"error": {"message": "boom"}}]


@pytest.mark.parametrize("size", list(sizes()))
@pytest.mark.parametrize("error", ODD_ERRORS)
def test_an_error_event_becomes_a_failure(error: Any, size: int) -> None:
    watch = watcher()
    out = run(watch, stream(CREATED, DELTA, error, DELTA), size)
    assert out.startswith(stream(CREATED, DELTA))
    assert [event["type"] for event in events(out)] == [
        "response.created",
        "response.output_text.delta",
        "response.failed",
    ]
    failed = events(out)[-1]
    assert (failed["sequence_number"], failed["response"]["error"]["message"]) == (2, "boom")
    assert watch.error is not None


def test_an_error_event_alone_in_its_read_counts_on() -> None:
    watch = watcher()
    watch.feed(stream(CREATED, DELTA))
    (failed,) = events(watch.feed(stream(FLAT)))
    assert failed["sequence_number"] == 2


@pytest.mark.parametrize("error", ODD_ERRORS)
def test_an_exact_backends_error_event_is_its_own(error: Any) -> None:
    watch = watcher(EXACT)
    sent = stream(CREATED, DELTA, error)
    assert run(watch, sent) == sent
    assert watch.ended
    assert watch.error is not None


def test_what_only_looks_like_an_error_passes() -> None:
    item = {"id": "mcp_1", "type": "mcp_call", "error": {"message": "x"}}
    odd = {"type": "response.output_item.done", "item": item}
    sent = stream(CREATED, odd, ended(item))
    watch = watcher()
    assert run(watch, sent) == sent
    assert watch.error is None


# --- streams clients cannot read -------------------------------------------------------

AGENT = stream(
    {"type": "response.output_text.delta", "item_id": "a", "delta": "Hi"},
    {"type": "response.output_item.done", "item": {"type": "message", "id": "a", "content": "Hi"}},
    b"data: [DONE]\n\n",
    named=False,
)


def test_a_stream_without_numbers_is_translated() -> None:
    numbered = [
        {key: value for key, value in obj.items() if key != "sequence_number"} for obj in (CREATED, COMPLETED)
    ]
    told = events(run(watcher(), stream(*numbered)))
    assert [event["sequence_number"] for event in told] == [0, 1, 2]


@pytest.mark.parametrize("size", list(sizes()))
def test_a_stream_with_another_beginning_is_translated(size: int) -> None:
    watch = watcher()
    out = run(watch, b": ping\n\n" + AGENT, size)
    told = events(out)
    assert told[0]["type"] == "response.created"
    assert told[-1]["type"] == "response.completed"
    assert told[-1]["response"]["output"][0]["content"][0]["text"] == "Hi"
    assert (watch.ended, watch.error, watch.usage) == (True, None, None)
    assert watch.keepalive() == b""


def test_a_translated_stream_is_kept_alive_and_failed_in_its_own_way() -> None:
    watch = watcher()
    watch.feed(stream({"type": "response.output_text.delta", "delta": "Hi"}))
    assert watch.begun
    assert events(watch.keepalive())[0]["type"] == "response.in_progress"
    assert events(watch.fail(ERROR))[-1]["type"] == "response.failed"
    assert watch.error is ERROR


def test_an_error_before_anything_else_fails_the_reply() -> None:
    watch = watcher()
    out = events(watch.feed(stream({"error": {"message": "boom"}})))
    assert [event["type"] for event in out] == ["response.created", "response.in_progress", "response.failed"]
    assert watch.error is not None
    assert watch.error.message == "boom"


def test_a_last_frame_may_be_the_first() -> None:
    watch = watcher()
    told = events(run(watch, stream(COMPLETED)[:-2]))
    assert told[0]["type"] == "response.created"
    assert told[-1]["type"] == "response.completed"
    assert watch.usage == Usage(3, 2)


def test_an_exact_backend_begins_as_it_likes() -> None:
    sent = stream({"type": "response.queued", "response": {}}, CREATED, COMPLETED)
    assert run(watcher(EXACT), sent) == sent


def test_an_item_without_a_usable_id_is_told_once() -> None:
    odd = {"type": "web_search_call", "id": ["ws"], "call_id": {}, "status": "completed"}
    done = {"type": "response.output_item.done", "sequence_number": 1, "output_index": 0, "item": odd}
    told = events(run(watcher(), stream(CREATED, done, ended(odd))))
    assert [event["type"] for event in told][1:] == ["response.output_item.done", "response.completed"]


# --- whole bodies ----------------------------------------------------------------------


def test_a_body_passes_as_it_is() -> None:
    body = {**HEAD, "status": "completed", "output": [], "error": None, "usage": USAGE}
    tidy, usage = tidy_reply(body, ANY)
    assert tidy is body
    assert usage == Usage(3, 2)
    assert tidy_reply({"output": []}, ANY)[1] is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "boom"}}, "boom"),
        ({"status": "failed", "output": [], "error": {"message": "boom"}}, "boom"),
        ({"status": "completed", "output": [], "error": {"message": "boom"}}, "boom"),
        (
            {"status": "cancelled", "output": []},
            "The backend says that the reply was cancelled, and not why.",
        ),
        ({"error_code": "BAD", "message": "databricks"}, "databricks"),
        ({}, "The backend's answer is not a finished response object."),
        ({"output": "hi"}, "The backend's answer is not a finished response object."),
        (
            {"status": "in_progress", "output": []},
            "The backend's answer is not a finished response object.",
        ),
    ],
)
def test_a_body_that_carries_an_error_raises_it(body: dict[str, Any], message: str) -> None:
    with pytest.raises(ProxyError) as caught:
        tidy_reply(body, ANY)
    assert caught.value.message == message


# --- the last event, whole -------------------------------------------------------------

MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "ok", "annotations": []}],
}
CALL: dict[str, Any] = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "f",
    "arguments": "{}",
    "status": "completed",
}


def done(number: int, item: Any, **place: int) -> dict[str, Any]:
    return {"type": "response.output_item.done", "sequence_number": number, "item": item, **place}


@pytest.mark.parametrize("size", list(sizes()))
@pytest.mark.parametrize("output", [[], None, [{**MESSAGE, "id": "msg_new"}, CALL], [CALL, MESSAGE]])
def test_the_last_event_holds_the_items_that_were_done(output: Any, size: int) -> None:
    sent = [CREATED, done(1, MESSAGE, output_index=0), done(2, CALL, output_index=1)]
    last = {**ended(), "sequence_number": 3}
    last["response"] = {**last["response"], "output": output}
    got = events(run(watcher(), stream(*sent, last), size))
    assert got[:-1] == sent
    assert got[-1] == {**last, "response": {**last["response"], "output": [MESSAGE, CALL]}}


def test_items_without_a_place_keep_their_order() -> None:
    got = events(run(watcher(), stream(CREATED, done(1, MESSAGE), done(2, CALL), done(3, "junk"), ended())))
    assert got[-1]["response"]["output"] == [MESSAGE, CALL]


def test_an_exact_backends_last_event_is_its_own() -> None:
    sent = stream(CREATED, done(1, MESSAGE, output_index=0), ended(usage={"input_tokens": 1}))
    assert run(watcher(EXACT), sent) == sent


def test_usage_with_a_hole_is_told_whole() -> None:
    watch = watcher()
    got = events(run(watch, stream(CREATED, ended(usage={"input_tokens": 3, "output_tokens": 2}))))
    assert got[-1]["response"]["usage"] == {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 5,
    }
    assert (got[-1]["sequence_number"], watch.usage) == (2, Usage(3, 2))


@pytest.mark.parametrize("kind", ["response.completed", "response.incomplete"])
def test_items_that_only_the_last_event_tells_get_their_events(kind: str) -> None:
    other = {**MESSAGE, "id": "msg_2"}
    last = {**ended(MESSAGE, CALL, other), "type": kind, "sequence_number": 9}
    last["response"]["status"] = kind.removeprefix("response.")
    got = events(run(watcher(), stream(CREATED, done(1, MESSAGE, output_index=0), last)))
    assert [event["sequence_number"] for event in got] == list(range(len(got)))
    assert {event["output_index"] for event in got[2:-1]} == {1, 2}
    late = [event["item"] for event in got[2:-1] if event["type"] == "response.output_item.done"]
    assert [item["type"] for item in late] == ["function_call", "message"]
    assert got[-1]["response"]["output"] == [MESSAGE, *late]
    assert got[-1]["type"] == kind


def test_a_last_event_without_a_response_ends_the_reply_all_the_same() -> None:
    last = {"type": "response.completed", "sequence_number": "two"}
    got = events(run(watcher(), stream(CREATED, done(1, MESSAGE, output_index=0), last)))
    assert got[-1]["response"] == {**CREATED["response"], "status": "completed", "output": [MESSAGE]}
    assert got[-1]["sequence_number"] == 2


@pytest.mark.parametrize("key", ["id", "created_at", "model", "parallel_tool_calls", "tools", "tool_choice"])
def test_a_beginning_with_a_hole_is_translated(key: str) -> None:
    first = {**CREATED, "response": {k: v for k, v in CREATED["response"].items() if k != key}}
    got = events(run(watcher(), stream(first, done(1, MESSAGE, output_index=0), ended(MESSAGE))))
    assert got[0]["response"].keys() >= HEAD.keys()
    assert [event["sequence_number"] for event in got] == list(range(len(got)))
    assert got[-1]["response"]["output"][0]["content"][0]["text"] == "ok"


def test_events_in_a_list_are_told_one_by_one() -> None:
    listed = b"data: " + orjson.dumps([done(1, MESSAGE, output_index=0), ended(MESSAGE)]) + b"\n\n"
    got = events(run(watcher(), stream(CREATED) + listed))
    assert got == [CREATED, done(1, MESSAGE, output_index=0), ended(MESSAGE)]
