"""Events into a Chat reply: the chunks, the body, and that the official SDK agrees on both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from translators.chat.encoder import ChatEncoder
from translators.dialect import ReplyContext
from translators.errors import ProxyError
from translators.framing import SseFramer
from translators.ir import (
    Annotated,
    Call,
    Closed,
    Delta,
    Event,
    Failed,
    Finished,
    Foreign,
    Grammar,
    Opaque,
    Opened,
    Started,
    Tool,
    Usage,
)

CALL = Call("chat", "m", ())
OLD = Call("chat", "m", (), tools=(Tool("f", at="/functions/0"),))


def context(**keys: Any) -> ReplyContext:
    ids = iter(range(100))
    base: dict[str, Any] = {"created": 7, "model": "asked", "new_id": lambda prefix: f"{prefix}{next(ids)}"}
    return ReplyContext(**{**base, **keys})


def stream(events: Iterable[Event], call: Call = CALL, **keys: Any) -> tuple[ChatEncoder, bytes]:
    encoder, grammar = ChatEncoder(call, context(**keys)), Grammar()
    out = b""
    for event in events:
        grammar.see(event)
        out += encoder.feed(event)
    return encoder, out


def payloads(out: bytes) -> list[Any]:
    framer = SseFramer()
    found = framer.feed(out)
    assert framer.close() == []
    return [payload if payload == b"[DONE]" else orjson.loads(payload) for payload in found]


def deltas(events: Sequence[Event], call: Call = CALL, **keys: Any) -> list[Any]:
    """What each chunk adds: its delta, or the finish reason, or the usage, or the end mark."""
    found = []
    for chunk in payloads(stream(events, call, **keys)[1]):
        if chunk == b"[DONE]":
            found.append("done")
        elif not chunk["choices"]:
            found.append(chunk["usage"])
        else:
            (choice,) = chunk["choices"]
            found.append(choice["finish_reason"] or choice["delta"])
    return found


ROLE = {"role": "assistant", "content": ""}


def text(index: int, *pieces: str) -> list[Event]:
    return [Opened(index, "text"), *(Delta(index, piece) for piece in pieces), Closed(index)]


def args(number: int, fragment: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": number, "function": {"arguments": fragment}}]}


def first(number: int, call_id: str, name: str) -> dict[str, Any]:
    function = {"name": name, "arguments": ""}
    return {"tool_calls": [{"index": number, "id": call_id, "type": "function", "function": function}]}


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


USAGE = Usage(10, 5, 3, 2, 4)
USAGE_OUT = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "total_tokens": 15,
    "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 4},
}


@pytest.mark.parametrize(
    ("asked", "usage", "last"),
    [
        (True, USAGE, [USAGE_OUT, "done"]),
        (True, None, ["done"]),
        (False, USAGE, ["done"]),
    ],
)
def test_usage_chunk_only_for_those_who_ask(asked: bool, usage: Usage | None, last: list[Any]) -> None:
    events = [Started(), Finished("stop", usage)]
    assert deltas(events, include_usage=asked) == [ROLE, "stop", *last]
    encoder, out = stream(events, include_usage=asked)
    assert encoder.usage == usage
    assert all(("usage" in chunk) == asked for chunk in payloads(out)[:-1])
    assert encoder.body().get("usage") == (USAGE_OUT if usage else None)
    assert ("usage" in encoder.body()) == (usage is not None)


def test_id_time_and_more_of_the_backend_are_kept_where_they_fit() -> None:
    started = Started("chatcmpl-9", "up", 3, "flex", "fp_1")
    chunk = payloads(stream([started, Finished("stop")])[1])[0]
    body = stream([started, Finished("stop")], stream=False)[0].body()
    for found in (chunk, body):
        assert (found["id"], found["created"], found["model"]) == ("chatcmpl-9", 3, "asked")
        assert (found["service_tier"], found["system_fingerprint"]) == ("flex", "fp_1")
    assert body["object"] == "chat.completion"


@pytest.mark.parametrize(
    "started", [Started("resp_1", created=None), Started("c1", service_tier="ultrafast")]
)
def test_other_ids_and_tiers_are_not(started: Started) -> None:
    body = stream([started, Finished("stop")], stream=False)[0].body()
    assert (body["id"], body["created"]) == ("chatcmpl-0", 7)
    assert "service_tier" not in body
    assert "system_fingerprint" not in body


def test_start_sends_the_role_once() -> None:
    encoder = ChatEncoder(CALL, context())
    assert len(payloads(encoder.start())) == 1
    assert encoder.start() == b""
    assert encoder.feed(Started("chatcmpl-9", created=3)) == b""
    chunks = payloads(encoder.feed(Finished("stop")))
    assert (chunks[0]["id"], chunks[0]["created"]) == ("chatcmpl-0", 7)


def test_keepalive_is_a_comment() -> None:
    assert ChatEncoder(CALL, context()).keepalive() == b": keep-alive\n\n"
    assert ChatEncoder(CALL, context(stream=False)).keepalive() == b""
    assert payloads(b": keep-alive\n\n") == []


ERROR = ProxyError("upstream", "it broke", code="server_error")


@pytest.mark.parametrize("before", [[], [Started()], [Started(), Opened(0, "text"), Delta(0, "par")]])
def test_a_failure_is_an_error_frame_and_no_finish(before: list[Event]) -> None:
    encoder, out = stream([*before, Failed(ERROR, USAGE)])
    *chunks, error, done = payloads(out)
    assert error == {
        "error": {"message": "it broke", "type": "upstream_error", "param": None, "code": "server_error"}
    }
    assert done == b"[DONE]"
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks)
    assert encoder.usage == USAGE
    with pytest.raises(ProxyError, match="it broke"):
        encoder.body()


def test_a_failure_of_a_plain_reply_is_raised() -> None:
    encoder, out = stream([Started(), Failed(ERROR)], stream=False)
    assert out == b""
    with pytest.raises(ProxyError, match="it broke"):
        encoder.body()


def test_an_unfinished_reply_has_no_body() -> None:
    encoder, _ = stream([Started(), *text(0, "a")], stream=False)
    with pytest.raises(ProxyError) as caught:
        encoder.body()
    assert caught.value.http_status == 502


SCORE = {"token": "a", "logprob": -1.0, "bytes": [97], "top_logprobs": []}


def test_logprobs_stand_beside_what_they_score() -> None:
    events: list[Event] = [
        *(
            Started(),
            Opened(0, "text"),
            Delta(0, "a", [SCORE]),
            Delta(0, "b"),
            Delta(0, "", [SCORE]),
            Closed(0),
        ),
        *(Opened(1, "refusal"), Delta(1, "n", [SCORE]), Closed(1)),
        *(Opened(2, "summary"), Delta(2, "r", [SCORE]), Closed(2), Finished("stop")),
    ]
    encoder, out = stream(events)
    got = [chunk["choices"][0]["logprobs"] for chunk in payloads(out)[1:-2]]
    content, refusal = {"content": [SCORE], "refusal": None}, {"content": None, "refusal": [SCORE]}
    assert got == [content, None, content, refusal, None]
    assert encoder.body()["choices"][0]["logprobs"] == {"content": [SCORE, SCORE], "refusal": [SCORE]}
    plain, out = stream(events, stream=False)
    assert out == b""
    assert plain.body()["choices"] == encoder.body()["choices"]


def test_other_citations_keep_their_keys() -> None:
    cited = {"type": "file_citation", "file_id": "f", "index": 4}
    events = [Started(), Opened(0, "text"), Annotated(0, cited), Closed(0), Finished("stop")]
    (annotation,) = stream(events, stream=False)[0].body()["choices"][0]["message"]["annotations"]
    assert annotation == {"type": "file_citation", "file_citation": {"file_id": "f", "index": 4}}


# --- clients that still send `functions` -----------------------------------------------

OLD_EVENTS: list[Event] = [
    *(Started(), Opened(0, "tool_call", "a", "f"), Delta(0, "{}"), Closed(0)),
    *(Opened(1, "tool_call", "b", "f"), Delta(1, "[]"), Closed(1), Finished("tool_calls")),
]


def test_a_functions_client_gets_function_call() -> None:
    assert deltas(OLD_EVENTS, OLD) == [
        ROLE,
        {"function_call": {"name": "f", "arguments": ""}},
        {"function_call": {"arguments": "{}"}},
        first(0, "b", "f"),
        args(0, "[]"),
        *("function_call", "done"),
    ]


def test_a_functions_client_gets_it_in_the_body_too() -> None:
    encoder, _ = stream(OLD_EVENTS, OLD, stream=False)
    (choice,) = encoder.body()["choices"]
    assert choice["finish_reason"] == "function_call"
    assert choice["message"]["function_call"] == {"name": "f", "arguments": "{}"}
    assert [call["id"] for call in choice["message"]["tool_calls"]] == ["b"]
    ChatCompletion.model_validate(encoder.body(), strict=True)


def test_a_nul_in_the_model_name_does_not_break_the_template() -> None:
    chunks = payloads(stream([Started(), *text(0, "a\0"), Finished("stop")], model='m"\0')[1])
    assert {chunk["model"] for chunk in chunks[:-1]} == {'m"\0'}
    assert chunks[1]["choices"][0]["delta"] == {"content": "a\0"}


def test_ids_are_minted_with_their_prefix() -> None:
    asked: list[str] = []
    mint: Callable[[str], str] = lambda prefix: asked.append(prefix) or f"{prefix}x"  # noqa: E731
    stream([Started(), Opened(0, "tool_call", "", "f"), Closed(0), Finished("stop")], new_id=mint)
    assert asked == ["chatcmpl-", "call_"]
