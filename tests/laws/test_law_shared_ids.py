"""Calls that share one id and are told apart by their index: none is lost, none is mixed up.

Gemini's ids are function names, so two calls of one function have the same. They may be opened
together before any of their arguments come, and their pieces may come in any order.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.folds import Failure, fold_chat_body
from tests.laws.pairs import context, plain_reply, sse_bytes, translate, understood, understood_body
from tests.laws.render_chat import chat_body
from tests.laws.scripts import ARGUMENTS, Request, Said, Script, cut
from tests.laws.test_law_same_lane import sdk_chat
from translators.chat.watch import ChatWatcher, tidy_reply
from translators.ir import Shape
from translators.profile import Profile

Json = dict[str, Any]
Later = Literal["bare", "with id", "with id and name"]
CLIENTS: list[Shape] = ["chat", "responses"]


@st.composite
def shared(draw: st.DrawFn) -> tuple[Script, list[Json]]:
    """Two to four calls with one id and two names at most, and their stream's chunks."""
    calls = []
    for _ in range(draw(st.integers(2, 4))):
        text = json.dumps(draw(ARGUMENTS), separators=(",", ":"))
        fragments = (*draw(st.sampled_from([(), ("",)])), *cut(draw, text))
        calls.append(Request("same", draw(st.sampled_from("ffg")), fragments))
    queues = [_entries(call, at, draw(_LATER)) for at, call in enumerate(calls)]
    entries = draw(_in_turns(queues))
    deltas = [{"tool_calls": [entry]} for entry in entries]
    if draw(st.booleans()):  # openings in one delta
        deltas = [{"tool_calls": entries[: len(calls)]}, *deltas[len(calls) :]]
    chunks = [_chunk({"role": "assistant", "content": None}), *map(_chunk, deltas), _chunk({}, "tool_calls")]
    return Script(tuple(calls), "stop", None), chunks


_LATER: st.SearchStrategy[Later] = st.sampled_from(["bare", "with id", "with id and name"])


def _entries(call: Request, index: int, later: Later) -> list[Json]:
    entries: list[Json] = [{"index": index, "function": {"arguments": text}} for text in call.fragments]
    for entry in entries if later != "bare" else entries[:1]:
        entry |= {"id": call.id, "type": "function"}
    for entry in entries if later == "with id and name" else entries[:1]:
        entry["function"]["name"] = call.name
    return entries


@st.composite
def _in_turns(draw: st.DrawFn, queues: list[list[Json]]) -> list[Json]:
    """The calls' entries in any order, but each opened after the one before it."""
    opened = draw(st.integers(0, len(queues)))
    entries = [queue.pop(0) for queue in queues[:opened]]
    while any(queues):
        ready = [at for at, queue in enumerate(queues) if queue and at <= opened]
        at = draw(st.sampled_from(ready))
        opened = max(opened, at + 1)
        entries.append(queues[at].pop(0))
    return entries


def _chunk(delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-up", "object": "chat.completion.chunk", "created": 5, "model": "up"}
    return {**head, "choices": [choice]}


def agrees(read: Said | Failure, script: Script) -> None:
    assert isinstance(read, Said)
    assert [(call.name, call.arguments) for call in read.calls] == [
        (call.name, call.called.arguments) for call in script.calls
    ]
    assert read.calls[0].id == "same"
    assert len({call.id for call in read.calls}) == len(script.calls)
    assert all(call.id for call in read.calls)
    assert read.reason == "tool_calls"


@pytest.mark.parametrize("client", CLIENTS)
@given(drawn=shared())
def test_a_translated_stream_keeps_every_call(client: Shape, drawn: tuple[Script, list[Json]]) -> None:
    script, chunks = drawn
    agrees(understood(client, translate(client, "chat", [sse_bytes(chunks)])), script)


@given(drawn=shared())
def test_a_passed_stream_keeps_every_call(drawn: tuple[Script, list[Json]]) -> None:
    script, chunks = drawn
    watcher = ChatWatcher(Profile(), context())
    out = watcher.feed(sse_bytes(chunks)) + watcher.close()
    agrees(sdk_chat(out), script)


@pytest.mark.parametrize("client", CLIENTS)
@given(drawn=shared())
def test_a_whole_reply_keeps_every_call(client: Shape, drawn: tuple[Script, list[Json]]) -> None:
    script, body = drawn[0], chat_body(drawn[0])
    agrees(understood_body(client, plain_reply(client, "chat", body)), script)
    agrees(fold_chat_body(tidy_reply(chat_body(script), Profile())[0]), script)
