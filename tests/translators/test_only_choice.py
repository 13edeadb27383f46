"""The one choice of a Chat reply, whatever number its backend gives it."""

from __future__ import annotations

from typing import Any

import pytest

from translators.chat.decoder import ChatDecoder
from translators.chat.reply import decode_reply
from translators.ir import Delta, Finished
from translators.profile import Profile


def chunk(text: str | None, index: Any, finish: str | None = None) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {"id": "c", "choices": [{"index": index, "delta": delta, "finish_reason": finish}]}


STREAMS = {
    "numbered from 5": ([(5, "a"), (5, "b")], "ab"),
    "no number": ([(None, "a"), (None, "b")], "ab"),
    "two choices, the first begins": ([(0, "a"), (1, "x"), (0, "b")], "ab"),
    "two choices, the second begins": ([(1, "x"), (0, "a"), (1, "y")], "xy"),
    "a number that is dropped later": ([(0, "a"), (None, "b")], "ab"),
}


@pytest.mark.parametrize(("told", "text"), STREAMS.values(), ids=STREAMS)
def test_of_a_stream(told: list[tuple[Any, str]], text: str) -> None:
    decoder = ChatDecoder(Profile())
    events = [event for index, said in told for event in decoder.feed(chunk(said, index))]
    events += [*decoder.feed(chunk(None, told[0][0], "stop")), *decoder.done()]
    assert "".join(event.text for event in events if isinstance(event, Delta)) == text
    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize("index", [0, 5, None, "0"])
def test_of_a_body(index: Any) -> None:
    message = {"role": "assistant", "content": "a"}
    body = {"id": "c", "choices": [{"index": index, "message": message, "finish_reason": "stop"}]}
    events = list(decode_reply(body, Profile()))
    assert "".join(event.text for event in events if isinstance(event, Delta)) == "a"
    assert isinstance(events[-1], Finished)


def test_of_a_body_with_several_it_is_the_one_called_0() -> None:
    told = [{"index": index, "message": {"content": str(index)}, "finish_reason": "stop"} for index in (1, 0)]
    events = list(decode_reply({"id": "c", "choices": told}, Profile()))
    assert [event.text for event in events if isinstance(event, Delta)] == ["0"]
