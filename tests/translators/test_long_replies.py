"""A reply of very many parts, told in few events: its work grows with its length, not with its square.

The event loop does nothing else meanwhile. Each case takes a second or two of the processor at most; one that
searched or copied what came before for each part would take far more than the limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

import orjson
import pytest

from translators.chat.decoder import ChatDecoder
from translators.chat.encoder import ChatEncoder
from translators.chat.watch import ChatWatcher
from translators.dialect import ReplyContext
from translators.ir import Call, Json
from translators.profile import Profile
from translators.responses.decoder import ResponsesDecoder
from translators.responses.encoder import ResponsesEncoder
from translators.responses.watch import ResponsesWatcher
from translators.stream import StreamTranslator

MANY = 16_000
LIMIT_S = 6.0


def context() -> ReplyContext:
    numbers = count()
    return ReplyContext(1, "m", lambda prefix: f"{prefix}{next(numbers)}")


def machine(backend: str, lane: str) -> Any:
    """What a reply of a backend goes through on its way to a client of the shape `lane`, or as it is."""
    if lane == "pass":
        watcher = ChatWatcher if backend == "chat" else ResponsesWatcher
        return watcher(Profile(), context())
    decoder = ChatDecoder if backend == "chat" else ResponsesDecoder
    encoder = ChatEncoder if lane == "chat" else ResponsesEncoder
    return StreamTranslator(decoder(Profile()), encoder(Call(lane, "m", ()), context()))  # type: ignore[arg-type]


def played(backend: str, lane: str, sent: list[bytes]) -> bytes:
    reply = machine(backend, lane)
    began = time.process_time()
    out: bytes = b"".join([*map(reply.feed, sent), reply.close()])
    took = time.process_time() - began
    assert took < LIMIT_S
    assert (reply.error, reply.fault) == (None, None)
    return out


# --- Responses backends ------------------------------------------------------------------


def message(number: int, **more: Any) -> Json:
    part = {"type": "output_text", "text": "hello", "annotations": []}
    item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed"}
    return {**item, "content": [part], **more}


def call(number: int) -> Json:
    names = {"id": f"fc_{number}", "call_id": f"call_{number}", "name": "x"}
    return {"type": "function_call", **names, "arguments": "{}", "status": "completed"}


def thought(number: int, **more: Any) -> Json:
    summary = [{"type": "summary_text", "text": "hm"}]
    return {"type": "reasoning", "id": f"rs_{number}", "summary": summary, **more}


def search(number: int) -> Json:
    return {"type": "web_search_call", "id": f"ws_{number}", "status": "completed"}


def response(status: str, output: list[Json]) -> Json:
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": status}
    return {**head, "output": output, "parallel_tool_calls": True, "tools": [], "tool_choice": "auto"}


def responses_events(told: list[Json], last: list[Json]) -> list[bytes]:
    """`told` by events of their own, without places where they have no ids, and `last` by the last event."""
    events: list[Json] = [{"type": "response.created", "response": response("in_progress", [])}]
    for index, item in enumerate(told):
        place = {} if "id" not in item else {"output_index": index}
        events.append({"type": "response.output_item.added", **place, "item": item})
        events.append({"type": "response.output_item.done", **place, "item": item})
    events.append({"type": "response.completed", "response": response("completed", last)})
    return [
        b"data: %b\n\n" % orjson.dumps({**event, "sequence_number": number})
        for number, event in enumerate(events)
    ]


def nameless(item: Json) -> Json:
    return {key: value for key, value in item.items() if key != "id"}


def items(make: Callable[[int], Json]) -> list[Json]:
    return [make(number) for number in range(MANY)]


def parts(kind: str) -> Json:
    if kind == "text":
        return message(0, content=message(0)["content"] * MANY)
    if kind == "summary":
        return thought(0, summary=thought(0)["summary"] * MANY)
    cited = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    pages = [{**cited, "url": f"https://example.org/{number}"} for number in range(MANY)]
    return message(0, content=[{"type": "output_text", "text": "hello", "annotations": pages}])


RESPONSES: dict[str, Callable[[], list[bytes]]] = {
    "messages in the last event": lambda: responses_events([message(0)], items(message)),
    "calls in the last event": lambda: responses_events([message(0)], [message(0), *items(call)]),
    "searches in the last event": lambda: responses_events([], items(search)),
    "messages without ids": lambda: responses_events(
        [message(0)], [nameless(each) for each in items(message)]
    ),
    "calls told twice": lambda: responses_events(items(call), items(call)),
    "other ids in the last event": lambda: responses_events(
        items(message), [message(number + MANY) for number in range(MANY)]
    ),
    "items without places": lambda: responses_events([nameless(each) for each in items(message)], []),
    "thoughts that are sealed late": lambda: responses_events(
        items(thought), [thought(number, encrypted_content="e") for number in range(MANY)]
    ),
    "parts of a message": lambda: responses_events([], [parts("text")]),
    "paragraphs of a thought": lambda: responses_events([], [parts("summary")]),
    "citations": lambda: responses_events([], [parts("citations")]),
}


@pytest.mark.parametrize("lane", ["pass", "responses", "chat"])
@pytest.mark.parametrize("case", RESPONSES)
def test_a_responses_backend(case: str, lane: str) -> None:
    out = played("responses", lane, RESPONSES[case]())
    ends = {"chat": b'"finish_reason":"', "responses": b"response.completed", "pass": b"response.completed"}
    assert ends[lane] in out


# --- Chat backends -----------------------------------------------------------------------


def chunk(*choices: Json) -> Json:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": list(choices)}


def said(delta: Json, index: int = 0) -> Json:
    return {"index": index, "delta": delta, "finish_reason": None}


def ended(reason: str, index: int = 0) -> Json:
    return {"index": index, "delta": {}, "finish_reason": reason}


def tool_call(index: int, arguments: str = "{}") -> Json:
    function = {"name": "x", "arguments": arguments}
    return {"index": index, "id": f"call_{index}", "type": "function", "function": function}


def page(number: int) -> Json:
    place = {"url": f"https://example.org/{number}", "title": "t", "start_index": 0, "end_index": 1}
    return {"type": "url_citation", "url_citation": place}


def chat_events(*chunks: Json) -> list[bytes]:
    return [*(b"data: %b\n\n" % orjson.dumps(each) for each in chunks), b"data: [DONE]\n\n"]


CHAT: dict[str, Callable[[], list[bytes]]] = {
    "calls in one event": lambda: chat_events(
        chunk(said({"tool_calls": items(tool_call)})), chunk(ended("tool_calls"))
    ),
    "calls in one event each": lambda: chat_events(
        *(chunk(said({"tool_calls": [each]})) for each in items(tool_call)), chunk(ended("tool_calls"))
    ),
    "choices in one event": lambda: chat_events(
        chunk(*(said({"content": "x"}, index) for index in range(2 * MANY))),
        chunk(*(ended("stop", index) for index in range(2 * MANY))),
    ),
    "calls of many choices": lambda: chat_events(
        *(chunk(said({"tool_calls": [tool_call(0, '{"a":1}')]}, index)) for index in range(MANY)),
        *(chunk(ended("tool_calls", index)) for index in range(MANY)),
    ),
    "citations": lambda: chat_events(
        chunk(said({"content": "x", "annotations": [page(number) for number in range(2 * MANY)]})),
        chunk(ended("stop")),
    ),
    "parts": lambda: chat_events(
        chunk(said({"content": [{"type": "text", "text": "x"}] * MANY})), chunk(ended("stop"))
    ),
    "thoughts between texts": lambda: chat_events(
        *(chunk(said({("reasoning_content", "content")[n % 2]: "x"})) for n in range(MANY)),
        chunk(ended("stop")),
    ),
}


@pytest.mark.parametrize("lane", ["pass", "responses", "chat"])
@pytest.mark.parametrize("case", CHAT)
def test_a_chat_backend(case: str, lane: str) -> None:
    out = played("chat", lane, CHAT[case]())
    assert b"data: [DONE]" in out
