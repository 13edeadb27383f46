"""Edits of messages, ids and images: profile, body, what is sent, what is lost."""

from __future__ import annotations

from dataclasses import replace

from tests.translators.responses_items import CALL, RESULT, SAID, answer, system, user
from tests.translators.responses_profiles import KEEP, messages, request
from translators.ir import Json
from translators.profile import AnswerRules, CallIdRule, Profile
from translators.responses.ids import made_id, short_id

CONVERSATION: dict[str, tuple[Profile, Json, Json, list[str]]] = {
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
}
