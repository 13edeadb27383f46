"""What is in an output and no part of its answer; and Kimi K3's tags where the fixtures have no case."""

from __future__ import annotations

import pytest

from tests.translators.local_outputs import Output, read, tool

TOOLS = [tool("f", s={"type": "string"}, n={"type": "integer"})]
BEGIN, END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL = '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"n":1}<|tool_call_end|>'
ONE = (("f", '{"n":1}', "functions.f:0"),)
K3 = '<|open|>call tool="f" index="1"<|sep|>'
K3_END = "<|close|>call<|sep|>"


def k3(key: str, kind: str, value: str) -> str:
    return f'<|open|>argument key="{key}"{kind}<|sep|>{value}<|close|>argument<|sep|>'


def k3_call(arguments: str) -> Output:
    return Output(calls=(("f", arguments, None),), order="c")


CASES = [
    ("kimi_k2", f"a{BEGIN} x {CALL} y {CALL}{END}b", Output("ab", "", ONE * 2, " x  y ", "tcct")),
    ("kimi_k2", f"a{BEGIN} x {END}b", Output("a x b", order="t")),
    ("kimi_k2", f"a{BEGIN} x", Output("a x", order="t")),
    ("kimi_k2", f"{BEGIN} {CALL}{END}", Output("", "", ONE, " ", "c")),
    ("kimi_k2", f"a{END}b", Output("ab", order="t")),
    ("harmony", "<|channel|>commentary to=py<|message|>print()<|call|>", Output(dropped="print()<|call|>")),
    (
        "harmony",
        "<|channel|>analysis to=browser<|message|>x<|end|><|start|>assistant<|channel|>final<|message|>y",
        Output("y", dropped="x", order="t"),
    ),
    ("harmony", '<|channel|>commentary to=f<|message|>{"n":1}<|call|>', k3_call('{"n":1}')),
    ("kimi_k3", K3 + k3("n", ' type="number"', " 1 ") + K3_END, k3_call('{"n":1}')),
    ("kimi_k3", K3 + k3("n", ' type="number"', "one") + K3_END, k3_call('{"n":"one"}')),
    ("kimi_k3", K3 + k3("n", "", "2") + "\n" + k3("s", "", "2") + "\n" + K3_END, k3_call('{"n":2,"s":"2"}')),
    ("kimi_k3", K3 + k3("s", "", f"a {K3_END} b") + K3_END, k3_call(f'{{"s":"a {K3_END} b"}}')),
    ("kimi_k3", K3 + "words" + K3_END, Output(K3 + "words" + K3_END, order="t")),
    ("kimi_k3", "<|open|>call tool=f<|sep|>", Output("<|open|>call tool=f<|sep|>", order="t")),
    ("kimi_k3", "<|open|>response<|sep|>a", Output("a", order="t")),
]  # fmt: skip


@pytest.mark.parametrize(("family", "text", "expected"), CASES)
def test_output(family: str, text: str, expected: Output) -> None:
    assert read(family, [text], TOOLS) == expected
    assert read(family, list(text), TOOLS) == expected


@pytest.mark.parametrize("tools", [[], TOOLS])
def test_wraps_go_with_tools_and_without(tools: list[object]) -> None:
    text = "<|open|>think<|sep|>a<|close|>think<|sep|><|open|>response<|sep|>b<|close|>response<|sep|>"
    assert read("kimi_k3", list(text), tools) == Output("b", "a", order="rt")


def test_cut_call_is_dropped() -> None:
    out = read("kimi_k3", [K3 + k3("s", "", "a")], TOOLS, cut=True)
    assert out == Output(dropped=K3 + k3("s", "", "a"))
