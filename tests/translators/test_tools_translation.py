"""Tools all the way: a Responses client's request to a Chat backend, and the reply back."""

from __future__ import annotations

from itertools import count
from typing import Any

import orjson
import pytest

from translators.chat import ChatBackend
from translators.dialect import ReplyContext
from translators.errors import ProxyError
from translators.framing import SseFramer
from translators.ir import Json
from translators.profile import Profile
from translators.responses import ResponsesClient
from translators.translate import Translation, translate_request

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
REQUEST: Json = {
    "model": "m",
    "input": [
        {"type": "message", "role": "user", "content": "go"},
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin Patch"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"},
        {
            "type": "function_call",
            "call_id": "c2",
            "name": "add",
            "namespace": "mcp__calc",
            "arguments": "{}",
        },
        {"type": "function_call_output", "call_id": "c2", "output": "3"},
    ],
    "tools": [
        {
            "type": "custom",
            "name": "apply_patch",
            "format": {"type": "grammar", "syntax": "lark", "definition": "x"},
        },
        {
            "type": "namespace",
            "name": "mcp__calc",
            "tools": [{"type": "function", "name": "add", "parameters": SCHEMA}],
        },
        {"type": "tool_search", "execution": "client", "description": "s", "parameters": SCHEMA},
        {"type": "web_search"},
    ],
    "tool_choice": "auto",
}
CALLS = [
    ("apply_patch", '{"input": "*** Begin Patch\\n*** End Patch"}'),
    ("mcp__calc__add", '{"q":"1"}'),
    ("tool_search", '{"q":"x"}'),
]
WANT: list[Json] = [
    {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch\n*** End Patch"},
    {"type": "function_call", "name": "add", "namespace": "mcp__calc", "arguments": '{"q":"1"}'},
    {"type": "tool_search_call", "execution": "client", "arguments": {"q": "x"}},
]


def translation() -> Translation:
    client = ResponsesClient()
    call = client.decode_request(REQUEST, lambda prefix: f"{prefix}new")
    return translate_request(call, client, ChatBackend(), Profile())


def context(stream: bool) -> ReplyContext:
    numbers = count(1)
    return ReplyContext(7, "m", lambda prefix: f"{prefix}{next(numbers)}", REQUEST, stream=stream)


def calls(streamed: bool) -> list[Json]:
    index = [{"index": i} if streamed else {} for i in range(len(CALLS))]
    return [
        {
            **index[i],
            "id": f"call_{i}",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for i, (name, arguments) in enumerate(CALLS)
    ]


def shown(output: list[Json]) -> list[Json]:
    return [{key: item.get(key) for key in want} for item, want in zip(output, WANT, strict=True)]


def test_the_backend_sees_functions_only() -> None:
    sent = translation().encoded
    body: Any = sent.body
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert names == ["apply_patch", "mcp__calc__add", "tool_search"]
    made = [call["function"] for message in body["messages"] for call in message.get("tool_calls") or ()]
    assert made == [
        {"name": "apply_patch", "arguments": '{"input":"*** Begin Patch"}'},
        {"name": "mcp__calc__add", "arguments": "{}"},
    ]
    assert [loss.pointer for loss in sent.losses] == ["/tools/3"]


@pytest.mark.parametrize("size", [1, 13, 100_000])
def test_a_streamed_reply_is_about_the_clients_tools(size: int) -> None:
    one = translation()
    chunk: Json = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "up"}
    deltas = [{"role": "assistant"}, *({"tool_calls": [call]} for call in calls(streamed=True))]
    chunks = [{**chunk, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    sent = b"".join(b"data: %b\n\n" % orjson.dumps(obj) for obj in chunks) + b"data: [DONE]\n\n"
    for _ in range(2):  # one translation serves every try
        machine = one.stream(context(stream=True))
        told = (
            b"".join([machine.feed(sent[i : i + size]) for i in range(0, len(sent), size)]) + machine.close()
        )
        events = [orjson.loads(payload) for payload in SseFramer().feed(told) if payload != b"[DONE]"]
        assert events[-1]["type"] == "response.completed"
        assert shown(events[-1]["response"]["output"]) == WANT


def test_a_whole_reply_is_about_the_clients_tools() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": calls(streamed=False)}
    body = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    reply, usage = translation().reply(body, context(stream=False))
    assert shown(reply["output"]) == WANT
    assert usage is None


def test_an_error_in_a_whole_reply_is_raised() -> None:
    with pytest.raises(ProxyError, match="boom"):
        translation().reply({"error": {"message": "boom"}}, context(stream=False))
