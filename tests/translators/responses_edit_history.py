"""Edits of old thoughts and answers, and of calls without results: profile, body, sent, lost."""

from __future__ import annotations

from tests.translators.responses_items import CALL, LABEL, RESULT, SAID, SEALED, WEB, F, answer, user, without
from tests.translators.responses_profiles import KEEP, OPEN
from translators.ir import Json
from translators.profile import Profile

HISTORY: dict[str, tuple[Profile, Json, Json, list[str]]] = {
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
}
