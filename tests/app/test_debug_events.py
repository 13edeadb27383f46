"""Events at level debug, in this process: over either shape, whatever becomes of the stream."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.app.conftest import Serve, Served, provider
from tests.backends.replies import ToolUse, chat_stream, json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend

ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"model": "p/m", "messages": [{"role": "user", "content": "hi"}], "stream": True},
    "/v1/responses": {"model": "p/m", "input": "hi", "stream": True, "store": False},
}


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend) -> Served:
    return serve(fresh=True, watched=True, providers=[provider(scripted)])


def asked(served: Served, path: str) -> int:
    with served.client() as client:
        status = client.post(path, json=ASKED[path]).status_code
    while served.gateway.serving:
        time.sleep(0.005)
    return status


@pytest.mark.parametrize("path", ASKED)
def test_every_block_of_a_slow_stream(path: str, served: Served, scripted: ScriptedBackend) -> None:
    calls = [ToolUse("a", "f", '{"x": 1}')]
    scripted.play(sse_reply(chat_stream("one two three", calls), pause=0.01))
    assert asked(served, path) == 200
    starts, ends = served.log("llm:stream_block_start"), served.log("llm:stream_block_end")
    assert [each["block_index"] for each in starts] == [each["block_index"] for each in ends] == [0, 1]
    assert [each["chars"] for each in ends] == [len("one two three"), len('{"x": 1}')]
    assert not served.log("llm:stream_block_aborted")
    (answered,) = served.log("llm:response")
    assert answered["usage"]["output_tokens"] == 7
    assert answered["request_id"] == starts[0]["request_id"]


@pytest.mark.parametrize("path", ASKED)
def test_a_stream_that_is_cut(path: str, served: Served, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply(chat_stream("one two three")[:3], end="cut", pause=0.05))
    asked(served, path)
    assert served.log("llm:stream_block_aborted")
    (answered,) = served.log("llm:response")
    assert (answered["error_type"], answered["gone"]) == ("upstream", False)


def test_a_refusal_has_no_blocks(served: Served, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply({"error": {"message": "x" * 500}}, 400))
    assert asked(served, "/v1/chat/completions") == 400
    (answered,) = served.log("llm:response")
    assert (answered["status"], len(answered["error_message"])) == (400, 180)
    assert not served.log("llm:stream_block_start")


def test_a_client_that_leaves(served: Served, scripted: ScriptedBackend) -> None:
    scripted.play(sse_reply(chat_stream("a b c d e f g h"), pause=0.3))
    path = "/v1/chat/completions"
    with served.client() as client, client.stream("POST", path, json=ASKED[path]) as reply:
        next(reply.iter_raw())
    while served.gateway.serving:
        time.sleep(0.005)
    (answered,) = served.log("llm:response")
    assert (answered["gone"], answered["error_type"]) == (True, None)


@pytest.mark.parametrize("path", ASKED)
def test_a_key_that_a_backend_repeats_is_not_told(serve: Serve, scripted: ScriptedBackend, path: str) -> None:
    key = "opensesame-zz"
    served = serve(fresh=True, watched=True, providers=[provider(scripted, api_key=key)])
    error = {"error": {"message": f"key {key} is bad", "code": key, "param": key}}
    for sent in (json_reply(error, 400), json_reply(error), sse_reply([*chat_stream("a")[:2], error])):
        scripted.play(sent)
        asked(served, path)
    told = served.log("llm:response")
    assert len(told) >= 3
    assert all("is bad" in each["error_message"] for each in told)
    assert key not in served.log_file.getvalue().decode()
