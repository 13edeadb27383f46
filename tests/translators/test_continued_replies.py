"""Several replies of a backend as one: what becomes of their events."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import orjson
import pytest

from tests.backends import replies
from translators.chat import ChatBackend, ChatClient
from translators.continuation import GO_ON, Continuing, added, with_text
from translators.dialect import BackendDialect, ClientDialect, ReplyContext
from translators.errors import ProxyError
from translators.ir import (
    Annotated,
    Closed,
    Delta,
    Event,
    Failed,
    Finished,
    Foreign,
    Grammar,
    Json,
    Opaque,
    Opened,
    Started,
    Usage,
)
from translators.profile import MessageRules, Profile
from translators.responses import ResponsesBackend, ResponsesClient
from translators.translate import translate_request

CUT = Finished("length", Usage(1, 2))
DONE = Finished("stop", Usage(1, 2))
ERROR = ProxyError("upstream", "broken")


def text(said: str, index: int = 0, **end: Any) -> list[Event]:
    return [Opened(index, "text"), Delta(index, said), Closed(index, **end)]


def thought(index: int = 0) -> list[Event]:
    return [Opened(index, "reasoning"), Delta(index, "hm"), Closed(index)]


def call(index: int = 0) -> list[Event]:
    return [Opened(index, "tool_call", "c", "f"), Delta(index, "{}"), Closed(index)]


def foreign(index: int, kind: str) -> Foreign:
    return Foreign(index, Opaque("responses", {"type": kind, "id": "x"}))


def played(*rounds: Iterable[Event], most: int = 5) -> tuple[list[Event], int]:
    """What comes of replies, and how many of them were asked for after the first; all of it legal."""
    continuing, grammar = Continuing(None, most), Grammar()
    out: list[Event] = []
    asked = 0
    for number, events in enumerate(deepcopy(rounds)):
        if number:
            if not continuing.waits:
                break
            asked += 1
            continuing.go_on(None)
        for event in [Started(f"r{number}"), *events]:
            for each in continuing.feed(event):
                grammar.see(each)
                out.append(each)
    return out, asked


def test_a_text_goes_on() -> None:
    out, asked = played([*text("One, "), CUT], [*text("two."), DONE])
    assert out == [
        Started("r0"),
        Opened(0, "text"),
        Delta(0, "One, "),
        Delta(0, "two."),
        Closed(0),
        Finished("stop", Usage(2, 4)),
    ]
    assert asked == 1


def test_thoughts_of_the_first_stay_those_of_others_go() -> None:
    late = foreign(1, "reasoning")
    out, _ = played(
        [*thought(), *text("One, ", 1), CUT],
        [*thought(), late, *text("two.", 2), foreign(3, "reasoning"), DONE],
    )
    assert [each.text for each in out if isinstance(each, Delta)] == ["hm", "One, ", "two."]
    assert [each.index for each in out if isinstance(each, Opened)] == [0, 1]
    assert not any(isinstance(each, Foreign) for each in out)


def test_what_follows_the_text_has_its_own_place() -> None:
    out, _ = played([*text("Let me "), CUT], [*text("look."), *call(1), Finished("tool_calls")])
    assert [each.index for each in out if isinstance(each, Opened)] == [0, 1]
    assert [each.index for each in out if isinstance(each, Closed)] == [0, 1]
    assert out[-1] == Finished("tool_calls", Usage(1, 2))


def test_a_call_instead_of_more_text() -> None:
    out, _ = played([*text("Let me look."), CUT], [*call(), Finished("tool_calls")])
    assert [type(each) for each in out[3:5]] == [Closed, Opened]


def test_an_item_of_another_kind_ends_the_text() -> None:
    out, asked = played(
        [*text("a"), CUT], [foreign(0, "web_search_call"), *text("b", 1), CUT], [*text("c"), DONE]
    )
    assert [type(each).__name__ for each in out[3:7]] == ["Closed", "Foreign", "Opened", "Delta"]
    assert (asked, out[-1]) == (1, Finished("length", Usage(2, 4)))


def test_two_texts_in_a_later_reply() -> None:
    joined: list[Event] = [Opened(1, "text", joins=True), Delta(1, "c"), Closed(1)]
    out, asked = played([*text("a"), CUT], [*text("b"), *joined, CUT], [*text("d"), DONE])
    assert [(each.index, each.text) for each in out if isinstance(each, Delta)] == [
        (0, "a"),
        (0, "b"),
        (1, "c"),
        (1, "d"),
    ]
    assert asked == 2


@pytest.mark.parametrize(
    "events",
    [
        [CUT],
        [*text(""), CUT],
        [*text("a"), *thought(1), CUT],
        [*call(), CUT],
        [*call(), *text("a", 1), CUT],
        [foreign(0, "web_search_call"), *text("a", 1), CUT],
        [*text("a"), Opened(1, "refusal", joins=True), Delta(1, "no"), Closed(1), CUT],
        [*text("a"), DONE],
        [*text("a"), Finished("content_filter")],
        [*text("a"), Failed(ERROR)],
        [Opened(0, "text"), Delta(0, "a"), Failed(ERROR)],
    ],
    ids=str,
)
def test_what_does_not_go_on(events: list[Event]) -> None:
    out, asked = played(events, [*text("more"), DONE])
    assert asked == 0
    assert str(out[-1]) == str(events[-1])


def test_no_more_often_than_allowed() -> None:
    rounds = [[*text(letter), CUT] for letter in "abc"]
    out, asked = played(*rounds, most=1)
    assert (asked, out[-1]) == (1, Finished("length", Usage(2, 4)))


def test_a_reply_that_says_nothing_is_the_last() -> None:
    out, asked = played([*text("a"), CUT], [CUT], [*text("b"), DONE])
    assert (asked, out[-2:]) == (1, [Closed(0), Finished("length", Usage(2, 4))])


@pytest.mark.parametrize(
    ("events", "end"),
    [
        ([Failed(ERROR)], [Closed(0), Finished("length", Usage(1, 2))]),
        ([Failed(ERROR, Usage(1, 1))], [Closed(0), Finished("length", Usage(2, 3))]),
        (
            [Opened(0, "text"), Delta(0, "b"), Failed(ERROR)],
            [Closed(0, cut=True), Finished("length", Usage(1, 2))],
        ),
        ([*text("b"), Failed(ERROR)], [Closed(0), Finished("length", Usage(1, 2))]),
        ([*call()[:2], Failed(ERROR)], [Failed(ERROR, Usage(1, 2))]),
    ],
    ids=str,
)
def test_a_reply_that_fails(events: list[Event], end: list[Event]) -> None:
    out, _ = played([*text("a"), CUT], events)
    assert str(out[-len(end) :]) == str(end)


def test_giving_up() -> None:
    continuing = Continuing(None, 5)
    for event in deepcopy([Started("r"), *text("a"), CUT]):
        list(continuing.feed(event))
    assert (continuing.waits, continuing.text, continuing.id) == (True, "a", "r")
    assert list(continuing.feed(Failed(ERROR))) == [Closed(0), Finished("length", Usage(1, 2))]
    assert not continuing.waits


def test_the_backends_last_word_counts() -> None:
    out, _ = played([*text("ab", text="ac"), CUT], [*text("d"), DONE])
    assert [each for each in out if isinstance(each, Closed)] == [Closed(0, text="acd")]
    continuing = Continuing(None, 5)
    for event in deepcopy([Started("r"), *text("ab", text="ac"), CUT]):
        list(continuing.feed(event))
    assert continuing.text == "ac"


def test_citations_are_moved() -> None:
    first = {"type": "url_citation", "start_index": 0, "end_index": 2}
    second = {"type": "file_citation", "index": 1, "start_index": None}
    body = [
        [Opened(0, "text"), Delta(0, "abc"), Annotated(0, mark), Closed(0), end]
        for mark, end in ((first, CUT), (first, CUT), (second, DONE))
    ]
    out, _ = played(*body)
    assert [each.annotation for each in out if isinstance(each, Annotated)] == [
        first,
        {**first, "start_index": 3, "end_index": 5},
        {**second, "index": 7},
    ]


def test_what_belongs_to_a_piece_left_out_is_left_out() -> None:
    out, _ = played(
        [*text("a"), CUT], [Opened(0, "summary"), Delta(0, "s"), Annotated(0, {}), Closed(0), DONE]
    )
    assert not any(isinstance(each, Annotated) for each in out)


def test_a_citation_of_an_earlier_text_stays() -> None:
    marked = [Opened(0, "text"), Opened(1, "text"), Annotated(0, {"index": 1}), Closed(0), Closed(1), DONE]
    out, _ = played([*text("a"), CUT], [*text("b"), *[_later(each) for each in deepcopy(marked[:-1])], DONE])
    assert [each.annotation for each in out if isinstance(each, Annotated)] == [{"index": 1}]


def _later(event: Any) -> Any:
    event.index += 1
    return event


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (None, None, None),
        (Usage(1), None, Usage(1)),
        (None, Usage(1), Usage(1)),
        (Usage(1, 2, 3, 4, 5, {"load": 1.0}), Usage(1, 2, 3, 4, 5), Usage(2, 4, 6, 8, 10)),
    ],
)
def test_tokens_are_added(one: Usage | None, other: Usage | None, both: Usage | None) -> None:
    assert added(one, other) == both


ASKS = Profile(messages=MessageRules(trailing_assistant="drop", assistant_parts="input"))
USER: Json = {"role": "user", "content": "u"}


def test_the_next_request() -> None:
    chat: Json = {"model": "m", "messages": [USER], "max_tokens": 5}
    said = {"role": "assistant", "content": "t"}
    assert with_text(chat, "t", "chat", Profile()) == {**chat, "messages": [USER, said]}
    asks = {"role": "user", "content": GO_ON}
    assert with_text(chat, "t", "ollama", ASKS)["messages"] == [USER, said, asks]
    part = {"type": "output_text", "text": "t"}
    item = {"type": "message", "role": "assistant", "content": [part]}
    for given in ("u", [USER]):
        assert with_text({"input": given}, "t", "responses", Profile()) == {"input": [USER, item]}
    *_, item, last = with_text({"input": "u"}, "t", "responses", ASKS)["input"]
    assert (item["content"], last) == ([{**part, "type": "input_text"}], asks)


def test_a_failure_from_outside_ends_it_as_far_as_it_came() -> None:
    client, backend = ChatClient(), ChatBackend()
    asked = {"model": "m", "messages": [USER], "stream": True}
    call = client.decode_request(asked, lambda prefix: prefix + "1")
    made = translate_request(call, client, backend, Profile())
    context = ReplyContext(1, "m", lambda prefix: prefix + "1")
    for told in (b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}\n\n', b""):
        reply = made.continued(context, 5)
        reply.feed(b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n' + told)
        assert (reply.cut, reply.reply_id) == (None, "c")
        last = reply.fail(ERROR)
        assert reply.ended
        assert (b'"finish_reason":"length"' in last) is bool(told)
        assert reply.fail(ERROR) == b""


CHUNKS = {
    "chat": [
        {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Gru\u00df "}}]},
        {"id": "c", "choices": [{"index": 0, "delta": {"content": "\U0001f9ed"}, "finish_reason": "length"}]},
        {"id": "c", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}},
    ],
    "responses": replies.item_stream([replies.message_item("Gru\u00df \U0001f9ed", "incomplete")]),
}
BACKENDS: dict[str, BackendDialect] = {"chat": ChatBackend(), "responses": ResponsesBackend()}
CLIENTS: dict[str, ClientDialect] = {"chat": ChatClient(), "responses": ResponsesClient()}


def wire_bytes(shape: str) -> bytes:
    chunks = [dict(each) for each in CHUNKS[shape]]
    if shape == "responses":
        cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        chunks[-1] |= {"type": "response.incomplete", "response": {**chunks[-1]["response"], **cut}}
    return b"".join(b"data: " + orjson.dumps(each) + b"\n\n" for each in chunks)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("stream", [False, True])
def test_it_is_the_same_however_the_bytes_are_cut(backend: str, client: str, stream: bool) -> None:
    asked: Json = {"model": "m", "stream": stream, "input" if client == "responses" else "messages": [USER]}
    call = CLIENTS[client].decode_request(asked, lambda prefix: prefix + "1")
    made = translate_request(call, CLIENTS[client], BACKENDS[backend], Profile())
    context = ReplyContext(1, "m", lambda prefix: prefix + "1", stream=stream)
    found = []
    for size in (1, 7, 10_000):
        reply, out = made.continued(context, 2), b""
        for number in range(3):
            if number:
                reply.go_on()
            data = wire_bytes(backend)
            out += (
                b"".join(reply.feed(data[at : at + size]) for at in range(0, len(data), size)) + reply.close()
            )
            assert reply.ended is (number == 2)
        found.append((out, reply.body(), reply.violations))
    assert found[0] == found[1] == found[2]
    assert found[0][2] == {}
    assert "Gru\u00df \U0001f9ed" * 3 in orjson.dumps(found[0][1]).decode()
    assert found[0][0].count(b"[DONE]") == stream
