"""Bugs of ours in the pass lane, what comes after the end, and frames that got lost inside a call."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.backends.replies import Framing, chat_chunk, chat_stream, frame_bytes, response_stream
from tests.laws.pairs import context, translator
from translators.chat import watch as chat_watch
from translators.chat.tidy import tidy_choices
from translators.chat.watch import ChatWatcher
from translators.dialect import ReplyStream
from translators.errors import ProxyError
from translators.framing import SseFramer
from translators.ir import Shape
from translators.profile import AnswerRules, Profile
from translators.responses import watch as responses_watch
from translators.responses.watch import ResponsesWatcher

Json = dict[str, Any]


def payloads(out: bytes) -> list[Any]:
    return [each if each == b"[DONE]" else orjson.loads(each) for each in SseFramer().feed(out)]


def events(*frames: Any) -> bytes:
    return b"".join(
        frame_bytes(frame, Framing(event_lines=isinstance(frame, dict) and "type" in frame))
        for frame in frames
    )


# --- faults --------------------------------------------------------------------------------


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both watchers break where they read an odd frame with the word "late"."""
    read = responses_watch._read

    def broken_tidy(obj: Json) -> bool:
        if b"late" in orjson.dumps(obj):
            raise ZeroDivisionError("planted")
        return tidy_choices(obj)

    def broken_read(raw: bytes) -> Any:
        if b"late" in raw:
            raise ZeroDivisionError("planted")
        return read(raw)

    monkeypatch.setattr(chat_watch, "tidy_choices", broken_tidy)
    monkeypatch.setattr(responses_watch, "_read", broken_read)


EARLY = chat_chunk({"role": "assistant", "content": "early"})
LATE = chat_chunk({"reasoning_content": "late"})


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("ended", [True, False])
def test_a_fault_in_a_chat_stream_loses_nothing_before_it(ended: bool) -> None:
    """In one read, or in what is left at the end of the bytes."""
    watcher = ChatWatcher(Profile(), context())
    data = events(EARLY, LATE)
    out = watcher.feed(data if ended else data.removesuffix(b"\n\n")) + watcher.close()
    found = payloads(out)
    assert found[0] == EARLY
    assert found[1]["error"]["type"] == "server_error"
    assert found[2:] == [b"[DONE]"]
    assert b"planted" not in out
    assert isinstance(watcher.fault, ZeroDivisionError)
    assert watcher.violations == {"fault": 1}
    assert watcher.ended
    assert watcher.error is not None


@pytest.mark.usefixtures("planted")
def test_a_fault_in_a_responses_stream_loses_nothing_before_it() -> None:
    frames = response_stream("early")
    at = next(i for i, frame in enumerate(frames) if frame["type"].endswith("text.done"))
    odd = {"type": "response.late", "sequence_number": frames[at]["sequence_number"]}
    watcher = ResponsesWatcher(Profile(), context())
    out = watcher.feed(events(*frames[:at], odd, *frames[at:])) + watcher.close()
    found = payloads(out)
    assert found[:at] == frames[:at]
    assert [each["type"] for each in found[at:-1]] == ["response.failed"]
    assert found[-1] == b"[DONE]"
    assert isinstance(watcher.fault, ZeroDivisionError)
    assert watcher.violations == {"fault": 1}


@pytest.mark.usefixtures("planted")
def test_a_fault_after_the_end_changes_nothing() -> None:
    chat = ChatWatcher(Profile(), context())
    assert payloads(chat.feed(events(*chat_stream("ab"))))[-1] == b"[DONE]"
    assert chat.feed(events(LATE)) == b""
    responses = ResponsesWatcher(Profile(), context())
    responses.feed(events(*response_stream("ab")))
    responses._mute = False
    assert responses.feed(events({"type": "response.late"})) == b""
    assert (chat.error, responses.error) == (None, None)


def test_a_fault_after_the_last_event_is_kept_for_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: bytes) -> bool:
        raise ZeroDivisionError("planted")

    watcher = ResponsesWatcher(Profile(), context())
    watcher.feed(events(*response_stream("ab")))
    monkeypatch.setattr(responses_watch, "_is_done", broken)
    assert watcher.feed(b"data: [DONE]\n\n") == b""
    assert isinstance(watcher.fault, ZeroDivisionError)
    assert watcher.error is None


def test_a_fault_after_the_end_marker_is_kept_for_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: bytes) -> bytes:
        raise ZeroDivisionError("planted")

    watcher = ChatWatcher(Profile(), context())
    watcher.feed(events(*chat_stream("ab")))
    monkeypatch.setattr(chat_watch, "payload_of", broken)
    assert watcher.feed(events(EARLY)) == b""
    assert isinstance(watcher.fault, ZeroDivisionError)
    assert watcher.error is None


# --- after the end -------------------------------------------------------------------------

ERROR = {"error": {"message": "boom", "type": "server_error", "code": None}}
AFTER: dict[str, tuple[list[Any], dict[str, int]]] = {
    "nothing": ([], {}),
    "a chunk": ([EARLY], {"after_end": 1}),
    "chunks and the marker again": ([EARLY, LATE, "[DONE]"], {"after_end": 3}),
    "an error": ([ERROR], {"after_end": 1}),
    "a comment": ([b": bye\n\n"], {}),
}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("after", "counted"), AFTER.values(), ids=AFTER)
def test_what_comes_after_the_marker_is_counted_and_left_out(
    after: list[Any], counted: dict[str, int], exact: bool, together: bool
) -> None:
    frames = [frame if isinstance(frame, bytes) else frame_bytes(frame) for frame in after]
    reply = [frame_bytes(frame) for frame in chat_stream("ab")]
    watcher = ChatWatcher(Profile(answer=AnswerRules(exact=exact)), context())
    reads = [b"".join([*reply, *frames])] if together else [*reply, *frames]
    out = b"".join([watcher.feed(read) for read in reads]) + watcher.close()
    assert out == b"".join(reply)
    assert watcher.violations == counted
    assert watcher.error is None


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_a_translated_stream_counts_it_too(client: Shape) -> None:
    machine = translator(client, "chat")
    machine.feed(events(*chat_stream("ab")))
    assert machine.feed(events(EARLY, "[DONE]")) == b""
    assert machine.violations == {"after_end": 1}
    passed = translator("chat", "responses")
    passed.feed(events(*response_stream("ab"), "[DONE]"))
    assert not passed.violations


def test_the_marker_after_an_error_is_in_order() -> None:
    watcher = ChatWatcher(Profile(), context())
    out = watcher.feed(events(EARLY, ERROR, "[DONE]"))
    assert payloads(out)[-1] == b"[DONE]"
    assert out.count(b"[DONE]") == 1
    assert not watcher.violations
    assert watcher.fail(ProxyError("timeout", "late")) == b""


# --- lost frames ---------------------------------------------------------------------------


def piece(text: str, **more: Any) -> Json:
    function = {"arguments": text, **({"name": more.pop("name")} if "name" in more else {})}
    return chat_chunk({"tool_calls": [{"index": 0, **more, "function": function}]})


OPENING = piece("", id="a", type="function", name="f")
CALL = [OPENING, piece('{"n":'), piece("12"), piece("}"), chat_chunk({}, "tool_calls"), "[DONE]"]
TEXT = chat_chunk({"role": "assistant", "content": "hm"})
TORN = b'data: {"id":"chatcmpl-1","object":"chat.completi\n\n'
NOISE = b"data: ping\n\n"


def machines() -> list[ReplyStream]:
    return [
        translator("chat", "chat"),
        translator("responses", "chat"),
        ChatWatcher(Profile(), context()),
    ]


@pytest.mark.parametrize("which", range(3), ids=["to chat", "to responses", "passed"])
@pytest.mark.parametrize("place", [1, 2, 3, 4])
def test_a_torn_frame_inside_a_call_fails_the_reply(which: int, place: int) -> None:
    """`{"n":12}` may be all there is, or a digit may be missing: nobody can tell."""
    machine = machines()[which]
    frames = [frame_bytes(frame) for frame in CALL]
    out = b"".join([machine.feed(frame) for frame in [*frames[:place], TORN, *frames[place:]]])
    out += machine.close()
    assert machine.error is not None
    assert "no JSON" in machine.error.message
    assert b'"finish_reason":"tool_calls"' not in out
    assert b"response.completed" not in out
    assert machine.violations["not_json"] == 1


@pytest.mark.parametrize("which", range(3), ids=["to chat", "to responses", "passed"])
@pytest.mark.parametrize(
    ("place", "lost"),
    [*((place, NOISE) for place in range(6)), (0, TORN), (5, TORN)],
    ids=str,
)
def test_other_lost_frames_are_counted(which: int, place: int, lost: bytes) -> None:
    """Noise, and what is lost before a call has begun or after the finish was told."""
    machine = machines()[which]
    frames = [frame_bytes(frame) for frame in CALL]
    out = b"".join([machine.feed(frame) for frame in [*frames[:place], lost, *frames[place:]]])
    out += machine.close()
    assert machine.error is None
    assert machine.violations == {"not_json": 1}


def test_a_call_whose_beginning_was_lost_fails_the_reply() -> None:
    """Some backends tell id and name with every piece."""
    later = [piece(":1}", id="a", type="function", name="f"), *CALL[-2:]]
    for machine in machines():
        machine.feed(TORN + events(*later))
        assert machine.error is not None


def test_a_torn_frame_of_a_responses_stream_is_made_up_for() -> None:
    machine = translator("chat", "responses")
    machine.feed(events(*response_stream("ab")[:3]) + TORN + events(*response_stream("ab")[3:]))
    assert machine.error is None
    assert machine.violations == {"not_json": 1}


def test_a_torn_frame_after_the_end_is_no_failure() -> None:
    machine = translator("chat", "chat")
    machine.feed(events(TEXT, chat_chunk({}, "stop"), "[DONE]") + TORN)
    assert machine.error is None
