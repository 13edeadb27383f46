"""Broken tool histories, each asked of every kind of backend: what is sent is legal, and nothing is lost.

`legal_chat` and `legal_responses` are written from what strict backends refuse, and share nothing
with the code that mends. Every text of a history is marked (`~so~`): it must be somewhere in what
is sent, or at a place that is reported as left out.
"""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.plan import Plan, make_plan
from app.request import parse_request
from app.telemetry.trace import Trace
from providers.base import Target
from tests.app.test_plan import Account
from tests.laws.profiles import row
from translators.errors import ProxyError
from translators.ir import Shape

CASES = json.loads((Path(__file__).parent.parent / "cases/broken_histories.json").read_text())
ROWS = ("base", "databricks-claude", "databricks-oss", "openai")
WIRES: tuple[Shape, ...] = ("chat", "responses")
LISTS: dict[Shape, str] = {"chat": "messages", "responses": "input"}

CALLS = ("function_call", "custom_tool_call")
"""Calls of the client's tools: what a backend refuses without a result."""
RESULTS = ("function_call_output", "custom_tool_call_output")


def plan(case: Any, wire: Shape, name: str, strict: bool = False) -> Plan:
    shape: Shape = case["shape"]
    raw = orjson.dumps({"model": "p/m", LISTS[shape]: case["history"]})
    headers = {b"x-dragoman-strict": b"true"} if strict else {}
    request = parse_request(shape, raw, headers, Trace(b"r1", ""))
    return make_plan(request, Target(Account(row(name, wire)), "m"), wire)


def legal_chat(messages: list[Any]) -> None:
    waiting: list[str] = []
    seen: set[str] = set()
    before: Any = {}
    for message in messages:
        before, last = message, before
        if message["role"] == "function":  # the old form: one call, paired by its place
            assert message["name"] == last["function_call"]["name"]
            continue
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            assert message["content"] is not None
            continue
        assert not waiting, f"{waiting} unanswered before {message}"
        assert message["role"] in ("user", "assistant", "system", "developer")
        for call in message.get("tool_calls", []):
            assert isinstance(call["id"], str)
            assert 0 < len(call["id"]) <= 64
            assert call["id"] not in seen
            seen.add(call["id"])
            waiting.append(call["id"])
            if call["type"] == "function":
                assert isinstance(call["function"]["arguments"], str)
                assert call["function"]["arguments"].strip()
    assert not waiting


def legal_responses(items: list[Any]) -> None:
    end = len(items)
    while end and items[end - 1].get("type", "message").endswith("_call"):
        end -= 1
    open_calls: set[str] = set()
    seen: set[str] = set()
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        if kind in (*CALLS, *RESULTS):
            assert isinstance(item["call_id"], str)
            assert 0 < len(item["call_id"]) <= 64
        if kind in CALLS:
            assert item["call_id"] not in seen
            seen.add(item["call_id"])
            assert isinstance(item["arguments" if kind == "function_call" else "input"], str)
            if place < end:
                open_calls.add(item["call_id"])
        elif kind.endswith("_call") and "call_id" in item:
            seen.add(item["call_id"])
        elif kind in RESULTS:
            assert item["output"] is not None
            assert item["call_id"] in seen
            seen_again = item["call_id"] in open_calls or not _is_called(items, item["call_id"])
            assert seen_again, "answered twice"
        if kind.endswith("_output"):
            open_calls.discard(item["call_id"])
    assert not open_calls


def _is_called(items: list[Any], call_id: str) -> bool:
    return any(item.get("type") in CALLS and item.get("call_id") == call_id for item in items)


LEGAL = {"chat": legal_chat, "responses": legal_responses}


def marks(value: Any) -> set[str]:
    return set(re.findall(r"~[a-z0-9-]+~?", json.dumps(value)))


def excused(case: Any, made: Plan) -> set[str]:
    """The marks at places that are reported as left out."""
    found: set[str] = set()
    for loss in made.encoded.losses:
        value: Any = {LISTS[case["shape"]]: case["history"]}
        for key in loss.pointer.split("/")[1:]:
            value = value[int(key)] if isinstance(value, list) else value.get(key)
        found |= marks(value)
    return found


def ids(value: Any) -> str:
    return str(value["name"]) if isinstance(value, dict) else str(value)


TABLE = list(product(CASES, WIRES, ROWS))


@pytest.mark.parametrize(("case", "wire", "name"), TABLE, ids=ids)
def test_what_is_sent_is_legal_and_says_everything(case: Any, wire: Shape, name: str) -> None:
    made = plan(case, wire, name)
    if wire == "chat" == case["shape"] and row(name, wire).answer.exact:
        assert made.encoded.repairs == []  # it judges the histories of its own shape itself
        return
    sent = orjson.loads(made.payload)
    LEGAL[wire](sent[LISTS[wire]])
    assert marks(case["history"]) - excused(case, made) <= marks(sent)


ORPHANS = [
    ("responses", "compaction left a result without its call", "input[1]"),
    ("responses", "a result comes twice", "input[3]"),
    ("responses", "a result names an item that is gone", "input[1]"),
    ("responses", "a result with an empty id and no call", "input[1]"),
    ("responses", "a custom result without its call", "input[1]"),
    ("chat", "compaction took one of two parallel calls", "messages[3]"),
    ("chat", "a result comes twice", "messages[3]"),
    ("chat", "a result without an id, but with a name", "messages[1]"),
]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("shape", "name", "param"), ORPHANS)
def test_a_client_that_wants_nothing_changed_hears_of_an_orphan(
    shape: Shape, name: str, param: str, wire: Shape
) -> None:
    (case,) = [each for each in CASES if (each["shape"], each["name"]) == (shape, name)]
    with pytest.raises(ProxyError) as raised:
        plan(case, wire, "base", strict=True)
    assert (raised.value.kind, raised.value.param) == ("bad_request", param)
    assert raised.value.message.startswith(f"{param}: the result of call ")


def test_an_orphan_under_an_id_that_was_made_to_fit_is_told_by_its_list() -> None:
    case = {
        "shape": "responses",
        "history": [{"type": "function_call_output", "call_id": "c" * 80, "output": "r"}],
    }
    with pytest.raises(ProxyError) as raised:
        plan(case, "responses", "base", strict=True)
    assert raised.value.param == "input"


def test_what_is_mended_without_a_change_of_words_is_not_refused() -> None:
    (case,) = [
        each for each in CASES if each["name"] == "the history ends in a call" and each["shape"] == "chat"
    ]
    assert plan(case, "chat", "base", strict=True).encoded.repairs
