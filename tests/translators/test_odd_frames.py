"""Frames that are nearly right, and streams that go on or break off where they should not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from tests.laws.pairs import context, translator
from translators.chat.watch import ChatWatcher
from translators.errors import ProxyError, conceal
from translators.ir import Shape
from translators.profile import AnswerRules, Profile
from translators.responses.watch import ResponsesWatcher

EXACT = Profile(answer=AnswerRules(exact=True))
BROKEN = ProxyError("upstream", "the connection broke")


def chunk(text: str = "", finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


BEGUN: dict[str, Any] = {
    "id": "r",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "status": "in_progress",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
CREATED = {"type": "response.created", "sequence_number": 0, "response": BEGUN}
PLACE = {"item_id": "msg_1", "output_index": 0, "content_index": 0}


def delta(text: str, number: int = 1) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "sequence_number": number, **PLACE, "delta": text}


def completed(text: str = "hi") -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    response = {**BEGUN, "status": "completed", "output": [item]}
    return {"type": "response.completed", "sequence_number": 9, "response": response}


STREAMS = {
    "chat": [chunk("hi "), chunk("caf\u00e9 "), chunk("x"), chunk(finish="stop")],
    "responses": [CREATED, delta("hi "), delta("caf\u00e9 ", 2), delta("x", 3), completed("hi caf\u00e9 x")],
}


def wire(objs: list[Any], done: bool = True, names: bool = False) -> bytes:
    """The objects as a stream, as OpenAI writes it: without spaces in the JSON."""
    named = [b"event: %b\n" % each["type"].encode() if names and "type" in each else b"" for each in objs]
    frames = [name + b"data: " + orjson.dumps(each) + b"\n\n" for name, each in zip(named, objs, strict=True)]
    return b"".join(frames) + (b"data: [DONE]\n\n" if done else b"")


def objects(data: bytes) -> list[Any]:
    """What a strict client reads; raises for bytes and JSON that it could not."""
    payloads = [line[6:] for line in data.decode().split("\n") if line.startswith("data: ")]
    return [orjson.loads(each) for each in payloads if each != "[DONE]"]


def texts(data: bytes) -> str:
    """The text of either shape."""
    told = ""
    for obj in objects(data):
        told += obj["delta"] if obj.get("type") == "response.output_text.delta" else ""
        told += "".join(c["delta"].get("content") or "" for c in obj.get("choices") or [])
    return told


def machines(backend: Shape) -> list[Any]:
    """Everything that reads this backend's streams: both clients' translators, and the watcher."""
    watch = ChatWatcher if backend == "chat" else ResponsesWatcher
    shapes: tuple[Shape, ...] = ("chat", "responses")
    return [*(translator(client, backend) for client in shapes), watch(Profile(), context())]


ODD: list[tuple[bytes, bytes, str]] = [
    (b"caf\xc3\xa9", b"caf\xc3", "hi caf\ufffd x"),  # cut inside a character
    (b"caf\xc3\xa9", b"caf\\ud83d", "hi caf\ufffd x"),  # half a surrogate pair
    (b'"model":"m"', b'"model":"m","score":NaN', "hi caf\u00e9 x"),
]


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize(("good", "odd", "wanted"), ODD, ids=str)
@pytest.mark.parametrize("backend", ["chat", "responses"])
def test_what_an_odd_frame_says_is_not_lost(
    backend: Shape, good: bytes, odd: bytes, wanted: str, size: int
) -> None:
    data = wire(STREAMS[backend], names=backend == "responses").replace(good, odd)
    assert odd in data
    step = size or len(data)
    for machine in machines(backend):
        out = b"".join([machine.feed(data[at : at + step]) for at in range(0, len(data), step)])
        out += machine.close()
        assert (texts(out), machine.error) == (wanted, None)


@pytest.mark.parametrize("odd", [b"data: no json\n\n", b"data: 5\n\n", b'data: {"a"\n\n'])
@pytest.mark.parametrize("backend", ["chat", "responses"])
def test_frames_nobody_could_parse_are_left_out(backend: Shape, odd: bytes) -> None:
    sent = [wire([each], done=False) for each in STREAMS[backend]]
    for machine in machines(backend):
        out = b"".join(map(machine.feed, [sent[0], odd, *sent[1:], b"data: [DONE]\n\n"])) + machine.close()
        assert (texts(out), machine.error) == ("hi caf\u00e9 x", None)


@pytest.mark.parametrize("backend", ["chat", "responses"])
def test_nothing_follows_the_end(backend: Shape) -> None:
    data = wire(STREAMS[backend], names=True)
    for machine in machines(backend):
        once = machine.feed(data) + machine.close()
        assert machine.ended
        again = next(each for each in machines(backend) if type(each) is type(machine))
        if isinstance(machine, ChatWatcher | ResponsesWatcher):
            assert again.feed(data + data) + again.close() == once
        assert machine.feed(data) == machine.fail(BROKEN) == b""


def test_an_end_marker_after_the_end_is_passed_once() -> None:
    watch = ResponsesWatcher(Profile(), context())
    sent = wire(STREAMS["responses"], done=False)
    out = watch.feed(sent) + watch.feed(b": bye\n\ndata: [DONE]\n\ndata: [DONE]\n\n") + watch.close()
    assert out.count(b"[DONE]") == 1
    assert b": bye" not in out


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(
    "error", [{"error": "boom"}, {"message": "boom"}, {"detail": "boom"}, [{"error": {"message": "boom"}}]]
)
def test_an_error_of_any_shape_in_a_passed_responses_stream(error: Any, size: int) -> None:
    data = wire([CREATED, delta("a")], done=False) + b"data: " + orjson.dumps(error) + b"\n\n"
    watch = ResponsesWatcher(Profile(), context())
    step = size or len(data)
    out = b"".join([watch.feed(data[at : at + step]) for at in range(0, len(data), step)]) + watch.close()
    last = objects(out)[-1]
    assert (last["type"], last["sequence_number"]) == ("response.failed", 2)
    assert last["response"]["error"]["message"] == "boom"
    assert len(objects(out)) == 3


def test_a_list_in_a_frame_is_written_one_by_one() -> None:
    watch = ResponsesWatcher(Profile(), context())
    pair = [{"type": "response.x", "n": 1}, {"type": "response.x", "n": 2}]
    out = watch.feed(wire([CREATED], done=False) + b"data: " + orjson.dumps(pair) + b"\n\n")
    assert [each.get("n") for each in objects(out)] == [None, 1, 2]


# --- what breaks off -------------------------------------------------------------------


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_bytes_that_break_off_after_the_finish_have_told_everything(client: Shape) -> None:
    machine = translator(client, "chat")
    out = machine.feed(wire([chunk("hi"), chunk(finish="stop")], done=False)) + machine.fail(BROKEN)
    assert machine.error is None
    assert out.endswith(b"data: [DONE]\n\n")
    assert b"broke" not in out


def test_the_same_where_they_pass() -> None:
    watch = ChatWatcher(Profile(), context())
    out = watch.feed(wire([chunk("hi"), chunk(finish="stop")], done=False)) + watch.fail(BROKEN)
    assert (watch.error, out.endswith(b"data: [DONE]\n\n"), b"broke" in out) == (None, True, False)


@pytest.mark.parametrize("backend", ["chat", "responses"])
def test_bytes_that_break_off_before_it_have_not(backend: Shape) -> None:
    for machine in machines(backend):
        out = machine.feed(wire(STREAMS[backend][:2], done=False)) + machine.fail(BROKEN)
        assert machine.error is not None
        assert b"the connection broke" in out


@pytest.mark.parametrize("error", [{"error": {"message": "no"}}, {"type": "error", "message": "no"}])
@pytest.mark.parametrize("client", ["chat", "responses"])
def test_a_responses_stream_that_begins_with_its_failure_has_not_begun(client: Shape, error: Any) -> None:
    machine = translator(client, "responses")
    machine.feed(wire([error], done=False))
    assert (machine.begun, machine.ended) == (False, True)


# --- odd values ------------------------------------------------------------------------


@pytest.mark.parametrize("created", [b"1e300", b"99999999999999999999999", b"-1", b'"x"', b"true", b"null"])
@pytest.mark.parametrize("backend", ["chat", "responses"])
def test_times_nobody_can_write_are_not_told(backend: Shape, created: bytes) -> None:
    sent = wire(STREAMS[backend]).replace(b'"created":1', b'"created":' + created)
    sent = sent.replace(b'"created_at":1', b'"created_at":' + created)
    assert created in sent
    for machine in machines(backend):
        out = machine.feed(sent) + machine.close()
        assert (texts(out), machine.error) == ("hi caf\u00e9 x", None)
        for obj in objects(out):
            told = obj.get("created", (obj.get("response") or {}).get("created_at", 0))
            assert type(told) is int


@pytest.mark.parametrize("choices", [5, "x", [None], [{"index": []}], [{"index": "a"}], True, {"index": 0}])
def test_an_exact_backend_may_be_odd_all_the_same(choices: Any) -> None:
    watch = ChatWatcher(EXACT, context())
    watch.feed(wire([{"id": "c", "choices": choices}], done=False))
    assert watch.error is None


def test_a_piece_of_a_known_call_with_a_bad_escape_is_looked_at() -> None:
    def piece(arguments: str, **more: Any) -> dict[str, Any]:
        entry = {"index": 0, **more, "function": {"arguments": arguments}}
        obj = chunk()
        obj["choices"][0]["delta"] = {"tool_calls": [entry]}
        return obj

    begin = piece("", id="a", type="function")
    begin["choices"][0]["delta"]["tool_calls"][0]["function"]["name"] = "f"
    watch = ChatWatcher(Profile(), context())
    out = watch.feed(wire([begin, piece('{"a":"'), piece("b")], done=False))
    out += watch.feed(wire([piece("Q"), piece('"}')], done=False).replace(b'"Q"', b'"\\ud83d"'))
    out += watch.feed(wire([chunk(finish="tool_calls")])) + watch.close()
    said = [
        call["function"]["arguments"]
        for obj in objects(out)
        for call in obj["choices"][0]["delta"].get("tool_calls") or []
    ]
    assert "".join(said) == '{"a":"b\ufffd"}'


# --- private words ---------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["chat", "responses"])
def test_the_key_is_in_no_error_of_a_stream(backend: Shape) -> None:
    private = replace(context(), private=("opensesame",))
    error = {"error": {"message": "key opensesame refused", "code": "opensesame"}}
    sent = wire([*STREAMS[backend][:2], error], done=False)
    watch = (ChatWatcher if backend == "chat" else ResponsesWatcher)(Profile(), private)
    out = watch.feed(sent)
    assert b"[redacted]" in out
    assert b"opensesame" not in out


def test_conceal() -> None:
    error = conceal(ProxyError("upstream", "a secret b", param="secret", code="secret"), ("secret",))
    assert (error.message, error.param, error.code) == ("a [redacted] b", "[redacted]", "[redacted]")
    assert conceal(ProxyError("upstream", "plain"), ("secret",)).code is None
    assert conceal(ProxyError("upstream", "plain"), ()).message == "plain"
