"""Reasoning told in two fields of one message: both where they differ, one where they are the same."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.translators.chat_edits import profile
from tests.translators.test_capsules import (
    CALL,
    SEALS,
    USER,
    answered,
    context,
    second,
    streamed,
    translation,
)
from tests.translators.test_capsules import _ids as ids
from translators.chat import ChatBackend, ChatClient
from translators.chat.edit import edit_request
from translators.chat.thoughts import ThoughtFields
from translators.ir import Json
from translators.translate import translate_request

VLLM = {
    "reasoning": {
        "fields": ["reasoning", "reasoning_content"],
        "replay": "field",
        "replay_field": "reasoning",
        "scope": "all",
    }
}
ONE_FIELD = {"reasoning": {"fields": ["reasoning_content"], "replay": "field", "scope": "all"}}


def both(first: str, then: str) -> Json:
    return {"reasoning": first, "reasoning_content": then}


STREAMS: dict[str, tuple[list[Json], list[str]]] = {
    "different": ([both("a ", "x "), both("b", "y")], ["a b", "x y"]),
    "the same": ([both("a ", "a "), both("b", "b")], ["a b"]),
    "the same, one after the other": (
        [{"reasoning": "a "}, {"reasoning_content": "a "}, {"reasoning": "b"}, {"reasoning_content": "b"}],
        ["a b"],
    ),
    "the same, in other pieces": ([both("a ", "a b"), {"reasoning": "b"}], ["a b"]),
    "the same but for blanks around it": ([both("a", "\na")], ["a"]),
    "one after the other": ([{"reasoning": "a"}, {"reasoning_content": "x"}], ["a", "x"]),
    "only the second": ([{"reasoning_content": "x "}, {"reasoning_content": "y"}], ["x y"]),
    "a blank one beside it": ([both(" ", "x"), both("\n", "y")], ["xy"]),
    "a blank one after it": ([both("a", " ")], ["a"]),
    "nothing but blanks": ([both(" ", "\n")], []),
    "blanks before the words": ([{"reasoning": "\n"}, {"reasoning": " a"}], ["\n a"]),
    "blanks inside": ([{"reasoning": "a"}, {"reasoning": "\n\n"}, {"reasoning": "b"}], ["a\n\nb"]),
    "the second begins first": ([{"reasoning_content": "x "}, both("a", "y")], ["x y", "a"]),
}


def words(output: list[Json]) -> list[str]:
    return ["".join(p["text"] for p in item["summary"]) for item in output if item["type"] == "reasoning"]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("more", [{"content": "so"}, {"tool_calls": [{"index": 0, **CALL}]}])
def test_a_stream_of_two_fields(name: str, more: Json) -> None:
    deltas, thoughts = STREAMS[name]
    output = streamed([*deltas, more], VLLM)
    assert words(output) == thoughts
    assert [item["type"] for item in output[len(thoughts) :]] == [
        "message" if "content" in more else "function_call"
    ]


@pytest.mark.parametrize("name", ["different", "the same", "a blank one after it", "nothing but blanks"])
def test_a_whole_reply_says_the_same_as_its_stream(name: str) -> None:
    deltas, thoughts = STREAMS[name]
    message: Json = {}
    for delta in deltas:
        message = {key: message.get(key, "") + text for key, text in delta.items()}
    assert words(answered({**message, "content": "so"}, VLLM)) == thoughts


def test_the_first_field_is_told_live() -> None:
    machine = translation([USER], VLLM).stream(context(stream=True))
    chunk = {"id": "x", "choices": [{"index": 0, "delta": both("early", "late")}]}
    out = machine.feed(b"data: " + orjson.dumps(chunk) + b"\n\n")
    assert b'"delta":"early"' in out
    assert b"late" not in out


@pytest.mark.parametrize("stream", [False, True])
def test_each_goes_back_in_its_own_field(stream: bool) -> None:
    call = {"tool_calls": [{"index": 0, **CALL}]}
    output = streamed([both("a", "x"), call], VLLM) if stream else answered({**both("a", "x"), **call}, VLLM)
    sent, losses = second(output, VLLM)
    assert {key: sent.get(key) for key in ("reasoning", "reasoning_content")} == both("a", "x")
    assert losses == []


@pytest.mark.parametrize("mode", ["summary-only", None])
def test_words_alone_know_their_field_too(mode: str | None) -> None:
    rules = {"reasoning": {**VLLM["reasoning"], "mode": mode}}
    output = answered({**both("a", "x"), "tool_calls": [CALL]}, rules)
    sent, _ = second(output, rules)
    assert (sent["reasoning"], sent["reasoning_content"]) == ("a", "x")


def test_one_field_needs_no_capsule() -> None:
    output = answered({**both("a", "a"), "tool_calls": [CALL]}, VLLM)
    assert "encrypted_content" not in output[0]
    assert second(output, VLLM)[0]["reasoning"] == "a"


def test_a_backend_that_takes_none_back_gets_none() -> None:
    output = answered({**both("a", "x"), "tool_calls": [CALL]}, VLLM)
    sent, losses = second(output, {})
    assert sent.keys() == {"role", "content", "tool_calls"}
    assert [loss.pointer for loss in losses] == ["/input/1", "/input/2"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_client_gets_and_returns_both(stream: bool) -> None:
    client = ChatClient()
    asked = {"role": "user", "content": "go"}
    call = client.decode_request({"model": "m", "messages": [asked]}, ids())
    way = translate_request(call, client, ChatBackend(), profile(**ONE_FIELD), SEALS)
    way.profile = profile(**VLLM)
    told = {"index": 0, "delta": {"reasoning": "x", "reasoning_content": "a", "content": "so"}}
    if stream:
        machine = way.stream(context(stream=True))
        frame = {"id": "x", "choices": [{**told, "finish_reason": "stop"}]}
        out = machine.feed(b"data: " + orjson.dumps(frame) + b"\n\ndata: [DONE]\n\n") + machine.close()
        lines = [orjson.loads(line[6:]) for line in out.split(b"\n") if line.startswith(b"data: {")]
        held: Json = {}
        for delta in (line["choices"][0]["delta"] for line in lines if line["choices"]):
            held |= {k: held.get(k, "") + v for k, v in delta.items() if k != "role" and v}
    else:
        choice = {"index": 0, "message": told["delta"], "finish_reason": "stop"}
        body, _ = way.reply({"id": "x", "choices": [choice]}, context())
        held = {k: v for k, v in body["choices"][0]["message"].items() if k != "role" and v}
    assert sorted((held.pop("reasoning"), held.pop("reasoning_content"))) == ["a", "x"]
    assert held == {"content": "so"}


def test_a_chat_clients_two_fields_are_two_items_and_go_back() -> None:
    client = ChatClient()
    message = {"role": "assistant", "content": "so", **both("a", "x")}
    body = {"model": "m", "messages": [{"role": "user", "content": "q"}, message]}
    call = client.decode_request(body, ids())
    assert [item.summary for item in call.items[1:3]] == [("x",), ("a",)]  # type: ignore[union-attr]
    encoded = translate_request(call, client, ChatBackend(), profile(**VLLM), SEALS).encoded
    assert encoded.body["messages"][1] == message
    assert encoded.losses == []


# --- in a body that passes -------------------------------------------------------------

PASSED: dict[str, tuple[Json, Json, Json, list[str]]] = {
    "both are the backend's": (VLLM, both("a", "x"), both("a", "x"), []),
    "the same twice": (VLLM, both("a", "a"), {"reasoning": "a"}, []),
    "the other one alone": (VLLM, {"reasoning_content": "x"}, {"reasoning": "x"}, []),
    "one is another backend's": (
        ONE_FIELD,
        both("a", "x"),
        {"reasoning_content": "x"},
        ["/messages/0/reasoning"],
    ),
    "neither is its own": (
        ONE_FIELD,
        {"reasoning": "a", "reasoning_text": "t"},
        {"reasoning_content": "a"},
        ["/messages/0/reasoning_text"],
    ),
    "a blank beside it": (ONE_FIELD, both(" ", "x"), {"reasoning_content": "x"}, []),
    "a closed message": (
        {**VLLM, "request": {"extra_keys": []}},
        both("a", "x"),
        both("a", "x"),
        [],
    ),
    "as one part": (
        {"reasoning": {"replay": "tags", "scope": "all"}},
        both("a", "x"),
        {"content": "<think>x\n\na</think>\nso"},
        [],
    ),
}


@pytest.mark.parametrize("name", PASSED)
def test_two_fields_of_a_body_that_passes(name: str) -> None:
    rules, held, sent, lost = PASSED[name]
    body = {
        "model": "m",
        "messages": [{"role": "assistant", "content": "so", **held}, {"role": "user", "content": "q"}],
    }
    edited = edit_request(body, profile(**rules))
    assert edited.body["messages"][0] == {"role": "assistant", "content": "so", **sent}
    assert [loss.pointer for loss in edited.losses] == lost
    assert edit_request(edited.body, profile(**rules)).body == edited.body


# --- several thoughts before one turn --------------------------------------------------


def thought(text: str, sealed: str | None = None) -> Json:
    item: Json = {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}
    return item if sealed is None else {**item, "encrypted_content": sealed}


PAIR = answered({**both("a", "x"), "tool_calls": [CALL]}, VLLM)[:2]
CUT = answered({**both("cut a", "cut x"), "tool_calls": [CALL]}, VLLM)[:2]
ASKED = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
LATEST: dict[str, tuple[list[Json], Json, list[str]]] = {
    "a cut try, then both fields": ([thought("cut"), *PAIR], both("a", "x"), ["/input/1"]),
    "both fields, then one thought": (
        [*PAIR, thought("last")],
        {"reasoning": "last"},
        ["/input/1", "/input/2"],
    ),
    "both fields twice": ([*CUT, *PAIR], both("a", "x"), ["/input/1", "/input/2"]),
    "one field of a cut try": ([CUT[0], *PAIR], both("a", "x"), ["/input/1"]),
    "two tries": ([thought("cut"), thought("last")], {"reasoning": "last"}, ["/input/1"]),
    "sealed elsewhere, with words": (
        [thought("cut", "gAAAA"), thought("last", "gBBBB")],
        {"reasoning": "last"},
        ["/input/1"],
    ),
}


@pytest.mark.parametrize("name", LATEST)
def test_the_thoughts_that_the_turn_was_said_after(name: str) -> None:
    items, sent, lost = LATEST[name]
    message, losses = second([*items, ASKED], VLLM)
    assert {key: message[key] for key in ("reasoning", "reasoning_content") if key in message} == sent
    assert [(loss.pointer, loss.kind) for loss in losses] == [(pointer, "policy") for pointer in lost]


def test_a_thought_without_words() -> None:
    fields: Any = ThoughtFields()
    assert (fields.feed([("a", " ")]), fields.live, fields.others()) == ("", "", [])
    assert (fields.feed([("b", "\n")]), fields.live, fields.others()) == ("", "", [])
