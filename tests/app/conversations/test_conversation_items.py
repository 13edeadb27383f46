"""What goes into a conversation, and what is shown of it."""

from __future__ import annotations

from itertools import count
from typing import Any

import orjson
import pytest

from app.state.conversation_items import INCLUDABLE, items_of, place_behind, shown, to_entries, until
from app.store.conversations import Entry

USER = {"role": "user", "content": "x"}


def entries(*items: Any, taken: tuple[str, ...] = ()) -> list[Entry]:
    numbers = count(1)
    return to_entries(items, lambda prefix: f"{prefix}new{next(numbers)}", taken)


def test_items_get_ids_and_stay_as_they_are() -> None:
    call = {"type": "function_call", "name": "f", "call_id": "c", "arguments": "{}"}
    found = entries(USER, call, {**USER, "id": "mine"}, {"type": "shiny"})
    assert [each.id for each in found] == ["msg_new1", "fc_new2", "mine", "item_new3"]
    assert items_of(found) == [USER, call, {**USER, "id": "mine"}, {"type": "shiny"}]
    assert items_of([]) == []


@pytest.mark.parametrize("id", ["a", "taken", "", None, 5, "\0", "x" * 257, "ä"])
def test_an_id_that_cannot_stay_is_replaced(id: Any) -> None:
    found = entries({**USER, "id": "a"}, {**USER, "id": id}, taken=("taken",))
    assert [each.id for each in found] == ["a", "msg_new1"]
    assert items_of(found)[1] == USER


def test_what_is_of_its_own_request_alone_is_not_kept() -> None:
    assert [each.id for each in entries(USER, {"type": "compaction_trigger"})] == ["msg_new1"]


def test_a_place_is_found_again() -> None:
    found = entries(USER, USER, USER)
    conversation, _, last = place_behind("conv_a", found[:2]).partition("/")
    assert (conversation, until(found, last)) == ("conv_a", found[:2])
    assert until(found, place_behind("conv_a", []).partition("/")[2]) == ()
    assert until(found[2:], last) is None


HIDDEN: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "file_search_call.results": ({"type": "file_search_call", "results": [1]}, ["results"], None),
    "web_search_call.results": ({"type": "web_search_call", "results": [1]}, ["results"], None),
    "web_search_call.action.sources": (
        {"type": "web_search_call", "action": {"type": "search", "sources": [1]}},
        ["action"],
        {"type": "search"},
    ),
    "message.input_image.image_url": (
        {"role": "user", "content": [{"type": "input_image", "detail": "low", "image_url": "u"}]},
        ["content", 0],
        {"type": "input_image", "detail": "low"},
    ),
    "computer_call_output.output.image_url": (
        {"type": "computer_call_output", "output": {"type": "computer_screenshot", "image_url": "u"}},
        ["output"],
        {"type": "computer_screenshot"},
    ),
    "code_interpreter_call.outputs": ({"type": "code_interpreter_call", "outputs": [1]}, ["outputs"], None),
    "reasoning.encrypted_content": ({"type": "reasoning", "encrypted_content": "s"}, ["summary"], []),
    "message.output_text.logprobs": (
        {"role": "assistant", "content": [{"type": "output_text", "text": "x", "logprobs": [1]}]},
        ["content", 0],
        {"type": "output_text", "text": "x", "annotations": []},
    ),
}


@pytest.mark.parametrize("include", sorted(INCLUDABLE))
def test_what_is_shown_to_who_asks_for_it(include: str) -> None:
    item, path, left = HIDDEN[include]
    entry = Entry("id_1", orjson.dumps(item))
    hidden: Any = shown(entry, ())
    whole = orjson.dumps(shown(entry, (include,)))
    for step in path:
        hidden = hidden[step]
    assert hidden == left
    key = include.rpartition(".")[2].encode()
    assert b'"%b":' % key in whole
    assert b'"%b":null' % key not in whole


ODD = [
    {"type": "message", "role": "user", "content": None},
    {"type": "message", "role": "user", "content": ["x", 5]},
    {"type": "message", "role": "user", "content": [{"type": []}]},
    {"type": "message", "role": "user", "content": {}},
    {"type": "web_search_call", "action": "x"},
    {"type": "function_call_output", "output": [{"type": "input_text", "text": "x"}]},
    {"type": "reasoning", "summary": None},
]


@pytest.mark.parametrize("item", ODD, ids=range(len(ODD)))
def test_odd_items_are_shown_all_the_same(item: dict[str, Any]) -> None:
    found = shown(Entry("id_1", orjson.dumps(item)), ())
    assert (found["id"], found["type"]) == ("id_1", item["type"])
