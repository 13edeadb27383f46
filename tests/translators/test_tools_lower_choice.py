"""The choice of tools, said in the names of the lowered list."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.translators.lowering import DOCS, PATCH, RICH, SEARCH, SHELL, WEB, call, lowered, only
from translators.errors import ProxyError
from translators.ir import Namespace, Opaque, Tool, ToolChoice, ToolRef
from translators.profile import Profile, ToolRules
from translators.tools import lower_tools

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
