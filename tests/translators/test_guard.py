"""The guard: what comes out is legal, what was wrong is counted, and our own faults end streams cleanly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.pairs import CLIENTS, call, context, sse_bytes, translator
from translators.errors import ProxyError
from translators.guard import Guard
from translators.ir import (
    Annotated,
    Closed,
    Delta,
    Event,
    Failed,
    Finished,
    Foreign,
    Grammar,
    Opaque,
    Opened,
    Shape,
    Started,
)
from translators.stream import StreamTranslator

FAILED = Failed(ProxyError("upstream", "boom"))
S, F = Started(), Finished("stop")


def text(index: int, joins: bool = False) -> Opened:
    return Opened(index, "text", joins=joins)


def foreign(index: int) -> Foreign:
    return Foreign(index, Opaque("responses", {"type": "web_search_call"}))


CASES: list[tuple[str, Callable[[], list[Event]], list[str], dict[str, int]]] = [
    ("nothing wrong", lambda: [S, text(0), Delta(0, "a"), Closed(0), F], ["S", "O0", "D0", "C0", "F"], {}),
    ("no beginning", lambda: [text(0), Closed(0), F], ["S", "O0", "C0", "F"], {"no_beginning": 1}),
    ("begun twice", lambda: [S, S, F], ["S", "F"], {"second_beginning": 1}),
    ("a gap", lambda: [S, text(3), Closed(3), F], ["S", "O3", "C3", "F"], {"index_gap": 1}),
    (
        "an index of an open piece",
        lambda: [S, text(0), text(0), Delta(0, "b"), Closed(0), F],
        ["S", "O0", "C0", "O1", "D1", "C1", "F"],
        {"index_taken": 1, "left_open": 1},
    ),
    (
        "an index of a closed piece",
        lambda: [S, text(0), Closed(0), foreign(0), F],
        ["S", "O0", "C0", "X1", "F"],
        {"index_taken": 1},
    ),
    (
        "a join to nothing",
        lambda: [S, text(0, True), Closed(0), F],
        ["S", "O0", "C0", "F"],
        {"false_join": 1},
    ),
    (
        "a join",
        lambda: [S, text(0), Closed(0), Opened(1, "refusal", joins=True), Closed(1), F],
        ["S", "O0", "C0", "J1", "C1", "F"],
        {},
    ),
    ("text of nothing", lambda: [S, Delta(0, "a"), Annotated(1, {}), F], ["S", "F"], {"not_open": 2}),
    ("closed twice", lambda: [S, text(0), Closed(0), Closed(0), F], ["S", "O0", "C0", "F"], {"not_open": 1}),
    ("left open", lambda: [S, text(0), text(1), F], ["S", "O0", "O1", "C0", "C1", "F"], {"left_open": 2}),
    ("failed at once", lambda: [FAILED], ["!"], {}),
    ("after the end", lambda: [S, F, text(0), FAILED], ["S", "F"], {"after_end": 2}),
    ("after a failure", lambda: [S, text(0), FAILED, Delta(0, "a")], ["S", "O0", "!"], {"after_end": 1}),
]
LETTERS = {Started: "S", Delta: "D", Annotated: "A", Closed: "C", Foreign: "X", Finished: "F", Failed: "!"}


def named(event: Event) -> str:
    letter = LETTERS.get(type(event)) or ("J" if isinstance(event, Opened) and event.joins else "O")
    return f"{letter}{getattr(event, 'index', '')}"


@pytest.mark.parametrize(
    ("events", "out", "counted"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_what_is_illegal_is_mended_and_counted(
    events: Callable[[], list[Event]], out: list[str], counted: dict[str, int]
) -> None:
    guard = Guard()
    found = [named(each) for event in events() for each in guard.mend(event)]
    assert found == out
    assert guard.violations == counted


EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Started),
    st.builds(
        Opened, st.integers(0, 4), st.sampled_from(["text", "summary", "tool_call"]), joins=st.booleans()
    ),
    st.builds(Delta, st.integers(0, 4), st.just("x")),
    st.builds(Annotated, st.integers(0, 4), st.just({"type": "url_citation"})),
    st.builds(Closed, st.integers(0, 4)),
    st.builds(foreign, st.integers(0, 4)),
    st.builds(Finished, st.just("stop")),
)


@given(st.lists(EVENTS, max_size=25))
def test_whatever_comes_what_leaves_is_legal_but_for_gaps(events: list[Event]) -> None:
    guard, grammar = Guard(), Grammar()
    places: dict[int, int] = {}
    for event in events:
        for each in guard.mend(event):
            if isinstance(each, Opened | Foreign):
                assert each.index not in places
                places[each.index] = len(places)
            if isinstance(each, Started | Finished | Failed):
                grammar.see(each)
            else:
                grammar.see(replace(each, index=places[each.index]))


class Odd:
    """A decoder that gives what it is told to, and raises what it is told to raise."""

    told = False

    def __init__(self, *events: Event | Exception) -> None:
        self._events = events

    def feed(self, obj: Any) -> Iterator[Event]:
        for event in self._events:
            if isinstance(event, Exception):
                raise event
            yield event

    def done(self) -> Iterator[Event]:
        return iter(())

    def close(self) -> Iterator[Event]:
        raise RuntimeError("planted")


def ended_as_failed(client: Shape, out: bytes) -> bool:
    payloads = [line[6:] for line in out.split(b"\n") if line.startswith(b"data: ")]
    last = json.loads(payloads[-2])
    assert payloads[-1] == b"[DONE]"
    return "error" in last if client == "chat" else last["type"] == "response.failed"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_fault_in_the_decoder_ends_the_stream_as_failed(client: Shape) -> None:
    odd = Odd(Started(), text(0), Delta(0, "so far"), ValueError("planted"))
    machine = StreamTranslator(odd, CLIENTS[client].encoder(call(client), context()))
    out = machine.feed(b"data: {}\n\n")
    assert b"so far" in out
    assert ended_as_failed(client, out)
    assert (machine.ended, str(machine.fault)) == (True, "planted")
    assert machine.error is not None
    assert (machine.error.kind, machine.violations) == ("internal", {"fault": 1})
    assert machine.feed(b"data: {}\n\n") + machine.close() + machine.fail(machine.error) == b""


@pytest.mark.parametrize("end", ["close", "fail", "take"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_fault_at_the_end_is_told_too(client: Shape, end: str) -> None:
    machine = StreamTranslator(
        Odd(Started(), text(0), Delta(0, "so far")), CLIENTS[client].encoder(call(client), context())
    )
    out = machine.feed(b"data: {}\n\n")
    if end == "close":
        out += machine.close()
    elif end == "fail":
        out += machine.fail(ProxyError("timeout", "late"))
    else:
        out += machine.take(Odd(ValueError("planted")).feed({}))
    assert ended_as_failed(client, out)
    assert machine.fault is not None


@pytest.mark.parametrize("client", CLIENTS)
def test_a_fault_after_a_good_end_is_only_kept(client: Shape) -> None:
    odd = Odd(Started(), Finished("stop"), ValueError("planted"))
    machine = StreamTranslator(odd, CLIENTS[client].encoder(call(client), context()))
    out = machine.feed(b"data: {}\n\n")
    assert out.count(b"[DONE]") == 1
    assert (machine.ended, machine.error, machine.violations) == (True, None, {"fault": 1})


def test_an_error_of_a_whole_reply_is_no_fault() -> None:
    machine = translator("chat", "chat")

    def events() -> Iterator[Event]:
        yield Started()
        raise ProxyError("upstream", "boom")

    with pytest.raises(ProxyError):
        machine.take(events())


@pytest.mark.parametrize("client", CLIENTS)
def test_a_fault_in_the_encoder_ends_the_stream_as_failed(
    client: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = CLIENTS[client].encoder(call(client), context())
    machine = StreamTranslator(Odd(), encoder)
    out = machine.take([Started(), text(0), Delta(0, "so far")])

    def broken(event: Event) -> bytes:
        raise TypeError("planted")

    monkeypatch.setattr(encoder, "feed", broken)
    out += machine.take([Delta(0, "lost")])
    assert ended_as_failed(client, out)
    assert machine.ended
    monkeypatch.setattr(encoder, "abort", broken)
    machine = StreamTranslator(Odd(), encoder)
    assert machine.take([Started()]) == b""
    assert machine.ended


@pytest.mark.parametrize("client", CLIENTS)
def test_an_odd_decoder_reaches_no_client(client: Shape) -> None:
    odd = Odd(text(0), Delta(5, "nowhere"), Delta(0, "hi"), Finished("stop"))
    machine = StreamTranslator(odd, CLIENTS[client].encoder(call(client), context()))
    out = machine.feed(b"data: {}\n\n")
    assert b"hi" in out
    assert b"nowhere" not in out
    assert machine.error is None
    assert machine.violations == {"no_beginning": 1, "not_open": 1, "left_open": 1}


def test_told_is_between_the_finish_reason_and_the_end() -> None:
    machine = translator("responses", "chat")
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {"content": "hi"}}]}
    machine.feed(sse_bytes([chunk], done=False))
    before = machine.told
    chunk["choices"] = [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    machine.feed(sse_bytes([chunk], done=False))
    between = machine.told
    machine.feed(b"data: [DONE]\n\n")
    assert (before, between, machine.told, machine.ended) == (False, True, False, True)
