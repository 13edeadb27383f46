"""Names of lowered tools: flat, legal, apart, and their other spellings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.translators.lowering import BASE, DOCS, PATCH, SCHEMA, SHELL, call, lowered, names
from translators.ir import Call, Namespace, Text, Tool, ToolCall, ToolResult
from translators.profile import Profile, ToolRules
from translators.tool_names import NameTable, ToolKey, aliases
from translators.tools import Original, lower_tools

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
