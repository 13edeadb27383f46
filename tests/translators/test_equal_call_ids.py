"""Calls of one Responses input that share an id, or whose ids are written in another way."""

from __future__ import annotations

import pytest

from translators.ir import Json
from translators.profile import Profile
from translators.responses import ResponsesBackend

USER: Json = {"type": "message", "role": "user", "content": "go"}


def call(call_id: str, **more: str) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}", **more}


def result(call_id: str, output: str) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


INPUTS: dict[str, tuple[list[Json], list[Json], int]] = {
    # input, what is sent of it, repairs
    "two calls of one turn": (
        [call("c"), call("c"), result("c", "1"), result("c", "2"), USER],
        [call("c"), call("c_2"), result("c", "1"), result("c_2", "2"), USER],
        1,
    ),
    "the same id in two turns": (
        [call("c"), result("c", "1"), USER, call("c"), result("c", "2"), USER],
        [call("c"), result("c", "1"), USER, call("c_2"), result("c_2", "2"), USER],
        1,
    ),
    "an id for each": (
        [call("c"), result("c", "1"), USER, call("d"), result("d", "2"), USER],
        [call("c"), result("c", "1"), USER, call("d"), result("d", "2"), USER],
        0,
    ),
    "with the item's own id in it": (
        [call("c|fc_1"), result("c|fc_1", "1"), USER],
        [call("c", id="fc_1"), result("c", "1"), USER],
        0,
    ),
    "with another own id beside it": (
        [call("c|fc_1", id="fc_9"), result("c", "1"), USER],
        [call("c", id="fc_9"), result("c", "1"), USER],
        0,
    ),
    "with nothing behind the bar": (
        [call("c|"), result("c|", "1"), USER],
        [call("c"), result("c", "1"), USER],
        0,
    ),
}


@pytest.mark.parametrize("name", INPUTS)
def test_every_result_finds_its_call(name: str) -> None:
    given, sent, repairs = INPUTS[name]
    edited = ResponsesBackend().edit_request({"model": "m", "store": False, "input": given}, Profile())
    assert edited.body["input"] == sent
    assert len(edited.repairs) == repairs
    assert edited.losses == []
