"""Requests whose tools a backend does not take, and what it is sent instead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from tests.translators.lowering import (
    BASE,
    DOCS,
    PATCH,
    RICH,
    SCHEMA,
    SEARCH,
    SHELL,
    WEB,
    call,
    lowered,
    names,
)
from translators.errors import ProxyError
from translators.ir import AdditionalTools, Message, Namespace, Text, Tool, ToolCall, ToolChoice, ToolResult
from translators.profile import Profile, ToolRules
from translators.tools import Original, lower_tools

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
