"""A Responses backend's last word for a text, where it is not what its deltas add up to."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.laws.folds import Failure, fold_chat_stream, fold_responses_stream
from tests.laws.pairs import BACKENDS, CLIENTS, call, context, sse_bytes, translator
from translators.framing import SseFramer
from translators.guard import Violations
from translators.ir import Shape
from translators.profile import Profile
from translators.stream import StreamTranslator

Json = dict[str, Any]
SHAPES: list[Shape] = ["chat", "responses"]
FOLDS = {"chat": fold_chat_stream, "responses": fold_responses_stream}
KEYS = {"function_call": "arguments", "custom_tool_call": "input"}
STEMS = {"function_call": "function_call_arguments", "custom_tool_call": "custom_tool_call_input"}


def called(
    deltas: list[str], done: str | None, item: str | None, kind: str = "function_call", index: int = 0
) -> list[Json]:
    """The events of one call; `done` and `item`: what its two last events say, None for no such event."""
    key, stem = KEYS[kind], f"response.{STEMS[kind]}"
    head = {"type": kind, "id": f"i{index}", "call_id": f"call_{index}", "name": "f"}
    about = {"output_index": index, "item_id": f"i{index}"}
    added = {"type": "response.output_item.added", "output_index": index, "item": {**head, key: ""}}
    events = [added, *({"type": f"{stem}.delta", **about, "delta": delta} for delta in deltas)]
    if done is not None:
        events.append({"type": f"{stem}.done", **about, key: done})
    if item is not None:
        whole = {**head, key: item, "status": "completed"}
        events.append({"type": "response.output_item.done", "output_index": index, "item": whole})
    return events


def stream(*parts: list[Json]) -> list[Json]:
    return [
        {"type": "response.created", "response": {"id": "resp_up", "status": "in_progress"}},
        *(event for part in parts for event in part),
        {"type": "response.completed", "response": {"id": "resp_up", "status": "completed"}},
    ]


def translated(client: Shape, events: list[Json]) -> tuple[Any, Violations]:
    """What the client reads of it, fed byte by byte, and what the guard met."""
    machine = translator(client, "responses")
    data = sse_bytes(events)
    out = b"".join([machine.feed(data[at : at + 1]) for at in range(len(data))]) + machine.close()
    assert machine.fault is None
    return FOLDS[client](out), machine.violations


def folded(client: Shape, events: list[Json]) -> Json:
    """The same for a client that wants one body."""
    encoder = CLIENTS[client].encoder(call(client), context(stream=False))
    machine = StreamTranslator(BACKENDS["responses"].decoder(Profile()), encoder)
    assert machine.feed(sse_bytes(events)) == b""
    machine.close()
    return machine.body()


def arguments(client: Shape, body: Json) -> list[str]:
    if client == "chat":
        message = body["choices"][0]["message"]
        return [each["function"]["arguments"] for each in message["tool_calls"]]
    return [item["arguments"] for item in body["output"]]


GOOD: dict[str, tuple[list[str], str | None, str | None, str]] = {
    "the same": (['{"a":', "1}"], '{"a":1}', '{"a":1}', '{"a":1}'),
    "more": (['{"a":'], '{"a":1}', '{"a":1}', '{"a":1}'),
    "more, by the item alone": (['{"a":'], None, '{"a":1}', '{"a":1}'),
    "all of it": ([], '{"a":1}', '{"a":1}', '{"a":1}'),
    "all of it, by the item alone": ([], None, '{"a":1}', '{"a":1}'),
    "other spaces": (['{"a":', "1}"], '{ "a": 1 }', '{"a": 1}', '{"a":1}'),
    "other escapes": (['{"a":"é"}'], '{"a":"\\u00e9"}', '{"a":"\\u00e9"}', '{"a":"é"}'),
    "another order of keys": (['{"a":1,"b":2}'], '{"b":2,"a":1}', None, '{"a":1,"b":2}'),
    "empty": (['{"a":', "1}"], "", "", '{"a":1}'),
    "first wrong, then right": (['{"a":', "1}"], '{"a":2}', '{"a":1}', '{"a":1}'),
}


@pytest.mark.parametrize("client", SHAPES)
@pytest.mark.parametrize(("deltas", "done", "item", "told"), GOOD.values(), ids=GOOD)
def test_arguments_that_can_be_told(
    client: Shape, deltas: list[str], done: str | None, item: str | None, told: str
) -> None:
    events = stream(called(deltas, done, item))
    read, violations = translated(client, events)
    assert [each.arguments for each in read.calls] == [told]
    assert not violations
    assert arguments(client, folded(client, events)) == [told]


WRONG: dict[str, tuple[list[str], str | None, str | None, str]] = {
    "another value": (['{"a":', "1}"], '{"a":2}', '{"a":2}', '{"a":2}'),
    "another value, by the item alone": (['{"a":', "1}"], None, '{"a":2}', '{"a":2}'),
    "first right, then wrong": (['{"a":', "1}"], '{"a":1}', '{"a":2}', '{"a":2}'),
    "true is not 1": (['{"a":1}'], '{"a":true}', '{"a":true}', '{"a":true}'),
    "a piece was lost": (['{"a":', "}"], '{"a":1}', '{"a":1}', '{"a":1}'),
    "less": (['{"a":1}}'], '{"a":1}', '{"a":1}', '{"a":1}'),
}


@pytest.mark.parametrize("client", SHAPES)
@pytest.mark.parametrize(("deltas", "done", "item", "told"), WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_never_a_success(
    client: Shape, deltas: list[str], done: str | None, item: str | None, told: str
) -> None:
    events = stream(called(deltas, done, item))
    read, violations = translated(client, events)
    assert isinstance(read, Failure)
    assert "last word" in read.message
    assert violations == {"text_differs": 1}
    assert arguments(client, folded(client, events)) == [told]  # nothing had been sent of it


@pytest.mark.parametrize("client", SHAPES)
def test_a_custom_tools_input_is_no_json(client: Shape) -> None:
    machine = translator(client, "responses")
    out = machine.feed(sse_bytes(stream(called(["a ", "b"], "a b ", "a  b", "custom_tool_call"))))
    assert machine.error is not None
    assert b"last word" in out
    assert b"response.completed" not in out
    assert b'finish_reason":"' not in out


def test_a_call_that_waits_its_turn_is_told_right() -> None:
    """On the Responses wire items come one after another, so nothing of the second was sent."""
    events = stream(
        called(['{"a":1}'], '{"a":1}', None, index=0),
        called(['{"b":1}'], '{"b":2}', None, index=1),
    )
    read, violations = translated("responses", events)
    assert [each.arguments for each in read.calls] == ['{"a":1}', '{"b":2}']
    assert violations == {"text_differs": 1}
    assert isinstance(translated("chat", events)[0], Failure)


def test_the_failure_comes_after_what_was_told_before_it() -> None:
    text = {"type": "response.output_text.delta", "output_index": 0, "item_id": "m", "delta": "hello"}
    message = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "hello"}]}
    done = {"type": "response.output_item.done", "output_index": 0, "item": message}
    events = stream([text, done], called(['{"a":1}'], '{"a":2}', '{"a":2}', index=1))
    for client in SHAPES:
        read, _ = translated(client, events)
        assert (read.text, "last word" in read.message) == ("hello", True)


# --- prose ---------------------------------------------------------------------------------


def said(kind: str, deltas: list[str], done: str) -> list[Json]:
    where = {"output_index": 0, "item_id": "m"}
    where |= {"summary_index": 0} if "summary" in kind else {"content_index": 0}
    key = "refusal" if kind == "refusal" else "text"
    events = [{"type": f"response.{kind}.delta", **where, "delta": delta} for delta in deltas]
    return [*events, {"type": f"response.{kind}.done", **where, key: done}]


PROSE = {
    "output_text": "text",
    "refusal": "refusal",
    "reasoning_summary_text": "thought",
    "reasoning_text": "thought",
}


@pytest.mark.parametrize("client", SHAPES)
@pytest.mark.parametrize(("kind", "field"), PROSE.items())
def test_prose_that_differs_stays_as_it_was_read(client: Shape, kind: str, field: str) -> None:
    read, violations = translated(client, stream(said(kind, ["ab", "c"], "other")))
    assert getattr(read, field) == "abc"
    assert violations == {"text_differs": 1}
    read, violations = translated(client, stream(said(kind, ["ab", "c"], "abcd")))
    assert (getattr(read, field), violations) == ("abcd", {})


@pytest.mark.parametrize("client", SHAPES)
def test_one_body_has_the_last_word_for_prose(client: Shape) -> None:
    body = orjson.dumps(folded(client, stream(said("output_text", ["ab", "c"], "other"))))
    assert b"other" in body
    assert b"abc" not in body


def test_what_is_sealed_may_be_told_by_the_last_event_alone() -> None:
    """Where no `output_item.done` came; a signature without its item would be lost to the next turn."""
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    where = {"output_index": 0, "item_id": "rs_1", "summary_index": 0}
    told = {**item, "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "zz"}
    events = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.reasoning_summary_text.delta", **where, "delta": "h"},
        {"type": "response.completed", "response": {"status": "completed", "output": [told]}},
    ]
    chat = folded("chat", events)["choices"][0]["message"]
    assert chat["reasoning_content"] == "hm"
    assert chat["reasoning_details"][0]["data"] == "zz"
    (reasoning,) = folded("responses", events)["output"]
    assert (reasoning["encrypted_content"], reasoning["id"]) == ("zz", "rs_1")
    assert reasoning["summary"] == told["summary"]


def test_nothing_follows_the_failure() -> None:
    events = stream(called(['{"a":1}'], '{"a":2}', '{"a":2}'), called(["{}"], "{}", "{}", index=1))
    machine = translator("chat", "responses")
    payloads = SseFramer().feed(machine.feed(sse_bytes(events)) + machine.close())
    assert payloads[-1] == b"[DONE]"
    assert "error" in orjson.loads(payloads[-2])
    assert sum(b"error" in payload for payload in payloads) == 1
