"""Requests whose tools a backend does not take, and what it is asked instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import pytest

from translators.errors import ProxyError
from translators.ir import (
    AdditionalTools,
    Call,
    Item,
    Message,
    Namespace,
    Opaque,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolRef,
    ToolResult,
)
from translators.profile import ChoiceRules, Profile, ToolRules
from translators.tool_names import NameTable, ToolKey, aliases
from translators.tools import Lowered, Original, lower_tools

BASE = Profile()
RICH = Profile(
    tools=ToolRules(
        types=("function", "custom", "namespace", "tool_search"), custom="keep", builtin="keep", strict="keep"
    )
)
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
PATCH = Tool(
    "apply_patch",
    "Edit files.",
    kind="custom",
    format={"type": "grammar", "syntax": "lark", "definition": "start: /x/"},
    at="/tools/0",
)
SHELL = Tool("shell", "Run.", SCHEMA, at="/tools/1")
DOCS = Namespace("mcp__docs", (Tool("search", "Find.", SCHEMA),), "The docs server.", at="/tools/2")
SEARCH = Tool("tool_search", "Find tools.", SCHEMA, kind="tool_search", at="/tools/3")
WEB = Opaque("responses", {"type": "web_search"}, "/tools/4")


def call(*tools: Any, items: tuple[Item, ...] = (), **fields: Any) -> Call:
    return Call("responses", "m", items, tools, **fields)


def lowered(*tools: Any, profile: Profile = BASE, **fields: Any) -> Lowered:
    return lower_tools(call(*tools, **fields), profile, "chat")


def names(result: Lowered) -> list[str]:
    return [tool.name for tool in result.call.tools if isinstance(tool, Tool)]


# --- nothing to do ---------------------------------------------------------------------


def test_a_call_of_functions_is_the_same_object() -> None:
    asked = call(SHELL, items=(Message("user", (Text("hi"),)),), tool_choice=ToolChoice("auto"))
    result = lower_tools(asked, BASE, "chat")
    assert result.call is asked
    assert (dict(result.names), result.losses) == ({}, [])


def test_a_backend_that_takes_all_of_it_gets_all_of_it() -> None:
    found = ToolResult("c2", (), "tool_search", tools=(DOCS,))
    items = (
        AdditionalTools((PATCH,)),
        ToolCall("c1", "apply_patch", "text", "custom"),
        ToolResult("c1", (Text("done"),), "custom"),
        ToolCall("c2", "tool_search", "{}", "tool_search"),
        found,
        ToolCall("c3", "search", "{}", namespace="mcp__docs"),
        ToolCall("c4", "gone", "{}", namespace="mcp__other"),
    )
    asked = call(PATCH, DOCS, SEARCH, WEB, items=items, tool_choice=ToolChoice("required"))
    result = lower_tools(asked, RICH, "responses")
    assert result.call is asked
    assert not result.names
    assert not result.losses


# --- free-form tools -------------------------------------------------------------------


def test_a_free_form_tool_becomes_a_function_with_one_string() -> None:
    result = lowered(PATCH)
    tool = result.call.tools[0]
    assert isinstance(tool, Tool)
    assert (tool.name, tool.kind, tool.strict, tool.at) == ("apply_patch", "function", False, "/tools/0")
    assert tool.schema == {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
    }
    assert tool.description is not None
    assert tool.description.startswith("Edit files.\n\n")
    assert "lark" in tool.description
    assert "start: /x/" in tool.description
    assert result.names == {"apply_patch": Original("custom", "apply_patch", verbatim=True)}
    assert result.losses == []


@pytest.mark.parametrize("form", [None, {"type": "text"}])
def test_a_free_form_tool_without_grammar_says_only_that_its_input_is_raw(form: Any) -> None:
    result = lowered(replace(PATCH, description=None, format=form))
    tool = result.call.tools[0]
    assert isinstance(tool, Tool)
    assert tool.description is not None
    assert "grammar" not in tool.description
    assert result.names["apply_patch"].verbatim is False


def test_history_of_a_free_form_tool_is_said_the_same_way() -> None:
    items = (
        ToolCall("c1", "apply_patch", 'a "b"\n', "custom", id="ctc_1", extra={"status": "completed"}),
        ToolResult("c1", (Text("ok"),), "custom", id="ctco_1", extra={"x": 1}),
    )
    made, answered = lowered(PATCH, items=items).call.items
    assert isinstance(made, ToolCall)
    assert orjson.loads(made.arguments) == {"input": 'a "b"\n'}
    assert (made.kind, made.id, dict(made.extra)) == ("function", None, {})
    assert answered == ToolResult("c1", (Text("ok"),))


def test_a_free_form_call_whose_tool_is_gone_still_comes_back_as_one() -> None:
    result = lowered(items=(ToolCall("c1", "apply_patch", "x", "custom"),))
    assert result.names == {"apply_patch": Original("custom", "apply_patch")}


def test_free_form_tools_can_be_left_out_by_profile() -> None:
    profile = Profile(tools=ToolRules(custom="drop"))
    result = lowered(PATCH, SHELL, profile=profile, items=(ToolCall("c1", "apply_patch", "x", "custom"),))
    assert names(result) == ["shell"]
    assert [(loss.pointer, loss.kind) for loss in result.losses] == [("/tools/0", "feature")]
    made = result.call.items[0]
    assert isinstance(made, ToolCall)
    assert made.kind == "function"


def test_custom_keep_without_the_type_is_lowered_not_lost() -> None:
    result = lowered(PATCH, profile=Profile(tools=ToolRules(types=("function",), custom="keep")))
    assert names(result) == ["apply_patch"]
    assert result.names["apply_patch"].kind == "custom"


# --- namespaces ------------------------------------------------------------------------


def test_a_namespace_becomes_functions_of_its_own() -> None:
    result = lowered(DOCS, SHELL)
    tool = result.call.tools[0]
    assert isinstance(tool, Tool)
    assert names(result) == ["mcp__docs__search", "shell"]
    assert tool.schema == SCHEMA
    assert tool.description == "Find.\n\nmcp__docs: The docs server."
    assert result.names["mcp__docs__search"] == Original("function", "search", "mcp__docs")


def test_only_the_first_tool_of_a_namespace_tells_what_it_is() -> None:
    space = Namespace("ns", (Tool("a"), Tool("b", "B.")), "All about it.")
    told = [tool.description for tool in lowered(space).call.tools if isinstance(tool, Tool)]
    assert told == ["ns: All about it.", "B."]
    assert [t.description for t in lowered(replace(space, description="")).call.tools] == [None, "B."]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "namespace", "want"),
    [
        ("search", "mcp__docs", "mcp__docs__search"),  # offered
        ("search", None, "mcp__docs__search"),  # the only tool of that name (Codex's `functions`)
        ("mcp__docs__search", None, "mcp__docs__search"),  # already flat
        ("gone", "mcp__old", "mcp__old__gone"),  # no longer offered
        ("shell", None, "shell"),
        ("never_offered", None, "never_offered"),
    ],
)
def test_history_uses_the_names_of_the_list(name: str, namespace: str | None, want: str) -> None:
    result = lowered(DOCS, SHELL, items=(ToolCall("c1", name, "{}", namespace=namespace),))
    made = result.call.items[0]
    assert isinstance(made, ToolCall)
    assert (made.name, made.namespace) == (want, None)


def test_a_name_in_history_comes_back_whole_when_the_model_copies_it() -> None:
    gone = ToolCall("c1", "gone", "{}", namespace="mcp__old")
    result = lowered(items=(gone, replace(gone, call_id="c2")))
    assert [item.name for item in result.call.items] == ["mcp__old__gone"] * 2  # type: ignore[union-attr]
    assert result.names["mcp__old__gone"] == Original("function", "gone", "mcp__old")


def test_a_bare_name_that_two_namespaces_have_is_left_alone() -> None:
    other = replace(DOCS, name="mcp__web")
    made = lowered(DOCS, other, items=(ToolCall("c1", "search", "{}"),)).call.items[0]
    assert isinstance(made, ToolCall)
    assert made.name == "search"


def test_a_result_that_names_its_tool_names_it_as_the_call_does() -> None:
    items = (
        ToolCall("c1", "search", "{}", namespace="mcp__docs"),
        ToolResult("c1", (Text("r"),), name="search"),
        ToolResult("c9", (Text("r"),), name="lost"),
        ToolResult("c1", (Text("r"),)),
    )
    results = [item.name for item in lowered(DOCS, items=items).call.items[1:]]  # type: ignore[union-attr]
    assert results == ["mcp__docs__search", "lost", None]


def test_long_names_are_cut_apart_not_alike() -> None:
    space = "mcp__codex_apps__codex_document_control_"
    inner = (Tool("execute_document_command"), Tool("execute_document_command_batch"))
    result = lowered(Namespace(space, inner))
    first, second = names(result)
    assert first != second
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in (first, second))
    assert result.names[first] == Original("function", "execute_document_command", space)
    assert result.names[second] == Original("function", "execute_document_command_batch", space)
    assert names(lowered(Namespace(space, inner))) == [first, second]  # the same on every turn


def test_a_flat_name_never_takes_a_name_the_client_gave() -> None:
    result = lowered(DOCS, Tool("mcp__docs__search", "Mine."))
    flat, own = names(result)
    assert own == "mcp__docs__search"
    assert flat != own
    assert flat.startswith("mcp__docs__search_")
    assert own not in result.names


def test_two_namespaces_that_flatten_alike_stay_apart() -> None:
    result = lowered(Namespace("a", (Tool("b__c"),)), Namespace("a__b", (Tool("c"),)))
    first, second = names(result)
    assert first == "a__b__c"
    assert second != first
    assert result.names[second] == Original("function", "c", "a__b")


def test_a_namespace_with_free_form_tools_is_flattened_where_those_are_lowered() -> None:
    profile = Profile(tools=ToolRules(types=("function", "namespace"), custom="function"))
    space = Namespace("functions", (replace(PATCH, name="exec"), Tool("wait")))
    items = (
        ToolCall("c1", "exec", "js", "custom"),
        ToolCall("c2", "wait", "{}", namespace="functions"),
        ToolCall("c3", "gone", "{}", namespace="mcp__other"),
    )
    result = lower_tools(call(space, DOCS, items=items), profile, "responses")
    assert names(result) == ["functions__exec", "functions__wait"]
    assert result.call.tools[2] is DOCS
    made = [(i.name, i.namespace) for i in result.call.items if isinstance(i, ToolCall)]
    assert made == [("functions__exec", None), ("functions__wait", None), ("gone", "mcp__other")]
    assert result.names["functions__exec"].kind == "custom"


def test_a_call_of_a_kept_namespace_stays_as_it_is() -> None:
    profile = Profile(tools=ToolRules(types=("function", "namespace")))
    items = (ToolCall("c1", "search", "{}", namespace="mcp__docs"), ToolCall("c2", "search", "{}"))
    result = lower_tools(call(DOCS, PATCH, items=items), profile, "responses")
    assert result.call.items == items


# --- names a backend would refuse ------------------------------------------------------


def test_illegal_names_are_replaced_and_restored_between_shapes() -> None:
    result = lowered(Tool("get.weather"), Tool("my tool"), items=(ToolCall("c1", "old.one", "{}"),))
    assert names(result) == ["get_weather", "my_tool"]
    assert result.names["get_weather"] == Original("function", "get.weather")
    made = result.call.items[0]
    assert isinstance(made, ToolCall)
    assert made.name == "old_one"
    assert result.names["old_one"] == Original("function", "old.one")


def test_between_equal_shapes_a_clients_names_are_its_own() -> None:
    asked = Call("chat", "m", (ToolCall("c1", "old.one", "{}"),), (Tool("get.weather"),))
    assert lower_tools(asked, BASE, "chat").call is asked


def test_a_name_of_nothing_legal_still_gets_one() -> None:
    name = NameTable().give(ToolKey(""))
    assert re.fullmatch(r"_[0-9a-f]{8}", name)


def test_a_taken_hash_is_salted() -> None:
    key = ToolKey("x", "ns")
    first = NameTable(["ns__x"]).give(key)
    second = NameTable(["ns__x", first]).give(key)
    assert len({"ns__x", first, second}) == 3


# --- tool search and tools in the input -------------------------------------------------


def test_a_client_side_search_becomes_a_function_and_what_it_found_is_offered() -> None:
    found = Namespace("agents", (Tool("spawn", "S.", extra={"defer_loading": True, "x": 1}), Tool("close")))
    items = (
        ToolCall("c1", "tool_search", '{"query":"agent"}', "tool_search", id="tsc_1"),
        ToolResult("c1", (), "tool_search", tools=(found, Tool("late"), WEB)),
        ToolCall("c2", "spawn", "{}", namespace="agents"),
    )
    result = lowered(SHELL, SEARCH, items=items)
    assert names(result) == ["shell", "tool_search", "agents__spawn", "agents__close", "late"]
    search, spawn = result.call.tools[1], result.call.tools[2]
    assert isinstance(search, Tool)
    assert isinstance(spawn, Tool)
    assert (search.kind, search.schema, search.description) == ("function", SCHEMA, "Find tools.")
    assert dict(spawn.extra) == {"x": 1}
    made, answer, later = result.call.items
    assert isinstance(made, ToolCall)
    assert isinstance(answer, ToolResult)
    assert isinstance(later, ToolCall)
    assert (made.kind, made.arguments) == ("function", '{"query":"agent"}')
    assert answer.parts == (Text('{"tools":["agents__spawn","agents__close","late"]}'),)
    assert (answer.kind, answer.tools) == ("function", ())
    assert later.name == "agents__spawn"
    assert result.names["tool_search"] == Original("tool_search", "tool_search")
    assert [loss.pointer for loss in result.losses] == ["/tools/4"]


def test_a_search_without_parameters_or_words_gets_the_usual_ones() -> None:
    search = lowered(Tool("tool_search", kind="tool_search")).call.tools[0]
    assert isinstance(search, Tool)
    assert search.schema is not None
    assert set(search.schema["properties"]) == {"query", "limit"}
    assert search.description


def test_deferred_tools_are_offered_to_a_backend_that_cannot_search() -> None:
    tool = Tool("late", extra={"defer_loading": True})
    assert lowered(tool).call.tools == (Tool("late"),)


def test_additional_tools_join_the_list_and_leave_the_input() -> None:
    said = Message("user", (Text("hi"),))
    result = lowered(items=(AdditionalTools((DOCS, PATCH)), said, AdditionalTools(())))
    assert names(result) == ["mcp__docs__search", "apply_patch"]
    assert result.call.items == (said,)
    assert result.losses == []


def test_a_tool_found_again_is_offered_once() -> None:
    spawn, close = Tool("spawn", "S."), Tool("close", "C.")
    items = (
        ToolResult("c1", (), "tool_search", tools=(Namespace("ns", (spawn, close), "D."),)),
        ToolResult(
            "c2", (), "tool_search", tools=(Namespace("ns", (close, Tool("spawn", "Other.", at="/x"))),)
        ),
    )
    result = lowered(items=items)
    assert names(result) == ["ns__spawn", "ns__close"]
    assert [loss.pointer for loss in result.losses] == ["/x"]  # said in other words: the first is kept


def test_of_two_tools_with_one_name_the_first_is_kept() -> None:
    result = lowered(replace(SHELL, at="/tools/0"), replace(SHELL, at="/tools/1"))
    assert names(result) == ["shell"]
    assert [(loss.pointer, loss.kind) for loss in result.losses] == [("/tools/1", "feature")]


# --- hosted tools ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "shape", "kept"),
    [
        (ToolRules(), "chat", False),
        (ToolRules(builtin="keep"), "chat", False),  # a Responses tool means nothing to a Chat backend
        (ToolRules(builtin="keep"), "responses", True),
        (ToolRules(types=("function", "web_search")), "chat", True),  # unless it says that it knows it
        (ToolRules(types=("function",)), "responses", False),
    ],
)
def test_hosted_tools_stay_where_the_backend_runs_them(rules: ToolRules, shape: Any, kept: bool) -> None:
    result = lower_tools(call(SHELL, WEB), Profile(tools=rules), shape)
    assert (WEB in result.call.tools) is kept
    assert [loss.pointer for loss in result.losses] == ([] if kept else ["/tools/4"])


def test_hosted_tools_can_be_refused() -> None:
    with pytest.raises(ProxyError) as caught:
        lowered(WEB, profile=Profile(tools=ToolRules(builtin="reject")))
    assert (caught.value.http_status, caught.value.param) == (400, "tools[4]")


# --- tool_choice -----------------------------------------------------------------------


def only(*refs: ToolRef, mode: Any = "required", named: bool = False) -> ToolChoice:
    return ToolChoice(mode, refs, named)


CHOICES: list[tuple[ToolChoice, ToolChoice | None]] = [
    (ToolChoice("auto"), ToolChoice("auto")),
    (only(ToolRef("function", "shell"), named=True), only(ToolRef("function", "shell"), named=True)),
    (
        only(ToolRef("custom", "apply_patch"), named=True),
        only(ToolRef("function", "apply_patch"), named=True),
    ),
    (
        only(ToolRef("function", "search", "mcp__docs"), named=True),
        only(ToolRef("function", "mcp__docs__search"), named=True),
    ),
    (
        only(ToolRef("function", "search"), named=True),
        only(ToolRef("function", "mcp__docs__search"), named=True),
    ),
    (only(ToolRef("tool_search"), named=True), only(ToolRef("function", "tool_search"), named=True)),
    (
        only(ToolRef("namespace", "mcp__docs"), ToolRef("web_search"), ToolRef("function", "shell")),
        only(ToolRef("function", "mcp__docs__search"), ToolRef("function", "shell")),
    ),
    (only(ToolRef("web_search"), mode="auto"), ToolChoice("none")),  # a policy: nothing else may be called
]


@pytest.mark.parametrize(("asked", "want"), CHOICES)
def test_choices_are_said_in_the_names_of_the_list(asked: ToolChoice, want: ToolChoice) -> None:
    result = lowered(PATCH, SHELL, DOCS, SEARCH, WEB, tool_choice=asked)
    assert result.call.tool_choice == want
    reported = [loss.pointer for loss in result.losses if loss.pointer != "/tools/4"]
    assert reported == (["/tool_choice"] if want == ToolChoice("none") else [])


REFUSED: list[tuple[ToolRef, str]] = [
    (ToolRef("function", "nope"), "nope"),
    (ToolRef("function", "search", "mcp__nope"), "search"),
    (ToolRef("file_search"), "file_search"),
    (ToolRef("web_search_preview"), "does not run"),
]


@pytest.mark.parametrize(("ref", "words"), REFUSED)
def test_a_choice_that_cannot_be_had_is_refused(ref: ToolRef, words: str) -> None:
    with pytest.raises(ProxyError) as caught:
        lowered(SHELL, DOCS, WEB, tool_choice=only(ref, named=True))
    assert (caught.value.http_status, caught.value.param) == (400, "tool_choice")
    assert words in caught.value.message


def test_forcing_a_tool_left_out_by_profile_is_refused_but_allowing_it_is_not() -> None:
    profile = Profile(tools=ToolRules(custom="drop"))
    patch = ToolRef("custom", "apply_patch")
    with pytest.raises(ProxyError) as caught:
        lowered(PATCH, SHELL, profile=profile, tool_choice=only(patch, named=True))
    assert caught.value.param == "tool_choice"
    both = only(patch, ToolRef("function", "shell"))
    result = lowered(PATCH, SHELL, profile=profile, tool_choice=both)
    assert result.call.tool_choice == only(ToolRef("function", "shell"))


def test_a_whole_namespace_may_be_allowed_where_it_is_kept() -> None:
    profile = Profile(tools=ToolRules(types=("function", "namespace")))
    asked = call(DOCS, SEARCH, tool_choice=only(ToolRef("namespace", "mcp__docs"), ToolRef("tool_search")))
    choice = lower_tools(asked, profile, "responses").call.tool_choice
    assert choice == only(ToolRef("namespace", "mcp__docs"), ToolRef("function", "tool_search"))
    named = call(DOCS, SEARCH, tool_choice=only(ToolRef("function", "search", "mcp__docs"), named=True))
    assert lower_tools(named, profile, "responses").call.tool_choice == named.tool_choice


def test_members_of_a_namespace_that_were_left_out_are_not_allowed() -> None:
    profile = Profile(tools=ToolRules(custom="drop"))
    space = Namespace("ns", (replace(PATCH, name="p"), Tool("f")))
    result = lowered(space, profile=profile, tool_choice=only(ToolRef("namespace", "ns")))
    assert result.call.tool_choice == only(ToolRef("function", "ns__f"))


def test_a_hosted_choice_may_name_any_version_of_what_is_kept() -> None:
    tool = Opaque("responses", {"type": "web_search_preview_2025_03_11"}, "/tools/0")
    asked = call(tool, tool_choice=only(ToolRef("web_search_preview"), named=True))
    assert lower_tools(asked, RICH, "responses").call is asked


@pytest.mark.parametrize(("mode", "reported"), [("auto", []), ("none", []), ("required", ["/tool_choice"])])
def test_without_a_tool_left_there_is_no_choice(mode: Any, reported: list[str]) -> None:
    result = lowered(WEB, tool_choice=ToolChoice(mode))
    assert result.call.tools == ()
    assert result.call.tool_choice is None
    assert [loss.pointer for loss in result.losses if loss.pointer != "/tools/4"] == reported


# --- aliases ---------------------------------------------------------------------------

SPACED = {"ns__a": Original("function", "a", "ns"), "ms__b": Original("custom", "b", "ms")}


@pytest.mark.parametrize(
    ("names", "offered", "alias", "means"),
    [
        (SPACED, (), "ns.a", "ns__a"),
        (SPACED, (), "ns/a", "ns__a"),
        (SPACED, (), "ns:a", "ns__a"),
        (SPACED, (), "b", "ms__b"),
        (SPACED, ("a",), "a", None),  # another tool's own name
        ({**SPACED, "ms__a": Original("function", "a", "ms")}, (), "a", None),  # two tools could be meant
        ({"long_1f": Original("function", "a", "ns")}, (), "ns__a", "long_1f"),
        ({"f": Original("format", "f")}, (), "f", None),
    ],
)
def test_other_spellings_mean_a_tool_only_when_no_other_is_meant(
    names: Mapping[str, Original], offered: tuple[str, ...], alias: str, means: str | None
) -> None:
    assert aliases(names, offered).get(alias) == (names[means] if means else None)


# --- structured answers by a tool --------------------------------------------------------

BY_TOOL = replace(BASE, output_format=replace(BASE.output_format, json_schema="tool"))
FORM = {
    "type": "json_schema",
    "name": "answer",
    "schema": SCHEMA,
    "strict": True,
    "description": "The answer.",
}
ANSWER = ToolRef("function", "answer")


def test_a_schema_alone_becomes_the_one_tool_that_must_be_called() -> None:
    result = lowered(profile=BY_TOOL, params={"format": FORM, "top_p": 1})
    (tool,) = result.call.tools
    assert isinstance(tool, Tool)
    assert (tool.name, tool.schema, tool.strict, tool.at) == ("answer", SCHEMA, True, "/text/format")
    assert tool.description is not None
    assert tool.description.startswith("The answer.\n\n")
    assert result.call.tool_choice == only(ANSWER, named=True)
    assert dict(result.call.params) == {"top_p": 1}
    assert result.names == {"answer": Original("format", "answer")}


@pytest.mark.parametrize(
    ("choice", "want"),
    [
        (None, ToolChoice("required")),
        (ToolChoice("auto"), ToolChoice("required")),
        (ToolChoice("none"), only(ANSWER, named=True)),
        (only(ToolRef("function", "shell"), mode="auto"), only(ToolRef("function", "shell"), ANSWER)),
    ],
)
def test_beside_the_clients_tools_some_call_is_required(choice: Any, want: ToolChoice) -> None:
    result = lowered(SHELL, profile=BY_TOOL, params={"format": FORM}, tool_choice=choice)
    assert names(result) == ["shell", "answer"]
    assert result.call.tool_choice == want


@pytest.mark.parametrize("choice", [ToolChoice("required"), only(ToolRef("function", "shell"), named=True)])
def test_where_the_client_forces_its_own_tool_no_answer_is_due(choice: ToolChoice) -> None:
    result = lowered(SHELL, profile=BY_TOOL, params={"format": FORM}, tool_choice=choice)
    assert names(result) == ["shell"]
    assert (result.call.tool_choice, dict(result.call.params)) == (choice, {})


def test_a_model_that_thinks_is_left_to_choose() -> None:
    profile = replace(BY_TOOL, tools=ToolRules(choice=ChoiceRules(with_thinking="auto")))
    params = {"format": FORM, "effort": "high"}
    result = lowered(SHELL, profile=profile, params=params, tool_choice=ToolChoice("required"))
    assert names(result) == ["shell", "answer"]
    assert result.call.tool_choice is None
    calm = lowered(profile=profile, params={"format": FORM, "effort": "none"})
    assert calm.call.tool_choice == only(ANSWER, named=True)


def test_the_answers_tool_takes_no_name_of_the_clients() -> None:
    result = lowered(Tool("answer"), profile=BY_TOOL, params={"format": {**FORM, "name": "answer"}})
    own, answer = names(result)
    assert own == "answer"
    assert result.names == {answer: Original("format", answer)}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": {"type": "string"}}},
        {"anyOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"type": "string"}}},
    ],
)
def test_a_schema_that_is_no_object_is_wrapped_and_keeps_its_definitions_at_the_root(schema: Any) -> None:
    form = {"type": "json_schema", "name": "list", "schema": schema}
    result = lowered(profile=BY_TOOL, params={"format": form})
    (tool,) = result.call.tools
    assert isinstance(tool, Tool)
    assert tool.schema is not None
    assert tool.schema["type"] == "object"
    assert tool.schema["$defs"] == schema["$defs"]
    assert "$defs" not in tool.schema["properties"]["value"]
    assert result.names["list"].wrapped is True


def test_a_schema_left_out_is_any_object() -> None:
    (tool,) = lowered(profile=BY_TOOL, params={"format": {"type": "json_schema"}}).call.tools
    assert isinstance(tool, Tool)
    assert (tool.name, tool.schema) == ("answer", {"type": "object"})


@pytest.mark.parametrize(
    ("profile", "form"), [(BASE, FORM), (BY_TOOL, {"type": "json_object"}), (BY_TOOL, None)]
)
def test_other_formats_are_no_tool(profile: Profile, form: Any) -> None:
    params = {"format": form} if form else {}
    result = lowered(profile=profile, params=params)
    assert (result.call.tools, dict(result.call.params), dict(result.names)) == ((), params, {})


@pytest.mark.parametrize("schema", [True, ["object"], "object", 5])
def test_a_schema_that_is_no_object_is_refused(schema: Any) -> None:
    with pytest.raises(ProxyError) as caught:
        lowered(profile=BY_TOOL, params={"format": {"type": "json_schema", "name": "n", "schema": schema}})
    assert caught.value.http_status == 400
