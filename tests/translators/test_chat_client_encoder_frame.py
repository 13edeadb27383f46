"""What surrounds the words of a Chat reply: usage, ids, failures, scores, the old `functions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from openai.types.chat import ChatCompletion

from tests.translators.chat_replies import (
    CALL,
    OLD,
    ROLE,
    args,
    context,
    deltas,
    first,
    payloads,
    stream,
    text,
)
from translators.chat.encoder import ChatEncoder
from translators.errors import ProxyError
from translators.ir import Annotated, Closed, Delta, Event, Failed, Finished, Opened, Started, Usage

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
