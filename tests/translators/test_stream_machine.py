"""The stream machine and the way there: what a frame may hold, and that the end is the end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.laws.pairs import BACKENDS, CLIENTS, new_ids, plain_reply, sse_bytes, translator
from translators.errors import ProxyError
from translators.ir import Closed, Delta, Finished, Opened, Shape, Started
from translators.profile import Profile
from translators.translate import translate_request

HI = {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"content": "hi"}}]}
END = {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


@pytest.mark.parametrize("payload", [b"{", b"5", b'"x"', b"null", b"\xff"])
def test_frames_that_are_no_objects_are_counted_and_skipped(payload: bytes) -> None:
    machine = translator("chat", "chat")
    out = machine.feed(sse_bytes([HI], done=False) + b"data: " + payload + b"\n\n" + sse_bytes([END]))
    assert machine.violations == {"not_json": 1}
    assert machine.error is None
    assert b'"content":"hi"' in out


def test_an_error_in_a_list_is_found() -> None:
    """Google's error bodies are lists."""
    machine = translator("chat", "chat")
    machine.feed(b'data: [1, {"error": {"code": 503, "message": "boom"}}]\n\n')
    assert machine.error is not None
    assert "boom" in machine.error.message


def test_nothing_comes_after_the_end() -> None:
    machine = translator("chat", "chat")
    machine.feed(sse_bytes([HI, END]))
    assert machine.ended
    late = [machine.feed(sse_bytes([HI])), machine.close(), machine.start(), machine.keepalive()]
    assert late == [b"", b"", b"", b""]
    assert machine.fail(ProxyError("timeout", "late")) == b""
    assert machine.error is None


def test_opening_and_keepalive_before_the_backend_speaks() -> None:
    machine = translator("responses", "chat")
    opening, beat = machine.start(), machine.keepalive()
    assert opening.count(b"event: ") == 2
    assert beat.startswith(b"event: response.in_progress")
    assert not machine.begun
    assert b"response.created" not in machine.feed(sse_bytes([HI, END]))
    assert machine.begun


def test_fail_ends_the_reply_and_is_remembered() -> None:
    machine = translator("chat", "chat")
    machine.feed(sse_bytes([HI], done=False))
    out = machine.fail(ProxyError("timeout", "too slow"))
    assert b"too slow" in out
    assert (machine.ended, machine.error is not None) == (True, True)


def test_a_stream_may_be_had_as_a_body() -> None:
    machine = translator("chat", "chat")
    machine.feed(sse_bytes([HI, END]))
    machine.close()
    assert machine.body()["choices"][0]["message"]["content"] == "hi"


def test_a_body_may_be_had_as_a_stream() -> None:
    machine = translator("chat", "responses")
    out = machine.take([Started(), Opened(0, "text"), Delta(0, "hi"), Closed(0), Finished("stop")])
    assert b'"content":"hi"' in out
    assert out.endswith(b"[DONE]\n\n")


@pytest.mark.parametrize("reply", [{"error": {"message": "boom"}}, {"error_code": "X", "message": "boom"}])
def test_an_error_body_is_raised(reply: dict[str, Any]) -> None:
    with pytest.raises(ProxyError, match="boom"):
        plain_reply("chat", "chat", reply)


@pytest.mark.parametrize("backend", BACKENDS)
def test_several_choices_cannot_be_translated(backend: Shape) -> None:
    client = CLIENTS["chat"]
    for n, fine in ((1, True), (2, False)):
        body = {"model": "m", "n": n, "messages": [{"role": "user", "content": "hi"}]}
        asked = client.decode_request(body, new_ids())
        if fine:
            assert translate_request(asked, client, BACKENDS[backend], Profile()).encoded.body["model"] == "m"
            continue
        with pytest.raises(ProxyError) as caught:
            translate_request(asked, client, BACKENDS[backend], Profile())
        assert (caught.value.http_status, caught.value.param) == (400, "n")
