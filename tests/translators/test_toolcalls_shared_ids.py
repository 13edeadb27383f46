"""One id under several indexes: when it is a second call, and when the same one goes on."""

from __future__ import annotations

from typing import Any

import pytest

from translators.profile import ToolDelta
from translators.toolcalls import ToolCallAssembler

Entry = dict[str, Any]


def entry(index: int | None, text: str, name: str | None = "f", id: str | None = "same") -> Entry:
    told: Entry = {"id": id, "type": "function"} if id is not None else {}
    function = {"arguments": text} if name is None else {"name": name, "arguments": text}
    return {**told, "function": function} if index is None else {"index": index, **told, "function": function}


def assembled(
    deltas: list[list[Entry]], rules: ToolDelta | None = None
) -> tuple[list[tuple[str, str, str]], bool]:
    assembler = ToolCallAssembler(rules or ToolDelta())
    for delta in deltas:
        assembler.feed(delta)
    assembler.settle()
    return [(call.id, call.name, call.arguments) for call in assembler.calls], assembler.clean


def bare(index: int, text: str) -> Entry:
    return entry(index, text, None, None)


SECOND_CALL: dict[str, list[list[Entry]]] = {
    "both opened before any text": [
        [entry(0, "")],
        [entry(1, "")],
        [bare(0, '{"a":1}')],
        [bare(1, '{"a":2}')],
    ],
    "both opened in one delta": [[entry(0, ""), entry(1, "")], [bare(1, '{"a":2}'), bare(0, '{"a":1}')]],
    "the first not yet whole": [
        [entry(0, '{"a":')],
        [entry(1, '{"a":')],
        [bare(0, "1}")],
        [bare(1, "2}")],
    ],
    "all told in every piece": [
        [entry(0, "")],
        [entry(1, "")],
        [entry(0, '{"a":1}')],
        [entry(1, '{"a":2}')],
    ],
    "the id in every piece": [
        [entry(0, "")],
        [entry(1, "")],
        [entry(0, '{"a":1}', None)],
        [entry(1, '{"a":2}', None)],
    ],
    "no index, in one delta": [[entry(None, '{"a":1}'), entry(None, '{"a":2}')]],
    "no index, pieces by place": [
        [entry(None, '{"a":'), entry(None, '{"a":')],
        [entry(None, "1}", None, None), entry(None, "2}", None, None)],
    ],
}


@pytest.mark.parametrize("deltas", SECOND_CALL.values(), ids=SECOND_CALL)
def test_a_name_under_a_new_index_opens_a_second_call(deltas: list[list[Entry]]) -> None:
    calls, clean = assembled(deltas)
    assert calls == [("same", "f", '{"a":1}'), ("", "f", '{"a":2}')]
    assert not clean


@pytest.mark.parametrize("text", ["{}", '{"a":1}', '"{}"'])
def test_the_same_arguments_twice_are_two_calls(text: str) -> None:
    """As in a whole reply, where each entry is a call."""
    inner = "{}" if text.startswith('"') else text
    assert assembled([[entry(0, text)], [entry(1, text)]])[0] == [("same", "f", inner), ("", "f", inner)]
    assert assembled([[entry(0, text), entry(1, text)]])[0] == [("same", "f", inner), ("", "f", inner)]


def test_another_name_is_another_call() -> None:
    calls, _ = assembled([[entry(0, "", "f")], [entry(1, "", "g")], [bare(0, "{}")], [bare(1, "{}")]])
    assert calls == [("same", "f", "{}"), ("", "g", "{}")]


def test_a_custom_call_begins_with_any_text() -> None:
    def custom(index: int, text: str) -> Entry:
        return {"index": index, "id": "same", "type": "custom", "custom": {"name": "p", "input": text}}

    assert assembled([[custom(0, "*** a")], [custom(1, "*** b")]])[0] == [
        ("same", "p", "*** a"),
        ("", "p", "*** b"),
    ]


SAME_CALL: dict[str, list[list[Entry]]] = {
    "the index changes, no name": [[entry(0, '{"a":')], [entry(3, "1", None)], [entry(4, "}", None)]],
    "the index changes, the name told again": [[entry(0, '{"a":')], [entry(3, "1")], [entry(4, "}")]],
    "the index comes late": [[entry(None, "")], [entry(1, '{"a":')], [bare(1, "1}")]],
    "all told in every piece of one index": [[entry(0, "")], [entry(0, '{"a":')], [entry(0, "1}")]],
    "all told again whole": [[entry(0, '{"a":')], [bare(0, "1}")], [entry(0, '{"a":1}')]],
    "no index, all told in every piece": [[entry(None, "")], [entry(None, '{"a":')], [entry(None, "1}")]],
}


@pytest.mark.parametrize("deltas", SAME_CALL.values(), ids=SAME_CALL)
def test_a_known_id_goes_on(deltas: list[list[Entry]]) -> None:
    assert assembled(deltas)[0] == [("same", "f", '{"a":1}')]


def test_an_exact_index_is_one_call_and_an_exact_id_too() -> None:
    deltas = [[entry(0, "")], [entry(1, "")], [bare(0, '{"a":1}')], [bare(1, '{"a":2}')]]
    assert assembled(deltas, ToolDelta(index="exact"))[0] == [
        ("same", "f", '{"a":1}'),
        ("", "f", '{"a":2}'),
    ]
    told = [[entry(0, '{"a":')], [entry(1, "1}")]]
    assert assembled(told, ToolDelta(id="exact"))[0] == [("same", "f", '{"a":1}')]
