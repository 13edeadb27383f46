"""A structured answer asked for by a tool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.translators.lowering import BASE, SCHEMA, SHELL, lowered, names, only
from translators.errors import ProxyError
from translators.ir import Tool, ToolChoice, ToolRef
from translators.profile import ChoiceRules, Profile, ToolRules
from translators.tools import Original

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
