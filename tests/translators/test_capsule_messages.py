"""Signatures of whole messages (Gemini signs an answer without a call), and what else a capsule may meet."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.laws.profiles import row
from tests.translators.chat_edits import profile
from tests.translators.test_capsules import (
    CALL,
    CLAUDE,
    GEMINI,
    THOUGHT,
    USER,
    answered,
    context,
    second,
    streamed,
)
from tests.translators.test_capsules import _ids as ids
from translators.chat import ChatBackend, ChatClient
from translators.chat.edit import edit_request
from translators.chat.grammar import ChatCheck
from translators.ir import Closed, Delta, Opened, Started
from translators.responses.grammar import ResponsesCheck
from translators.translate import translate_request

SIGNED = {"content": "Hi.", "thoughtSignature": "M"}


@pytest.mark.parametrize("stream", [False, True])
def test_a_signed_answer_returns_signed(stream: bool) -> None:
    output = streamed([SIGNED], GEMINI) if stream else answered(SIGNED, GEMINI)
    assert [item["type"] for item in output] == ["message", "reasoning"]
    sent, losses = second(output, GEMINI)
    assert (sent, losses) == ({"role": "assistant", **SIGNED}, [])


def test_a_signature_whose_answer_is_gone_is_told() -> None:
    _, carrier = answered(SIGNED, GEMINI)
    sent, losses = second([carrier, USER], GEMINI)
    assert "thoughtSignature" not in orjson.dumps(sent).decode()
    assert [loss.reason for loss in losses] == ["no answer stands before it"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_client_gets_the_signature_of_an_answer(stream: bool) -> None:
    client = ChatClient()
    call = client.decode_request({"model": "m", "messages": [{"role": "user", "content": "go"}]}, ids())
    machine = translate_request(call, client, ChatBackend(), profile(**GEMINI)).stream(context(stream))
    chunk = {"id": "x", "choices": [{"index": 0, "delta": SIGNED, "finish_reason": "stop"}]}
    out = machine.feed(b"data: " + orjson.dumps(chunk) + b"\n\ndata: [DONE]\n\n") + machine.close()
    if stream:
        assert b'"thoughtSignature":"M"' in out
    else:
        assert machine.body()["choices"][0]["message"]["thoughtSignature"] == "M"


def test_without_a_key_nothing_is_sealed() -> None:
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": [THOUGHT], "tool_calls": [CALL]},
    }
    from translators.responses import ResponsesClient

    client = ResponsesClient()
    call = client.decode_request({"model": "m", "input": [USER]}, ids())
    way = translate_request(call, client, ChatBackend(), profile(**CLAUDE))
    body, _ = way.reply({"id": "x", "choices": [choice]}, context(seals=None))
    assert not any("dgm1" in str(item.get("encrypted_content")) for item in body["output"])


def test_words_go_to_no_backend_that_keeps_signatures_only() -> None:
    rules = row("gemini-openai", "chat")
    message = {"role": "assistant", "content": "a", "reasoning_content": "w"}
    encoded = edit_request({"model": "m", "messages": [message, {"role": "user", "content": "b"}]}, rules)
    assert encoded.body["messages"][0] == {"role": "assistant", "content": "a"}
    assert [loss.pointer for loss in encoded.losses] == ["/messages/0/reasoning_content"]


def test_only_the_last_of_several_thoughts_is_what_the_turn_was_said_after() -> None:
    thoughts = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}
        for text in ("cut", "again")
    ]
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    sent, losses = second([*thoughts, call], {"reasoning": {"replay": "field"}})
    assert sent["reasoning_content"] == "again"
    assert [loss.pointer for loss in losses] == ["/input/1"]


def test_a_capsule_of_a_call_that_is_gone_signs_nothing() -> None:
    signed = {**CALL, "thoughtSignature": "G"}
    carrier, call = answered({"content": None, "tool_calls": [signed]}, GEMINI)
    sent, _ = second([carrier, {**call, "call_id": "other"}], GEMINI)
    assert "thoughtSignature" not in orjson.dumps(sent).decode()


def test_a_chat_client_gets_a_late_signature_on_the_call() -> None:
    client = ChatClient()
    call = client.decode_request({"model": "m", "messages": [{"role": "user", "content": "go"}]}, ids())
    machine = translate_request(call, client, ChatBackend(), profile(**GEMINI)).stream(context(True))
    out = b""
    for delta in (
        {"tool_calls": [{"index": 0, **CALL}]},
        {"tool_calls": [{"index": 0, "thoughtSignature": "L"}]},
    ):
        out += machine.feed(
            b"data: " + orjson.dumps({"id": "x", "choices": [{"index": 0, "delta": delta}]}) + b"\n\n"
        )
    end = {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    out += machine.feed(b"data: " + orjson.dumps(end) + b"\n\ndata: [DONE]\n\n") + machine.close()
    assert b'"thoughtSignature":"L"' in out


def test_what_is_sealed_on_text_is_nothing_to_a_chat_client() -> None:
    client = ChatClient()
    call = client.decode_request({"model": "m", "messages": [{"role": "user", "content": "go"}]}, ids())
    encoder = client.encoder(call, context(True))
    for event in (Started(), Opened(0, "text"), Delta(0, "a")):
        encoder.feed(event)
    assert encoder.feed(Closed(0, sealed="s")) == b""


def test_checks_go_on_after_a_call_that_never_opened_and_after_the_end() -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    custom = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "p", "input": "x"}}
    choices = [{"index": 0, "delta": {"role": "assistant", "tool_calls": [custom]}, "finish_reason": None}]
    stop = [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]
    check = ChatCheck()
    for said in (choices, stop, choices):
        check.feed(b"data: " + orjson.dumps({**chunk, "choices": said}) + b"\n\n")
    assert "after_end" in {finding.rule for finding in check.close()}
    late = ResponsesCheck()
    item = {"type": "message", "id": "m", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    where = {"output_index": 0, "item_id": "m", "content_index": 0}
    for event in (
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.failed", "response": {"status": "failed"}},
        {"type": "response.content_part.added", **where, "part": part},
    ):
        late.feed(b"data: " + orjson.dumps(event) + b"\n\n")
    assert late.close()
