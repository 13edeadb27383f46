"""Recorded streams, damaged as bytes and as objects: the client's stream stays whole and ends once."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.odd import damage
from tests.laws.pairs import PAIRS, context, translator
from tests.laws.test_law_split import cut
from translators.chat.grammar import ChatCheck
from translators.chat.watch import ChatWatcher
from translators.dialect import ReplyStream
from translators.ir import Shape
from translators.profile import Profile
from translators.responses.grammar import ResponsesCheck
from translators.responses.watch import ResponsesWatcher

Json = dict[str, Any]

_CASES = Path(__file__).parents[1] / "cases"
_CHAT = [case["upstream"] for case in json.loads((_CASES / "chat_streams.json").read_bytes())]
_RESPONSES = [case[0] for case in json.loads((_CASES / "responses_streams.json").read_bytes()).values()]
RECORDED: dict[Shape, list[list[Any]]] = {"chat": _CHAT, "responses": _RESPONSES}
CHECKS = {"chat": ChatCheck, "responses": ResponsesCheck}
WATCHERS = {"chat": ChatWatcher, "responses": ResponsesWatcher}

JUNK = st.sampled_from(
    [
        *(b"data: {\n\n", b"data: nope\n\n", b"data: [1]\n\n", b"data: null\n\n", b"data:\n\n"),
        *(b"data: NaN\n\n", b'data: {"choices": NaN}\n\n', b'data: {"usage": {"prompt_tokens": 1e999}}\n\n'),
        *(b": ping\n\n", b"event: x\n\n", b"\xff\xfe\n\n", b"data: \xed\xa0\x80\n\n", b"\n\n\n", b"\r\r\n"),
        *(b'data: {"a": ' + b"9" * 400 + b"}\n\n", b"data: " + b"[" * 2000 + b"\n\n"),
        *(b'data: {"choices":[{"index":0,"delta":{"content":"\\ud800"}}]}\n\n', b"data: [DONE]\n\n"),
        *(b"<html>bad gateway</html>", b'{"error": {"message": "bare"}}'),
    ]
)
ERRORS: list[Json] = [
    {"error": {"message": "the backend broke", "type": "server_error", "code": None}},
    {"error": "the backend broke"},
    {"type": "error", "message": "the backend broke", "code": "server_error"},
]
"""Either wire's forms: gateways before a backend send them on any stream."""
TORN = "torn_arguments"
OF_CALLS = (b"tool_call", b"function_call", b"arguments", b'"item"', b'"output"', b'"message"')
"""What a frame holds that may say something of a call."""
FAILED: Json = {
    "type": "response.failed",
    "response": {"status": "failed", "error": {"code": "server_error", "message": "it broke"}},
}


def frame(obj: Any) -> bytes:
    return b"data: " + (obj if isinstance(obj, str) else json.dumps(obj)).encode() + b"\n\n"


@st.composite
def damaged(draw: st.DrawFn, backend: Shape) -> tuple[bytes, bool]:
    """The bytes of a recorded stream with one to four things wrong.

    And whether a call's arguments may be torn without anybody seeing it: in the recording itself, or
    because one of its frames is not there, there twice, at another place, or says something else.
    """
    objs = copy.deepcopy(draw(st.sampled_from(RECORDED[backend])))
    frames = [frame(obj) for obj in objs]
    unseen, halves = _says_torn(backend, frames), set[bytes]()
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(frames) - 1, 0)))
        kind = draw(st.sampled_from(["damage", "damage", "junk", "drop", "double", "move", "cut"]))
        if kind == "junk" or not frames:
            frames.insert(place, junk := draw(JUNK))
            unseen |= not junk.endswith((b"\n\n", b"\r\r\n"))  # it takes the next frame with it
        elif kind == "damage":
            unseen |= _of_call(frames[place], halves)
            frames[place] = _damaged(draw, frames[place])
            unseen |= _of_call(frames[place], halves)
        elif kind == "drop":
            unseen |= _of_call(frames.pop(place), halves)
        elif kind == "double":
            unseen |= _of_call(frames[place], halves)
            frames.insert(place, frames[place])
        elif kind == "move":
            moved = frames.pop(place)
            unseen |= _of_call(moved, halves)
            frames.insert(draw(st.integers(0, len(frames))), moved)
        else:
            end = draw(st.integers(0, len(frames[place])))
            unseen |= end < len(b"data: {") or not frames[place].startswith(b"data: {")
            frames[place] = frames[place][:end]
            halves.add(frames[place])
    return b"".join(frames), unseen


def _of_call(frame_: bytes, halves: set[bytes]) -> bool:
    return frame_ in halves or any(word in frame_ for word in OF_CALLS)


def _says_torn(backend: Shape, frames: list[bytes]) -> bool:
    """Whether the model itself wrote arguments that are no JSON."""
    machine = translator("chat", backend)
    check = ChatCheck()
    check.feed(played(machine, b"".join(frames), []))
    return any(finding.rule == TORN for finding in check.close())


def _damaged(draw: st.DrawFn, frame_: bytes) -> bytes:
    try:
        obj = orjson.loads(frame_.removeprefix(b"data: "))
    except orjson.JSONDecodeError:
        return frame_
    if isinstance(obj, dict):
        damage(draw, obj)
        return frame(obj)
    return frame_


def played(machine: ReplyStream, data: bytes, places: list[int]) -> bytes:
    return b"".join([machine.feed(piece) for piece in cut(data, places)]) + machine.close()


@pytest.mark.parametrize(("client", "backend"), PAIRS)
@given(data=st.data())
def test_a_damaged_stream_is_translated_to_a_legal_one(
    client: Shape, backend: Shape, data: st.DataObject
) -> None:
    upstream, unseen = data.draw(damaged(backend))
    places = data.draw(st.lists(st.integers(0, 2000), max_size=3))
    machine = translator(client, backend)
    out = played(machine, upstream, places)
    assert machine.fault is None
    assert machine.ended
    check = CHECKS[client]()
    check.feed(out)
    assert [finding for finding in check.close() if not (unseen and finding.rule == TORN)] == []
    assert len(out) < 50_000 + 50 * len(upstream)


@pytest.mark.parametrize("shape", ["chat", "responses"])
@given(data=st.data())
def test_a_damaged_stream_passes_without_a_fault(shape: Shape, data: st.DataObject) -> None:
    machine = WATCHERS[shape](Profile(), context())
    out = played(machine, data.draw(damaged(shape))[0], [])
    assert machine.fault is None
    assert out
    assert machine.ended


def _whole(backend: Shape) -> list[list[Any]]:
    """Recorded streams that end well."""
    return [objs for objs in RECORDED[backend] if _ends_well(backend, [frame(obj) for obj in objs])]


def _ends_well(backend: Shape, frames: list[bytes]) -> bool:
    machine = translator(backend, backend)
    played(machine, b"".join(frames), [])
    return machine.error is None


def _untold(backend: Shape, frames: list[bytes]) -> int:
    """How many frames come before the one that says the end."""
    machine = translator(backend, backend)
    for count, each in enumerate(frames):
        machine.feed(each)
        if machine.told or machine.ended:
            return count
    return len(frames)


WHOLE = {shape: _whole(shape) for shape in RECORDED}


@pytest.mark.parametrize(("client", "backend"), PAIRS)
@given(data=st.data())
def test_an_error_before_the_end_is_never_a_success(
    client: Shape, backend: Shape, data: st.DataObject
) -> None:
    frames = [frame(obj) for obj in data.draw(st.sampled_from(WHOLE[backend]))]
    place = data.draw(st.integers(0, _untold(backend, frames)))
    error = data.draw(st.sampled_from([*ERRORS, FAILED] if backend == "responses" else ERRORS))
    upstream = b"".join([*frames[:place], frame(error), *frames[place:]])
    machines: list[ReplyStream] = [translator(client, backend)]
    if client == backend:
        machines.append(WATCHERS[client](Profile(), context()))
    for machine in machines:
        out = played(machine, upstream, [])
        assert machine.fault is None
        assert machine.error is not None
        assert b"response.completed" not in out
