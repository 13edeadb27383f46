"""Events without an end: given up at a limit, told as the backend's failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from tests.backends.replies import Framing, chat_stream, frame_bytes, response_stream
from tests.laws.pairs import context, translator
from translators import framing
from translators.chat.watch import ChatWatcher
from translators.errors import ProxyError
from translators.framing import FrameCutter, NdjsonFramer, SseFramer
from translators.ir import Shape
from translators.profile import Profile
from translators.responses.watch import ResponsesWatcher

LIMIT = 1 << 20
PIECE = b"x" * 70_000


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MAX_EVENT_BYTES", LIMIT)


@pytest.mark.parametrize("make", [SseFramer, FrameCutter, NdjsonFramer])
def test_a_framer_holds_no_more_than_the_limit(make: Callable[[], Any]) -> None:
    framer = make()
    for _ in range(LIMIT // len(PIECE)):
        framer.feed(PIECE)
    with pytest.raises(ProxyError, match="longer than 1 MiB"):
        framer.feed(PIECE)
    assert framer.close() in ([], b"")


@pytest.mark.parametrize("make", [SseFramer, FrameCutter])
def test_what_stays_below_passes(make: Callable[[], Any]) -> None:
    framer = make()
    event = b"data: " + b"y" * (LIMIT - 100)
    for at in range(0, len(event), 70_000):
        assert framer.feed(event[at : at + 70_000]) == []
    assert len(framer.feed(b"\n\n")) == 1


def begun(shape: Shape) -> bytes:
    if shape == "chat":
        return b"".join(map(frame_bytes, chat_stream("hello")[:2]))
    return b"".join(frame_bytes(frame, Framing(event_lines=True)) for frame in response_stream("hello")[:4])


WAYS: dict[str, tuple[Callable[[], Any], Shape]] = {
    "chat passed": (lambda: ChatWatcher(Profile(), context()), "chat"),
    "responses passed": (lambda: ResponsesWatcher(Profile(), context()), "responses"),
}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("first", [True, False], ids=["in the middle", "at the beginning"])
def test_a_passed_stream_ends_as_failed(name: str, first: bool) -> None:
    make, shape = WAYS[name]
    reply = make()
    out = bytes(reply.feed(begun(shape))) if first else b""
    for _ in range(2 * LIMIT // len(PIECE)):
        out += reply.feed(PIECE)
    assert reply.ended
    assert reply.fault is None
    assert reply.error is not None
    assert (reply.error.kind, reply.error.http_status) == ("upstream", 502)
    assert b"longer than 1 MiB" in out or not first
    assert reply.feed(PIECE) == b""


def test_a_translated_stream_ends_as_failed() -> None:
    reply = translator("responses", "chat")
    out = reply.feed(begun("chat"))
    for _ in range(2 * LIMIT // len(PIECE)):
        out += reply.feed(PIECE)
    assert (reply.ended, reply.fault) == (True, None)
    last = [line for line in out.split(b"\n") if line.startswith(b"data: {")][-1]
    told = orjson.loads(last.removeprefix(b"data: "))
    assert told["type"] == "response.failed"
    assert "longer than 1 MiB" in told["response"]["error"]["message"]
