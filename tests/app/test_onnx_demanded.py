"""`structured_outputs` of Chat Completions over the packaged model: regex, choice, schema, Lark."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.app.conftest import Serve, Served
from tests.app.onnx_served import WEATHER, chat, events, folded, started

SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": [1, 2]}},
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.fixture
def served(serve: Serve) -> Served:
    return started(serve)


DEMANDS: list[tuple[dict[str, Any], str]] = [
    ({"regex": "[A-C]{3}/[0-9]"}, r"[A-C]{3}/[0-9]"),
    ({"choice": ["yes/no", "(maybe)"]}, r"yes/no|\(maybe\)"),
    ({"grammar": 'start: "x" NUMBER "y"\nNUMBER: /[0-9]{2}/'}, r"x[0-9]{2}y"),
    ({"json": SCHEMA}, r'\{\s*"a":\s*[12]\s*\}'),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("demand", "pattern"), DEMANDS, ids=lambda value: str(value)[:12])
def test_the_answer_is_what_was_demanded(
    served: Served, demand: dict[str, Any], pattern: str, stream: bool
) -> None:
    reply = chat(served, structured_outputs=demand, stream=stream)
    assert reply.status_code == 200, reply.text
    text = folded(events(reply))["content"] if stream else reply.json()["choices"][0]["message"]["content"]
    assert re.fullmatch(pattern, text)
    assert reply.headers.get("x-dragoman-dropped", "") == ""


@pytest.mark.parametrize("demand", [{"regex": "[A-C]{3}/[0-9]"}, {"choice": ["a/b", "c\nd"]}])
def test_a_thought_may_come_first(served: Served, demand: dict[str, Any]) -> None:
    message = chat(
        served,
        "What is the weather in Paris?",
        structured_outputs=demand,
        reasoning_effort="low",
        max_tokens=300,
    ).json()["choices"][0]["message"]
    assert message["reasoning_content"]
    assert message["content"] in ("a/b", "c\nd") or re.fullmatch("[A-C]{3}/[0-9]", message["content"])


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"structured_outputs": "x"}, "structured_outputs"),
    ({"structured_outputs": {}}, "structured_outputs"),
    ({"structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs"),
    ({"structured_outputs": {"bnf": "a"}}, "structured_outputs"),
    ({"structured_outputs": {"regex": ""}}, "structured_outputs.regex"),
    ({"structured_outputs": {"choice": []}}, "structured_outputs.choice"),
    ({"structured_outputs": {"choice": ["a", 1]}}, "structured_outputs.choice"),
    ({"structured_outputs": {"json": "{}"}}, "structured_outputs.json"),
    (
        {"structured_outputs": {"regex": "a"}, "response_format": {"type": "json_object"}},
        "structured_outputs",
    ),
    (
        {"structured_outputs": {"regex": "a"}, "tools": [WEATHER], "tool_choice": "required"},
        "structured_outputs",
    ),
    (
        {"structured_outputs": {"grammar": 'start: "x"'}, "reasoning_effort": "low"},
        "structured_outputs.grammar",
    ),
]


@pytest.mark.parametrize(("more", "param"), WRONG, ids=str)
def test_what_cannot_be_demanded(served: Served, more: dict[str, Any], param: str) -> None:
    reply = chat(served, **more)
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == param


@pytest.mark.parametrize("demand", [{"regex": "("}, {"grammar": "start: nothing"}])
def test_what_is_no_grammar(served: Served, demand: dict[str, Any]) -> None:
    reply = chat(served, structured_outputs=demand)
    assert reply.status_code == 400, reply.text
    assert "cannot be held to this format" in reply.json()["error"]["message"]


def test_null_demands_nothing(served: Served) -> None:
    assert json.loads(chat(served, structured_outputs=None).text)["choices"][0]["message"]["content"]
