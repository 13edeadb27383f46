"""What a model writes as chunks and as a body, with what it counts: no model needed."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from providers.onnx.protocol import Delta, Done
from providers.onnx.reply import Answer, Head, Reply, chunks, end, finish_chunk, first_chunk, usage, whole
from translators.local.families import BY_NAME
from translators.local.parser import make_parser

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


def reply(family: str = "hermes", *, thinking: bool = False, tools: bool = True, **head: Any) -> Reply:
    ids = iter(f"call_{number}" for number in range(9))
    held = Head("chatcmpl-1", 5, "m", lambda: next(ids), **head)
    parser = make_parser(BY_NAME[family], TOOLS if tools else [], thinking_open=thinking)
    return Reply(held, parser)


def entries(*tokens: str) -> list[dict[str, Any]]:
    return [{"token": token, "logprob": -0.5, "bytes": list(token.encode())} for token in tokens]


def done(finish: Any = "stop", tokens: int = 9) -> Done:
    return Done(finish, None, 4, tokens, 1)


CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_tokens_are_counted_as_what_they_say(size: int) -> None:
    held = reply(thinking=True)
    text = "ab cd</think>\n\nhello"
    for at in range(0, len(text), size):
        held.feed(Delta(text[at : at + size], len(text[at : at + size])))
    held.close(done(tokens=len(text)))
    assert 5 <= held.reasoning_tokens <= 15
    assert held.finish(done()) == "stop"


def test_a_thought_that_is_cut_is_all_thought() -> None:
    held = reply(thinking=True)
    held.feed(Delta("abc", 3))
    held.feed(Delta(" ", 2))
    held.close(done("length"))
    assert held.reasoning_tokens == 5
    assert held.finish(done("length")) == "length"


def test_calls_have_ids_and_places() -> None:
    held = reply()
    told = held.feed(Delta(f"{CALL}\n{CALL}", 30)) + held.close(done())
    answer = orjson.loads(whole(held.head, [Answer(held, done(), told)]))["choices"][0]
    assert [each["id"] for each in answer["message"]["tool_calls"]] == ["call_0", "call_1"]
    assert answer["finish_reason"] == "tool_calls"
    streamed = [each["tool_calls"][0]["index"] for each, _ in told]
    assert streamed == [0, 0, 1, 1]


def test_one_call_is_enough_where_they_may_not_be_several() -> None:
    held = reply(parallel=False)
    told = held.feed(Delta(f"{CALL}\n{CALL}", 30)) + held.close(done())
    assert len(told) == 2


def test_a_call_cut_by_the_limit_is_left_out() -> None:
    held = reply()
    told = held.feed(Delta(CALL[:30], 9)) + held.close(done("length"))
    assert told == []
    body = orjson.loads(whole(held.head, [Answer(held, done("length"), told)]))
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "", "refusal": None}
    assert body["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (("a", " b"), ["a", " b"]),
        (("x", "</think>", "\n\n", "a", " b"), ["a", " b"]),
        (("\N{REPLACEMENT CHARACTER}", "\N{REPLACEMENT CHARACTER}"), ["\N{REPLACEMENT CHARACTER}"] * 2),
    ],
)
def test_the_text_has_its_tokens(tokens: tuple[str, ...], expected: list[str]) -> None:
    held = reply(thinking="</think>" in tokens, logprobs=True)
    text = "".join(tokens) if "a" in tokens else "é"
    told = held.feed(Delta(text, len(tokens), entries(*tokens)))
    assert [entry["token"] for _, found in told for entry in found] == expected
    (line,) = [each for each in chunks(held, told).splitlines() if b'"content":[' in each]
    assert orjson.loads(line.removeprefix(b"data: "))["choices"][0]["logprobs"]["refusal"] is None


def test_tokens_that_wait_for_their_text() -> None:
    held = reply(logprobs=True)
    told = held.feed(Delta("a ", 2, entries("a", " "))) + held.feed(Delta("b", 1, entries("b")))
    assert [[entry["token"] for entry in found] for _, found in told] == [["a"], [" ", "b"]]


def test_the_tokens_of_a_call_are_nobodys() -> None:
    held = reply(logprobs=True)
    told = held.feed(Delta(CALL, 1, entries(CALL)))
    assert [found for _, found in told] == [(), ()]


def test_the_frame_of_a_stream() -> None:
    held = reply(usage=True)
    data = first_chunk(held) + finish_chunk(held, done()) + end(held.head, [Answer(held, done())])
    lines = [line.removeprefix(b"data: ") for line in data.split(b"\n\n") if line]
    first, last, counts = map(orjson.loads, lines[:-1])
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert (first["usage"], last["choices"][0]["finish_reason"]) == (None, "stop")
    assert (counts["choices"], counts["usage"]["total_tokens"]) == ([], 13)
    assert lines[-1] == b"[DONE]"
    plain = reply()
    assert end(plain.head, [Answer(plain, done())]) == b"data: [DONE]\n\n"
    assert b"usage" not in first_chunk(plain)


def test_the_prompt_of_several_answers_counts_once() -> None:
    one, two = reply(), reply()
    one.reasoning_tokens = 99
    found = usage([Answer(one, done(tokens=5)), Answer(two, done(tokens=7))])
    assert (found["prompt_tokens"], found["completion_tokens"], found["total_tokens"]) == (4, 12, 16)
    assert found["completion_tokens_details"] == {"reasoning_tokens": 5}
    assert found["prompt_tokens_details"] == {"cached_tokens": 1}
