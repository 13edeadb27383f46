"""The assembler alone: what it gives out, when, and whether a client could have read the wire itself.

The streams of the field are in `cases/chat_streams.json`, played by the decoder's tests.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translators.toolcalls import ToolCallAssembler

OPEN = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}


def piece(text: str, index: int | None = 0, **more: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"function": {"arguments": text}, **more}
    return entry if index is None else {"index": index, **entry}


def opening(text: str = "", **more: Any) -> dict[str, Any]:
    return {**OPEN, "function": {"name": "f", "arguments": text}, **more}


def given_out(*deltas: list[Any]) -> tuple[list[list[Any]], bool]:
    """What each feed and the settling gave, and whether it was clean."""
    assembler = ToolCallAssembler()
    pieces = [*map(assembler.feed, deltas), assembler.settle()]
    out = [[(p.call.position, p.opens, p.text) for p in each] for each in pieces]
    return out, assembler.clean


def test_a_call_waits_for_its_first_argument_text() -> None:
    out, clean = given_out([OPEN], [piece('{"k"')], [piece(":1}")])
    assert out == [[], [(0, True, '{"k"')], [(0, False, ":1}")], []]
    assert clean


def test_empty_arguments_wait_for_better_ones() -> None:
    assert given_out([opening("{}")])[0] == [[], [(0, True, "{}")]]
    assert given_out([opening("{}")], [piece('{"k":1}')])[0] == [[], [(0, True, '{"k":1}')], []]


def test_the_next_call_ends_the_wait() -> None:
    out, clean = given_out([opening("{}")], [opening('{"k"', index=1, id="b")])
    assert out == [[], [(0, True, "{}"), (1, True, '{"k"')], []]
    assert clean


def test_calls_that_are_all_announced_with_nothing_wait_for_their_text() -> None:
    begun = [opening("{}")], [opening("{}", index=1, id="b")]
    out, clean = given_out(*begun)
    assert out == [[], [(0, True, "")], [(0, False, "{}"), (1, True, "{}")]]
    assert clean
    out, clean = given_out(*begun, [piece('{"k":1}')], [piece('{"k":2}', 1)])
    assert out == [[], [(0, True, "")], [(0, False, '{"k":1}')], [(1, True, '{"k":2}')], []]
    assert not clean


WELL_FORMED: list[list[list[Any]]] = [
    [[OPEN], [piece("{")], [piece("}")]],
    [[opening("{}")]],
    [[opening('{"k":1}')], [opening("{}", index=1, id="b")]],
    [[opening("{"), opening("{", index=1, id="b")], [piece("}", 1)], [piece("}", 0)]],
    [[OPEN], [piece("{}", id=None, type=None)]],
    [[OPEN], [{"index": 0, "function": {"arguments": None}}], [piece("{}")]],
    [[OPEN], [{"index": 0, "type": "function", "function": {"name": None, "arguments": "x"}}]],
    [[{"index": 0, "id": "a", "type": "custom", "custom": {"name": "p", "input": "{}"}}]],
]

ODD: list[list[list[Any]]] = [
    [[opening(index=None)], [piece("{}")]],
    [[opening(index="0")], [piece("{}")]],
    [[opening(index=1)], [piece("{}", 1)]],
    [[opening(id="")], [piece("{}")]],
    [[opening(id=None)], [piece("{}")]],
    [[opening(type=None)], [piece("{}")]],
    [[OPEN], [piece("{}", id="a", type="function")]],
    [[OPEN], [piece("{}", id="")]],
    [[OPEN], [piece("{")], [piece("}", type="")]],
    [[OPEN], [{"index": 0, "function": {"name": "", "arguments": "{}"}}]],
    [[OPEN], [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]],
    [[OPEN], [piece("{}", None)]],
    [[opening('{"k":1}')], [piece('{"k":1}')]],
    [[opening("{}")], [piece('{"k":1}')]],
    [[opening('"{}"')]],
    [[opening("{}")], [opening('{"a":1}', id="b")]],
    [[{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": {"k": 1}}}]],
    [[{"index": 0, "id": "a", "type": "function", "name": "f", "arguments": "{}"}]],
    [[OPEN, "junk"], [piece("{}")]],
    [[{"index": 0, "function": {}}], [OPEN], [piece("{}")]],
    [[OPEN], [{"index": 0, "extra": 1}], [piece("{}")]],
]


@pytest.mark.parametrize("deltas", WELL_FORMED, ids=str)
def test_well_formed_entries_are_clean(deltas: list[list[Any]]) -> None:
    assert given_out(*deltas)[1]


@pytest.mark.parametrize("deltas", ODD, ids=str)
def test_odd_entries_are_not(deltas: list[list[Any]]) -> None:
    assert not given_out(*deltas)[1]


def test_waiting() -> None:
    assembler = ToolCallAssembler()
    assert not assembler.waiting
    assembler.feed([OPEN])
    assert assembler.waiting
    assembler.feed([piece("{")])
    assert not assembler.waiting


def test_nameless() -> None:
    assembler = ToolCallAssembler()
    assembler.feed([{"index": 0, "id": "a", "type": "function", "function": {"arguments": "{}"}}])
    assert assembler.settle() == []
    assert assembler.nameless()
    assembler.feed([{"index": 0, "function": {"name": "f"}}])
    assert [call.arguments for call in assembler.calls] == ["{}"]
    assert not assembler.nameless()


def test_keys_of_the_wire_travel_with_their_call() -> None:
    assembler = ToolCallAssembler()
    pieces = assembler.feed([opening("{", sig="s")])
    assert pieces[0].extra == {"sig": "s"}
    assert [(p.text, p.extra) for p in assembler.feed([piece("", sig="t")])] == [("", {"sig": "t"})]
    assert [(p.text, p.extra) for p in assembler.feed([piece("}")])] == [("}", {})]


def test_a_piece_that_went_by_is_known() -> None:
    assembler = ToolCallAssembler()
    (first,) = assembler.feed([opening('{"k"')])
    assembler.grow(first.call, ":1}")
    assert first.call.arguments == '{"k":1}'
    assert assembler.feed([piece('{"k":1}')]) == []


json_texts = st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), min_size=1).map(
    lambda value: str(value).replace("'", '"')
)
calls = st.lists(st.tuples(st.sampled_from(["f", "g", "h"]), json_texts), min_size=1, max_size=4)
forms = st.sampled_from(["index", "ids", "both", "zero"])


@given(calls, forms, st.integers(1, 5))
def test_nothing_is_lost_or_mixed_up(made: list[tuple[str, str]], form: str, size: int) -> None:
    """Calls streamed one after the other, in pieces, told apart by index, by id, or by both."""
    assembler = ToolCallAssembler()
    for number, (name, text) in enumerate(made):
        head: dict[str, Any] = {} if form == "ids" else {"index": 0 if form == "zero" else number}
        ident = {} if form == "index" else {"id": f"call{number}", "type": "function"}
        assembler.feed([{**head, **ident, "function": {"name": name, "arguments": ""}}])
        for at in range(0, len(text), size):
            more = ident if form == "ids" else {}
            assembler.feed([{**head, **more, "function": {"arguments": text[at : at + size]}}])
    assembler.settle()
    assert [(call.name, call.arguments, call.position) for call in assembler.calls] == [
        (name, text, number) for number, (name, text) in enumerate(made)
    ]


@pytest.mark.parametrize("index", ["\u00b2", "9" * 5000, "-1", "1.0", ""])
def test_an_index_that_is_no_number(index: str) -> None:
    calls = ToolCallAssembler()
    calls.feed([{"index": index, "id": "a", "function": {"name": "f", "arguments": "{}"}}])
    calls.settle()
    assert [(call.name, call.arguments) for call in calls.calls] == [("f", "{}")]


def test_arguments_nested_deeper_than_can_be_written() -> None:
    calls = ToolCallAssembler()
    deep = '{"a":' + "[" * 300 + "]" * 300 + "}"
    calls.feed([{"index": 0, "id": "a", "function": {"name": "f", "arguments": deep}}])
    calls.feed([{"index": 0, "id": "a", "function": {"name": "f", "arguments": deep}}])
    assert not calls.calls[0].parsable
