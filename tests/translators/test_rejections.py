"""A body without what is rejected, and what the client is told of it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from translators.dialect import Loss
from translators.ir import Shape
from translators.rejection_reading import rejected
from translators.rejections import Rejection, allowed, losses, without

Json = dict[str, Any]


def path(field: str) -> tuple[str, ...]:
    return tuple(field.split("."))


@pytest.mark.parametrize(
    ("rejection", "body", "expected"),
    [
        (Rejection(path("seed")), {"seed": 1, "stop": "a"}, {"stop": "a"}),
        (Rejection(path("seed")), {"seed": None}, {}),
        (Rejection(path("text.verbosity")), {"text": {"verbosity": "low"}, "a": 1}, {"a": 1}),
        (Rejection(path("text.verbosity")), {"text": {"verbosity": "low", "b": 1}}, {"text": {"b": 1}}),
        (Rejection(path("n"), value=1), {"n": 1}, {}),
        (Rejection(path("e"), value="max", instead="high"), {"e": "max"}, {"e": "high"}),
        (Rejection(path("t"), bounds=(0, 1)), {"t": 1.5}, {"t": 1}),
        (Rejection(path("t"), bounds=(0.5, 1)), {"t": 0}, {"t": 0.5}),
        (Rejection(path("a"), name="b"), {"a": 1}, {"b": 1}),
        (Rejection(path("a"), name="b"), {"a": 1, "b": 2}, {"b": 2}),
        (
            Rejection(path("messages.*.name")),
            {"messages": [{"role": "user", "name": "n"}, {"role": "user"}, "odd"]},
            {"messages": [{"role": "user"}, {"role": "user"}, "odd"]},
        ),
        (
            Rejection(path("tools.*.function.strict")),
            {"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]},
            {"tools": [{"type": "function", "function": {"name": "f"}}]},
        ),
        (
            Rejection(path("tools.*.function.strict")),
            {"tools": [{"type": "function", "function": {"strict": True}}]},
            {"tools": [{"type": "function", "function": {}}]},
        ),
        (
            Rejection(path("input.*.content.*.annotations")),
            {"input": [{"role": "assistant", "content": [{"annotations": []}, {"text": "a"}]}]},
            {"input": [{"role": "assistant", "content": [{}, {"text": "a"}]}]},
        ),
    ],
)
def test_what_is_rejected_is_gone(rejection: Rejection, body: Json, expected: Json) -> None:
    before = copy.deepcopy(body)
    edited = without(body, rejection)
    assert edited == expected
    assert body == before
    assert without(edited, rejection) is edited


@pytest.mark.parametrize(
    ("rejection", "body"),
    [
        (Rejection(path("seed")), {"stop": 1}),
        (Rejection(path("n"), value=1), {"n": 2}),
        (Rejection(path("n"), value=1), {"n": True}),
        (Rejection(path("t"), bounds=(0, 1)), {"t": 0.5}),
        (Rejection(path("t"), bounds=(0, 1)), {"t": True}),
        (Rejection(path("t"), bounds=(0, 1)), {"t": "hot"}),
        (Rejection(path("text.verbosity")), {"text": "odd"}),
        (Rejection(path("messages.*.name")), {"messages": "odd"}),
        (Rejection(path("messages.*.name")), {"messages": [{"role": "user"}]}),
        (Rejection(path("tools.*.strict")), {"tools": [{"type": "web_search", "strict": True}]}),
        (Rejection(path("input.*.id")), {"input": [{"type": "item_reference", "id": "msg_1"}]}),
    ],
)
def test_a_body_without_it_stays_the_same_object(rejection: Rejection, body: Json) -> None:
    assert without(body, rejection) is body


@pytest.mark.parametrize(
    ("field", "shape", "expected"),
    [
        ("temperature", "chat", True),
        ("thinking", "chat", True),
        ("thinking.budget_tokens", "chat", True),
        ("text.verbosity", "responses", True),
        ("messages.*.name", "chat", True),
        ("messages.*.reasoning_content", "chat", True),
        ("input.*.id", "responses", True),
        ("tools.*.function.strict", "chat", True),
        ("", "chat", False),
        ("model", "chat", False),
        ("messages", "chat", False),
        ("messages.*", "chat", False),
        ("messages.0.name", "chat", False),
        ("messages.*.content", "chat", False),
        ("messages.*.tool_calls.*.id", "chat", False),
        ("tools.*.function.parameters.strict", "chat", False),
        ("tools.*.name", "responses", False),
        ("input.*.call_id", "responses", False),
        ("response_format", "chat", False),
        ("response_format.strict", "chat", False),
        ("text.format", "responses", False),
        ("prompt", "responses", False),
        ("n", "chat", False),
        ("stop.*.x", "chat", False),
    ],
)
def test_what_may_be_left_out(field: str, shape: Shape, expected: bool) -> None:
    steps = path(field) if field else ()
    assert allowed(Rejection(steps), shape) is expected


CHAT_TOOL = {"type": "function", "function": {"name": "f", "strict": True}}
NAMESPACE = {"type": "namespace", "name": "s", "tools": [{"type": "function", "name": "g", "strict": True}]}
BY_CHAT: Json = {
    "messages": [{"role": "user", "name": "n", "content": "x"}, {"role": "user", "content": "y"}],
    "tools": [CHAT_TOOL, {"type": "function", "function": {"name": "g"}}],
    "temperature": 0,
    "max_tokens": 9,
    "reasoning_effort": "high",
    "parallel_tool_calls": True,
    "metadata": {},
    "extra": 1,
}
BY_RESPONSES: Json = {
    "input": "x",
    "tools": [{"type": "function", "name": "f", "strict": False}, NAMESPACE],
    "temperature": 0,
    "max_output_tokens": 9,
    "reasoning": {"effort": "high", "summary": "auto"},
    "text": {"verbosity": "low"},
    "metadata": {"a": "b"},
    "n": "odd",
}


@pytest.mark.parametrize(
    ("field", "body", "client", "backend", "pointers"),
    [
        ("temperature", BY_CHAT, "chat", "chat", ["/temperature"]),
        ("temperature", BY_RESPONSES, "responses", "chat", ["/temperature"]),
        ("max_tokens", BY_CHAT, "chat", "chat", ["/max_tokens"]),
        ("max_completion_tokens", BY_RESPONSES, "responses", "chat", ["/max_output_tokens"]),
        ("max_output_tokens", BY_CHAT, "chat", "responses", ["/max_tokens"]),
        ("reasoning_effort", BY_RESPONSES, "responses", "chat", ["/reasoning/effort"]),
        ("reasoning", BY_CHAT, "chat", "responses", ["/reasoning_effort"]),
        ("reasoning", BY_RESPONSES, "responses", "responses", ["/reasoning/effort"]),
        ("thinking", BY_RESPONSES, "responses", "chat", ["/reasoning/effort"]),
        ("thinking", BY_CHAT, "chat", "chat", ["/reasoning_effort"]),
        ("thinking.type", {"thinking": {"type": "enabled"}}, "chat", "chat", ["/thinking/type"]),
        ("verbosity", BY_RESPONSES, "responses", "chat", ["/text/verbosity"]),
        ("metadata", BY_RESPONSES, "responses", "responses", ["/metadata"]),
        ("tools.*.function.strict", BY_CHAT, "chat", "chat", ["/tools/0/function/strict"]),
        ("tools.*.strict", BY_CHAT, "chat", "responses", ["/tools/0/function/strict"]),
        (
            "tools.*.function.strict",
            BY_RESPONSES,
            "responses",
            "chat",
            ["/tools/0/strict", "/tools/1/tools/0/strict"],
        ),
        ("messages.*.name", BY_CHAT, "chat", "chat", ["/messages/0/name"]),
        ("extra", BY_CHAT, "chat", "chat", ["/extra"]),
        # what the client did not say, or said for nothing, is no loss
        ("parallel_tool_calls", BY_CHAT, "chat", "chat", []),
        ("metadata", BY_CHAT, "chat", "chat", []),
        ("seed", BY_RESPONSES, "responses", "chat", []),
        ("stream_options", {"stream_options": {"include_usage": True}}, "chat", "chat", []),
        ("input.*.status", BY_CHAT, "chat", "responses", []),
        ("messages.*.name", {"messages": "odd"}, "chat", "chat", []),
        ("tools.*.strict", {"tools": ["odd"]}, "responses", "responses", []),
        ("text.verbosity", {"text": "odd"}, "responses", "responses", []),
    ],
)
def test_the_client_is_told_at_its_own_places(
    field: str, body: Json, client: Shape, backend: Shape, pointers: list[str]
) -> None:
    found = losses(Rejection(path(field)), body, client, backend)
    assert [loss.pointer for loss in found] == pointers
    assert all(loss.reason == "this backend refuses it" for loss in found)


def test_the_reason_says_what_was_done_instead() -> None:
    asked = Rejection(path("reasoning_effort"), value="high", instead="low")
    moved = Rejection(path("temperature"), bounds=(0.5, 1))
    renamed = Rejection(path("max_tokens"), name="max_completion_tokens")
    assert losses(asked, BY_CHAT, "chat", "chat") == [
        Loss("/reasoning_effort", "asked as low, which this backend takes", "tuning")
    ]
    assert losses(moved, BY_CHAT, "chat", "chat") == [
        Loss("/temperature", "moved into 0.5 to 1, which this backend takes", "tuning")
    ]
    assert losses(renamed, BY_CHAT, "chat", "chat") == []


@pytest.mark.parametrize(
    "words",
    [
        "System message must be at the beginning.",
        "messages.18: System message must be at the beginning",
        "The system message must come first.",
        "system role must be the first message in the list",
        "Only one system message is allowed",
        "Multiple system messages are not supported.",
        "Conversation may have more than one system message",
    ],
)
def test_a_later_system_message_moves_to_the_start(words: str) -> None:
    lead, user = {"role": "system", "content": "A"}, {"role": "user", "content": "hi"}
    late, more = {"role": "developer", "content": "B"}, {"role": "user", "content": "more"}
    body = {"model": "m", "messages": [lead, user, late, more]}
    (found,) = rejected(body, "chat", words)
    assert found == Rejection(("messages",), instead="system_first")
    moved = without(body, found)
    assert moved["messages"] == [{"role": "system", "content": "A\n\nB"}, user, more]
    assert without(moved, found) is moved
    assert losses(found, body, "chat", "chat") == []
    assert allowed(found, "chat")
    assert rejected(moved, "chat", words) == ()


def test_nothing_else_is_done_to_messages() -> None:
    found = Rejection(("messages",), instead="system_first")
    assert without({"messages": "odd"}, found) == {"messages": "odd"}
    assert without({"messages": [1]}, found) == {"messages": [1]}
    assert not allowed(Rejection(("messages",)), "chat")
    assert rejected({"input": "hi"}, "responses", "System message must be at the beginning.") == ()
