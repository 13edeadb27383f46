"""Replies about lowered tools, as the client gets them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

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
    Opaque,
    Opened,
    Started,
    Usage,
)
from translators.tool_names import Original
from translators.tools import RestoreTools
from translators.tools_restore import unwrap_input

NAMES = {
    "apply_patch": Original("custom", "apply_patch", verbatim=True),
    "note": Original("custom", "note"),
    "ns__f": Original("function", "f", "ns"),
    "ns.f": Original("function", "f", "ns"),
    "tool_search": Original("tool_search", "tool_search"),
}
ANSWER = {"answer": Original("format", "answer")}
WRAPPED = {"answer": Original("format", "answer", wrapped=True)}
ERROR = ProxyError("upstream", "gone")
USAGE = Usage(1, 2)


def restored(names: dict[str, Original], events: Iterable[Event]) -> list[Event]:
    """The client's events; what goes in and what comes out is checked against the grammar."""
    restore, before, after = RestoreTools(names), Grammar(), Grammar()
    out: list[Event] = []
    for event in map(copy.copy, events):  # indices are counted anew in place
        before.see(copy.copy(event))
        for each in restore.feed(event):
            after.see(each)
            out.append(copy.copy(each))
    return out


def called(name: str, *pieces: str, index: int = 0, closed: Closed | None = None) -> list[Event]:
    opened = Opened(index, "tool_call", f"call_{index}", name)
    return [opened, *(Delta(index, piece) for piece in pieces), closed or Closed(index)]


def said(text: str, index: int = 0) -> list[Event]:
    return [Opened(index, "text"), Delta(index, text), Closed(index)]


# --- names -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ns__f", "ns.f"])
def test_a_namespaced_call_gets_its_namespace_back(name: str) -> None:
    events = restored(NAMES, [Started(), *called(name, '{"a"', ":1}"), Finished("tool_calls")])
    assert events[1:5] == [
        Opened(0, "tool_call", "call_0", "f", "function", "ns"),
        Delta(0, '{"a"'),
        Delta(0, ":1}"),
        Closed(0),
    ]


def test_a_search_comes_back_as_one_with_its_arguments_as_text() -> None:
    events = restored(NAMES, [Started(), *called("tool_search", '{"query":"x"}')])
    assert events[1:3] == [
        Opened(0, "tool_call", "call_0", "tool_search", "tool_search"),
        Delta(0, '{"query":"x"}'),
    ]


def test_what_nobody_lowered_passes_untouched() -> None:
    annotation = {"type": "url_citation", "url": "u"}
    events: list[Event] = [
        Started("r", "m"),
        Opened(0, "summary"),
        Delta(0, "hm", [{"token": "hm"}]),
        Closed(0, "sealed"),
        Foreign(1, Opaque("responses", {"type": "web_search_call"})),
        Opened(2, "text"),
        Annotated(2, annotation),
        Closed(2, text="whole"),
        *called("unknown", "{}", index=3),
        Opened(4, "tool_call", "c", "f", namespace="kept"),
        Closed(4),
        Finished("tool_calls", USAGE),
    ]
    assert restored(NAMES, events) == events


def test_a_call_that_already_has_a_namespace_is_none_of_ours() -> None:
    opened = Opened(0, "tool_call", "c", "ns__f", namespace="other")
    assert restored(NAMES, [Started(), opened])[1] == opened


# --- free-form input -------------------------------------------------------------------

PATCH = "*** Begin Patch\n*** Add File: a\n+é\n*** End Patch"
FENCED = f"```diff\n{PATCH}\n```"

INPUTS: list[tuple[str, str]] = [
    ('{"input": "a\\nb"}', "a\nb"),
    ('{"input": ""}', ""),
    ("{}", ""),
    ("", ""),
    ('{"patch": "a"}', "a"),
    ('{"input": "a", "note": "b"}', "a"),
    ('{"a": "1", "b": "2"}', '{"a": "1", "b": "2"}'),
    ('{"input": 5}', '{"input": 5}'),
    ('{"input": {"input": "a"}}', "a"),
    ('{"input": {"text": "a"}}', "a"),
    ('"just text"', "just text"),
    ("plain text", "plain text"),
    ("[1, 2]", "[1, 2]"),
    ('{"input": "{\\"input\\": \\"a\\"}"}', "a"),
    ('{"input": "{\\"input\\": 1}"}', '{"input": 1}'),
    ('{"input": "{\\"other\\": \\"a\\"}"}', '{"other": "a"}'),
    ('{"input": "\\"a\\""}', "a"),
    ('{"input": "one\ntwo\tthree"}', "one\ntwo\tthree"),  # raw line ends, which JSON forbids
    ('\n{"input": "one\ntwo"}\n', "one\ntwo"),
    ('{"input": "unfinished', '{"input": "unfinished'),
]


@pytest.mark.parametrize(("arguments", "want"), INPUTS)
@pytest.mark.parametrize("verbatim", [False, True])
def test_free_form_input_is_unwrapped(arguments: str, want: str, verbatim: bool) -> None:
    assert unwrap_input(arguments, verbatim) == want


@pytest.mark.parametrize(
    ("text", "verbatim", "want"),
    [
        (FENCED, True, PATCH),
        (FENCED, False, PATCH),  # a patch is known by its first line
        (f"\n{FENCED}\n", False, PATCH),
        (f"```\n{PATCH}```", False, PATCH),
        ("```js\nrun()\n```", True, "run()"),
        ("```js\nrun()\n```", False, "```js\nrun()\n```"),  # a note may well be one block of code
        ("see ```js\nrun()\n```", True, "see ```js\nrun()\n```"),
    ],
)
def test_a_fence_around_the_whole_is_no_input(text: str, verbatim: bool, want: str) -> None:
    assert unwrap_input(text, verbatim) == want


def test_free_form_input_leaves_in_one_piece_when_it_is_whole() -> None:
    events = [Started(), *called("apply_patch", '{"inp', 'ut": "*** Be', 'gin"}'), Finished("tool_calls")]
    assert restored(NAMES, events)[1:] == [
        Opened(0, "tool_call", "call_0", "apply_patch", "custom"),
        Delta(0, "*** Begin"),
        Closed(0),
        Finished("tool_calls"),
    ]


def test_calls_that_interleave_keep_their_inputs_apart() -> None:
    events: list[Event] = [
        Started(),
        Opened(0, "tool_call", "c0", "note"),
        Opened(1, "tool_call", "c1", "apply_patch"),
        Delta(0, '{"input":"a'),
        Delta(1, '{"input":"b'),
        Delta(0, '"}'),
        Delta(1, '"}'),
        Closed(1),
        Closed(0),
    ]
    deltas = [event for event in restored(NAMES, events) if isinstance(event, Delta)]
    assert deltas == [Delta(1, "b"), Delta(0, "a")]


def test_the_backends_last_word_for_the_arguments_wins() -> None:
    closed = Closed(0, text='{"input": "right"}')
    events = restored(NAMES, [Started(), *called("note", '{"input": "wro', closed=closed)])
    assert events[2:] == [Delta(0, "right"), Closed(0)]


def test_an_empty_input_gives_no_delta() -> None:
    assert restored(NAMES, [Started(), *called("note", "{}")])[2:] == [Closed(0)]


def test_nothing_half_said_is_shown_of_a_call_that_broke_off() -> None:
    opened = Opened(0, "tool_call", "call_0", "note", "custom")
    half = called("note", '{"input": "hal', closed=Closed(0, cut=True))
    assert restored(NAMES, [Started(), *half, Finished("length")])[1:] == [
        opened,
        Closed(0, cut=True),
        Finished("length"),
    ]
    failed = Failed(ERROR)
    assert restored(NAMES, [Started(), *half[:-1], failed])[1:] == [opened, failed]


def test_each_reply_has_its_own_state() -> None:
    RestoreTools(NAMES).feed(Opened(0, "tool_call", "c", "note"))
    assert list(RestoreTools(NAMES).feed(Delta(0, "x"))) == [Delta(0, "x")]


# --- structured answers ----------------------------------------------------------------


def test_the_answers_tool_is_the_text_of_the_reply() -> None:
    events = [Started(), *called("answer", '{"a"', ":1}"), Finished("tool_calls", USAGE)]
    assert restored(ANSWER, events)[1:] == [
        Opened(0, "text"),
        Delta(0, '{"a"'),
        Delta(0, ":1}"),
        Closed(0),
        Finished("stop", USAGE),
    ]


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ('{"value": [1, "é"]}', '[1,"é"]'),
        ('{"value": 1, "more": 2}', '{"value": 1, "more": 2}'),
        ("no", "no"),
    ],
)
def test_a_wrapped_answer_is_unwrapped(arguments: str, want: str) -> None:
    events = restored(WRAPPED, [Started(), *called("answer", arguments), Finished("tool_calls")])
    assert events[2:4] == [Delta(0, want), Closed(0)]


def texts(events: Sequence[Event]) -> list[str]:
    """The text of every text piece, in order."""
    found = {event.index: "" for event in events if isinstance(event, Opened) and event.kind == "text"}
    for event in events:
        if isinstance(event, Delta) and event.index in found:
            found[event.index] += event.text
    return list(found.values())


def test_words_before_the_answer_are_left_out_of_it() -> None:
    events = restored(
        ANSWER,
        [
            Started(),
            Opened(0, "summary"),
            Delta(0, "hm"),
            Closed(0),
            *said("Here you are:", 1),
            Opened(2, "reasoning"),
            Closed(2),
            *called("answer", "{}", index=3),
            *said("Anything else?", 4),
            Finished("tool_calls"),
        ],
    )
    assert texts(events) == ["{}"]
    assert [event.kind for event in events if isinstance(event, Opened)] == ["summary", "reasoning", "text"]
    assert events[-1] == Finished("stop")


def test_a_model_that_answers_in_words_is_heard_at_the_end() -> None:
    events = restored(ANSWER, [Started(), *said("No schema for me."), Finished("stop")])
    assert events[1:] == [*said("No schema for me."), Finished("stop")]
    broken = restored(ANSWER, [Started(), Opened(0, "text"), Delta(0, "No sch"), Failed(ERROR)])
    assert broken[1:] == [Opened(0, "text"), Delta(0, "No sch"), Failed(ERROR)]


def test_words_before_a_call_of_the_clients_own_tool_come_before_it() -> None:
    events = restored(
        ANSWER, [Started(), *said("Let me look."), *called("shell", "{}", index=1), Finished("tool_calls")]
    )
    assert events[1:] == [*said("Let me look."), *called("shell", "{}", index=1), Finished("tool_calls")]


def test_an_answer_beside_a_call_is_still_a_turn_of_calls() -> None:
    events = restored(
        ANSWER,
        [Started(), *called("shell", "{}"), *called("answer", "{}", index=1), Finished("tool_calls")],
    )
    assert events[-1] == Finished("tool_calls")
    assert texts(events) == ["{}"]


def test_a_refusal_after_words_still_joins_them_unless_they_are_left_out() -> None:
    refusal: list[Event] = [Opened(1, "refusal", joins=True), Delta(1, "no"), Closed(1)]
    kept = restored(ANSWER, [Started(), *said("Well."), *refusal, Finished("stop")])
    assert kept[4] == Opened(1, "refusal", joins=True)
    cut: list[Event] = [Started(), *called("answer", "{}"), *said("Well.", 1)]
    cut += [Opened(2, "refusal", joins=True), Closed(2), Finished("stop")]
    assert Opened(1, "refusal") in restored(ANSWER, cut)


def test_hosted_items_keep_their_place_among_what_is_left() -> None:
    foreign = Foreign(1, Opaque("responses", {"type": "web_search_call"}))
    events: list[Any] = [Started(), *said("Searching."), foreign, *called("answer", "{}", index=2)]
    shown = restored(ANSWER, [*events, Finished("tool_calls")])
    assert [event.index for event in shown if isinstance(event, Foreign | Opened)] == [0, 1]
