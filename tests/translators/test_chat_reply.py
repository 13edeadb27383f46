"""Whole Chat replies: the events of their stream."""

from __future__ import annotations

from typing import Any

import pytest

from translators.chat.reply import decode_reply
from translators.ir import Closed, Delta, Event, Failed, Finished, Grammar, Opened, Started, Usage
from translators.profile import AnswerRules, Profile

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def events(body: dict[str, Any], profile: Profile | None = None) -> list[Event]:
    grammar, found = Grammar(), list(decode_reply(body, profile or Profile()))
    for event in found:
        grammar.see(event)
    return found


def reply(message: Any, finish: Any = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **more}


def call(**entry: Any) -> dict[str, Any]:
    return {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, **entry}


STARTED = Started("c1", "m", 1)


def test_text_and_usage() -> None:
    assert events(reply({"role": "assistant", "content": "Hi"}, usage=USAGE)) == [
        STARTED,
        Opened(0, "text"),
        Delta(0, "Hi"),
        Closed(0),
        Finished("stop", Usage(3, 2)),
    ]


def test_databricks_parts() -> None:
    plan = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "plan", "signature": "s"}]}
    assert events(reply({"content": [plan, {"type": "text", "text": "Hello"}]})) == [
        STARTED,
        Opened(0, "summary"),
        Delta(0, "plan"),
        Closed(0, sealed="s"),
        Opened(1, "text"),
        Delta(1, "Hello"),
        Closed(1),
        Finished("stop"),
    ]


CALLS: list[tuple[str, list[Any], list[tuple[str, str, str]]]] = [
    ("no index", [call(), call(id="b")], [("a", "f", "{}"), ("b", "f", "{}")]),
    ("no ids", [{"function": {"name": "f", "arguments": "{}"}}] * 2, [("", "f", "{}"), ("", "f", "{}")]),
    ("ids empty", [call(id=""), call(id="")], [("", "f", "{}"), ("", "f", "{}")]),
    (
        "arguments as an object",
        [call(function={"name": "f", "arguments": {"k": 1}})],
        [("a", "f", '{"k":1}')],
    ),
    ("arguments null", [call(function={"name": "f", "arguments": None})], [("a", "f", "{}")]),
    (
        "arguments encoded twice",
        [call(function={"name": "f", "arguments": '"{\\"a\\": 1}"'})],
        [("a", "f", '{"a": 1}')],
    ),
    (
        "one id for two calls",
        [
            call(function={"name": "f", "arguments": '{"a":1}'}),
            call(function={"name": "f", "arguments": '{"a":2}'}),
        ],
        [("a", "f", '{"a":1}'), ("", "f", '{"a":2}')],
    ),
    ("junk between", [None, call()], [("a", "f", "{}")]),
]


@pytest.mark.parametrize(("calls", "wanted"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
@pytest.mark.parametrize("finish", ["tool_calls", "stop", "", None])
def test_calls(calls: list[Any], wanted: list[tuple[str, str, str]], finish: str | None) -> None:
    found = events(reply({"role": "assistant", "content": None, "tool_calls": calls}, finish))
    opened = [event for event in found if isinstance(event, Opened)]
    texts = [
        "".join(d.text for d in found if isinstance(d, Delta) and d.index == event.index) for event in opened
    ]
    assert [(e.call_id, e.name, t) for e, t in zip(opened, texts, strict=True)] == wanted
    assert found[-1] == Finished("tool_calls")


REASONS = [
    ("max_output_tokens", "length"),
    ("max_tokens", "length"),
    ("model_context_window_exceeded", "length"),
    ("length", "length"),
    ("content_filter", "content_filter"),
    ("end_turn", "stop"),
    ("stop_sequence", "stop"),
    ("eos", "stop"),
    (None, "stop"),
]


@pytest.mark.parametrize(("reason", "wanted"), REASONS)
def test_reasons(reason: str | None, wanted: str) -> None:
    assert events(reply({"content": "x"}, reason))[-1] == Finished(wanted)


@pytest.mark.parametrize("reason", ["insufficient_system_resource", "network-error", "error"])
def test_reasons_that_are_failures(reason: str) -> None:
    profile = Profile(answer=AnswerRules(finish_map={"error": None}))
    failed = events(reply({"content": "x"}, reason), profile)[-1]
    assert isinstance(failed, Failed)
    assert failed.error.http_status == 502


FAULTS = [
    ({"error": {"message": "quota", "code": 429}}, "quota", "rate_limit"),
    (
        {"base_resp": {"status_code": 1004, "status_msg": "login fail"}, "choices": None},
        "login fail",
        "upstream",
    ),
    ({"id": "c1", "choices": []}, "no choices", "upstream"),
    ({"id": "c1"}, "no choices", "upstream"),
    ({}, "no choices", "upstream"),
    ({"choices": [{"index": 0, "error": {"message": "boom"}}]}, "boom", "upstream"),
    ({"detail": "boom"}, "boom", "upstream"),
]


@pytest.mark.parametrize(("body", "words", "kind"), FAULTS, ids=str)
def test_errors_inside_a_200(body: dict[str, Any], words: str, kind: str) -> None:
    found = events(body)
    assert isinstance(found[-1], Failed)
    assert (words in found[-1].error.message, found[-1].error.kind) == (True, kind)
    assert not any(isinstance(event, Finished) for event in found)


def test_empty_message_is_an_empty_reply() -> None:
    assert events(reply(None)) == [STARTED, Finished("stop")]


def test_a_delta_where_the_message_belongs() -> None:
    body = {
        "id": "c1",
        "model": "m",
        "created": 1,
        "choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}],
    }
    assert events(body)[1:] == [Opened(0, "text"), Delta(0, "a"), Closed(0), Finished("stop")]
