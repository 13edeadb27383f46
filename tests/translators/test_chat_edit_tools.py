"""Tools and `tool_choice`: `tools.*` of the profile."""

from __future__ import annotations

from typing import Any

from tests.translators.chat_edits import OPENAI, Edit, Refusal, table

EMPTY = {"type": "object", "properties": {}}
STRICT = {"request": {"extra_keys": []}}


def function(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": EMPTY, **more}}


def custom(name: str) -> dict[str, Any]:
    return {"type": "custom", "custom": {"name": name}}


A, B, C = function("a"), function("b"), custom("c")
NAMED_A = {"type": "function", "function": {"name": "a"}}
NAMED_C = {"type": "custom", "custom": {"name": "c"}}
KEEP_SET = {"tools": {"choice": {"allowed_tools": "keep"}}}


def allowed(mode: str, *refs: dict[str, Any]) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(refs)}}


def choosing(**rules: str) -> dict[str, Any]:
    return {"tools": {"choice": rules}}


@table(
    Edit("a good tool", {"tools": [A, C, {"type": "web_search"}]}),
    Edit("a good tool of the exact", {"tools": [function("a", strict=True, description="d")]}, rules=OPENAI),
    Edit("no tools left", {"tools": [], "tool_choice": "auto", "parallel_tool_calls": False}, {}),
    Edit("no tools left, of the exact", {"tools": [], "tool_choice": "none"}, {}, OPENAI),
    Edit("no tools but their flags", {"parallel_tool_calls": True, "tool_choice": "auto"}, {}),
    Edit("the default is never sent", {"tools": [A], "parallel_tool_calls": True}, {"tools": [A]}),
    Edit(
        "the default is never sent to the exact",
        {"tools": [A], "parallel_tool_calls": True},
        {"tools": [A]},
        OPENAI,
    ),
    Edit("one call at a time", {"tools": [A], "parallel_tool_calls": False}),
    Edit(
        "one call at a time is lost",
        {"tools": [A], "parallel_tool_calls": False},
        {"tools": [A]},
        {"tools": {"parallel_flag": "drop"}},
        ["/parallel_tool_calls"],
    ),
    Edit(
        "nulls of SDK objects",
        {
            "tools": [
                function("a", description=None),
                {"type": "custom", "custom": {"name": "c", "format": None}},
            ]
        },
        {"tools": [A, C]},
    ),
    # forms
    Edit(
        "the flat form is nested",
        {"tools": [{"type": "function", "name": "a", "description": "d", "parameters": EMPTY, "odd": 1}]},
        {"tools": [function("a", description="d")]},
    ),
    Edit(
        "the flat form of a custom tool",
        {"tools": [{"type": "custom", "name": "c", "format": {"type": "text"}}]},
        {"tools": [{"type": "custom", "custom": {"name": "c", "format": {"type": "text"}}}]},
    ),
    Edit("a type left out", {"tools": [{"function": {"name": "a", "parameters": EMPTY}}]}, {"tools": [A]}),
    # strict
    Edit(
        "strict is left out",
        {"tools": [A, function("b", strict=True), function("c", strict=False)]},
        {"tools": [A, B, function("c")]},
        lost=["/tools/1/function/strict"],
    ),
    Edit("strict is kept", {"tools": [function("a", strict=True)]}, rules={"tools": {"strict": "keep"}}),
    Edit(
        "a null strict never",
        {"tools": [function("a", strict=None)]},
        {"tools": [A]},
        {"tools": {"strict": "keep"}},
    ),
    # schemas
    Edit(
        "parameters left out or null",
        {"tools": [{"type": "function", "function": {"name": "a"}}, function("b", parameters=None)]},
        {"tools": [A, B]},
    ),
    Edit(
        "left alone where any will do",
        {"tools": [{"type": "function", "function": {"name": "a"}}]},
        rules={"tools": {"schema": {"require_object": False}}},
    ),
    Edit(
        "references, keywords",
        {
            "tools": [
                function(
                    "a",
                    parameters={
                        "type": "object",
                        "properties": {"x": {"$ref": "#/$defs/X"}},
                        "additionalProperties": False,
                        "$defs": {"X": {"type": "string"}},
                    },
                )
            ]
        },
        {"tools": [function("a", parameters={"type": "object", "properties": {"x": {"type": "string"}}})]},
        {"tools": {"schema": {"inline_refs": True, "drop": ["additionalProperties"]}}},
    ),
    Edit(
        "a union at the top is merged, and that is a loss",
        {"tools": [A, function("b", parameters={"anyOf": [{"properties": {"x": {}}, "required": ["x"]}]})]},
        {
            "tools": [
                A,
                function("b", parameters={"type": "object", "properties": {"x": {}}, "required": ["x"]}),
            ]
        },
        {"tools": {"schema": {"top_level_union": "wrap"}}},
        ["/tools/1/function/parameters"],
    ),
    # keys of a backend with a closed schema
    Edit(
        "only known keys",
        {
            "tools": [
                {**function("a", description=None, cache=1), "cache_control": {"type": "ephemeral"}},
                {**C, "custom": {"name": "c", "format": None, "odd": []}},
            ]
        },
        {"tools": [A, C]},
        STRICT,
        ["/tools/0/function/cache", "/tools/0/cache_control"],
    ),
    Edit(
        "and the backend's own",
        {"tools": [{**A, "own": 1}]},
        rules={"request": {"extra_keys": ["own"]}},
    ),
)
def test_tools(case: Edit) -> None:
    case.check()


@table(
    Edit("a mode", {"tools": [A], "tool_choice": "required"}),
    Edit("a named tool", {"tools": [A, C], "tool_choice": NAMED_C}),
    Edit("a named hosted tool", {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}),
    Edit(
        "the flat form is nested",
        {"tools": [A], "tool_choice": {"type": "function", "name": "a"}},
        {"tools": [A], "tool_choice": NAMED_A},
    ),
    Edit("Mistral's word", {"tools": [A], "tool_choice": "any"}, {"tools": [A], "tool_choice": "required"}),
    Edit(
        "Mistral's word to Mistral",
        {"tools": [A], "tool_choice": "required"},
        {"tools": [A], "tool_choice": "any"},
        choosing(required="any"),
    ),
    Edit(
        "a forced call left to the model",
        {"tools": [A], "tool_choice": "required"},
        {"tools": [A], "tool_choice": "auto"},
        choosing(required="auto"),
        ["/tool_choice"],
    ),
    Edit("forced with nothing to call", {"tool_choice": "required"}, {}, lost=["/tool_choice"]),
    Edit(
        "named, as the only tool there is",
        {"tools": [A, B], "tool_choice": NAMED_A},
        {"tools": [A], "tool_choice": "required"},
        choosing(named="required_single"),
    ),
    Edit(
        "named, as the only tool there was",
        {"tools": [A], "tool_choice": NAMED_A},
        {"tools": [A], "tool_choice": "any"},
        choosing(named="required_single", required="any"),
    ),
    Edit(
        "named, left to the model",
        {"tools": [A, B], "tool_choice": NAMED_A},
        {"tools": [A, B], "tool_choice": "auto"},
        choosing(named="auto"),
        ["/tool_choice"],
    ),
    # allowed sets
    Edit(
        "only the allowed tools are offered",
        {"tools": [A, B, C], "tool_choice": allowed("required", NAMED_A, NAMED_C)},
        {"tools": [A, C], "tool_choice": "required"},
    ),
    Edit(
        "all of them allowed",
        {"tools": [A, C], "tool_choice": allowed("auto", NAMED_C, NAMED_A)},
        {"tools": [A, C], "tool_choice": "auto"},
    ),
    Edit(
        "an empty set allows nothing",
        {"tools": [A], "tool_choice": allowed("auto")},
        {"tools": [A], "tool_choice": "none"},
    ),
    Edit("the set as it is", {"tools": [A, B], "tool_choice": allowed("auto", NAMED_A)}, rules=KEEP_SET),
    Edit(
        "the flat set of the Responses shape",
        {
            "tools": [A, B],
            "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "a"}]},
        },
        {"tools": [A, B], "tool_choice": allowed("auto", NAMED_A)},
        KEEP_SET,
    ),
    # thinking
    Edit(
        "no forced call while it reasons",
        {"tools": [A], "tool_choice": NAMED_A, "thinking": {"type": "enabled"}},
        {"tools": [A], "tool_choice": "auto", "thinking": {"type": "enabled"}},
        choosing(with_thinking="auto"),
        ["/tool_choice"],
    ),
    Edit(
        "nor one of a set",
        {"tools": [A], "tool_choice": allowed("required", NAMED_A), "reasoning_effort": "low"},
        {"tools": [A], "tool_choice": "auto", "reasoning_effort": "low"},
        choosing(with_thinking="auto", allowed_tools="keep"),
        ["/tool_choice"],
    ),
    Edit(
        "a set that forces nothing",
        {"tools": [A], "tool_choice": allowed("auto", NAMED_A), "reasoning_effort": "low"},
        rules=choosing(with_thinking="auto", allowed_tools="keep"),
    ),
    Edit(
        "a forced call when it does not reason",
        {"tools": [A], "tool_choice": "required", "thinking": {"type": "disabled"}},
        rules=choosing(with_thinking="auto"),
    ),
)
def test_choices(case: Edit) -> None:
    case.check()


@table(
    Refusal("tools that are no list", {"tools": {"a": 1}}, "tools"),
    Refusal("a tool that is no object", {"tools": [A, "a"]}, "tools[1]"),
    Refusal("a function without a name", {"tools": [A, function("")]}, "tools[1].function.name"),
    Refusal("a flat function without a name", {"tools": [{"type": "function"}]}, "tools[0].function.name"),
    Refusal(
        "a custom tool without a name", {"tools": [{"type": "custom", "custom": {}}]}, "tools[0].custom.name"
    ),
    Refusal("too many tools", {"tools": [A, B]}, "tools", {"tools": {"max": 1}}),
    Refusal(
        "a union at the top",
        {"tools": [A, function("b", parameters={"oneOf": []})]},
        "tools[1].function.parameters",
        {"tools": {"schema": {"top_level_union": "reject"}}},
    ),
    Refusal(
        "a choice that is not offered",
        {"tools": [A], "tool_choice": {**NAMED_A, "function": {"name": "z"}}},
        "tool_choice",
    ),
    Refusal(
        "a choice of another kind",
        {"tools": [A], "tool_choice": {"type": "custom", "name": "a"}},
        "tool_choice",
    ),
    Refusal("a choice without tools", {"tool_choice": NAMED_A}, "tool_choice"),
    Refusal(
        "an allowed tool that is not offered",
        {"tools": [A], "tool_choice": allowed("auto", NAMED_C)},
        "tool_choice",
    ),
    Refusal(
        "an allowed hosted tool that is not",
        {"tools": [A], "tool_choice": allowed("auto", {"type": "mcp"})},
        "tool_choice",
    ),
    Refusal("a set that is none", {"tools": [A], "tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
)
def test_refusals(case: Refusal) -> None:
    case.check()
