"""What a client demands, as grammar text; the engine's own verdict on it is tested with the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from translators.errors import ProxyError
from translators.local.call_grammars import FORMATS
from translators.local.families import BY_NAME, FAMILIES
from translators.local.grammar_schema import grammar_schema, parameters_schema
from translators.local.guidance import guidance

HERMES, PLAIN = BY_NAME["hermes"], BY_NAME["plain"]


def tool(name: str, parameters: Any = None, **more: Any) -> dict[str, Any]:
    function = {"name": name, **({} if parameters is None else {"parameters": parameters}), **more}
    return {"type": "function", "function": function}


TOOLS = [tool("a"), {"type": "web_search"}, tool("b")]
NAMED_B = {"type": "function", "function": {"name": "b"}}


def allowed(mode: str, *names: str) -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def rules(found: Any) -> dict[str, str]:
    assert found.kind == "lark_grammar"
    return dict(line.split(": ", 1) for line in found.text.splitlines())


@pytest.mark.parametrize("choice", [None, "auto", "none", allowed("auto", "a")])
@pytest.mark.parametrize("form", [None, {"type": "text"}])
@pytest.mark.parametrize("thinking", [True, False])
def test_what_is_left_to_the_model_has_no_grammar(choice: Any, form: Any, thinking: bool) -> None:
    for family in FAMILIES:
        assert guidance(family, TOOLS, choice, form, True, thinking, thinking_open=thinking) is None


@pytest.mark.parametrize(
    ("choice", "called"),
    [
        ("required", ["call0", "call2"]),
        (NAMED_B, ["call2"]),
        ({"type": "function", "name": "b"}, ["call2"]),
        (allowed("required", "a", "b"), ["call0", "call2"]),
        (allowed("required", "a"), ["call0"]),
    ],
)
def test_the_tools_that_may_be_called(choice: Any, called: list[str]) -> None:
    assert rules(guidance(HERMES, TOOLS, choice, None))["call"] == " | ".join(called)


@pytest.mark.parametrize(
    "choice", [{"type": "function", "function": {"name": "zz"}}, allowed("required", "zz")]
)
def test_a_tool_that_is_not_offered_cannot_be_demanded(choice: Any) -> None:
    with pytest.raises(ProxyError) as caught:
        guidance(HERMES, TOOLS, choice, None)
    assert (caught.value.http_status, caught.value.param) == (400, "tool_choice")


@pytest.mark.parametrize("tools", [None, [], [{"type": "web_search"}]])
def test_no_tool_no_demand(tools: Any) -> None:
    with pytest.raises(ProxyError, match="offer it"):
        guidance(HERMES, tools, "required", None)


def test_an_allowed_set_without_tools_demands_nothing_that_is_there() -> None:
    with pytest.raises(ProxyError):
        guidance(HERMES, TOOLS, {"type": "allowed_tools", "allowed_tools": {"mode": "required"}}, None)


@pytest.mark.parametrize("family", [each for each in FAMILIES if each.name not in FORMATS])
def test_a_format_without_a_grammar_is_a_400(family: Any) -> None:
    with pytest.raises(ProxyError, match="use tool_choice 'auto'") as caught:
        guidance(family, TOOLS, "required", None)
    assert caught.value.param == "tool_choice"


def test_every_format_is_of_a_known_family() -> None:
    assert set(FORMATS) <= set(BY_NAME)


def test_a_hermes_grammar() -> None:
    found = guidance(HERMES, [tool('say "hi"', {"properties": {"x": {"enum": [1]}}})], "required", None)
    assert found is not None
    schema = (
        '{"additionalProperties":false,"properties":{"x":{"enum":[1]}},"type":"object","x-guidance":'
        '{"whitespace_flexible":false,"item_separator":", ","key_separator":": ","coerce_one_of":true}}'
    )
    assert found.text == (
        "start: calls\n"
        f"a0: %json {schema}\n"
        'call0: "<tool_call>\\n{\\"name\\": \\"" "say \\\\\\"hi\\\\\\"" "\\", \\"arguments\\": " a0 '
        '"}\\n</tool_call>"\n'
        "call: call0\n"
        'calls: call ("\\n" call){0,31}'
    )


@pytest.mark.parametrize(
    ("family", "parallel", "calls"),
    [
        ("hermes", False, "call"),
        ("mistral", True, "call ( call){0,31}"),
        ("mistral_v3", True, '"[TOOL_CALLS][" call (", " call){0,31} "]"'),
        ("harmony", True, "call"),
        ("phi", False, '"functools[" call "]"'),
    ],
)
def test_how_many_calls(family: str, parallel: bool, calls: str) -> None:
    found = rules(guidance(BY_NAME[family], TOOLS, "required", None, parallel))
    assert found["calls"].replace("( ", "(") == calls.replace("( ", "(")


PARAMETERS = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "short": {"type": "string", "maxLength": 5},
        "long": {"type": "string", "maxLength": 100_000},
        "one": {"const": "x"},
        "two": {"enum": ["x", "y"]},
        "mixed": {"enum": ["x", 1]},
        "count": {"type": "integer"},
        "true": True,
    },
    "required": ["text", "count"],
}


def test_arguments_between_tags() -> None:
    found = rules(guidance(BY_NAME["qwen3_coder"], [tool("f", PARAMETERS)], "required", None))
    end = '"\\n</parameter>\\n"'

    def begun(key: str) -> str:
        return f'"<parameter=" "{key}" ">\\n"'

    assert found["a0"] == (
        f"{begun('text')} a0_0 ({begun('short')} a0_1)? ({begun('long')} a0_2)? "
        f'({begun("one")} ("x") {end})? '
        f'({begun("two")} ("x" | "y") {end})? ({begun("mixed")} a0_5)? '
        f"{begun('count')} a0_6 {end} ({begun('true')} a0_7)?"
    )
    assert found[f"a0_0[suffix={end}]"] == "/(?s:.*)/"
    assert found[f"a0_1[suffix={end}]"] == "/(?s:.{0,5})/"
    assert found[f"a0_2[suffix={end}]"] == "/(?s:.*)/"
    assert orjson.loads(found["a0_6"].removeprefix("%json "))["type"] == "integer"


def test_no_arguments_between_tags() -> None:
    assert rules(guidance(BY_NAME["glm45"], [tool("f")], "required", None))["a0"] == '""'


def test_arguments_as_pairs() -> None:
    needed = tool("f", {"properties": {"k": {"type": "null"}}, "required": ["k"]})
    found = rules(guidance(BY_NAME["glm45"], [needed], "required", None))
    assert found["a0"] == '"<arg_key>" "k" "</arg_key>\\n<arg_value>" a0_0 "</arg_value>\\n"'


def test_arguments_as_keywords() -> None:
    given = {"properties": {"n": {"type": "null"}, "m": {"type": "null"}}}
    free = rules(guidance(BY_NAME["pythonic"], [tool("f", given)], "required", None))
    needed = rules(guidance(BY_NAME["pythonic"], [tool("f", {**given, "required": ["m"]})], "required", None))
    assert free["a0"] == 'a0_0 (", " a0_1)? | a0_1 | ""'
    assert free["a0_0"] == '"n=" a0_0v'
    assert needed["a0"] == 'a0_1 (", " a0_0)?'


def test_arguments_in_gemmas_manner() -> None:
    nested = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"$ref": "#/$defs/unit"}},
            "any": {"type": "array"},
        },
    }
    parameters = {
        "properties": {"in": nested, "n": {"type": "null"}, "one": {"const": 1}, "empty": {"type": "object"}},
        "$defs": {"unit": {"enum": ["c", "f"]}},
        "required": ["n"],
    }
    ids = {"<escape>": 9}
    found = rules(
        guidance(BY_NAME["functiongemma"], [tool("f", parameters)], "required", None, special_ids=ids)
    )
    assert found["call0"] == '"<start_function_call>call:" "f" "{" a0 "}<end_function_call>"'
    assert found["a0"] == 'a0_1 ("," a0_0)? ("," a0_2)? ("," a0_3)?'
    assert found["a0_0"] == '"in:" "{" a0_0v "}"'
    assert found["a0_0v"] == 'a0_0v_0 ("," a0_0v_1)? | a0_0v_1 | ""'
    assert found["a0_0v_0"] == '"list:" "[" (a0_0v_0vi ("," a0_0v_0vi)*)? "]"'
    assert found["a0_0v_0vi"] == '(<[9]> "c" <[9]> | <[9]> "f" <[9]>)'
    assert found["a0_0v_1vi"] == "<[9]> a0_0v_1v"
    assert found["a0_0v_1v"] == "/(?s:.*)/ <[9]>"
    assert found["a0_2"] == '"one:" a0_2v'
    assert found["a0_3"] == '"empty:" "{" a0_3v "}"'


def test_definitions_follow_their_refs() -> None:
    parameters = {"properties": {"n": {"$ref": "#/$defs/d"}}, "$defs": {"d": {"type": "null"}}, "required": 3}
    found = rules(guidance(BY_NAME["pythonic"], [tool("f", parameters)], "required", None))
    assert orjson.loads(found["a0_0v"].removeprefix("%json "))["$defs"] == {"d": {"type": "null"}}


STRICT = {"type": "json_schema", "json_schema": {"schema": {"type": "null"}, "strict": True}}
EXACT = (
    '{"type":"null","x-guidance":{"whitespace_flexible":false,"item_separator":", ","key_separator":": "}}'
)


def test_an_answer_of_a_schema() -> None:
    found = guidance(HERMES, None, None, STRICT)
    assert found is not None
    assert (found.kind, found.text) == ("json_schema", EXACT)
    assert guidance(HERMES, TOOLS, "none", STRICT) == found
    assert guidance(PLAIN, TOOLS, "auto", STRICT) == found


def test_beside_tools_an_answer_is_one_or_the_other() -> None:
    assert rules(guidance(HERMES, TOOLS, "auto", STRICT))["start"] == "(answer | calls)"
    assert rules(guidance(HERMES, TOOLS, "required", STRICT))["start"] == "calls"


def test_any_object() -> None:
    found = guidance(PLAIN, None, None, {"type": "json_object"})
    assert found is not None
    assert orjson.loads(found.text)["type"] == "object"


@pytest.mark.parametrize(
    "form", [{"type": "json_schema"}, {"type": "json_schema", "json_schema": {"schema": 3}}]
)
def test_a_format_without_a_schema_is_a_400(form: Any) -> None:
    with pytest.raises(ProxyError) as caught:
        guidance(PLAIN, None, None, form)
    assert (caught.value.http_status, caught.value.param) == (400, "response_format")


@pytest.mark.parametrize(
    ("thinking", "is_open", "start"),
    [
        (False, False, "calls"),
        (True, False, '("<think>" thought /\\n{0,2}/)? calls'),
        (True, True, "thought /\\n{0,2}/ calls"),
        (False, True, "thought /\\n{0,2}/ calls"),
    ],
)
def test_thoughts(thinking: bool, is_open: bool, start: str) -> None:
    found = rules(guidance(HERMES, TOOLS, "required", None, True, thinking, thinking_open=is_open))
    assert found["start"] == start
    assert ('thought[suffix="</think>"]' in found) == (start != "calls")


def test_a_family_that_does_not_think() -> None:
    family = replace(HERMES, thoughts=())
    assert rules(guidance(family, TOOLS, "required", None, True, True))["start"] == "calls"


def test_harmony_answers_in_its_channel() -> None:
    start = rules(guidance(BY_NAME["harmony"], None, None, STRICT))["start"]
    assert start == '"<|channel|>final<|message|>" answer'


def test_special_tokens_are_ids_in_texts() -> None:
    ids = {"<tool_call>": 7, "</think>": 8}
    found = rules(guidance(HERMES, TOOLS[:1], "required", None, True, True, special_ids=ids))
    assert found["call0"].startswith('<[7]> "\\n{')
    assert found["thought"] == "/(?s:.*)/ <[8]>"


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        (True, {}),
        (False, {}),
        ({"type": "string", "format": "uri"}, {"type": "string"}),
        ({"type": "array", "uniqueItems": True, "items": {"not": {}}}, {"type": "array", "items": {}}),
        ({"type": ["string", "odd"]}, {}),
        ({"pattern": "a(?!b)", "minLength": 1}, {"minLength": 1}),
        ({"properties": {"not": {"format": "date"}}}, {"properties": {"not": {"format": "date"}}}),
        ({"pattern": 3}, {"pattern": 3}),
    ],
)
def test_a_loose_schema_loses_what_cannot_be_kept(schema: Any, kept: Any) -> None:
    found = grammar_schema(schema, strict=False, param="p")
    assert {key: value for key, value in found.items() if key != "x-guidance"} == kept


MOST = 2**53 - 1


@pytest.mark.parametrize(
    ("schema", "added"),
    [
        ({"type": "integer"}, {"minimum": -MOST, "maximum": MOST}),
        ({"type": ["integer", "null"], "minimum": 1}, {"maximum": MOST}),
        ({"type": "integer", "exclusiveMaximum": 2}, {"minimum": -MOST}),
        ({"type": "integer", "maximum": -MOST * 2}, {"minimum": -MOST * 2}),
        ({"type": "integer", "exclusiveMinimum": MOST * 2}, {"maximum": MOST * 2}),
        ({"type": "integer", "minimum": None, "maximum": "x"}, {}),
        ({"type": "integer", "exclusiveMinimum": "x"}, {"maximum": MOST}),
        ({"type": "number", "minimum": 0, "maximum": 1}, {"multipleOf": 1e-9}),
        ({"type": "number", "multipleOf": 0.5, "minimum": 0, "maximum": 1}, {}),
        ({"type": "string"}, {}),
    ],
)
def test_numbers_end(schema: Any, added: Any) -> None:
    found = grammar_schema(schema, strict=True, param="p")
    assert {key: value for key, value in found.items() if key != "x-guidance"} == {**schema, **added}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("schema", [{"$ref": "https://a.example/b"}, {"items": {"$ref": 3}}, "string", None])
def test_what_no_schema_can_be(schema: Any, strict: bool) -> None:
    with pytest.raises(ProxyError) as caught:
        grammar_schema(schema, strict=strict, param="p")
    assert (caught.value.http_status, caught.value.param) == (400, "p")


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        ({"not": {}}, "'not'"),
        ({"format": "uri"}, "the format 'uri'"),
        ({"properties": {"a": {"type": "file"}}}, "the type 'file'"),
        ({"pattern": "(a)\\1"}, "look-around or backreferences"),
        ({"properties": {"a": {"uniqueItems": True}}}, "'uniqueItems'"),
    ],
)
def test_a_strict_tool_is_kept_or_refused(schema: Any, named: str) -> None:
    with pytest.raises(ProxyError) as caught:
        guidance(HERMES, [tool("a"), tool("b", schema, strict=True)], "required", None)
    assert caught.value.param == "tools[1].function.parameters"
    assert named in caught.value.message
    assert guidance(HERMES, [tool("b", schema)], "required", None)


@pytest.mark.parametrize(
    ("parameters", "closed"),
    [
        (None, True),
        ({"properties": {}}, True),
        ({"properties": {}, "additionalProperties": True}, False),
        ({"anyOf": [{"type": "object"}]}, False),
    ],
)
def test_no_arguments_but_the_declared(parameters: Any, closed: bool) -> None:
    assert (parameters_schema(tool("f", parameters), "p").get("additionalProperties") is False) == closed


@pytest.mark.parametrize("levels", [140, 240, 50_000])
def test_endless_nesting_is_a_400(levels: int) -> None:
    deep: Any = {}
    for _ in range(levels):
        deep = {"properties": {"items": deep}}
    with pytest.raises(ProxyError, match="nested too deeply"):
        grammar_schema(deep, strict=False, param="p")
    while deep:  # taken apart here: freeing it at once would exhaust the C stack
        deep = deep["properties"]["items"] if "properties" in deep else {}
