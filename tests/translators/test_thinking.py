"""`<think>` at the start of the text, whatever the chunks are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translators.thinking import ThinkSplitter

TAGS = ("<think>", "</think>")

CASES: list[tuple[str, str, str, str]] = [
    ("no tags", "Hello", "", "Hello"),
    ("a thought and an answer", "<think>plan</think>Answer", "plan", "Answer"),
    ("white space around", " \n<think>\n plan \n</think>\n\nAnswer\n", "plan \n", "Answer\n"),
    ("an empty thought", "<think>\n\n</think>\n\nAnswer", "", "Answer"),
    ("only a thought", "<think>plan</think>", "plan", ""),
    ("unclosed", "<think>plan", "plan", ""),
    ("unclosed, half the closing tag", "<think>plan</thi", "plan</thi", ""),
    ("half the opening tag", "<thi", "", "<thi"),
    ("not quite the tag", "<thinker>x", "", "<thinker>x"),
    ("later in the text", "Say <think>x</think>", "", "Say <think>x</think>"),
    ("a second thought is text", "<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
    ("a stray closing tag is text", "a</think>b", "", "a</think>b"),
    ("something like the closing tag", "<think>a < b </ c</think>d", "a < b </ c", "d"),
    ("only white space", " \n ", "", " \n "),
    ("only white space after the thought", "<think>a</think> \n", "a", ""),
    ("nothing", "", "", ""),
]


def split(text: str, sizes: list[int]) -> tuple[str, str]:
    splitter, at, count = ThinkSplitter(TAGS), 0, 0
    thought, said = "", ""
    while at < len(text):
        size = sizes[count % len(sizes)]
        pair = splitter.feed(text[at : at + size])
        assert not (pair[0] and said), "no thought after text"
        thought, said = thought + pair[0], said + pair[1]
        at, count = at + size, count + 1
    pair = splitter.close()
    assert not splitter.holding
    return thought + pair[0], said + pair[1]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(("text", "thought", "said"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_split(text: str, thought: str, said: str, size: int) -> None:
    assert split(text, [size]) == (thought, said)


texts = st.lists(st.sampled_from(["<think>", "</think>", "<", "think", "/", ">", " ", "\n", "a"])).map(
    "".join
)


@given(texts, st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_any_cut_gives_the_same(text: str, sizes: list[int]) -> None:
    assert split(text, sizes) == split(text, [len(text) + 1])


def test_nothing_is_held_longer_than_needed() -> None:
    splitter = ThinkSplitter(TAGS)
    assert splitter.feed("<think>plan </") == ("plan ", "")
    assert splitter.holding
    assert splitter.feed("x") == ("</x", "")
    assert splitter.feed("</think>") == ("", "")
    assert not splitter.plain
    assert splitter.feed(" a") == ("", "a")
    assert splitter.plain
