"""What clients send that was cut in the middle, and headers that mean nothing."""

from __future__ import annotations

import pytest

from app.request import parse_request
from app.telemetry.trace import Trace
from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend
from translators.errors import ProxyError

HALVES = [
    (rb'"cut \ud83d"', "cut �"),
    (rb'"\udc00 begins"', "� begins"),
    (rb'"\ud83d\ud83d\ude00"', "�😀"),
    (rb'"a literal \\ud83d stays, \ud83d goes"', r"a literal \ud83d stays, � goes"),
    (rb'"whole \ud83d\ude00"', "whole 😀"),
]


@pytest.mark.parametrize(("text", "read"), HALVES)
@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_half_a_surrogate_pair_is_no_end_of_a_conversation(
    serve: Serve, scripted: ScriptedBackend, wire: str, text: bytes, read: str
) -> None:
    raw = b'{"model": "p/m", "messages": [{"role": "user", "content": %b}]}' % text
    with serve(providers=[provider(scripted, wire)]).client() as client:
        reply = client.post("/v1/chat/completions", content=raw)
    assert reply.status_code == 200
    (sent,) = scripted.bodies()
    said = sent["messages"] if wire == "chat" else sent["input"]
    assert said[0]["content"] in (read, [{"type": "input_text", "text": read}])


def test_what_is_broken_beside_it_is_still_refused() -> None:
    raw = rb'{"model": "m", "input": "\ud83d", }'
    with pytest.raises(ProxyError, match="not valid JSON"):
        parse_request("responses", raw, {}, Trace(b"r", "POST /v1/responses"))


STRICT = [(b"true", True), (b" TRUE ", True), (b"1", True), (b"false", False), (b"0", False), (b"", False)]


@pytest.mark.parametrize(("said", "strict"), STRICT)
def test_strict_is_a_truth_value(said: bytes, strict: bool) -> None:
    headers = {b"x-dragoman-strict": said}
    raw = b'{"model": "m", "input": "hi"}'
    assert parse_request("responses", raw, headers, Trace(b"r", "POST")).strict is strict


@pytest.mark.parametrize("said", [b"maybe", b"yes", b"\xff"])
def test_what_is_none_is_refused_rather_than_taken_for_no(said: bytes) -> None:
    raw = b'{"model": "m", "input": "hi"}'
    with pytest.raises(ProxyError, match="true or false") as refused:
        parse_request("responses", raw, {b"x-dragoman-strict": said}, Trace(b"r", "POST"))
    assert (refused.value.http_status, refused.value.param) == (400, "x-dragoman-strict")
