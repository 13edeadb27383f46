"""Profiles applied to Responses bodies."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from translators.effort import nearest_effort
from translators.errors import ProxyError
from translators.ir import Json, ToolChoice, ToolRef
from translators.profile import (
    AnswerRules,
    CallIdRule,
    ChoiceRules,
    MessageRules,
    OutputFormat,
    Profile,
    ReasoningRules,
    RequestRules,
    SchemaRules,
    ToolRules,
)
from translators.responses.edit import edit_request, passes
from translators.responses.edit_tools import write_choice
from translators.responses.ids import call_id, made_id, short_id

KEEP = Profile(
    messages=MessageRules(developer="keep", system="many"),
    tools=ToolRules(
        types=("function", "custom", "namespace", "tool_search"),
        custom="keep",
        builtin="keep",
        strict="keep",
        choice=ChoiceRules(allowed_tools="keep"),
    ),
    reasoning=ReasoningRules(
        scope="all", efforts=("none", "minimal", "low", "medium", "high", "xhigh", "max")
    ),
)
"""A Responses backend that asks for nothing."""
JSON: Json = {"format": {"type": "json_object"}}
LABEL: Json = {"type": "input_text", "text": "[Tool result c1]:"}
NUDGE: Json = {"type": "input_text", "text": "Respond with a JSON object."}
OPEN = replace(
    KEEP,
    messages=replace(
        KEEP.messages, assistant_parts="input", reasoning_items="drop", trailing_assistant="drop"
    ),
    tools=ToolRules(types=("function",)),
)
"""The cross-provider surface: function tools and `input_*` parts only, no reasoning, no prefill."""


def request(**rules: Any) -> Profile:
    return replace(KEEP, request=RequestRules(**rules))


def messages(**rules: Any) -> Profile:
    return replace(KEEP, messages=replace(KEEP.messages, **rules))


def tools(**rules: Any) -> Profile:
    return replace(KEEP, tools=replace(KEEP.tools, **rules))


def choice(**rules: Any) -> Profile:
    return tools(choice=replace(KEEP.tools.choice, **rules))


def formats(**rules: Any) -> Profile:
    return replace(KEEP, output_format=OutputFormat(**rules))


def reasoning(**rules: Any) -> Profile:
    return replace(KEEP, reasoning=ReasoningRules(**rules))


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def system(text: str, role: str = "system") -> Json:
    return {"role": role, "content": text}


def answer(*parts: Json) -> Json:
    return {"type": "message", "role": "assistant", "content": list(parts)}


SAID = {"type": "output_text", "text": "b", "annotations": [], "logprobs": []}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "r"}
F = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
G = {**F, "name": "g"}
WEB = {"type": "web_search"}
MCP = {"type": "mcp", "server_label": "a"}
SPACE = {"type": "namespace", "name": "ns", "description": "", "tools": [F]}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "zz"}
HARD = {"effort": "high"}


def without(body: Json, *keys: str) -> Json:
    return {key: value for key, value in body.items() if key not in keys}


# --- nothing asked, nothing changed ------------------------------------------------------

GOOD: list[Json] = [
    {"input": "hi"},
    {"input": [user("hi"), answer(SAID), CALL, RESULT, SEALED, {"id": "x"}, "junk"], "store": False},
    {"input": "hi", "tools": [F, WEB, SPACE, {"type": "custom", "name": "p"}], "tool_choice": "required"},
    {
        "input": "hi",
        "tools": [F],
        "parallel_tool_calls": False,
        "tool_choice": {"type": "function", "name": "f"},
    },
    {"input": "hi", "tools": [F, WEB], "tool_choice": {"type": "web_search"}},
    {
        "input": [{"type": "additional_tools", "role": "developer", "tools": [F]}, user("hi")],
        "tool_choice": {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "f"}],
        },
    },
    {
        "input": "hi",
        "tool_choice": {"type": "function", "name": "of the prompt"},
        "prompt": {"id": "p"},
    },
    {"input": [user("json?")], "text": {"format": {"type": "json_object"}, "verbosity": "low"}},
    {"input": "hi", "reasoning": {"effort": "xhigh", "summary": "auto"}, "temperature": 0.5},
    {"input": "hi", "reasoning": {"summary": "auto"}, "unheard_of": {"of": 1}},
    {"input": [RESULT], "previous_response_id": "resp_1"},
    {"input": [RESULT, {"type": "compaction", "encrypted_content": "zz"}]},
    {"input": [user("hi"), CALL]},
    {"input": [{"type": "local_shell_call", "call_id": "c1"}, RESULT, user("hi")]},
    {"input": [CALL, {"type": "apply_patch_call_output", "call_id": "c1"}, user("hi")]},
    {"input": [{"type": "function_call_output", "name": "f", "output": "no call id, as of 2026"}]},
    {"input": [user("hi")], "text": {"format": {"type": "text"}}},
    {},
]


@pytest.mark.parametrize("body", GOOD)
def test_a_good_body_is_not_touched(body: Json) -> None:
    asked = {"model": "m", **body}
    edited = edit_request(asked, KEEP)
    assert edited.body == asked
    assert (edited.changed, edited.losses, edited.repairs) == (False, [], [])


# --- rules, one by one -------------------------------------------------------------------

CASES: dict[str, tuple[Profile, Json, Json, list[str]]] = {
    # top level
    "dropped keys": (
        request(drop=("metadata", "store", "text.verbosity", "reasoning.effort", "input", "gone", "a.b.c")),
        {
            "metadata": {"a": "b"},
            "store": False,
            "text": {"verbosity": "low"},
            "reasoning": {"effort": "low", "summary": "auto"},
            "input": "x",
            "a": 1,
        },
        {"reasoning": {"summary": "auto"}, "input": "x", "a": 1},
        ["/metadata", "/text/verbosity", "/reasoning/effort"],
    ),
    "an allow-list": (
        request(allow=("model", "top_p")),
        {"input": "x", "top_p": 1, "user": "u"},
        {"input": "x", "top_p": 1},
        ["/user"],
    ),
    "known keys only": (
        request(extra_keys=("mine",)),
        {
            "input": [
                {**user("hi"), "made_up": 1},
                {**answer({**SAID, "made_up": 1}), "mine": 2},
                {"type": "local_shell_call", "made_up": 1},
            ],
            "tools": [{**F, "made_up": 1, "mine": 2}, {**WEB, "made_up": 1}],
            "mine": 1,
            "made_up": 1,
        },
        {
            "input": [user("hi"), {**answer(SAID), "mine": 2}, {"type": "local_shell_call", "made_up": 1}],
            "tools": [{**F, "mine": 2}, {**WEB, "made_up": 1}],
            "mine": 1,
        },
        ["/made_up"],
    ),
    "renamed keys": (
        request(rename={"max_tokens": "max_output_tokens", "user": "safety_identifier"}),
        {"max_tokens": 5, "user": "a", "safety_identifier": "b"},
        {"max_output_tokens": 5, "safety_identifier": "b"},
        [],
    ),
    "clamped numbers": (
        request(clamp={"temperature": (0, 1), "top_p": (0.5, 1), "n": (1, 1), "store": (0, 0), "x": (0, 1)}),
        {"temperature": 2, "top_p": 0.1, "n": 1, "store": True, "x": "5"},
        {"temperature": 1, "top_p": 0.5, "n": 1, "store": True, "x": "5"},
        ["/temperature", "/top_p"],
    ),
    "stream options": (
        request(stream_options="drop"),
        {"stream": True, "stream_options": {"include_obfuscation": False}},
        {"stream": True},
        [],
    ),
    "forced keys": (
        request(force={"store": True, "reasoning": {"summary": "auto"}}),
        {"store": False, "reasoning": HARD},
        {"store": True, "reasoning": {"effort": "high", "summary": "auto"}},
        [],
    ),
    # reasoning
    "the nearest effort": (
        reasoning(efforts=("low", "medium", "high")),
        {"reasoning": {"effort": "minimal", "summary": "auto"}},
        {"reasoning": {"summary": "auto", "effort": "low"}},
        ["/reasoning/effort"],
    ),
    "an effort that cannot be asked": (
        reasoning(efforts=("low",)),
        {"reasoning": {"effort": "none"}},
        {},
        ["/reasoning/effort"],
    ),
    "a backend without reasoning": (
        reasoning(ask="none"),
        {"reasoning": {"effort": "low", "summary": "auto"}},
        {},
        ["/reasoning/effort"],
    ),
    "a summary of no reasoning": (reasoning(ask="none"), {"reasoning": {"summary": "auto"}}, {}, []),
    "no sampling while it reasons": (
        reasoning(drop_sampling=True),
        {"reasoning": HARD, "temperature": 1, "top_p": 0.5, "top_logprobs": None},
        {"reasoning": HARD},
        ["/temperature", "/top_p"],
    ),
    "sampling without reasoning": (
        reasoning(drop_sampling=True, efforts=("none",)),
        {"reasoning": {"effort": "none"}, "temperature": 1},
        {"reasoning": {"effort": "none"}, "temperature": 1},
        [],
    ),
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
    # the conversation
    "developer messages": (
        messages(developer="system"),
        {"input": [system("d", "developer"), user("hi")]},
        {"input": [system("d"), user("hi")]},
        [],
    ),
    "one leading system message": (
        messages(system="merge_leading"),
        {
            "instructions": "A",
            "input": [
                system("B", "developer"),
                {"role": "system", "content": [{"type": "input_text", "text": "C"}]},
                user("hi"),
                system("D"),
            ],
        },
        {"instructions": "A\n\nB\n\nC", "input": [user("hi"), system("D")]},
        [],
    ),
    "the one there is": (
        messages(system="merge_leading"),
        {"input": [system("A"), user("hi")]},
        {"input": [system("A"), user("hi")]},
        [],
    ),
    "an empty one beside it": (
        messages(system="merge_leading"),
        {"input": [system("A"), system(""), user("hi")]},
        {"instructions": "A", "input": [user("hi")]},
        [],
    ),
    "every system message": (
        messages(system="hoist_all"),
        {"input": [user("hi"), system("A"), system("B")]},
        {"instructions": "A\n\nB", "input": [user("hi")]},
        [],
    ),
    "no system message at all": (
        messages(system="hoist_all"),
        {
            "instructions": "A",
            "input": [user("hi"), {"role": "system", "content": [{"type": "input_image"}]}, CALL],
        },
        {
            "instructions": "A",
            "input": [user("hi"), {"role": "system", "content": [{"type": "input_image"}]}, CALL],
        },
        [],
    ),
    "empty texts": (
        messages(drop_empty_text=True),
        {"input": [user(" "), answer({**SAID, "text": ""}), answer(SAID, "junk")]},  # type: ignore[arg-type]
        {"input": [answer(SAID, "junk")]},  # type: ignore[arg-type]
        [],
    ),
    "a blank string": (
        messages(drop_empty_text=True),
        {"input": [{"role": "user", "content": " "}, user("hi"), {"role": "user", "content": ["junk"]}]},
        {"input": [user("hi"), {"role": "user", "content": ["junk"]}]},
        [],
    ),
    "nothing but blanks": (
        messages(drop_empty_text=True),
        {"input": [{"role": "user", "content": " "}]},
        {"input": [{"role": "user", "content": " "}]},
        [],
    ),
    "a blank string where they are taken": (
        KEEP,
        {"input": [{"role": "user", "content": ""}, user("hi"), {"role": "user"}]},
        {"input": [{"role": "user", "content": ""}, user("hi"), {"role": "user"}]},
        [],
    ),
    "long ids": (
        replace(request(id_max_len=24), messages=replace(KEEP.messages, tool_call_id=CallIdRule(max=12))),
        {
            "input": [
                {**CALL, "id": "fc_" + "1" * 40, "call_id": "call_" + "a" * 20},
                {**RESULT, "id": "fco_1", "call_id": "call_" + "a" * 20},
            ]
        },
        {
            "input": [
                {**CALL, "id": short_id("fc_" + "1" * 40, 24), "call_id": short_id("call_" + "a" * 20, 12)},
                {**RESULT, "id": "fco_1", "call_id": short_id("call_" + "a" * 20, 12)},
            ]
        },
        [],
    ),
    "ids of another wire": (
        KEEP,
        {
            "input": [
                {**user("hi"), "id": "u1"},
                {**answer(SAID), "id": "chatcmpl-1"},
                {**CALL, "id": "call_1"},
                RESULT,
                {"type": "reasoning", "id": "thought", "summary": [], "encrypted_content": "zz"},
            ]
        },
        {
            "input": [
                user("hi"),
                {**answer(SAID), "id": made_id("msg_", "chatcmpl-1")},
                {key: value for key, value in CALL.items() if key != "id"},
                RESULT,
                {"type": "reasoning", "id": "thought", "summary": [], "encrypted_content": "zz"},
            ]
        },
        [],
    ),
    "a result that names the item of its call": (
        KEEP,
        {"input": [{**CALL, "id": "fc_9"}, {**RESULT, "call_id": "fc_9"}, user("hi")]},
        {"input": [{**CALL, "id": "fc_9"}, RESULT, user("hi")]},
        [],
    ),
    "what is set to nothing": (
        KEEP,
        {"input": "hi", "prompt_cache_key": "", "metadata": None, "instructions": ""},
        {"input": "hi", "instructions": ""},
        [],
    ),
    "what an exact backend may be asked": (
        replace(KEEP, answer=AnswerRules(exact=True)),
        {"input": "hi", "prompt_cache_key": "", "metadata": None},
        {"input": "hi", "metadata": None},
        [],
    ),
    "a choice without tools": (
        KEEP,
        {"input": "hi", "tool_choice": "auto", "parallel_tool_calls": False},
        {"input": "hi"},
        [],
    ),
    "a forced choice without tools": (
        KEEP,
        {"input": "hi", "tool_choice": "required", "tools": []},
        {"input": "hi"},
        ["/tool_choice"],
    ),
    "a choice beside a stored prompt": (
        KEEP,
        {"input": "hi", "tool_choice": "auto", "prompt": {"id": "pmpt_1"}},
        {"input": "hi", "tool_choice": "auto", "prompt": {"id": "pmpt_1"}},
        [],
    ),
    "images by address": (
        messages(remote_images="reject"),
        {
            "input": [
                {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,A"}]}
            ]
        },
        {
            "input": [
                {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,A"}]}
            ]
        },
        [],
    ),
    # reasoning items
    "a summary is always there": (
        KEEP,
        {"input": [without(SEALED, "summary"), user("hi")]},
        {"input": [SEALED, user("hi")]},
        [],
    ),
    "an id that nobody kept": (
        KEEP,
        {
            "store": False,
            "input": [
                without(SEALED, "encrypted_content"),
                {"type": "reasoning", "id": "rs_2", "summary": [], "content": [{"type": "reasoning_text"}]},
                answer(SAID),
                user("hi"),
            ],
        },
        {
            "store": False,
            "input": [
                {"type": "reasoning", "id": "rs_2", "summary": [], "content": [{"type": "reasoning_text"}]},
                answer(SAID),
                user("hi"),
            ],
        },
        ["/input/0"],
    ),
    "an id that may be kept": (
        KEEP,
        {"input": [without(SEALED, "encrypted_content"), user("hi")]},
        {"input": [without(SEALED, "encrypted_content"), user("hi")]},
        [],
    ),
    # the cross-provider surface
    "old answers as input": (
        OPEN,
        {
            "input": [
                user("a"),
                answer(
                    {**SAID, "extra": 1}, {"type": "refusal", "refusal": "no"}, {"type": "input_text"}, {}
                ),
                user("c"),
            ]
        },
        {
            "input": [
                user("a"),
                answer(
                    {"type": "input_text", "text": "b", "extra": 1},
                    {"type": "input_text", "text": "no"},
                    {"type": "input_text"},
                    {},
                ),
                user("c"),
            ]
        },
        [],
    ),
    "thoughts": (
        OPEN,
        {
            "input": [
                SEALED,
                {"type": "thinking"},
                answer({"type": "redacted_thinking"}),
                {"role": "user", "content": [{"type": "thinking"}]},
            ]
        },
        {"input": [{"role": "user", "content": []}]},
        ["/input/0", "/input/1", "/input/2/content/0", "/input/3/content/0"],
    ),
    "a prefill": (
        OPEN,
        {"input": [user("a"), {"role": "assistant", "content": "b"}, SEALED, answer(SAID)]},
        {"input": [user("a")]},
        ["/input/2", "/input/1", "/input/3"],
    ),
    "nothing but answers": (
        OPEN,
        {"input": [{"role": "assistant", "content": "b"}]},
        {"input": [{"role": "assistant", "content": "b"}]},
        [],
    ),
    "a call at the end": (OPEN, {"input": [user("a"), CALL]}, {"input": [user("a"), CALL]}, []),
    "tools of functions only": (
        OPEN,
        {"input": "x", "tools": [WEB], "tool_choice": "auto", "parallel_tool_calls": True},
        {"input": "x"},
        ["/tools/0"],
    ),
    # pairs
    "results of all sorts without their calls": (
        KEEP,
        {
            "input": [
                {**RESULT, "output": None},
                {**RESULT, "output": {"k": 1}},
                {**RESULT, "output": [1]},
            ]
        },
        {
            "input": [
                user("[Tool result c1]:"),
                {**user("[Tool result c1]:"), "content": [LABEL, {"type": "input_text", "text": '{"k":1}'}]},
                {**user("[Tool result c1]:"), "content": [LABEL, {"type": "input_text", "text": "[1]"}]},
            ]
        },
        [],
    ),
    "a call before a result without its call": (
        KEEP,
        {"input": [{**CALL, "call_id": "c2"}, {**RESULT, "output": ""}]},
        {
            "input": [
                {**CALL, "call_id": "c2"},
                {
                    "type": "function_call_output",
                    "call_id": "c2",
                    "output": "[No result: the call of f was never answered. It may not have run.]",
                },
                user("[Tool result c1]:"),
            ]
        },
        [],
    ),
    "a choice in the Chat spelling": (
        KEEP,
        {"input": "x", "tools": [F], "tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"input": "x", "tools": [F], "tool_choice": {"type": "function", "name": "f"}},
        [],
    ),
    "a result without its call": (
        KEEP,
        {
            "input": [
                user("a"),
                {**RESULT, "output": [{"type": "input_image", "image_url": "u"}]},
                {**RESULT, "call_id": ""},
            ]
        },
        {
            "input": [
                user("a"),
                {
                    "type": "message",
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "[Tool result c1]:"},
                        {"type": "input_image", "image_url": "u"},
                    ],
                },
                {
                    "type": "message",
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "[Tool result]:"},
                        {"type": "input_text", "text": "r"},
                    ],
                },
            ]
        },
        [],
    ),
    "a call nobody answered": (
        KEEP,
        {"input": [CALL, {**CALL, "type": "custom_tool_call", "call_id": "c2"}, SEALED, user("a"), CALL]},
        {
            "input": [
                CALL,
                {**CALL, "type": "custom_tool_call", "call_id": "c2"},
                SEALED,
                *(
                    {
                        "type": kind,
                        "call_id": call_id,
                        "output": "[No result: the call of f was never answered. It may not have run.]",
                    }
                    for kind, call_id in (("function_call_output", "c1"), ("custom_tool_call_output", "c2"))
                ),
                user("a"),
                {**CALL, "call_id": "c1_2"},
            ]
        },
        [],
    ),
    # the format
    "a schema told in words": (
        formats(json_schema="prompt"),
        {
            "instructions": "Be brief.",
            "text": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        },
        {
            "instructions": "Be brief.\n\nAnswer with JSON that matches this JSON Schema, and with nothing "
            'else:\n{"type":"object"}'
        },
        [],
    ),
    "a schema told in words alone": (
        formats(json_schema="prompt"),
        {"text": {"format": {"type": "json_schema", "schema": {}}, "verbosity": "low"}},
        {
            "instructions": "Answer with JSON that matches this JSON Schema, and with nothing else:\n{}",
            "text": {"verbosity": "low"},
        },
        [],
    ),
    "a schema left out": (
        formats(json_schema="drop"),
        {"text": {"format": {"type": "json_schema"}}},
        {},
        ["/text/format"],
    ),
    "JSON left out": (
        formats(json_object="drop"),
        {"text": {"format": {"type": "json_object"}}},
        {},
        ["/text/format"],
    ),
    "a format not with tools": (
        formats(with_tools=False),
        {"text": {"format": {"type": "json_object"}}, "tools": [F]},
        {"tools": [F]},
        ["/text/format"],
    ),
    "a format not in a stream": (
        formats(with_stream=False),
        {"text": {"format": {"type": "json_object"}}, "stream": True},
        {"stream": True},
        ["/text/format"],
    ),
    "the word in a string": (
        formats(needs_json_word=True),
        {"input": "a list", "text": {"format": {"type": "json_object"}}},
        {"input": "a list Respond with a JSON object.", "text": {"format": {"type": "json_object"}}},
        [],
    ),
    "the word where nobody says it": (
        formats(needs_json_word=True),
        {
            "input": [system("json", "developer"), {**CALL, "arguments": "json"}, RESULT, "junk"],
            "text": {"format": {"type": "json_object"}},
        },
        {
            "input": [
                system("json", "developer"),
                {**CALL, "arguments": "json"},
                RESULT,
                "junk",
                user("Respond with a JSON object."),
            ],
            "text": {"format": {"type": "json_object"}},
        },
        [],
    ),
    "the word in the last user message": (
        formats(needs_json_word=True),
        {"input": [user("a"), {"role": "user", "content": "b"}, CALL, RESULT], "text": JSON},
        {
            "input": [
                user("a"),
                {"role": "user", "content": "b Respond with a JSON object."},
                CALL,
                RESULT,
            ],
            "text": JSON,
        },
        [],
    ),
    "the word in a list of parts": (
        formats(needs_json_word=True),
        {"input": [user("a")], "text": JSON},
        {"input": [{**user("a"), "content": [*user("a")["content"], NUDGE]}], "text": JSON},
        [],
    ),
    "the word that is there": (
        formats(needs_json_word=True),
        {"input": "some JSON", "text": {"format": {"type": "json_object"}}},
        {"input": "some JSON", "text": {"format": {"type": "json_object"}}},
        [],
    ),
    "the word in a message": (
        formats(needs_json_word=True),
        {"input": [user("some JSON")], "text": {"format": {"type": "json_object"}}},
        {"input": [user("some JSON")], "text": {"format": {"type": "json_object"}}},
        [],
    ),
    "the word without input": (
        formats(needs_json_word=True),
        {"text": {"format": {"type": "json_object"}}},
        {"input": [user("Respond with a JSON object.")], "text": {"format": {"type": "json_object"}}},
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rules(name: str) -> None:
    profile, body, want, lost = CASES[name]
    asked = {"model": "m", **body}
    before = copy.deepcopy(asked)
    edited = edit_request(asked, profile)
    assert edited.body == {"model": "m", **want}
    assert [loss.pointer for loss in edited.losses] == lost
    assert edited.changed is (edited.body != asked)
    assert asked == before


@pytest.mark.parametrize("name", CASES)
def test_editing_twice_is_editing_once(name: str) -> None:
    profile, body, _, _ = CASES[name]
    once = edit_request({"model": "m", **body}, profile).body
    again = edit_request(once, profile)
    assert (again.body, again.repairs) == (once, [])


@pytest.mark.parametrize(
    ("name", "repairs"),
    [
        ("a result without its call", 2),
        ("a call nobody answered", 3),
        ("a prefill", 2),
        ("the word in a string", 1),
        ("the word where nobody says it", 1),
        ("thoughts", 0),
        ("a result that names the item of its call", 1),
    ],
)
def test_repairs_are_counted(name: str, repairs: int) -> None:
    profile, body, _, _ = CASES[name]
    assert len(edit_request(body, profile).repairs) == repairs


REFUSED: list[tuple[Profile, Json, str]] = [
    (KEEP, {"tools": [F, "junk"]}, "tools[1]"),
    (KEEP, {"tools": [F, {"type": "function"}]}, "tools[1].name"),
    (tools(max=1), {"tools": [F, G]}, "tools"),
    (tools(builtin="reject"), {"tools": [F, WEB]}, "tools[1]"),
    (
        tools(schema=SchemaRules(top_level_union="reject")),
        {"tools": [{**F, "parameters": {"anyOf": [{}]}}]},
        "tools[0].parameters",
    ),
    (KEEP, {"tools": [F], "tool_choice": {"type": "function", "name": "nope"}}, "tool_choice"),
    (KEEP, {"tool_choice": {"type": "function", "name": "nope"}}, "tool_choice"),
    (OPEN, {"tools": [F, WEB], "tool_choice": {"type": "web_search"}}, "tool_choice"),
    (
        messages(remote_images="reject"),
        {"input": [user("a"), {**RESULT, "output": [{"type": "input_image", "image_url": "https://x/y"}]}]},
        "input[1].output[0]",
    ),
]


@pytest.mark.parametrize(("profile", "body", "param"), REFUSED)
def test_faults_name_their_place(profile: Profile, body: Json, param: str) -> None:
    with pytest.raises(ProxyError) as caught:
        edit_request({"model": "m", **body}, profile)
    assert (caught.value.http_status, caught.value.param) == (400, param)


# --- whether edits are enough --------------------------------------------------------------

SCHEMA = {"text": {"format": {"type": "json_schema", "name": "a", "schema": {}}}}
CUSTOM = {"type": "custom", "name": "p"}
SEARCH = {"type": "tool_search", "execution": "client"}

PASSES: list[tuple[Profile, Json, bool]] = [
    *((KEEP, body, True) for body in GOOD),
    (KEEP, SCHEMA, True),
    (formats(json_schema="tool"), SCHEMA, False),
    (formats(json_schema="tool"), {"text": {"format": {"type": "json_object"}}}, True),
    (OPEN, {"tools": [F, WEB], "input": [user("a"), CALL, RESULT]}, True),
    (OPEN, {"tools": [CUSTOM]}, False),
    (OPEN, {"tools": [SPACE]}, False),
    (OPEN, {"tools": [SEARCH]}, False),
    (OPEN, {"tools": [{**SEARCH, "execution": "server"}]}, True),
    (tools(types=("function", "namespace")), {"tools": [SPACE]}, True),
    (tools(types=("function", "namespace")), {"tools": [{**SPACE, "tools": [CUSTOM]}]}, False),
    (KEEP, {"tools": [{"type": "function", "function": {"name": "f"}}]}, False),
    (KEEP, {"tools": [{"type": "custom", "custom": {"name": "p"}}]}, False),
    (KEEP, {"tools": [{"name": "f"}]}, False),
    (OPEN, {"input": [{"type": "custom_tool_call", "call_id": "c", "name": "p", "input": ""}]}, False),
    (OPEN, {"input": [{"type": "custom_tool_call_output", "call_id": "c", "output": ""}]}, False),
    (
        tools(types=("function", "custom")),
        {"input": [{"type": "custom_tool_call", "namespace": "ns"}]},
        False,
    ),
    (OPEN, {"input": [{**CALL, "namespace": "ns"}]}, False),
    (OPEN, {"input": [{"type": "tool_search_call", "execution": "client"}]}, False),
    (OPEN, {"input": [{"type": "tool_search_output", "execution": "server"}]}, True),
    (OPEN, {"input": [{"type": "additional_tools", "tools": []}]}, False),
    (KEEP, {"input": [{"type": "additional_tools", "tools": []}, SEARCH], "tools": [SEARCH, CUSTOM]}, True),
    # written otherwise than this wire says: read, and written anew
    (KEEP, {"input": [{"type": ["message"], "role": "user", "content": "a"}]}, False),
    (KEEP, {"input": [{"role": "user", "content": "a"}]}, True),
    (KEEP, {"input": [{"role": "user"}]}, False),
    (KEEP, {"input": [{"role": "user", "content": None}]}, False),
    (KEEP, {"input": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}, False),
    (
        KEEP,
        {"input": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}]},
        False,
    ),
    (KEEP, {"input": [{"role": "user", "content": [SAID]}]}, False),
    (KEEP, {"input": [{"role": "user", "content": [{"type": "unheard_of"}, "junk"]}]}, True),
    (KEEP, {"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "a"}]}]}, False),
    (KEEP, {"input": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "a"}]}]}, True),
    (KEEP, {"input": [{**CALL, "arguments": {"a": 1}}]}, False),
    (KEEP, {"input": [{**CALL, "arguments": ""}]}, False),
    (KEEP, {"input": [{**CALL, "call_id": None}]}, False),
    (KEEP, {"input": [{"type": "custom_tool_call", "call_id": "c", "name": "p", "input": ""}]}, True),
    (KEEP, {"input": [{"type": "custom_tool_call", "call_id": "c", "name": "p"}]}, False),
    (KEEP, {"input": [{**RESULT, "call_id": ""}]}, False),
    (KEEP, {"input": [{**RESULT, "output": None}]}, False),
    (KEEP, {"input": [{**RESULT, "output": {"k": 1}}]}, False),
    (KEEP, {"input": [{**RESULT, "output": [1]}]}, False),
    (KEEP, {"input": [{**RESULT, "output": [{"no": "type"}]}]}, False),
    (KEEP, {"input": [{**RESULT, "output": [SAID]}]}, False),
    (KEEP, {"input": [{**RESULT, "output": [{"type": "input_text", "text": "r"}]}]}, True),
    (KEEP, {"input": [{"type": "custom_tool_call_output", "call_id": "c", "output": 4}]}, False),
]


@pytest.mark.parametrize(("profile", "body", "want"), PASSES)
def test_passes(profile: Profile, body: Json, want: bool) -> None:
    assert passes({"model": "m", **body}, profile) is want


# --- small parts ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "efforts", "mapped", "want"),
    [
        ("high", ("low", "high"), {}, "high"),
        ("xhigh", ("low", "medium", "high"), {}, "high"),
        ("medium", ("low", "high"), {}, "high"),
        ("medium", ("low", "high"), {"medium": "low"}, "low"),
        ("minimal", ("none", "low"), {}, "low"),
        ("none", ("low",), {}, None),
        ("low", ("none",), {}, None),
        ("unheard", ("low",), {}, None),
        ("ultra", ("low", "max", "default"), {}, "max"),
    ],
)
def test_the_nearest_effort(asked: str, efforts: tuple[str, ...], mapped: Any, want: str | None) -> None:
    assert nearest_effort(asked, ReasoningRules(efforts=efforts, map=mapped)) == want


def test_short_ids_are_the_same_for_the_same_id_and_apart_for_others() -> None:
    long, other = "call_" + "a" * 90, "call_" + "a" * 89 + "b"
    assert short_id("call_1", 64) == "call_1"
    assert len({short_id(long, 64), short_id(other, 64)}) == 2
    assert len(short_id(long, 64)) == 64
    assert short_id(long, 64).startswith("call_aaa")
    assert len(short_id(long, 9)) == 9
    rule = CallIdRule(max=9, pattern="[a-zA-Z0-9]{9}")
    assert call_id("abcdefghi", rule) == "abcdefghi"
    assert len(call_id("call_1", rule)) == 9
    assert made_id("msg_", "1", "a") == made_id("msg_", "1", "a") != made_id("msg_", "2", "a")


def test_choices_in_this_shapes_form() -> None:
    refs = (ToolRef("function", "f"), ToolRef("mcp", "x", raw={"type": "mcp", "server_label": "s"}))
    assert write_choice(ToolChoice("required")) == "required"
    assert write_choice(ToolChoice("required", refs[:1], named=True)) == {"type": "function", "name": "f"}
    assert write_choice(ToolChoice("auto", (*refs, ToolRef("custom", "p", "ns")))) == {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [
            {"type": "function", "name": "f"},
            {"type": "mcp", "server_label": "s", "name": "x"},
            {"type": "custom", "name": "p", "namespace": "ns"},
        ],
    }
    assert write_choice(ToolChoice("required", (ToolRef("web_search"),), named=True)) == {
        "type": "web_search"
    }
