"""What is refused in every lane, and the parts of the stream machine that only odd exchanges use."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from translators.chat import ChatBackend, ChatClient
from translators.dialect import ReplyContext
from translators.errors import ProxyError
from translators.framing import sse
from translators.profile import Profile
from translators.responses import ResponsesClient
from translators.stream import StreamTranslator


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({}, "input", None),
        ({"input": None}, "input", None),
        (
            {"input": "x", "previous_response_id": "resp_1"},
            "previous_response_id",
            "previous_response_not_found",
        ),
        ({"input": "x", "conversation": "c"}, "conversation", None),
        ({"input": "x", "background": True}, "background", None),
        ({"input": 5}, "input", None),
        ({"input": ["x"]}, "input[0]", None),
        ({"input": [{"type": ["message"]}]}, "input[0].type", None),
        ({"input": [{"type": "function_call_output", "call_id": {}}]}, "input[0].call_id", None),
        ({"input": [{"role": "user", "content": [{"type": {}}]}]}, "input[0].content[0].type", None),
        ({"input": [{"role": "user", "content": ["x"]}]}, "input[0].content[0]", None),
        ({"input": "x", "tools": {}}, "tools", None),
        ({"input": "x", "tools": [{"type": 1}]}, "tools[0].type", None),
        (
            {"input": "x", "tools": [{"type": "namespace", "tools": [{"name": []}]}]},
            "tools[0].tools[0].name",
            None,
        ),
    ],
)
def test_responses_refusals(body: dict[str, Any], param: str, code: str | None) -> None:
    with pytest.raises(ProxyError) as caught:
        ResponsesClient().check(body)
    assert (caught.value.http_status, caught.value.param) == (400, param)
    assert code is None or caught.value.code == code


@pytest.mark.parametrize("body", [{}, {"messages": None}, {"messages": []}])
def test_chat_refusals(body: dict[str, Any]) -> None:
    with pytest.raises(ProxyError) as caught:
        ChatClient().check(body)
    assert (caught.value.http_status, caught.value.param) == (400, "messages")


def test_what_is_not_refused() -> None:
    ResponsesClient().check({"input": "x", "background": False, "previous_response_id": None})
    ResponsesClient().check({"prompt": {"id": "p"}, "tools": None})
    said = [{"type": "input_text", "text": "x", "of": 5}, {"type": "odd", "text": 5}]
    ResponsesClient().check(
        {"input": [{"role": "user", "content": said, "id": None}, {"type": "odd", "of": []}]}
    )
    ChatClient().check({"messages": [{"role": "user", "content": "x"}]})


def translator() -> StreamTranslator:
    client, backend = ResponsesClient(), ChatBackend()
    call = client.decode_request({"model": "m", "input": "x"}, lambda prefix: prefix + "1")
    context = ReplyContext(created=1, model="m", new_id=lambda prefix: prefix + "1")
    return StreamTranslator(backend.decoder(Profile()), client.encoder(call, context))


CHUNK = {
    "id": "c1",
    "model": "up",
    "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}],
}
REPLY = {
    "id": "c1",
    "model": "up",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}],
}
ERROR = {"error": {"message": "boom"}}


def test_a_stream_and_the_reply_that_came_as_no_stream_give_the_same() -> None:
    streamed, whole = translator(), translator()
    text = streamed.feed(sse(orjson.dumps(CHUNK)) + sse(b"[DONE]"))
    played = whole.take(ChatBackend().decode_reply(REPLY, Profile())) + whole.close()
    assert text == played
    assert streamed.ended
    assert whole.ended
    assert streamed.body() == whole.body()
    assert streamed.body()["output"][0]["content"][0]["text"] == "a"


@pytest.mark.parametrize(
    ("frames", "begun"),
    [
        ([], False),
        ([ERROR], False),
        ([{**ERROR, "id": "c1", "choices": []}], True),
        ([CHUNK, ERROR], True),
    ],
)
def test_a_reply_has_begun_when_the_backend_has_named_it(frames: list[Any], begun: bool) -> None:
    stream = translator()
    for frame in frames:
        stream.feed(sse(orjson.dumps(frame)))
    assert stream.begun is begun
