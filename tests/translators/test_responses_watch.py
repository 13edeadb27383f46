"""Responses streams that pass: bytes as they came, and what is told when they stop or fail."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translators.responses_streams import (
    ANY,
    COMPLETED,
    CREATED,
    DELTA,
    ERROR,
    EXACT,
    USAGE,
    ended,
    events,
    run,
    sizes,
    stream,
    watcher,
)
from translators.ir import Usage
from translators.profile import Profile

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
    for profile in (ANY, EXACT):
        watch = watcher(profile)
        out = run(watch, stream(CREATED, {"type": "response.cancelled", "response": None}))
        assert watch.error is not None
        assert watch.ended
        assert (b"response.failed" in out) == (profile is ANY)


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
