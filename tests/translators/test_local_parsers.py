"""Broken markup, calls cut by the token limit, requests without tools."""

from __future__ import annotations

import pytest

from tests.translators.local_outputs import Output, read, tool
from translators.local.families import BY_NAME
from translators.local.parser import make_parser
from translators.local.pieces import Text

TOOLS = [tool("f", a={"type": "integer"}, s={"type": "string"}), tool("g")]
CALL_G = ("g", "{}", None)
HERMES = '<tool_call>\n{"name":"f","arguments":{"a":1}}\n</tool_call>'

BROKEN = [
    ("hermes", "use <tool_call> like this </tool_call>."),
    ("hermes", '<tool_call>{"name":"f","arguments":[1]}</tool_call>'),
    ("hermes", '<tool_call>{"name":"f","arguments":"no"}</tool_call>'),
    ("hermes", '<tool_call>{"name":1,"arguments":{}}</tool_call>'),
    ("hermes", '<tool_call>{"name":"","arguments":{}}</tool_call>'),
    ("hermes", '<tool_call>[{"name":"f","arguments":{}}, 1]</tool_call>'),
    ("hermes", '<tool_call>{"name":"f" <'),
    ("hermes", '<tool_call>{"name":"f'),
    ("hermes", '<tool_call>{"name":"f\\'),
    ("hermes", "a <tool_"),
    ("lfm2", "<|tool_call_start|>[f(1)]"),
    ("lfm2", "<|tool_call_start|>[f(**{})]"),
    ("lfm2", "<|tool_call_start|>[f(a=open)]"),
    ("lfm2", "<|tool_call_start|>[f(a={1})]"),
    ("lfm2", "<|tool_call_start|>[]"),
    ("lfm2", "<|tool_call_start|>[f(a=1) ,,]"),
    ("lfm2", "<|tool_call_start|>[1]"),
    ("lfm2", "<|tool_call_start|>{1: 2}"),
    ("olmo3", "<function_calls>f(a=1)"),
    ("olmo3", "<function_calls></function_calls>"),
    ("olmo3", "<function_calls>a = 1</function_calls>"),
    ("mistral", "[TOOL_CALLS]"),
    ("mistral", "[TOOL_CALLS]f and so on"),
    ("mistral", '[TOOL_CALLS][ARGS]{"a":1}'),
    ("mistral", "[TOOL_CALLS]f[ARGS] x"),
    ("mistral", "[TOOL_CALLS]f[ARGS]"),
    ("mistral", '[TOOL_CALLS]f[ARGS]{"a":}'),
    ("kimi_k2", '<|tool_call_begin|>functions.:1<|tool_call_argument_begin|>{"a":1}'),
    ("gemma4", "<|tool_call>call:f{a<b}"),
    ("gemma4", "<|tool_call>call:f{[1]}"),
    ("gemma4", '<|tool_call>call:f{s:<|"|>}<tool_call|>'),
    ("gemma4", "<|tool_call>call:f{s:<|"),
    ("qwen3_coder", "<tool_call>see <function=f> there"),
    ("qwen3_coder", "<tool_call>\n<function=f g>"),
    ("qwen3_coder", "<tool_call>\n<function=f"),
    ("qwen3_coder", "<tool_call>\n<function=f>words<parameter=a>1</parameter></function></tool_call>"),
    ("qwen3_coder", "<tool_call>\n<function=f><parameter=a>1</parameter></function> words"),
    ("qwen3_coder", "<tool_call>\n<function=f>words</function>"),
    ("glm45", "<tool_call> <b>"),
    ("glm45", "<tool_call>f is a tool"),
    ("glm45", "<tool_call>f<arg_key>a</arg_key>words</tool_call>"),
    ("deepseek_dsml", "<｜DSML｜invoke is a mark>"),
    ("deepseek_dsml", "<｜DSML｜invoke is a mark" + " and so on" * 40),
    ("deepseek_dsml", '<｜DSML｜invoke name="f">words</｜DSML｜invoke>'),
]

HEADS = [
    ("hermes", "<tool_call>"),
    ("mistral", "[TOOL_CALLS]"),
    ("kimi_k2", "<|tool_call_begin|>f"),
    ("qwen3_coder", "<tool_call>"),
    ("llama3_json", "{"),
    ("pythonic", "[f"),
]


@pytest.mark.parametrize(("family", "head"), HEADS)
def test_head_that_does_not_end_is_text(family: str, head: str) -> None:
    """Else it is looked at again with each piece that comes in."""
    text = head + " " * 500 + "x"
    for chunks in ([text], list(text)):
        assert read(family, chunks, TOOLS).text == text


@pytest.mark.parametrize(("family", "text"), BROKEN)
def test_broken_markup_is_text(family: str, text: str) -> None:
    for chunks in ([text], list(text)):
        assert read(family, chunks, TOOLS)._replace(order="") == Output(text)


CUT = [
    ("hermes", '<tool_call>{"name":"f","arguments":{"a":1}', '<tool_call>{"name":"f","arguments":{"a":1}'),
    ("hermes", "<tool_call>", "<tool_call>"),
    ("hermes", "<tool_call", "<tool_call"),
    ("glm45", "<tool_call>g</tool_call", "<tool_call>g</tool_call"),
    ("qwen3_coder", "<function=g></function>", "<function=g></function>"),
    ("gemma4", "<|tool_call>cal", "<|tool_call>cal"),
    ("harmony", "<|start|>assistant to=functions.f", "<|start|>assistant to=functions.f"),
    ("harmony", '<|channel|>commentary to=functions.f<|message|>{"a', '{"a'),
]


@pytest.mark.parametrize(("family", "text", "dropped"), CUT)
def test_cut_call_is_dropped(family: str, text: str, dropped: str) -> None:
    expected = Output(dropped=dropped)
    for chunks in ([text], list(text)):
        assert read(family, chunks, TOOLS, cut=True) == expected


@pytest.mark.parametrize(
    ("family", "text"),
    [("hermes", "1 <"), ("llama3_json", '{"name":"f","par'), ("pythonic", "[f(a="), ("hermes", "a\n")],
)
def test_cut_text_is_kept(family: str, text: str) -> None:
    """Without a marker it may as well be an answer."""
    assert read(family, [text], TOOLS, cut=True).text == text


def test_json_answer_is_not_held_back() -> None:

    parser = make_parser(BY_NAME["llama3_json"], TOOLS)
    assert "".join(piece.text for piece in parser.feed('{"city') if isinstance(piece, Text)) == '{"city'


@pytest.mark.parametrize(
    "text", [HERMES, "<tool_call>", "a\n</tool_call> b", '{"name":"g","parameters":{}}', "[g()]"]
)
@pytest.mark.parametrize("family", ["hermes", "llama3_json", "pythonic", "kimi_k2", "glm45"])
def test_without_tools_nothing_is_a_call(family: str, text: str) -> None:
    assert read(family, [text]).text == text


def test_harmony_without_tools() -> None:
    """A call of what nobody offered is a thought."""
    text = '<|channel|>commentary to=functions.f<|message|>{"a":1}<|call|>'
    assert read("harmony", [text]).thought == '{"a":1}<|call|>'


def test_thinking_is_told() -> None:

    for family, close in (("hermes", "</think>"), ("harmony", "<|end|>")):
        parser = make_parser(BY_NAME[family], TOOLS, thinking_open=True)
        assert parser.thinking
        parser.feed(f"a{close}")
        assert not parser.thinking


def test_call_ends_thought_only_where_the_family_says_so() -> None:
    call = "<tool_call><function=g></function></tool_call>"
    assert read("qwen3_coder", [f"a {call}"], TOOLS, thinking=True) == Output("", "a", (CALL_G,), order="rc")
    assert read("hermes", [f"a {HERMES}"], TOOLS, thinking=True).thought == f"a {HERMES}"
    mention = "so <tool_call> is a mark</think>b"
    got = read("qwen3_coder", list(mention), TOOLS, thinking=True)
    assert (got.text, got.thought) == ("b", "so <tool_call> is a mark")
