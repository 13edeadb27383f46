"""`messages.cache_marks`: marks for Anthropic's prompt cache, and what becomes of a client's own."""

from __future__ import annotations

from typing import Any

import pytest

from providers.profiles import resolve
from tests.translators.chat_edits import USER, Edit, profile, table
from translators.chat.edit import edit_request

Json = dict[str, Any]
EPHEMERAL = {"cache_control": {"type": "ephemeral"}}
RULES: Json = {"messages": {"cache_marks": True}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
SYSTEM = {"role": "system", "content": "s"}
SAID = {"role": "assistant", "content": "a"}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "r"}


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def with_mark(message: Json) -> Json:
    return {**message, "content": [text(message["content"], **EPHEMERAL)]}


def parts(role: str, *parts: Any) -> Json:
    return {"role": role, "content": list(parts)}


def case(id: str, given: list[Json], wanted: list[Json] | None, **more: Any) -> Edit:
    return Edit(id, {"messages": given}, None if wanted is None else {"messages": wanted}, RULES, **more)


@table(
    case(
        "the first system message and the one before the last",
        [SYSTEM, USER, SAID, USER],
        [with_mark(SYSTEM), USER, with_mark(SAID), USER],
    ),
    case("one message", [USER], None),
    case("both are one", [SYSTEM, USER], [with_mark(SYSTEM), USER]),
    case("no system message", [USER, SAID, USER], [USER, with_mark(SAID), USER]),
    case(
        "calls have no text to mark",
        [SYSTEM, USER, CALLED, RESULT],
        [with_mark(SYSTEM), with_mark(USER), CALLED, RESULT],
    ),
    case("nothing to mark", [parts("user", IMAGE), {**USER, "content": " "}, USER], None),
    case(
        "the last text of several parts",
        [parts("system", text("a"), text("b"), text("")), parts("user", text("see"), IMAGE), USER],
        [
            parts("system", text("a"), text("b", **EPHEMERAL), text("")),
            parts("user", text("see", **EPHEMERAL), IMAGE),
            USER,
        ],
    ),
    case("the client's own", [parts("system", text("s", **EPHEMERAL)), USER, with_mark(USER), SAID], None),
    case(
        "one of the client's elsewhere counts",
        [SYSTEM, with_mark(USER), SAID, USER],
        [with_mark(SYSTEM), with_mark(USER), SAID, USER],
    ),
    case(
        "one of the client's on the message itself",
        [{**SYSTEM, **EPHEMERAL}, SAID, USER],
        [{**SYSTEM, **EPHEMERAL}, with_mark(SAID), USER],
    ),
    case(
        "more of the client's than two",
        [with_mark(USER), with_mark(SAID), with_mark(USER), SYSTEM, SAID, USER],
        None,
    ),
    Edit(
        "no marks where content is a string",
        {"messages": [SYSTEM, USER]},
        rules={"messages": {"cache_marks": True, "text_parts": "string"}},
    ),
    Edit("off unless asked for", {"messages": [SYSTEM, USER, SAID, USER]}),
)
def test_marks(case: Edit) -> None:
    case.check()


def test_a_mark_on_a_tool_counts() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}, **EPHEMERAL}
    edited = edit_request({"messages": [SYSTEM, SAID, USER], "tools": [tool]}, profile(**RULES))
    assert edited.body["messages"] == [with_mark(SYSTEM), SAID, USER]


def test_the_prefill_goes_then_the_word_is_said_then_marks_are_set() -> None:
    """The order matters: each step needs what the one before leaves."""
    rules = {
        "messages": {"cache_marks": True, "trailing_assistant": "drop"},
        "output_format": {"needs_json_word": True},
    }
    body = {
        "messages": [SYSTEM, USER, SAID, {"role": "user", "content": "more"}, SAID],
        "response_format": {"type": "json_object"},
    }
    wanted = [
        with_mark(SYSTEM),
        USER,
        with_mark(SAID),
        {"role": "user", "content": "more Respond with a JSON object."},
    ]
    edited = edit_request(body, profile(**rules))
    assert edited.body["messages"] == wanted
    again = edit_request(edited.body, profile(**rules))
    assert not again.changed


@pytest.mark.parametrize(
    ("row", "overrides"),
    [("databricks-claude", RULES), ("anthropic-openai", {}), ("openrouter", {})],
)
def test_a_clients_marks_reach_backends_that_read_them(row: str, overrides: Json) -> None:
    body = {"model": "claude", "messages": [with_mark(SYSTEM), USER]}
    edited = edit_request(
        body,
        resolve(kind="openai", host="h", model="claude", surface="chat", profile=row, overrides=overrides),
    )
    assert edited.body["messages"] == body["messages"]
    assert edited.losses == []


@table(
    Edit(
        "unknown keys",
        {"messages": [with_mark(SYSTEM), USER]},
        {"messages": [parts("system", text("s")), USER]},
        {"request": {"extra_keys": []}},
        ["/messages/0/content/0/cache_control"],
    ),
    Edit(
        "content is a string",
        {"messages": [with_mark(SYSTEM), parts("user", text("a", x=None), text("b", **EPHEMERAL))]},
        {"messages": [SYSTEM, {"role": "user", "content": "ab"}]},
        {"messages": {"text_parts": "string"}},
        ["/messages/0/content/0/cache_control", "/messages/1/content/1/cache_control"],
    ),
)
def test_marks_that_a_backend_does_not_take_are_reported(case: Edit) -> None:
    case.check()
