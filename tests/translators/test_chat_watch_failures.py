"""Chat streams that fail: errors in them, early ends, failures from outside."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translators.chat_streams import (
    EXACT,
    STOP,
    USAGE,
    call,
    calls,
    chunk,
    chunks,
    frame,
    play,
    watcher,
    wire,
)
from translators.errors import ProxyError
from translators.profile import Profile

ERRORS: list[tuple[Any, str]] = [
    ({"error": {"message": "boom", "type": "server_error", "code": None}}, "server_error"),
    ({**USAGE, "error": {"code": 502, "message": "boom"}}, "upstream_error"),
    ({"error": "boom"}, "upstream_error"),
    ({"error_code": "INTERNAL_ERROR", "message": "boom"}, "upstream_error"),
    ({"detail": "boom"}, "upstream_error"),
    ({"base_resp": {"status_code": 1000, "status_msg": "boom"}}, "upstream_error"),
    ([{"error": {"message": "boom", "status": "INTERNAL"}}, {"error": "again"}], "upstream_error"),
    ({**chunk(), "choices": [{"index": 0, "delta": {}, "error": {"message": "boom"}}]}, "upstream_error"),
    (chunk({}, "error"), "upstream_error"),
]


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(("obj", "kind"), ERRORS, ids=str)
def test_errors_in_the_stream(obj: Any, kind: str, size: int) -> None:
    text = wire(chunk({"content": "a"}))
    out, watch = play(text + wire(obj, chunk({"content": "late"}), STOP, "[DONE]"), size=size)
    assert out.startswith(text)
    error, done = chunks(out)[1:]
    assert (error["error"]["type"], done) == (kind, "[DONE]")
    assert set(error["error"]) == {"message", "type", "param", "code"}
    assert (
        error["error"]["message"].startswith("boom") or "finish_reason 'error'" in error["error"]["message"]
    )
    assert watch.error is not None
    assert watch.ended


FIRSTS: list[tuple[Any, bool]] = [
    (chunk({"role": "assistant"}), True),
    ({"id": "c1", "choices": []}, True),
    ({"type": "ping"}, False),
    ({"id": "c1", "choices": [], "error": {"message": "boom"}}, False),
]


@pytest.mark.parametrize(("first", "begun"), FIRSTS, ids=str)
@pytest.mark.parametrize("profile", [None, EXACT])
def test_whether_a_reply_has_begun(first: Any, begun: bool, profile: Profile | None) -> None:
    assert play(wire(first), close=False, profile=profile)[1].begun is begun


def test_an_exact_backends_error_is_an_error() -> None:
    out, watch = play(wire(chunk({"content": "a"}), {"error": {"message": "boom"}}), profile=EXACT)
    assert chunks(out)[1]["error"]["message"] == "boom"
    assert watch.error is not None


ENDS = [
    ((), "without a reply"),
    ((b"[DONE]",), "without a reply"),
    ((chunk({"content": "a"}),), "middle of a reply"),
    ((calls(call(0, '{"k', "a", "f")), b"[DONE]"), "middle of a tool call"),
    ((calls(call(0, "{}", "a", "")), chunk({}, "tool_calls"), b"[DONE]"), "without a name"),
]


@pytest.mark.parametrize(("sent", "words"), ENDS, ids=[e[1] for e in ENDS])
def test_early_ends(sent: tuple[Any, ...], words: str) -> None:
    out, watch = play(b": ping\n\n" + wire(*sent))
    assert words in chunks(out)[-2]["error"]["message"]
    assert chunks(out)[-1] == "[DONE]"
    assert watch.error is not None
    assert "stop" not in [choice["finish_reason"] for c in chunks(out)[:-2] for choice in c["choices"]]


def test_a_frame_cut_by_the_end_is_dropped() -> None:
    out, _ = play(wire(chunk({"content": "a"})) + frame(chunk({"content": "b"}))[:-9])
    assert "middle of a reply" in chunks(out)[1]["error"]["message"]


def test_an_exact_backend_cut_short() -> None:
    out, watch = play(wire(chunk({"content": "a"})), profile=EXACT)
    assert "middle of a reply" in chunks(out)[1]["error"]["message"]
    assert watch.error is not None


def test_fail_from_outside() -> None:
    watch = watcher()
    watch.feed(wire(chunk({"content": "a"})))
    out = watch.fail(ProxyError("timeout", "too slow"))
    assert chunks(out) == [
        {
            "error": {
                "message": "too slow",
                "type": "timeout_error",
                "param": None,
                "code": "upstream_timeout",
            }
        },
        "[DONE]",
    ]
    assert (watch.fail(ProxyError("timeout", "again")), watch.close(), watch.feed(wire(STOP))) == (
        b"",
        b"",
        b"",
    )
    assert watch.error is not None


def test_start_and_keepalive() -> None:
    watch = watcher()
    assert watch.start() == b""
    half = frame(chunk({"content": "a"}))
    assert watch.feed(half[:10]) + watch.keepalive() + watch.feed(half[10:]) == b": keep-alive\n\n" + half
    watch.feed(wire(STOP, "[DONE]"))
    assert watch.keepalive() == b""
