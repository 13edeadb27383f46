"""Work grows with the length of what comes, not with its square.

Each case takes milliseconds when it is linear and minutes when it is not; the limit is far from both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.laws.pairs import BACKENDS, CLIENTS, new_ids
from translators.chat.history import repair_history
from translators.errors import decode_error
from translators.framing import FrameCutter, SseFramer
from translators.ir import Json
from translators.profile import ChoiceRules, Profile, ToolRules
from translators.thinking import ThinkSplitter
from translators.toolcalls import ToolCallAssembler
from translators.translate import translate_request

LIMIT_S = 5.0


def in_time(work: Callable[[], Any]) -> Any:
    began = time.monotonic()
    result = work()
    assert time.monotonic() - began < LIMIT_S
    return result


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
@pytest.mark.parametrize("size", [16, 4096])
def test_a_long_event_in_short_reads(end: bytes, size: int) -> None:
    event = b"data: " + b"x" * (4 << 20 if size > 1000 else 1 << 20) + end
    reads = [event[at : at + size] for at in range(0, len(event), size)]

    def frame() -> int:
        framer, cutter = SseFramer(), FrameCutter()
        found = [len(each) for read in reads for each in framer.feed(read)] + [*map(len, framer.close())]
        whole = [len(each) for read in reads for each in cutter.feed(read)] + [len(cutter.close())]
        assert sum(whole) == len(event)
        return sum(found)

    assert in_time(frame) == len(event) - 6 - len(end)


def test_many_events_in_one_read() -> None:
    sent = b"data: x\n\n" * 200_000
    assert len(in_time(lambda: SseFramer().feed(sent))) == 200_000


def test_thoughts_in_short_pieces() -> None:
    def split() -> str:
        splitter = ThinkSplitter(("<think>", "</think>"))
        pieces = ["<think>", *["a</thin"] * 50_000, "</think>", *["\n"] * 50_000, "text"]
        return "".join(splitter.feed(piece)[1] for piece in pieces)

    assert in_time(split) == "text"


@pytest.mark.parametrize("told", [{}, {"name": "f"}, {"id": "a", "name": "f"}])
def test_arguments_in_short_pieces(told: Json) -> None:
    def assemble() -> str:
        calls = ToolCallAssembler()
        calls.feed([{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"code": "'}}])
        head = {"id": told["id"]} if "id" in told else {}
        function = {"name": told["name"]} if "name" in told else {}
        for _ in range(20_000):
            calls.feed([{"index": 0, **head, "function": {**function, "arguments": "{ab} cd"}}])
        calls.feed([{"index": 0, "function": {"arguments": '"}'}}])
        return calls.calls[0].arguments

    assert in_time(assemble) == '{"code": "' + "{ab} cd" * 20_000 + '"}'


# --- requests --------------------------------------------------------------------------

USER: Json = {"role": "user", "content": "hi"}


def calling(*ids: str) -> Json:
    calls = [{"id": each, "type": "function", "function": {"name": "f", "arguments": "{}"}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(call_id: str) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": "r"}


def histories(count: int) -> dict[str, list[Json]]:
    ids = [f"c{i}" for i in range(count)]
    return {
        "one id for every call": [m for _ in ids for m in (USER, calling("f"), result("f"))],
        "one id in one turn": [calling(*["f"] * count), *[result("f") for _ in ids]],
        "many calls in one turn": [calling(*ids), *map(result, ids)],
        "results in reverse": [calling(*ids), *map(result, reversed(ids))],
        "results before their calls": [*map(result, ids), *[calling(each) for each in ids]],
        "no results": [m for each in ids for m in (USER, calling(each))],
        "no calls": [result(each) for each in ids],
        "a turn in many parts": [calling(each) for each in ids],
        "text after text": [calling("c"), *[{"role": "assistant", "content": each} for each in ids]],
    }


@pytest.mark.parametrize("name", histories(1))
def test_long_histories(name: str) -> None:
    messages = histories(8_000)[name]
    repaired, _ = in_time(lambda: repair_history(messages))
    assert repair_history(repaired) == (repaired, [])


NAMES = {
    "plain": [f"t{i}" for i in range(6_000)],
    "too long": ["n" * 100 + str(i) for i in range(6_000)],
    "the same": ["t"] * 6_000,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("backend", ["chat", "responses"])
def test_many_allowed_tools(name: str, backend: Any) -> None:
    tools = [{"type": "function", "name": each, "parameters": {"type": "object"}} for each in NAMES[name]]
    refs = [{"type": "function", "name": each} for each in NAMES[name]]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": refs}
    body = {"model": "m", "input": "x", "tools": tools, "tool_choice": choice}
    profile = Profile(tools=ToolRules(choice=ChoiceRules(allowed_tools="filter")))

    def ask() -> Any:
        client = CLIENTS["responses"]
        call = client.decode_request(body, new_ids())
        return translate_request(call, client, BACKENDS[backend], profile).encoded.body

    assert len(in_time(ask)["tools"]) == len(set(NAMES[name]))


def test_many_hosted_tools_chosen() -> None:
    tools = [
        {"type": "mcp", "server_label": f"s{i}", "server_url": "https://x.example"} for i in range(5_000)
    ]
    refs = [{"type": "mcp", "server_label": f"s{i}"} for i in range(5_000)]
    body = {"model": "m", "input": "x", "tools": tools}
    body["tool_choice"] = {"type": "allowed_tools", "mode": "auto", "tools": refs}
    call = in_time(lambda: CLIENTS["responses"].decode_request(body, new_ids()))
    assert len(call.tool_choice.only) == 5_000


# --- errors ----------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"<html>" + b"<title" * 100_000, b"<" * 500_000, b"try again in " * 50_000])
def test_pages_that_are_no_error(body: bytes) -> None:
    assert in_time(lambda: decode_error(500, body, {}, Profile())).http_status == 500
