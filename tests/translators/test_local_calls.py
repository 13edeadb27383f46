"""Calls in the formats that canitoolcall has no fixture for, and what stands around them."""

from __future__ import annotations

import pytest

from tests.translators.local_outputs import Output, read, tool

TOOLS = [
    tool("f", a={"type": "integer"}, s={"type": "string"}, o={"type": "object"}, x={}),
    tool("g"),
    {"type": "function", "name": "flat", "parameters": {"properties": {"n": {"type": "number"}}}},
]
CALL_F = ("f", '{"a":1}', None)
CALL_G = ("g", "{}", None)
HERMES = '<tool_call>\n{"name":"f","arguments":{"a":1}}\n</tool_call>'

F = Output(calls=(CALL_F,), order="c")
G = Output(calls=(CALL_G,), order="c")
F_G = Output(calls=(CALL_F, CALL_G), order="cc")
G_F = Output(calls=(CALL_G, CALL_F), order="cc")


def one(name: str, arguments: str, id_: str | None = None) -> Output:
    return Output(calls=((name, arguments, id_),), order="c")


CALLS: list[tuple[str, str, Output]] = [
    ("hermes", f"a {HERMES}\nb", Output("a \nb", calls=(CALL_F,), order="tct")),
    ("hermes", '<tool_call>{"name":"g"}', G),
    ("hermes", '<tool_call>{"name":"g","arguments":null}</tool_call>', G),
    ("hermes", '<tool_call>{"name":"f","arguments":"{\\"a\\":1}"}', F),
    (
        "hermes",
        '<tool_call>{"id":"x","function":{"name":"f","arguments":{"a":1}}}</tool_call>',
        one("f", '{"a":1}', "x"),
    ),
    (
        "hermes",
        '<tool_call>{"name":"unknown","arguments":{"b":123456789012345678901}}</tool_call>',
        one("unknown", '{"b":123456789012345678901}'),
    ),
    (
        "hermes",
        '<tool_call>{"name":"f","arguments":{"s":"\\"arguments\\":{/ 1234567890123456"}}',
        one("f", '{"s":"\\"arguments\\":{/ 1234567890123456"}'),
    ),
    (
        "hermes",
        '<tool_call>{"name":"f","parameters":{"a":1},"x":"\\"arguments\\": {\\"1234567890123456"}',
        F,
    ),
    ("hermes", f"<think>\nhm \n</think>\n{HERMES}{HERMES}", Output("", "hm", (CALL_F, CALL_F), order="rcc")),
    ("hermes", f"{HERMES}<think>then</think>{HERMES}", Output("", "then", (CALL_F, CALL_F), order="crc")),
    (
        "phi",
        'functools[{"name":"f","arguments":{"a":12345678901234567890}},{"name":"f","arguments":{"a": 1}}]',
        Output(calls=(("f", '{"a":12345678901234567890}', None), ("f", '{"a": 1}', None)), order="cc"),
    ),
    (
        "hermes",
        '<tool_call>{"name":"f","arguments":"{\\"a\\":1234567890123456}"}',
        one("f", '{"a":1234567890123456}'),
    ),
    ("hermes", "a <think>b</think> c\n", Output("a <think>b</think> c\n", order="t")),
    ("hermes", "<think>a <think> b</think>c", Output("c", "a <think> b", order="rt")),
    ("hermes", "<think> <think>b", Output("", "b", order="r")),
    ("hermes", "<think>b ", Output("", "b ", order="r")),
    ("hermes", '<tool_call>{"name":"f","arguments":{"s":"a\nb"}}', one("f", '{"s":"a\\nb"}')),
    ("llama3_json", '{"name":"g","parameters":{}}; {"name": "f", "parameters": {"a": 1}}', G_F),
    ("llama3_json", '<|python_tag|>{"name":"g","parameters":{}}<|eom_id|>', G),
    (
        "llama3_json",
        '{"name":"nobody","parameters":{}}',
        Output('{"name":"nobody","parameters":{}}', order="t"),
    ),
    ("llama3_json", '{"name":"g"}', Output('{"name":"g"}', order="t")),
    ("llama3_json", '{"type":"function","function":{"name":"g"}}', G),
    ("pythonic", "[f(a=1), g()]", F_G),
    (
        "pythonic",
        "[f(s=\"a]'\", o={'k': (1, true, null)})]",
        one("f", '{"s":"a]\'","o":{"k":[1,true,null]}}'),
    ),
    ("pythonic", "[f (a=1)]", F),
    ("pythonic", "[see(1)] and more", Output("[see(1)] and more", order="t")),
    ("pythonic", "text [f(a=1)]", Output("text [f(a=1)]", order="t")),
    ("olmo3", "<function_calls>\nf(a=1)\ng()\n</function_calls>", F_G),
    ("lfm2", "<|tool_call_start|>[f(a=1)]<|tool_call_end|>done", Output("done", calls=(CALL_F,), order="ct")),
    ("lfm2", "<|tool_call_start|>[a.b(a=1)]", one("a.b", '{"a":1}')),
    ("phi", 'functools[{"name":"f","arguments":{"a":1}}]', F),
    ("phi", "import functools\nimport re", Output("import functools\nimport re", order="t")),
    ("phi4_mini", '<|tool_call|>[{"name":"g","parameters":{}}]<|/tool_call|>', G),
    ("mistral", '[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"a":1}', one("f", '{"a":1}', "abcdefghi")),
    (
        "mistral_v3",
        '[TOOL_CALLS] [{"name":"f","arguments":{"a":1},"id":"abcdefghi"}]',
        one("f", '{"a":1}', "abcdefghi"),
    ),
    (
        "kimi_k2",
        '<|tool_call_begin|>functions.f:3<|tool_call_argument_begin|>{"a":1}',
        one("f", '{"a":1}', "functions.f:3"),
    ),
    ("kimi_k2", '<|tool_call_begin|>f<|tool_call_argument_begin|>{"a":1}', one("f", '{"a":1}', "f")),
    (
        "functiongemma",
        "<start_function_call>call:f{s:<escape>a{<escape>,a:1}<end_function_call>",
        one("f", '{"s":"a{","a":1}'),
    ),
    (
        "gemma4",
        "<|tool_call>call:f{s:bare words,a:1,}<tool_call|>",
        Output("<|tool_call>call:f{s:bare words,a:1,}<tool_call|>", order="t"),
    ),
    ("gemma4", '<|tool_call>call:f{<|"|>k<|"|>:bare words}', one("f", '{"k":"bare words"}')),
    ("qwen3_coder", "<function=f><parameter=a>1</parameter></function>", F),
    ("qwen3_coder", "<function=g></function>\n<function=f><parameter=a>1</parameter></function>\n", G_F),
    ("glm45", "<tool_call>f<arg_key>a</arg_key><arg_value>1</tool_call>\n", F),
    (
        "deepseek_dsml",
        '<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="a">1</｜DSML｜parameter></｜DSML｜invoke>',
        F,
    ),
    (
        "deepseek_dsml",
        '<｜DSML｜invoke name="f">\n'
        '<｜DSML｜parameter name="x" string="false">no</｜DSML｜parameter></｜DSML｜invoke>',
        one("f", '{"x":"no"}'),
    ),
    ("harmony", "no headers at all", Output("no headers at all", order="t")),
    ("harmony", "<|channel|>final<|message|>a <|x b", Output("a <|x b", order="t")),
    ("harmony", "<|channel|>final<|message|>a<|return|>", Output("a", order="t")),
    ("harmony", '<|channel|>commentary to=functions.f<|message|> {"s":"a\nb"}', one("f", '{"s":"a\\nb"}')),
    (
        "harmony",
        "<|channel|>commentary to=functions.f code<|message|>print(1)<|call|>",
        Output("print(1)<|call|>", order="t"),
    ),
    ("harmony", '<|channel|>commentary to=functions.f<|message|>{"a":}', Output('{"a":}', order="t")),
    ("harmony", '<|channel|>commentary to=functions.f<|message|>{"a":', Output('{"a":', order="t")),
    ("harmony", "<|channel|>commentary to=functions.f<|message|> ", Output(" ", order="t")),
    ("harmony", "<|channel|>final hello", Output("hello", order="t")),
    ("harmony", "<|channel|>odd hello<|end|> ", Output("", "odd hello", order="r")),
    ("harmony", "<|ch", Output("<|ch", order="t")),
    ("plain", "<think>\na\n</think>\n\nb", Output("b", "a", order="rt")),
]


@pytest.mark.parametrize(("family", "text", "expected"), CALLS)
def test_output(family: str, text: str, expected: Output) -> None:
    assert read(family, [text], TOOLS) == expected
    assert read(family, list(text), TOOLS)._replace(order="") == expected._replace(order="")
