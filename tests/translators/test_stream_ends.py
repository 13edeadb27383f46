"""The end of a Responses stream as something to keep: its snapshot, its number, its bytes."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.backends.replies import chat_stream, frame_bytes, response_stream
from translators.chat import ChatBackend, ChatClient
from translators.chat.watch import ChatWatcher
from translators.dialect import ReplyContext
from translators.errors import ProxyError
from translators.framing import FrameCutter, payload_of
from translators.ir import Call
from translators.profile import Profile
from translators.responses import ResponsesBackend, ResponsesClient
from translators.responses.frames import END, failed_end
from translators.responses.watch import ResponsesWatcher
from translators.stream import StreamTranslator

CONTEXT = ReplyContext(1, "m", lambda prefix: prefix + "1", stored=True, previous="resp_before")


def sent(frames: list[Any]) -> bytes:
    return b"".join(map(frame_bytes, frames))


def events(data: bytes) -> list[Any]:
    payloads = [payload_of(raw) for raw in FrameCutter().feed(data)]
    return [orjson.loads(each) for each in payloads if each and each != b"[DONE]"]


def translator(client: Any = None, backend: Any = None) -> StreamTranslator:
    encoder = (client or ResponsesClient()).encoder(Call("responses", "m", ()), CONTEXT)
    return StreamTranslator((backend or ChatBackend()).decoder(Profile()), encoder)


def test_a_translated_stream() -> None:
    machine = translator()
    frames = chat_stream("hello")
    written = machine.feed(sent(frames[:1]))
    assert machine.end is None
    written += machine.feed(sent(frames[1:]))
    written += machine.close() if not machine.ended else b""
    assert machine.end is not None
    last = events(written)[-1]
    assert written.endswith(machine.end.frame)
    assert machine.end.frame.endswith(END)
    assert (machine.end.sequence, machine.end.response) == (last["sequence_number"], last["response"])
    assert (last["response"]["store"], last["response"]["previous_response_id"]) == (True, "resp_before")


def test_a_failed_stream() -> None:
    machine = translator()
    machine.feed(sent(chat_stream("hello")[:2]))
    written = machine.fail(ProxyError("timeout", "late"))
    assert machine.end is not None
    assert machine.end.response["status"] == "failed"
    assert written.endswith(machine.end.frame)


@pytest.mark.parametrize("exact", [False, True])
def test_a_passed_stream(exact: bool) -> None:
    profile = Profile()
    if exact:
        from dataclasses import replace

        profile = replace(profile, answer=replace(profile.answer, exact=True))
    watcher = ResponsesWatcher(profile, CONTEXT)
    frames = response_stream("hello")
    watcher.feed(sent(frames[:2]))
    assert watcher.end is None
    written = watcher.feed(sent(frames[2:]))
    assert watcher.end is not None
    assert watcher.end.frame in written
    last = events(written)[-1]
    assert (watcher.end.sequence, watcher.end.response) == (last["sequence_number"], last["response"])


def test_a_passed_stream_that_breaks_off() -> None:
    watcher = ResponsesWatcher(Profile(), CONTEXT)
    watcher.feed(sent(response_stream("hello")[:2]))
    written = watcher.close()
    assert watcher.end is not None
    assert watcher.end.response["status"] == "failed"
    assert watcher.end.frame in written


def test_a_passed_stream_whose_end_is_numbered_anew() -> None:
    """The items that only the last event tells get events of their own before it."""
    first, *_, last = [each for each in response_stream("hello") if isinstance(each, dict)]
    watcher = ResponsesWatcher(Profile(), CONTEXT)
    written = watcher.feed(sent([first, {**last, "sequence_number": 1}]))
    assert watcher.end is not None
    assert watcher.end.sequence == events(written)[-1]["sequence_number"] > 1


def test_a_stream_that_has_to_be_translated_all_the_same() -> None:
    watcher = ResponsesWatcher(Profile(), CONTEXT)
    frames = [each for each in response_stream("hello") if isinstance(each, dict)]
    written = watcher.feed(
        sent([{k: v for k, v in each.items() if k != "sequence_number"} for each in frames])
    )
    assert watcher.end is not None
    assert watcher.end.frame in written


def test_chat_has_no_such_end() -> None:
    machine = translator(ChatClient(), ResponsesBackend())
    machine.feed(sent(response_stream("hello")))
    assert machine.end is None
    assert ChatWatcher(Profile(), CONTEXT).end is None


def test_what_is_told_instead() -> None:
    machine = translator()
    machine.feed(sent(chat_stream("hello")))
    assert machine.end is not None
    written = failed_end(machine.end, ProxyError("unavailable", "not now"))
    (event,) = events(written)
    assert (event["type"], event["sequence_number"]) == ("response.failed", machine.end.sequence)
    assert event["response"]["status"] == "failed"
    assert event["response"]["completed_at"] is None
    assert event["response"]["error"]["message"] == "not now"
    assert written.endswith(END)
