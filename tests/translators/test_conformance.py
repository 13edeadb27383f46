"""The checks of both wires: our own streams are clean, and every planted fault is found by its name."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.odd import VALUES
from tests.laws.pairs import sse_bytes, translate
from translators.chat.grammar import WHY as CHAT_WHY
from translators.chat.grammar import ChatCheck
from translators.conformance import MAX_FINDINGS, Finding, StreamCheck
from translators.ir import Shape
from translators.responses.grammar import WHY as RESPONSES_WHY
from translators.responses.grammar import ResponsesCheck

Json = dict[str, Any]
Frames = list[Any]
CHECKS: dict[Shape, type[StreamCheck]] = {"chat": ChatCheck, "responses": ResponsesCheck}


def chunk(delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 7,
        "model": "m",
        "choices": [choice],
    }


def call(index: int, **more: Any) -> Json:
    return {"tool_calls": [{"index": index, **more}]}


USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
BACKEND: list[Json] = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "hm"}),
    chunk({"content": "Hel"}),
    chunk({"content": "lo"}),
    chunk({"refusal": "no"}),
    chunk(call(0, id="call_a", type="function", function={"name": "f", "arguments": ""})),
    chunk(call(0, function={"arguments": '{"x":'})),
    chunk(call(0, function={"arguments": "1}"})),
    chunk(call(1, id="call_b", type="function", function={"name": "g", "arguments": "{}"})),
    chunk({}, "tool_calls"),
    {**chunk({}), "choices": [], "usage": USAGE},
]
OWN: dict[Shape, bytes] = {client: translate(client, "chat", [sse_bytes(BACKEND)]) for client in CHECKS}


def frames_of(data: bytes) -> Frames:
    payloads = [line[6:] for line in data.split(b"\n") if line.startswith(b"data: ")]
    return [json.loads(each) if each != b"[DONE]" else "[DONE]" for each in payloads]


def written(frames: Frames, names: bool) -> bytes:
    out = b""
    for frame in frames:
        if isinstance(frame, dict):
            name = f"event: {frame['type']}\n" if names and isinstance(frame.get("type"), str) else ""
            out += f"{name}data: {json.dumps(frame)}\n\n".encode()
        else:
            out += frame if isinstance(frame, bytes) else f"data: {frame}\n\n".encode()
    return out


def checked(shape: Shape, data: bytes, size: int = 0) -> list[Finding]:
    check = CHECKS[shape]()
    for at in range(0, len(data), size or len(data) or 1):
        check.feed(data[at : at + (size or len(data))])
    return check.close()


def rules(shape: Shape, data: bytes) -> set[str]:
    return {finding.rule for finding in checked(shape, data)}


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize("shape", CHECKS)
def test_our_own_streams_are_clean(shape: Shape, size: int) -> None:
    assert checked(shape, OWN[shape], size) == []
    assert checked(shape, b": comment\n\n" + OWN[shape].replace(b"\n", b"\r\n"), size) == []


@pytest.mark.parametrize("shape", CHECKS)
def test_our_own_failures_are_clean(shape: Shape) -> None:
    assert checked(shape, translate(shape, "chat", [sse_bytes(BACKEND[:4], done=False)])) == []
    assert checked(shape, translate(shape, "chat", [])) == []


# --- planted faults --------------------------------------------------------------------


def at(kind: str, change: Callable[[Json], Any], nth: int = 0) -> Callable[[Frames], Frames]:
    """Change the nth event of a type."""

    def plant(frames: Frames) -> Frames:
        found = [frame for frame in frames if isinstance(frame, dict) and frame["type"] == "response." + kind]
        change(found[nth])
        return frames

    return plant


def put(*path: Any, value: Any = None) -> Callable[[Json], None]:
    def change(obj: Any) -> None:
        *way, last = path
        for key in way:
            obj = obj[key]
        obj[last] = value

    return change


def cut(*path: Any) -> Callable[[Json], None]:
    def change(obj: Any) -> None:
        *way, last = path
        for key in way:
            obj = obj[key]
        del obj[last]

    return change


def drop(kind: str, nth: int = 0) -> Callable[[Frames], Frames]:
    def plant(frames: Frames) -> Frames:
        places = [i for i, f in enumerate(frames) if isinstance(f, dict) and f["type"] == "response." + kind]
        left = [frame for i, frame in enumerate(frames) if i != places[nth]]
        return renumbered(left)

    return plant


def repeat(kind: str) -> Callable[[Frames], Frames]:
    def plant(frames: Frames) -> Frames:
        place = next(
            i for i, f in enumerate(frames) if isinstance(f, dict) and f["type"] == "response." + kind
        )
        return renumbered([*frames[: place + 1], copy.deepcopy(frames[place]), *frames[place + 1 :]])

    return plant


def renumbered(frames: Frames) -> Frames:
    number = 0
    for frame in frames:
        if isinstance(frame, dict):
            frame["sequence_number"] = number
            number += 1
    return frames


def swap(frames: Frames) -> Frames:
    """The second item is added before the first is done."""
    added = [
        i for i, f in enumerate(frames) if isinstance(f, dict) and f["type"] == "response.output_item.added"
    ]
    frames.insert(added[0] + 1, frames.pop(added[1]))
    return renumbered(frames)


RESPONSES_FAULTS: list[tuple[str, Callable[[Frames], Any], str]] = [
    ("no created", drop("created"), "no_beginning"),
    ("created twice", repeat("created"), "second_created"),
    (
        "no in_progress",
        lambda f: renumbered([e for e in f if e == "[DONE]" or "in_progress" not in e["type"]]),
        "no_in_progress",
    ),
    ("a number left out", at("output_text.delta", put("sequence_number", value=99)), "bad_number"),
    ("no number", at("output_text.delta", cut("sequence_number")), "bad_number"),
    ("no type", lambda f: [f[0], {"x": 1}, *f[1:]], "bad_field"),
    ("another id", at("completed", put("response", "id", value="resp_other")), "changed"),
    ("no model", at("created", cut("response", "model")), "bad_field"),
    ("no response", at("created", cut("response")), "bad_field"),
    ("no logprobs", at("output_text.delta", cut("logprobs")), "bad_field"),
    ("delta null", at("output_text.delta", put("delta", value=None)), "bad_field"),
    ("no item_id", at("output_text.delta", cut("item_id")), "bad_field"),
    ("another item's id", at("output_text.delta", put("item_id", value="msg_x")), "wrong_place"),
    ("no item", at("output_item.added", cut("item")), "bad_field"),
    ("no done item", at("output_item.done", cut("item")), "bad_field"),
    ("a wrong place", at("output_item.added", put("output_index", value=4)), "wrong_place"),
    ("done elsewhere", at("output_item.done", put("output_index", value=4)), "wrong_place"),
    ("never added", drop("output_item.added"), "not_added"),
    ("items overlap", swap, "items_overlap"),
    (
        "one id for two items",
        lambda f: json.loads(json.dumps(f).replace('"msg_', '"rs_').replace("00000002", "00000001")),
        "id_taken",
    ),
    ("part never added", drop("content_part.added"), "not_open"),
    ("part in a wrong place", at("content_part.added", put("content_index", value=3)), "wrong_place"),
    ("no part", at("content_part.added", cut("part")), "bad_field"),
    ("a part that is none", at("content_part.added", put("part", "text", value=5)), "bad_item"),
    ("part never done", drop("content_part.done"), "left_open"),
    ("part done twice", repeat("content_part.done"), "not_open"),
    ("text done twice", repeat("output_text.done"), "not_open"),
    ("text done otherwise", at("output_text.done", put("text", value="other")), "sum_differs"),
    ("part done otherwise", at("content_part.done", put("part", "text", value="other")), "sum_differs"),
    ("a delta lost", drop("output_text.delta"), "sum_differs"),
    ("another name when done", at("output_item.done", put("item", "name", value="z"), 2), "item_differs"),
    (
        "other arguments when done",
        at("output_item.done", put("item", "arguments", value="{}"), 2),
        "item_differs",
    ),
    (
        "no JSON in arguments",
        at("output_item.done", put("item", "arguments", value="{"), 2),
        "torn_arguments",
    ),
    ("other content when done", at("output_item.done", put("item", "content", value=[]), 1), "item_differs"),
    ("content as text", at("output_item.done", put("item", "content", value="Hello"), 1), "bad_item"),
    ("a part that is text", at("output_item.done", put("item", "content", value=["Hello"]), 1), "bad_item"),
    ("no call_id", at("output_item.added", cut("item", "call_id"), 2), "bad_item"),
    ("an odd status", at("output_item.done", put("item", "status", value="ok")), "bad_item"),
    ("no annotations", at("content_part.added", cut("part", "annotations")), "bad_item"),
    ("item never done", drop("output_item.done", -1), "left_open"),
    ("empty output", at("completed", put("response", "output", value=[])), "output_differs"),
    ("another status", at("completed", put("response", "status", value="done")), "bad_end"),
    (
        "details of a whole reply",
        at("completed", put("response", "incomplete_details", value={"reason": "x"})),
        "bad_end",
    ),
    ("no total", at("completed", cut("response", "usage", "total_tokens")), "bad_field"),
    ("a wrong total", at("completed", put("response", "usage", "total_tokens", value=1)), "usage_sum"),
    ("a float", at("completed", put("response", "usage", "input_tokens", value=3.0)), "bad_field"),
    (
        "empty details",
        at("completed", put("response", "usage", "input_tokens_details", value={})),
        "bad_field",
    ),
    ("usage as text", at("completed", put("response", "usage", value="7")), "bad_field"),
    ("two ends", repeat("completed"), "after_end"),
    (
        "text after the end",
        lambda f: renumbered([*f[:-1], next(e for e in f if "delta" in e), "[DONE]"]),
        "after_end",
    ),
    ("no end", lambda f: f[:-2], "no_end"),
    ("nothing", lambda _: [], "no_reply"),
    ("after [DONE]", lambda f: [*f, f[0]], "after_done"),
    ("no JSON", lambda f: [b"data: {nope\n\n", *f], "not_json"),
    ("NaN", lambda f: [b'data: {"type":"x","sequence_number":NaN}\n\n', *f], "not_json"),
    ("no last blank line", lambda f: [*f[:-1], b"data: [DONE]\n"], "unended_frame"),
    (
        "an event named otherwise",
        lambda f: [b'event: ping\ndata: {"type":"response.x","sequence_number":0}\n\n', *f],
        "wrong_name",
    ),
    (
        "an error without words",
        lambda f: [*f[:-2], {"type": "error", "sequence_number": len(f) - 2}],
        "bad_end",
    ),
]
# The type `function_call` items are the third and fourth of four.


def on(number: int, *path: Any, value: Any = ..., shape: str = "") -> Callable[[Frames], Frames]:
    """Change chunk `number`: set what is at `path`, or take it out."""

    def plant(frames: Frames) -> Frames:
        (cut(*path) if value is ... else put(*path, value=value))(frames[number])
        return frames

    return plant


C = ("choices", 0)
D = (*C, "delta")
CHAT_FAULTS: list[tuple[str, Callable[[Frames], Any], str]] = [
    ("no id", on(1, "id"), "bad_field"),
    ("another id", on(2, "id", value="chatcmpl-2"), "changed"),
    ("another model", on(2, "model", value="x"), "changed"),
    ("created as a float", on(1, "created", value=7.5), "bad_field"),
    ("another object", on(1, "object", value="chat.completion"), "wrong_object"),
    ("no choices", on(1, "choices"), "bad_field"),
    ("empty choices", on(1, "choices", value=[]), "usage_place"),
    ("a choice without index", on(1, *C, "index"), "bad_index"),
    ("a choice that is text", on(1, *C, value="x"), "bad_index"),
    ("no delta", on(1, *C, "delta"), "bad_field"),
    ("no role", on(0, *D, "role"), "bad_role"),
    ("an empty role", on(1, *D, "role", value=""), "bad_role"),
    ("content as a list", on(2, *D, "content", value=[]), "bad_text"),
    ("calls as an object", on(5, *D, "tool_calls", value={}), "bad_field"),
    ("a call without index", on(5, *D, "tool_calls", 0, "index"), "call_index"),
    ("a call that skips", on(5, *D, "tool_calls", 0, "index", value=4), "call_index"),
    ("a call without id", on(5, *D, "tool_calls", 0, "id"), "call_opening"),
    ("a call without a name", on(5, *D, "tool_calls", 0, "function", value=None), "call_opening"),
    ("an id twice", on(6, *D, "tool_calls", 0, "id", value="call_a"), "call_repeated"),
    (
        "arguments as an object",
        on(6, *D, "tool_calls", 0, "function", "arguments", value={}),
        "bad_arguments",
    ),
    (
        "a part of the arguments lost",
        on(6, *D, "tool_calls", 0, "function", "arguments", value=""),
        "torn_arguments",
    ),
    ("an odd finish", on(-3, *C, "finish_reason", value="end_turn"), "bad_finish"),
    ("stop after calls", on(-3, *C, "finish_reason", value="stop"), "finish_mismatch"),
    ("finish twice", lambda f: [*f[:-2], f[-3], *f[-2:]], "second_finish"),
    ("text after the finish", lambda f: [*f[:-2], f[2], *f[-2:]], "after_end"),
    ("a call after the finish", lambda f: [*f[:-2], f[6], *f[-2:]], "after_end"),
    (
        "a new call after the finish",
        lambda f: [*f[:-2], chunk(call(2, id="c", function={"name": "f"})), *f[-2:]],
        "after_end",
    ),
    ("a new text after the finish", lambda f: [*f[:-2], chunk({"reasoning": "hm"}), *f[-2:]], "after_end"),
    ("usage in a choice", on(-3, "usage", value=USAGE), "usage_place"),
    ("usage twice", lambda f: [*f[:-1], f[-2], f[-1]], "usage_place"),
    ("usage as text", on(-2, "usage", value="7"), "bad_field"),
    ("a wrong total", on(-2, "usage", "total_tokens", value=1), "usage_sum"),
    ("no total", on(-2, "usage", "total_tokens"), "bad_field"),
    ("no finish", lambda f: [*f[:-3], *f[-1:]], "no_finish"),
    ("no [DONE]", lambda f: f[:-1], "no_done"),
    ("nothing", lambda _: ["[DONE]"], "no_reply"),
    ("after [DONE]", lambda f: [*f, f[0]], "after_done"),
    ("an error that is text", lambda f: [*f[:2], {"error": "boom"}, "[DONE]"], "bad_error"),
    ("text after an error", lambda f: [{"error": {"message": "boom"}}, f[0], "[DONE]"], "after_end"),
    ("no JSON", lambda f: [f[0], b"data: {nope\n\n", *f[1:]], "not_json"),
    ("no last blank line", lambda f: [*f[:-1], b"data: [DONE]"], "unended_frame"),
]


@pytest.mark.parametrize(
    ("plant", "rule"), [f[1:] for f in RESPONSES_FAULTS], ids=[f[0] for f in RESPONSES_FAULTS]
)
def test_a_planted_fault_in_a_responses_stream_is_named(plant: Callable[[Frames], Any], rule: str) -> None:
    data = written(plant(frames_of(OWN["responses"])), names=True)
    assert rule in rules("responses", data)


@pytest.mark.parametrize(("plant", "rule"), [f[1:] for f in CHAT_FAULTS], ids=[f[0] for f in CHAT_FAULTS])
def test_a_planted_fault_in_a_chat_stream_is_named(plant: Callable[[Frames], Any], rule: str) -> None:
    assert rule in rules("chat", written(plant(frames_of(OWN["chat"])), names=False))


def test_every_rule_is_planted() -> None:
    assert {rule for _, _, rule in RESPONSES_FAULTS} == set(RESPONSES_WHY)
    assert {rule for _, _, rule in CHAT_FAULTS} == set(CHAT_WHY)


def test_a_hosted_item_and_an_unknown_event_are_fine() -> None:
    item = {"id": "ws_1", "type": "web_search_call", "status": "completed"}
    place = {"output_index": 4, "item_id": "ws_1"}
    *frames, end, done = frames_of(OWN["responses"])
    end["response"]["output"].append(item)
    extra = [
        {"type": "response.output_item.added", "output_index": 4, "item": item},
        {"type": "response.web_search_call.searching", **place},
        {"type": "response.output_item.done", "output_index": 4, "item": item},
        {"type": "response.something_new"},
    ]
    assert checked("responses", written(renumbered([*frames, *extra, end, done]), names=True)) == []


def test_findings_are_bounded() -> None:
    assert len(checked("chat", b"data: x\n\n" * (2 * MAX_FINDINGS))) == MAX_FINDINGS


@pytest.mark.parametrize("shape", CHECKS)
@given(data=st.data())
def test_a_check_never_raises(shape: Shape, data: st.DataObject) -> None:
    frames = frames_of(OWN[shape])[:-1]
    for _ in range(data.draw(st.integers(1, 4))):
        holder: Any = data.draw(st.sampled_from(frames))
        while isinstance(holder, dict) and holder:
            key = data.draw(st.sampled_from(sorted(holder)))
            if not isinstance(holder[key], dict) or data.draw(st.booleans()):
                holder[key] = data.draw(VALUES)
                break
            holder = holder[key]
    checked(shape, written(frames, names=True))
