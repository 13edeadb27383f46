"""Laws of the text parsers on any text: the cuts do not matter, nothing is lost, nothing raises."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.translators.local_outputs import cut_at, read, tool
from translators.local.families import BY_NAME, FAMILIES, Family

TOOLS = [tool("f", a={"type": "integer"}), tool("g")]
NAMES = [family.name for family in FAMILIES]

SCRAPS = [
    "f", "g", "functions.f:0", "{", "}", "[", "]", '"', "'", "\\", ":", ",", "(", ")", "=", "f(a=1)",
    "[g()]", ";",
    '{"name":"f","arguments":{"a":1}}', '{"name":"g","parameters":{}}', '{"a":1}', "{a:1}", "```json", "```",
    "[ARGS]", "[CALL_ID]", '<|"|>', "<escape>", "<|tool_call_argument_begin|>", "<｜tool▁sep｜>",
    "<function=f>", "<parameter=a>", "</parameter>", "</function>", "</function></tool_call>",
    "<arg_key>a</arg_key>", "<arg_value>1</arg_value>", "<arg_value>", ' name="f">', ' name="g"/>',
    '<｜DSML｜parameter name="a">', "</｜DSML｜parameter>", "</｜DSML｜invoke>", "</function_calls>",
    "<|start|>assistant", "<|channel|>", "final", "commentary to=functions.f", "<|message|>",
    "<|end|>", "<|call|>",
    "<", "<|", "</", " ", "\n", "\n\n", "é", "null",
]  # fmt: skip


def outputs(family: Family) -> st.SearchStrategy[str]:
    scraps = st.sampled_from([*SCRAPS, *family.markers, *family.markers]) | st.text(max_size=6)
    return st.lists(scraps, max_size=14).map("".join)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=80, deadline=None)
@given(st.data(), st.lists(st.integers(0, 200), max_size=12), st.booleans(), st.booleans())
def test_cuts_do_not_matter(
    name: str, data: st.DataObject, places: list[int], cut: bool, thinking: bool
) -> None:
    text = data.draw(outputs(BY_NAME[name]))
    whole = read(name, [text], TOOLS, cut=cut, thinking=thinking)
    parts = read(name, cut_at(text, places), TOOLS, cut=cut, thinking=thinking)
    assert parts == whole


WORDS = [f"word{number}" for number in range(40)]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "harmony"])
@settings(max_examples=80, deadline=None)
@given(st.data(), st.booleans(), st.booleans())
def test_no_word_is_lost(name: str, data: st.DataObject, cut: bool, thinking: bool) -> None:
    """Every word comes out as text, as a thought, in a call, or in the call that was cut."""
    family = BY_NAME[name]
    scraps = st.sampled_from([*SCRAPS, *family.markers])
    pairs = data.draw(st.lists(st.tuples(scraps, st.sampled_from(WORDS)), max_size=12))
    text = "".join(f"{scrap} {word} " for scrap, word in pairs)
    out = read(name, [text], TOOLS, cut=cut, thinking=thinking)
    calls = " ".join(f"{call} {arguments}" for call, arguments, _ in out.calls)
    left = f"{out.text} {out.thought} {calls} {out.dropped}"
    for word, times in Counter(word for _, word in pairs).items():
        assert left.count(word) >= times


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="abc \n.,", max_size=60))
def test_plain_text_is_exact(name: str, text: str) -> None:
    assert read(name, list(text), TOOLS).text == text
    assert read(name, [text]).text == text
