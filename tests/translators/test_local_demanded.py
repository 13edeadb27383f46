"""`structured_outputs` as a grammar, by family."""

from __future__ import annotations

from typing import Any

import pytest

from translators.errors import ProxyError
from translators.local.demanded import demanded
from translators.local.families import BY_NAME
from translators.local.guidance import demanded_guidance

HERMES, HARMONY, PLAIN = BY_NAME["hermes"], BY_NAME["harmony"], BY_NAME["plain"]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"regex": "a"}, ("regex", "a")),
        ({"regex": None, "choice": ["a"]}, ("choice", ["a"])),
        ({"json": {}}, ("json", {})),
        ({"grammar": "start: A"}, ("grammar", "start: A")),
    ],
)
def test_what_is_demanded(told: Any, expected: Any) -> None:
    assert demanded({"structured_outputs": told}) == expected


@pytest.mark.parametrize("told", [[], 1, {"regex": 1}, {"json": []}, {"choice": "a"}, {"x": 1}])
def test_what_is_no_demand(told: Any) -> None:
    with pytest.raises(ProxyError) as refused:
        demanded({"structured_outputs": told})
    assert str(refused.value.param).startswith("structured_outputs")


def test_a_regex_alone_is_a_regex() -> None:
    found = demanded_guidance(PLAIN, "regex", "a/b")
    assert (found.kind, found.text) == ("regex", "a/b")


def test_a_grammar_is_taken_as_it_is() -> None:
    found = demanded_guidance(HERMES, "grammar", "start: A", True)
    assert (found.kind, found.text) == ("lark_grammar", "start: A")


def test_a_thought_that_has_begun_is_ended_first() -> None:
    text = demanded_guidance(HERMES, "regex", "a/\n", thinking_open=True).text
    assert text.startswith("start: thought ")
    assert r"/a\/\n/" in text


def test_what_begins_an_answer_stands_before_it() -> None:
    text = demanded_guidance(HARMONY, "choice", ["a.b", "c"]).text
    assert text == r'start: "<|channel|>final<|message|>" /a\.b|c/'


@pytest.mark.parametrize(("family", "is_open"), [(HARMONY, False), (HERMES, True)])
def test_a_grammar_has_no_room_for_more(family: Any, is_open: bool) -> None:
    with pytest.raises(ProxyError) as refused:
        demanded_guidance(family, "grammar", "start: A", thinking_open=is_open)
    assert refused.value.param == "structured_outputs.grammar"
