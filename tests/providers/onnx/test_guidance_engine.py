"""Grammars on the real engine: what it writes under them is what was demanded."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from translators.errors import ProxyError
from translators.local.call_grammars import FORMATS
from translators.local.families import BY_NAME
from translators.local.grammar_schema import grammar_schema
from translators.local.guidance import guidance
from translators.local.parser import make_parser
from translators.local.pieces import Arguments, Call, CallEnd, Thought

TINY = Path(__file__).parents[3] / "providers" / "onnx" / "model" / "tiny-chat"
PROMPT = "<|im_start|>user\nUse get_weather for Rome and Oslo.<|im_end|>\n<|im_start|>assistant\n"
FULL_WIDTH = {"deepseek_v3", "deepseek_v31"}
"""Their marks are single tokens to their own tokenisers; to the tiny one they are pieces of characters,
which the engine cannot force."""

PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 12},
        "unit": {"enum": ["c", "f"]},
        "days": {"type": "integer", "minimum": 0, "maximum": 99},
        "deep": {
            "type": "object",
            "properties": {"ok": {"type": "boolean"}},
            "required": ["ok"],
            "additionalProperties": False,
        },
    },
    "required": ["city", "unit", "deep"],
}
NO_NEED = {"type": "object", "properties": {"a": {"enum": [1]}, "b": {"type": "boolean"}}}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}},
    {"type": "function", "function": {"name": "get_time", "parameters": NO_NEED}},
    {"type": "function", "function": {"name": "stop"}},
]
FOR_NAME = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in TOOLS}


def run(cases: list[dict[str, Any]], path: Path = TINY) -> list[dict[str, Any]]:
    program = Path(__file__).with_name("guided_run.py")
    done = subprocess.run(
        [sys.executable, str(program)],
        input=json.dumps({"path": str(path), "cases": cases}).encode(),
        capture_output=True,
        timeout=100,
        check=True,
    )
    return json.loads(done.stdout)


def calls_of(family: str, text: str, *, thinking_open: bool = False) -> tuple[list[tuple[str, Any]], str]:
    """The whole calls in a text, and its thoughts."""
    parser = make_parser(BY_NAME[family], TOOLS, thinking_open=thinking_open)
    calls: list[list[str]] = []
    ends, thought = 0, ""
    for piece in (*parser.feed(text), *parser.close(False)):
        if isinstance(piece, Call):
            calls.append([piece.name, ""])
        elif isinstance(piece, Arguments):
            calls[-1][1] += piece.text
        elif isinstance(piece, CallEnd):
            ends += 1
        elif isinstance(piece, Thought):
            thought += piece.text
    assert ends == len(calls)
    return [(name, json.loads(arguments)) for name, arguments in calls], thought


def fits(name: str, arguments: Any) -> bool:
    schema = FOR_NAME[name]
    properties = schema.get("properties", {})
    if not isinstance(arguments, dict) or not set(arguments) <= set(properties):
        return False
    if name != "get_weather":
        return arguments.get("a", 1) == 1 and arguments.get("b", True) in (True, False)
    return (
        set(schema["required"]) <= set(arguments)
        and len(arguments["city"]) <= 12
        and arguments["unit"] in ("c", "f")
        and list(arguments["deep"]) == ["ok"]
        and arguments.get("days", 0) in range(100)
    )


CHOICES: list[Any] = ["required", {"type": "function", "function": {"name": "get_time"}}, "stop"]


def choice_of(choice: Any) -> Any:
    return {"type": "function", "function": {"name": "stop"}} if choice == "stop" else choice


@pytest.mark.parametrize("family", sorted(set(FORMATS) - FULL_WIDTH))
def test_a_demanded_call_is_made_in_the_familys_own_format(family: str) -> None:
    asked = [(choice, seed) for choice in CHOICES for seed in (None, 1, 2)]
    cases = []
    for choice, seed in asked:
        found = guidance(BY_NAME[family], TOOLS, choice_of(choice), None, False)
        assert found is not None
        cases.append({"prompt": PROMPT, "kind": found.kind, "text": found.text, "seed": seed})
    for (choice, _), answer in zip(asked, run(cases), strict=True):
        calls, _ = calls_of(family, answer["text"])
        assert len(calls) == 1, answer
        name, arguments = calls[0]
        assert fits(name, arguments), answer
        if choice != "required":
            assert name == choice_of(choice)["function"]["name"]


def test_calls_side_by_side_only_where_they_may_be() -> None:
    parameters = {"properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"]}
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": parameters}}]
    asked = []
    for parallel in (True, False):
        found = guidance(BY_NAME["hermes"], tools, "required", None, parallel)
        assert found is not None
        asked.append({"prompt": PROMPT, "kind": found.kind, "text": found.text})
    many, one = run(asked)
    assert many["text"].count("<tool_call>") == 2
    assert one["text"].count("<tool_call>") == 1


def test_thoughts_come_first_and_end() -> None:
    tools, prompt = TOOLS[:1], PROMPT
    opened = guidance(BY_NAME["hermes"], tools, "required", None, True, True, thinking_open=True)
    free = guidance(BY_NAME["hermes"], tools, "required", None, True, True)
    answer = {"type": "json_schema", "json_schema": {"strict": True, "schema": PARAMETERS | {
        "additionalProperties": False}}}  # fmt: skip
    said = guidance(BY_NAME["hermes"], None, None, answer, True, True, thinking_open=True)
    assert opened is not None
    assert free is not None
    assert said is not None
    first, second, third = run(
        [
            {"prompt": prompt + "<think>\n", "kind": opened.kind, "text": opened.text},
            {"prompt": prompt, "kind": free.kind, "text": free.text},
            {"prompt": prompt + "<think>\n", "kind": said.kind, "text": said.text},
        ]
    )
    calls, thought = calls_of("hermes", first["text"], thinking_open=True)
    assert thought.strip()
    assert calls
    assert calls_of("hermes", second["text"])[0]
    assert fits("get_weather", json.loads(third["text"].partition("</think>")[2]))


def test_json_answers() -> None:
    strict = {"type": "json_schema", "json_schema": {"strict": True, "schema": PARAMETERS | {
        "additionalProperties": False}}}  # fmt: skip
    both = guidance(BY_NAME["hermes"], TOOLS, "auto", strict)
    alone = guidance(BY_NAME["plain"], None, None, strict)
    anything = guidance(BY_NAME["hermes"], None, None, {"type": "json_object"})
    assert both is not None
    assert alone is not None
    assert anything is not None
    assert alone.kind == "json_schema"
    prompts = "<|im_start|>user\nSay hello.<|im_end|>\n<|im_start|>assistant\n"
    called, exact, free = run(
        [{"prompt": prompts, "kind": each.kind, "text": each.text} for each in (both, alone, anything)]
    )
    assert fits("get_weather", json.loads(exact["text"]))
    assert free["text"].startswith("{")
    text = called["text"]
    assert calls_of("hermes", text)[0] or fits("get_weather", json.loads(text))


def renamed(folder: Path, tokens: dict[int, str], special: bool) -> Path:
    """The tiny model with other texts for some of its added tokens."""
    shutil.copytree(TINY, folder)
    file = folder / "tokenizer.json"
    told = json.loads(file.read_text())
    for entry in told["added_tokens"]:
        if entry["id"] in tokens:
            entry.update(content=tokens[entry["id"]], special=special)
    file.write_text(json.dumps(told))
    return folder


MARKS = {
    "deepseek_v3": ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>",
                    "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"),
    "deepseek_v31": ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>",
                     "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"),
    "mistral": ("[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"),
    "harmony": ("<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|constrain|>", "<|call|>"),
}  # fmt: skip


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("family", MARKS)
def test_marks_may_be_tokens_of_their_own(family: str, special: bool, tmp_path: Path) -> None:
    """Special tokens stand in a grammar as ids, for no text spells them; others as their text."""
    tokens = dict(enumerate(MARKS[family], start=577))
    ids = {text: at for at, text in tokens.items()} if special else {}
    cases = []
    for seed in (None, 1, 2):
        found = guidance(BY_NAME[family], TOOLS, "required", None, False, special_ids=ids)
        assert found is not None
        cases.append({"prompt": PROMPT, "kind": found.kind, "text": found.text, "seed": seed})
    for answer in run(cases, renamed(tmp_path / "model", tokens, special)):
        ((name, arguments),) = calls_of(family, answer["text"])[0]
        assert fits(name, arguments), answer


def test_a_thought_ends_with_a_special_token(tmp_path: Path) -> None:
    ids = {text: at for at, text in enumerate(MARKS["harmony"], start=577)}
    found = guidance(BY_NAME["harmony"], None, None, {"type": "json_object"}, True, True, special_ids=ids)
    assert found is not None
    assert found.text.splitlines()[0] == (
        'start: (<[577]> "analysis" <[578]> thought <[580]> "assistant")? <[577]> "final" <[578]> answer'
    )
    assert "thought: /(?s:.*)/ <[579]>" in found.text
    (answer,) = run([{"prompt": PROMPT, "kind": found.kind, "text": found.text, "most": 60}])
    assert "error" not in answer


SCHEMAS: list[dict[str, Any]] = [
    {"uniqueItems": True}, {"contains": {}}, {"minContains": 1}, {"unevaluatedItems": False},
    {"not": {"type": "string"}}, {"if": {}, "then": {}}, {"propertyNames": {}}, {"dependentRequired": {}},
    {"dependentSchemas": {}}, {"dependencies": {}}, {"unevaluatedProperties": False}, {"$dynamicRef": "#a"},
    {"type": "string", "format": "uri"}, {"type": "string", "pattern": "^(?=a)b"}, {"type": "file"},
    {"type": "string", "pattern": "(a)\\1"},
]  # fmt: skip
TAKEN: list[dict[str, Any]] = [
    {"type": "string", "format": "date-time", "minLength": 1}, {"type": "number", "multipleOf": 0.5},
    {"anyOf": [{"type": "string"}, {"type": "null"}]}, {"allOf": [{"type": "string"}, {"maxLength": 3}]},
    {"prefixItems": [{"type": "string"}], "type": "array"}, {"minProperties": 1, "type": "object"},
    {"patternProperties": {"^a": {}}, "type": "object"}, {"type": ["string", "null"], "default": None},
    {"oneOf": [{"type": "string"}, {"type": "null"}]}, {"const": 1}, {"unheard": 1, "title": "t"}, True,
    {"type": "string", "pattern": "^\\\\1[?]=$"}, {"type": "array", "uniqueItems": False},
    {"$ref": "#/$defs/s"},
]  # fmt: skip


def within(schema: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"a": schema},
        "required": ["a"],
        "$defs": {"s": {"type": "null"}},
    }


def test_the_engine_takes_what_is_let_through_and_refuses_what_is_not() -> None:
    """The list of untaken keywords is measured: each is refused by the engine itself."""

    def compiled(schemas: list[Any]) -> list[bool]:
        cases = [
            {"prompt": "x", "kind": "json_schema", "text": json.dumps(each), "most": 1} for each in schemas
        ]
        return ["error" not in answer for answer in run(cases)]

    assert not any(compiled([within(each) for each in SCHEMAS]))
    assert all(compiled([grammar_schema(within(each), strict=False, param="p") for each in SCHEMAS]))
    assert all(compiled([grammar_schema(within(each), strict=True, param="p") for each in TAKEN]))


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_a_strict_schema_that_cannot_be_kept_is_a_400(schema: dict[str, Any]) -> None:
    with pytest.raises(ProxyError) as caught:
        grammar_schema(within(schema), strict=True, param="response_format")
    assert (caught.value.http_status, caught.value.param) == (400, "response_format")
