"""Events into a Chat reply: the chunks, the body, and that they are the same."""

from __future__ import annotations

from typing import Any

import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.translators.chat_replies import ROLE, args, deltas, first, payloads, stream, text
from translators.ir import Annotated, Closed, Delta, Event, Finished, Foreign, Opaque, Opened, Started

STREAMS: dict[str, tuple[list[Event], list[Any]]] = {
    "text": (
        [Started(), *text(0, "he", "", "y"), Finished("stop")],
        [ROLE, {"content": "he"}, {"content": "y"}, "stop", "done"],
    ),
    "nothing": ([Started(), Finished("stop")], [ROLE, "stop", "done"]),
    "cut by length": (
        [Started(), *text(0, "a"), Finished("length")],
        [ROLE, {"content": "a"}, "length", "done"],
    ),
    "filtered": ([Started(), Finished("content_filter")], [ROLE, "content_filter", "done"]),
    "tool_calls without a call is stop": ([Started(), Finished("tool_calls")], [ROLE, "stop", "done"]),
    "stop with a call is tool_calls": (
        [Started(), Opened(0, "tool_call", "c", "f"), Delta(0, "{}"), Closed(0), Finished("stop")],
        [ROLE, first(0, "c", "f"), args(0, "{}"), "tool_calls", "done"],
    ),
    "length with a call stays": (
        [Started(), Opened(0, "tool_call", "c", "f"), Closed(0, cut=True), Finished("length")],
        [ROLE, first(0, "c", "f"), "length", "done"],
    ),
    "calls interleaved": (
        [
            *(Started(), *text(0, "x")),
            *(Opened(1, "tool_call", "a", "f"), Delta(1, "{"), Opened(2, "tool_call", "", "g")),
            *(Delta(2, "[1"), Delta(1, "}"), Closed(1), Delta(2, "]"), Closed(2), Finished("tool_calls")),
        ],
        [
            *(ROLE, {"content": "x"}, first(0, "a", "f"), args(0, "{"), first(1, "call_1", "g")),
            *(args(1, "[1"), args(0, "}"), args(1, "]"), "tool_calls", "done"),
        ],
    ),
    "custom call": (
        [Started(), Opened(0, "tool_call", "c", "p", "custom"), Delta(0, "***"), Closed(0), Finished("stop")],
        [
            ROLE,
            {"tool_calls": [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "p", "input": ""}}]},
            {"tool_calls": [{"index": 0, "custom": {"input": "***"}}]},
            *("tool_calls", "done"),
        ],
    ),
    "namespace": (
        [Started(), Opened(0, "tool_call", "c", "add", namespace="mcp__calc"), Closed(0), Finished("stop")],
        [ROLE, first(0, "c", "mcp__calc__add"), "tool_calls", "done"],
    ),
    "tool_search has no name": (
        [Started(), Opened(0, "tool_call", "c", tool="tool_search"), Closed(0), Finished("stop")],
        [ROLE, first(0, "c", "tool_search"), "tool_calls", "done"],
    ),
    "refusal": (
        [Started(), Opened(0, "refusal"), Delta(0, "no"), Closed(0), Finished("stop")],
        [ROLE, {"refusal": "no"}, "stop", "done"],
    ),
    "reasoning of both kinds, paragraphs apart": (
        [
            *(Started(), Opened(0, "summary"), Delta(0, "a"), Closed(0)),
            *(
                Opened(1, "summary", joins=True),
                Delta(1, "b"),
                Closed(1),
                Opened(2, "reasoning"),
                Delta(2, "c"),
            ),
            *(Closed(2, sealed="zz"), *text(3, "t"), Finished("stop")),
        ],
        [
            *(ROLE, {"reasoning_content": "a"}, {"reasoning_content": "\n\n"}, {"reasoning_content": "b"}),
            *({"reasoning_content": "c"}, {"content": "t"}, "stop", "done"),
        ],
    ),
    "an empty paragraph before": (
        [
            Started(),
            Opened(0, "summary"),
            Closed(0),
            Opened(1, "summary", joins=True),
            Closed(1),
            Finished("stop"),
        ],
        [ROLE, "stop", "done"],
    ),
    "the end of a text came late": (
        [Started(), Opened(0, "text"), Delta(0, "ab"), Closed(0, text="abc"), Finished("stop")],
        [ROLE, {"content": "ab"}, {"content": "c"}, "stop", "done"],
    ),
    "another text than the deltas": (
        [Started(), Opened(0, "text"), Delta(0, "ab"), Closed(0, text="xy"), Finished("stop")],
        [ROLE, {"content": "ab"}, "stop", "done"],
    ),
    "hosted tools are not shown": (
        [
            Started(),
            Foreign(0, Opaque("responses", {"type": "web_search_call"})),
            *text(1, "a"),
            Finished("stop"),
        ],
        [ROLE, {"content": "a"}, "stop", "done"],
    ),
    "citations once, at the end": (
        [
            *(Started(), *text(0, "ab"), Opened(1, "text", joins=True), Delta(1, "c")),
            Annotated(1, {"type": "url_citation", "url": "u", "start_index": 0, "end_index": 1}),
            Annotated(1, {"type": "url_citation", "url": "u", "start_index": 1, "end_index": 1}),
            Annotated(1, {"type": "url_citation", "url": "v", "start_index": 0, "end_index": 1}),
            *(Closed(1), Finished("stop")),
        ],
        [
            *(ROLE, {"content": "ab"}, {"content": "c"}),
            {
                "annotations": [
                    {
                        "type": "url_citation",
                        "url_citation": {"end_index": 3, "start_index": 2, "title": "", "url": "u"},
                    },
                    {
                        "type": "url_citation",
                        "url_citation": {"end_index": 3, "start_index": 2, "title": "", "url": "v"},
                    },
                ]
            },
            *("stop", "done"),
        ],
    ),
}
MESSAGES: dict[str, dict[str, Any]] = {
    "text": {"content": "hey", "refusal": None},
    "nothing": {"content": "", "refusal": None},
    "refusal": {"content": None, "refusal": "no"},
    "another text than the deltas": {"content": "xy", "refusal": None},
    "reasoning of both kinds, paragraphs apart": {
        "content": "t",
        "refusal": None,
        "reasoning_content": "a\n\nbc",
    },
    "custom call": {
        "content": None,
        "refusal": None,
        "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "p", "input": "***"}}],
    },
    "calls interleaved": {
        "content": "x",
        "refusal": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "call_1", "type": "function", "function": {"name": "g", "arguments": "[1]"}},
        ],
    },
}


@pytest.mark.parametrize("name", STREAMS)
def test_chunks(name: str) -> None:
    events, wanted = STREAMS[name]
    assert deltas(events) == wanted


@pytest.mark.parametrize("name", STREAMS)
def test_chunks_are_alike_and_typed(name: str) -> None:
    chunks = payloads(stream(STREAMS[name][0])[1])[:-1]
    heads = [{key: chunk[key] for key in ("id", "object", "created", "model")} for chunk in chunks]
    assert heads == [
        {"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 7, "model": "asked"}
    ] * len(chunks)
    for chunk in chunks:
        if '"custom"' not in str(chunk).replace("'", '"'):  # the SDK's chunk type knows no custom calls yet
            ChatCompletionChunk.model_validate(chunk, strict=True)


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name: str) -> None:
    encoder, out = stream(STREAMS[name][0], stream=False)
    assert out == b""
    body = encoder.body()
    message = body["choices"][0]["message"]
    assert message == {"role": "assistant", **MESSAGES[name]}
    ChatCompletion.model_validate(body, strict=True)


@pytest.mark.parametrize("name", STREAMS)
def test_the_body_is_the_same_streamed_or_not(name: str) -> None:
    streamed, plain = stream(STREAMS[name][0])[0].body(), stream(STREAMS[name][0], stream=False)[0].body()
    assert streamed == plain


@pytest.mark.parametrize(
    "name", [name for name in STREAMS if name not in ("custom call", "another text than the deltas")]
)
def test_the_sdk_accumulates_what_the_body_says(name: str) -> None:
    encoder, out = stream(STREAMS[name][0])
    state = ChatCompletionStreamState()
    for chunk in payloads(out)[:-1]:
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
    got = state.current_completion_snapshot.choices[0].to_dict()
    want = encoder.body()["choices"][0]
    assert got["finish_reason"] == want["finish_reason"]
    for key in ("content", "refusal", "reasoning_content", "annotations"):
        assert (got["message"].get(key) or None) == (want["message"].get(key) or None)
    calls = [
        {key: value for key, value in call.items() if key != "index"}
        for call in got["message"].get("tool_calls") or []
    ]
    for call in calls:
        call["function"].pop("parsed_arguments", None)
    assert calls == want["message"].get("tool_calls", [])
