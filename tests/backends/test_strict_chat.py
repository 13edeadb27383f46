"""The strict backend refuses what it should, and nothing else: it judges every gateway test."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backends.strict_chat import first_fault

Json = dict[str, Any]
USER = {"role": "user", "content": "hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def body(*messages: Json, **rest: Any) -> Json:
    return {"model": "m", "messages": list(messages), **rest}


TAKEN = {
    "plain": body(USER),
    "one system": body({"role": "system", "content": "s"}, USER),
    "a call and its result": body(USER, CALLING, RESULT, tools=[TOOL]),
    "an image": body({"role": "user", "content": [{"type": "text", "text": "see"}, IMAGE]}),
    "named choice": body(USER, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "f"}}),
    "usage asked": body(USER, stream=True, stream_options={"include_usage": True}),
    "a schema": body(
        USER, response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": {}}}
    ),
}
REFUSED: dict[str, tuple[Any, str]] = {
    "no object": ([], "body"),
    "no messages": (body(), "messages"),
    "unknown key": (body(USER, store=False), "store"),
    "parallel flag": (body(USER, tools=[TOOL], parallel_tool_calls=True), "parallel_tool_calls"),
    "null": (body(USER, temperature=None), "temperature"),
    "stream options alone": (body(USER, stream_options={}), "stream_options"),
    "no tools in the list": (body(USER, tools=[]), "tools"),
    "choice without tools": (body(USER, tool_choice="auto"), "tool_choice"),
    "choice of nothing": (
        body(USER, tools=[TOOL], tool_choice={"type": "function", "function": {"name": "g"}}),
        "tool_choice",
    ),
    "a choice nobody knows": (body(USER, tools=[TOOL], tool_choice="any"), "tool_choice"),
    "a flat tool": (body(USER, tools=[{"type": "function", "name": "f"}]), "tools.0.name"),
    "a custom tool": (body(USER, tools=[{"type": "custom"}]), "tools.0.type"),
    "a name too long": (
        body(USER, tools=[{"type": "function", "function": {"name": "f" * 65}}]),
        "tools.0.function.name",
    ),
    "null parameters": (
        body(USER, tools=[{"type": "function", "function": {"name": "f", "parameters": None}}]),
        "tools.0.function.parameters.type",
    ),
    "null strict": (
        body(USER, tools=[{"type": "function", "function": {"name": "f", "strict": None}}]),
        "tools.0.function.strict",
    ),
    "equal names": (body(USER, tools=[TOOL, TOOL]), "tools"),
    "an unknown format": (body(USER, response_format={"type": "xml"}), "response_format.type"),
    "a schema without schema": (
        body(USER, response_format={"type": "json_schema"}),
        "response_format.json_schema.schema",
    ),
    "developer": (body({"role": "developer", "content": "s"}, USER), "messages.0.role"),
    "a key on a message": (body({**USER, "name": "n"}), "messages.0.name"),
    "no content": (body({"role": "user", "content": None}), "messages.0.content"),
    "content as a number": (body({"role": "user", "content": 1}), "messages.0.content"),
    "empty text": (body({"role": "user", "content": [{"type": "text", "text": ""}]}), "messages.0.content.0"),
    "a Responses part": (
        body({"role": "user", "content": [{"type": "input_text", "text": "x"}]}),
        "messages.0.content.0.type",
    ),
    "an image from the model": (
        body({"role": "assistant", "content": [IMAGE]}, USER),
        "messages.0.content.0.type",
    ),
    "an image as text": (
        body({"role": "user", "content": [{"type": "image_url", "image_url": "http://x"}]}),
        "messages.0.content.0.image_url",
    ),
    "no calls in the list": (
        body(USER, {"role": "assistant", "content": "x", "tool_calls": []}, USER),
        "messages.1.tool_calls",
    ),
    "arguments as an object": (
        body(USER, {**CALLING, "tool_calls": [{**CALL, "function": {"name": "f", "arguments": {}}}]}, RESULT),
        "messages.1.tool_calls.0.function.arguments",
    ),
    "a call without an id": (
        body(USER, {**CALLING, "tool_calls": [{**CALL, "id": ""}]}, RESULT),
        "messages.1.tool_calls.0",
    ),
    "a second system message": (body(USER, {"role": "system", "content": "s"}, USER), "messages.1"),
    "a lone result": (body(USER, RESULT), "messages.1"),
    "a call unanswered": (body(USER, CALLING, USER), "messages.2"),
    "a call unanswered at the end": (body(USER, CALLING), "messages"),
    "two calls of one id": (
        body(USER, {**CALLING, "tool_calls": [CALL, CALL]}, RESULT, RESULT),
        "messages.1.tool_calls",
    ),
    "the model's last word": (body(USER, {"role": "assistant", "content": "x"}), "messages"),
}


@pytest.mark.parametrize("given", TAKEN.values(), ids=list(TAKEN))
def test_it_takes(given: Json) -> None:
    assert first_fault(given) is None


@pytest.mark.parametrize(("given", "path"), REFUSED.values(), ids=list(REFUSED))
def test_it_refuses(given: Any, path: str) -> None:
    fault = first_fault(given)
    assert fault is not None
    assert fault.path == path
