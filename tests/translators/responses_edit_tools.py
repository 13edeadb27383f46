"""Edits of tools and of the choice among them: profile, body, what is sent, what is lost."""

from __future__ import annotations

from tests.translators.responses_items import HARD, MCP, SPACE, WEB, F, G
from tests.translators.responses_profiles import KEEP, choice, tools
from translators.ir import Json
from translators.profile import Profile, SchemaRules

TOOLS: dict[str, tuple[Profile, Json, Json, list[str]]] = {
    # tools
    "hosted tools nobody runs": (
        tools(builtin="drop", types=("function", "file_search")),
        {"tools": [WEB, F, {"type": "file_search"}, {"type": "tool_search", "execution": "server"}]},
        {"tools": [F, {"type": "file_search"}]},
        ["/tools/0", "/tools/3"],
    ),
    "no tool left": (
        tools(builtin="drop"),
        {"tools": [WEB], "tool_choice": "auto", "parallel_tool_calls": False},
        {},
        ["/tools/0"],
    ),
    "no tool left to be required": (
        tools(builtin="drop"),
        {"tools": [WEB], "tool_choice": "required"},
        {},
        ["/tools/0", "/tool_choice"],
    ),
    "an empty list of tools": (
        KEEP,
        {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True},
        {},
        [],
    ),
    "an empty list, and tools in the input": (
        KEEP,
        {"tools": [], "tool_choice": "auto", "input": [{"type": "additional_tools", "tools": [F]}]},
        {"tools": [], "tool_choice": "auto", "input": [{"type": "additional_tools", "tools": [F]}]},
        [],
    ),
    "strictness": (
        tools(strict="drop"),
        {"tools": [{**F, "strict": True}, {**G, "strict": False}]},
        {"tools": [F, G]},
        ["/tools/0/strict"],
    ),
    "parameters": (
        tools(schema=SchemaRules(drop=("title",))),
        {
            "tools": [
                {"type": "function", "name": "f"},
                {**G, "parameters": {**F["parameters"], "title": "x"}},
            ]
        },  # type: ignore[dict-item]
        {"tools": [F, G]},
        [],
    ),
    "parameters left as they are": (
        tools(schema=SchemaRules(require_object=False)),
        {"tools": [{"type": "function", "name": "f"}]},
        {"tools": [{"type": "function", "name": "f"}]},
        [],
    ),
    "true is the default of the flag, and never sent": (
        KEEP,
        {"tools": [F], "parallel_tool_calls": True},
        {"tools": [F]},
        [],
    ),
    "the flag for parallel calls": (
        tools(parallel_flag="drop"),
        {"tools": [F], "parallel_tool_calls": False},
        {"tools": [F]},
        ["/parallel_tool_calls"],
    ),
    "the flag where it says nothing": (
        tools(parallel_flag="drop"),
        {"tools": [F], "parallel_tool_calls": True},
        {"tools": [F]},
        [],
    ),
    # the choice
    "required cannot be said": (
        choice(required="auto"),
        {"tools": [F], "tool_choice": "required"},
        {"tools": [F], "tool_choice": "auto"},
        ["/tool_choice"],
    ),
    "required in other words": (
        choice(required="any"),
        {"tools": [F], "tool_choice": "required"},
        {"tools": [F], "tool_choice": "any"},
        [],
    ),
    "named as the only one": (
        choice(named="required_single"),
        {"tools": [F, G, SPACE], "tool_choice": {"type": "function", "name": "g"}},
        {"tools": [G], "tool_choice": "required"},
        [],
    ),
    "named cannot be said": (
        choice(named="auto"),
        {"tools": [F], "tool_choice": {"type": "function", "name": "f"}},
        {"tools": [F], "tool_choice": "auto"},
        ["/tool_choice"],
    ),
    "nothing is forced while it reasons": (
        choice(with_thinking="auto"),
        {"tools": [F], "tool_choice": {"type": "function", "name": "f"}, "reasoning": HARD},
        {"tools": [F], "tool_choice": "auto", "reasoning": HARD},
        ["/tool_choice"],
    ),
    "forced when it does not reason": (
        choice(with_thinking="auto"),
        {"tools": [F], "tool_choice": "required", "reasoning": {"effort": "none"}},
        {"tools": [F], "tool_choice": "required", "reasoning": {"effort": "none"}},
        [],
    ),
    "an allowed set by filtering": (
        choice(allowed_tools="filter"),
        {
            "tools": [
                F,
                G,
                SPACE,
                {**SPACE, "name": "other", "tools": []},
                MCP,
                {**MCP, "server_label": "b"},
            ],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "f"}, {"type": "mcp", "server_label": "b"}],
            },
        },
        {"tools": [F, SPACE, {**MCP, "server_label": "b"}], "tool_choice": "required"},
        [],
    ),
    "an allowed set of tools in the input": (
        choice(allowed_tools="filter"),
        {
            "input": [{"type": "additional_tools", "tools": [F]}],
            "tool_choice": {"type": "allowed_tools", "tools": [{"type": "function", "name": "f"}]},
        },
        {"input": [{"type": "additional_tools", "tools": [F]}], "tool_choice": "auto"},
        [],
    ),
    "an allowed set without the tools that go": (
        tools(builtin="drop"),
        {
            "tools": [F, WEB],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "web_search"}, {"type": "function", "name": "f"}],
            },
        },
        {
            "tools": [F],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "f"}],
            },
        },
        ["/tools/1"],
    ),
    "an allowed set of which nothing is left": (
        tools(builtin="drop"),
        {"tools": [WEB], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [WEB]}},
        {},
        ["/tools/0"],
    ),
}
