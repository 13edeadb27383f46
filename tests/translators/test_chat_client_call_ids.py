"""Two calls under one id, for a Chat client: each gets an id of its own."""

from __future__ import annotations

from tests.translators.chat_replies import context
from translators.chat.encoder import ChatEncoder
from translators.ir import Call, Closed, Delta, Event, Finished, Opened, Started
from translators.responses.encoder import ResponsesEncoder


def calls(*ids: str) -> list[Event]:
    events: list[Event] = [Started("r", "m")]
    for index, call_id in enumerate(ids):
        events += [
            Opened(index, "tool_call", call_id=call_id, name="f"),
            Delta(index, "{}"),
            Closed(index),
        ]
    return [*events, Finished("tool_calls")]


def test_the_second_gets_another() -> None:
    encoder = ChatEncoder(Call("chat", "m", ()), context())
    for event in calls("c1", "c1", "c2"):
        encoder.feed(event)
    told = [call["id"] for call in encoder.body()["choices"][0]["message"]["tool_calls"]]
    assert (told[0], told[2]) == ("c1", "c2")
    assert len(set(told)) == 3


def test_as_for_a_responses_client() -> None:
    encoder = ResponsesEncoder(Call("responses", "m", ()), context())
    for event in calls("c1", "c1"):
        encoder.feed(event)
    told = [item["call_id"] for item in encoder.body()["output"]]
    assert told[0] == "c1"
    assert len(set(told)) == 2
