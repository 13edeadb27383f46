"""Every key of a profile has a reader: set alone, it changes what is sent or what is read.

A key that changes nothing here fails, and so does one that no table names: a switch without a
wire behind it is a promise nobody keeps. Those of doors, limits and retries are set over HTTP, in
`tests/app/test_every_served_key.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from app.ids import new_id
from tests.app.test_every_served_key import LISTINGS, SERVED
from tests.translators.chat_edits import profile
from tests.translators.test_answer_rules import (
    LISTED,
    PLACEHOLDER,
    TWO_IDS,
    TWO_WHOLE,
    chunk,
    decoded,
    watched,
)
from translators.chat import ChatBackend
from translators.errors import ProxyError, decode_error
from translators.ir import Json
from translators.profile import Profile, merge
from translators.responses import ResponsesBackend, ResponsesClient

USER = {"role": "user", "content": "x"}
LONG = "call_0123456789"


def call(ident: str = LONG) -> Json:
    return {"id": ident, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def result(ident: str = LONG) -> Json:
    return {"role": "tool", "tool_call_id": ident, "content": "r"}


def turn(**more: Any) -> list[Json]:
    """A conversation with a call in it."""
    return [USER, {"role": "assistant", "content": None, "tool_calls": [call()], **more}, result(), USER]


def function(**schema: Any) -> Json:
    spec = {"name": "f", "parameters": {"type": "object", "properties": {}, **schema}}
    return {"type": "function", "function": spec}


def tools(*more: Json, **choice: Any) -> Json:
    return {"tools": [function(), *more], **choice}


def asking(part: Json) -> Json:
    return {"role": "user", "content": [part, {"type": "text", "text": "?"}]}


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
FILE = {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
SEALED = [
    USER,
    {"role": "assistant", "content": None, "tool_calls": [{**call(), "seal": {"of": "s"}}]},
    result(),
]
FORMAT = {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}}
NAMED = {"type": "function", "function": {"name": "f"}}
THOUGHT = turn(reasoning_content="hm")
FIELD = {"reasoning": {"replay": "field", "scope": "all"}}

ON_CHAT: dict[str, Any] = {
    "request.drop": (["seed"], {"seed": 1}),
    "request.drop_values": ({"seed": [1]}, {"seed": 1}),
    "request.allow": (["model", "messages"], {"seed": 1}),
    "request.extra_keys": ([], {"odd": 1}),
    "request.rename": ({"seed": "random_seed"}, {"seed": 1}),
    "request.clamp": ({"temperature": [0, 1]}, {"temperature": 2}),
    "request.stream_options": ("drop", {"stream": True, "stream_options": {"include_usage": True}}),
    "request.force": ({"odd": 1}, {}),
    "request.defaults": ({"seed": 1}, {}),
    "messages.developer": ("user", {"messages": [{"role": "developer", "content": "d"}, USER]}),
    "messages.system": ("many", {"messages": [{"role": "system", "content": c} for c in "ab"] + [USER]}),
    "messages.text_parts": (
        "string",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]},
    ),
    "messages.null_content": ("space", {"messages": turn()}),
    "messages.drop_empty_text": (
        True,
        {"messages": [{"role": "user", "content": [{"type": "text", "text": t} for t in ("", "a")]}]},
    ),
    "messages.drop_bare_assistant": (
        False,
        {"messages": [USER, {"role": "assistant", "content": None}, USER]},
    ),
    "messages.user_name": ("drop", {"messages": [{**USER, "name": "n"}]}),
    "messages.tool_name": (True, {"messages": turn()}),
    "messages.trailing_assistant": ("drop", {"messages": [USER, {"role": "assistant", "content": "a"}]}),
    "messages.split_parallel_tool_results": (
        True,
        {
            "messages": [
                USER,
                {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]},
                result("a"),
                result("b"),
            ]
        },
    ),
    "messages.remote_images": (
        "reject",
        {
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://h/a.png"}}]}
            ]
        },
    ),
    "messages.tool_call_id.max": (9, {"messages": turn()}),
    "messages.tool_call_id.pattern": ("^[a-z0-9]+$", {"messages": turn()}),
    "tools.types": (
        ["function", "custom"],
        tools({"type": "custom", "custom": {"name": "c"}}),
        {"tools": {"custom": "keep"}},
    ),
    "tools.custom": (
        "keep",
        tools({"type": "custom", "custom": {"name": "c"}}),
        {"tools": {"types": ["function", "custom"]}},
    ),
    "tools.builtin": ("keep", tools({"type": "web_search"})),
    "tools.strict": ("keep", {"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]}),
    "tools.max": (1, tools(function())),
    "tools.schema.inline_refs": (
        True,
        {
            "tools": [
                function(properties={"a": {"$ref": "#/$defs/A"}}, **{"$defs": {"A": {"type": "string"}}})
            ]
        },
    ),
    "tools.schema.drop": (["title"], {"tools": [function(title="t")]}),
    "tools.schema.top_level_union": ("reject", {"tools": [function(anyOf=[{"type": "object"}])]}),
    "tools.schema.require_object": (
        False,
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {}}}}]},
    ),
    "tools.choice.required": ("any", tools(tool_choice="required")),
    "tools.choice.named": ("auto", tools(tool_choice=NAMED)),
    "tools.choice.allowed_tools": (
        "keep",
        tools(tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [NAMED]}}),
    ),
    "tools.choice.with_thinking": ("auto", tools(tool_choice="required", reasoning_effort="low")),
    "tools.parallel_flag": ("drop", tools(parallel_tool_calls=False)),
    "messages.cache_marks": (
        True,
        {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]},
    ),
    "output_format.json_object": ("drop", {"response_format": {"type": "json_object"}}),
    "output_format.json_schema": ("drop", FORMAT),
    "output_format.with_stream": (False, {**FORMAT, "stream": True}),
    "output_format.with_tools": (False, {**FORMAT, **tools()}),
    "output_format.needs_json_word": (True, {"response_format": {"type": "json_object"}}),
    "reasoning.ask": ("enable_thinking", {"reasoning_effort": "low"}),
    "reasoning.efforts": (["high"], {"reasoning_effort": "low"}),
    "reasoning.map": ({"low": "high"}, {"reasoning_effort": "low"}),
    "reasoning.default_effort": ("low", {}),
    "reasoning.drop_sampling": (True, {"reasoning_effort": "low", "temperature": 1}),
    "reasoning.replay": ("field", {"messages": THOUGHT}, {"reasoning": {"scope": "all"}}),
    "reasoning.replay_field": ("thoughts", {"messages": THOUGHT}, FIELD),
    "reasoning.replay_on": (
        "tool_turns",
        {"messages": [USER, {"role": "assistant", "content": "a", "reasoning_content": "hm"}, USER]},
        FIELD,
    ),
    "reasoning.placeholder": (" ", {"messages": turn()}, FIELD),
    "reasoning.signature": ("tool_calls[].seal.of", {"messages": SEALED}, {"request": {"extra_keys": []}}),
    "messages.media.image": ("describe", {"messages": [asking(IMAGE)]}),
    "messages.media.file": ("describe", {"messages": [asking(FILE)]}),
    "messages.media.audio": ("refuse", {"messages": [asking(AUDIO)]}),
    "messages.media.tool_results": (
        "keep",
        {"messages": [*turn()[:2], {**result(), "content": [IMAGE]}]},
    ),
}
"""Key -> its value, a Chat body that meets it, and what else the profile must say."""

ITEM = {"type": "function_call", "call_id": LONG, "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": LONG, "output": "r"}
THINKING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}

ON_RESPONSES: dict[str, Any] = {
    "request.min_output_tokens": (16, {"input": "x", "max_output_tokens": 1}),
    "request.id_max_len": (8, {"input": [{**ITEM, "id": "fc_0123456789"}, OUTPUT]}),
    "messages.assistant_parts": ("input", {"input": [USER, SAID, USER]}),
    "messages.reasoning_items": (
        "drop",
        {"input": [USER, THINKING, SAID, USER]},
        {"reasoning": {"scope": "all"}},
    ),
    "messages.system_channel": ("system-item", {"instructions": "s", "input": "x"}),
    "reasoning.mode": ("off", {"input": [USER, THINKING, SAID, USER]}, {"reasoning": {"scope": "all"}}),
    "reasoning.scope": ("all", {"input": [USER, THINKING, SAID, USER]}),
    "reasoning.sweep": (
        False,
        {"store": False, "input": [USER, THINKING, USER]},
        {"reasoning": {"scope": "all"}},
    ),
    "tools.unknown": (
        ["computer"],
        {"input": "x", "tools": [{"type": "computer"}]},
        {"tools": {"builtin": "keep"}},
    ),
}

TRANSLATED: dict[str, Any] = {
    "messages.media.unsupported": (
        "describe",
        {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
    ),
    "request.drop_translated": (["metadata"], {"input": "x", "metadata": {"a": "b"}}),
    "request.max_tokens_key": ("max_completion_tokens", {"input": "x", "max_output_tokens": 9}),
}
"""From a Responses client to a Chat backend."""

COUNTS = {"prompt_tokens": 3, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 1}}
CALLED = {"tool_calls": [{"index": 0, **call()}]}

ANSWERS: dict[str, Any] = {
    "answer.exact": (True, [chunk({"content": None, "tool_calls": []}, odd=1, finish_reason="eos")]),
    "answer.content": ("string", LISTED),
    "answer.finish_map": ({"odd": "length"}, [chunk({"content": "a"}, "odd")]),
    "answer.tool_calls_imply_finish": (False, [chunk(CALLED), chunk({}, "stop")]),
    "answer.usage": ("final", [chunk({"content": "a"}, "stop", usage=COUNTS)]),
    "answer.reasoning_in_completion": (False, [{**chunk({"content": "a"}, "stop"), "usage": COUNTS}]),
    "answer.tool_delta.index": ("exact", TWO_IDS),
    "answer.tool_delta.id": ("exact", TWO_WHOLE),
    "answer.tool_delta.args": ("exact", PLACEHOLDER),
    "answer.sse.done": ("required", [chunk({"content": "a"}, "stop")]),
    "reasoning.fields": (["thoughts"], [chunk({"thoughts": "hm"}), chunk({"content": "a"}, "stop")]),
    "reasoning.parts": (["musing"], [chunk({"content": [{"type": "musing", "text": "hm"}]}, "stop")]),
    "reasoning.tags": (["<t>", "</t>"], [chunk({"content": "<t>hm</t>a"}, "stop")]),
}
"""Key -> its value, and a stream that meets it (which ends without `[DONE]`)."""

BUSY = {"error": {"message": "E42: busy"}, "detail": "else"}
ERRORS: dict[str, Any] = {
    "errors.shapes": (["fastapi"], 400, {}),
    "errors.retry.after": (["x-wait"], 429, {"x-wait": "7"}),
    "errors.retry.window_s": (60, 429, {}),
    "errors.retry.codes": (["E42"], 400, {}),
}


def keys(section: Any, above: str = "") -> Iterator[str]:
    for field in dataclasses.fields(section):
        value = getattr(section, field.name)
        if dataclasses.is_dataclass(value):
            yield from keys(value, f"{above}{field.name}.")
        elif above:
            yield above + field.name


def layer(key: str, value: Any) -> Json:
    for step in reversed(key.split(".")):
        value = {step: value}
    return dict(value)


def both(key: str, case: Any) -> tuple[Profile, Profile]:
    """The profile without the key and with it."""
    beside = case[2] if len(case) > 2 else {}
    return profile(**beside), profile(**merge(beside, layer(key, case[0])))


def outcome(act: Any) -> Any:
    try:
        return act()
    except ProxyError as error:
        return error.message


def test_every_key_is_named_here() -> None:
    tables = (ON_CHAT, ON_RESPONSES, TRANSLATED, ANSWERS, ERRORS, SERVED, LISTINGS)
    named = [key for table in tables for key in table]
    assert sorted(named) == sorted(keys(Profile()))


@pytest.mark.parametrize(("key", "case"), ON_CHAT.items(), ids=ON_CHAT)
def test_a_key_changes_a_chat_body(key: str, case: Any) -> None:
    backend, body = ChatBackend(), {"model": "m", "messages": [USER], **case[1]}
    without, with_it = (
        outcome(lambda rules=rules: (backend.passes(body, rules), backend.edit_request(body, rules).body))
        for rules in both(key, case)
    )
    assert without != with_it


@pytest.mark.parametrize(("key", "case"), ON_RESPONSES.items(), ids=ON_RESPONSES)
def test_a_key_changes_a_responses_body(key: str, case: Any) -> None:
    body = {"model": "m", **case[1]}
    without, with_it = (ResponsesBackend().edit_request(body, rules).body for rules in both(key, case))
    assert without != with_it


@pytest.mark.parametrize(("key", "case"), TRANSLATED.items(), ids=TRANSLATED)
def test_a_key_changes_a_translated_body(key: str, case: Any) -> None:
    call = ResponsesClient().decode_request({"model": "m", **case[1]}, new_id)
    without, with_it = (
        outcome(lambda rules=rules: ChatBackend().encode_request(call, rules).body)
        for rules in both(key, case)
    )
    assert without != with_it


@pytest.mark.parametrize(("key", "case"), ANSWERS.items(), ids=ANSWERS)
def test_a_key_changes_what_is_read_of_a_reply(key: str, case: Any) -> None:
    without, with_it = (
        (
            list(map(repr, decoded(rules, copied(case[1]), done=False))),
            watched(rules, copied(case[1]), b"")[1],
        )
        for rules in both(key, case[:2])
    )
    assert without != with_it


def copied(chunks: list[Json]) -> list[Json]:
    """Objects of its own for each reader: tidying changes them in place."""
    return list(orjson.loads(orjson.dumps(chunks)))


@pytest.mark.parametrize(("key", "case"), ERRORS.items(), ids=ERRORS)
def test_a_key_changes_what_is_read_of_an_error(key: str, case: Any) -> None:
    value, status, headers = case
    without, with_it = (
        decode_error(status, orjson.dumps(BUSY), headers, rules) for rules in both(key, (value, {}))
    )
    read = [(error.kind, error.message, error.retry_after) for error in (without, with_it)]
    assert read[0] != read[1]
