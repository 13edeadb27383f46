"""The same model for a Responses client: translated from Chat Completions on the way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.app.conftest import Serve, Served
from tests.app.onnx_served import FLAT, events, output, responses, started


@pytest.fixture
def served(serve: Serve) -> Served:
    return started(serve)


def text_of(items: list[dict[str, Any]]) -> str:
    return "".join(part["text"] for item in items for part in item["content"])


@pytest.mark.parametrize(
    ("text", "answer"),
    [("Say hello.", "Hello! How can I help you today?"), ("What is 2 plus 3?", "2 plus 3 is 5.")],
)
def test_it_answers_and_streams(served: Served, text: str, answer: str) -> None:
    assert text_of(output(responses(served, text), "message")) == answer
    told = events(responses(served, text, stream=True))
    deltas = [each["delta"] for each in told if each["type"] == "response.output_text.delta"]
    assert "".join(deltas) == answer
    assert told[-1]["type"] == "response.completed"
    assert told[-1]["response"]["usage"]["output_tokens"] > 3


def test_it_thinks_and_calls(served: Served) -> None:
    reply = responses(
        served, "What is the weather in Paris?", tools=[FLAT], reasoning={"effort": "low", "summary": "auto"}
    )
    (thought,) = output(reply, "reasoning")
    assert "get_weather" in thought["summary"][0]["text"]
    (call,) = output(reply, "function_call")
    assert (call["name"], json.loads(call["arguments"])) == ("get_weather", {"city": "Paris"})
    assert reply.json()["usage"]["output_tokens_details"]["reasoning_tokens"] > 3


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "get_weather"}], ids=str)
def test_it_must_call(served: Served, choice: Any) -> None:
    reply = responses(served, "Say hello.", tools=[FLAT], tool_choice=choice)
    assert {each["name"] for each in output(reply, "function_call")} == {"get_weather"}


def test_two_calls_and_none(served: Served) -> None:
    text = "What is the weather in Rome and Oslo?"
    cities = [
        json.loads(each["arguments"])["city"]
        for each in output(responses(served, text, tools=[FLAT]), "function_call")
    ]
    assert cities == ["Rome", "Oslo"]
    assert not output(responses(served, text, tools=[FLAT], tool_choice="none"), "function_call")


def test_the_result_of_a_call(served: Served) -> None:
    turns = [
        {"role": "user", "content": "What is the weather in Paris?"},
        {"type": "function_call", "call_id": "c", "name": "get_weather", "arguments": '{"city": "Paris"}'},
        {"type": "function_call_output", "call_id": "c", "output": "sunny"},
    ]
    assert "sunny" in text_of(output(responses(served, turns, tools=[FLAT]), "message"))


def test_a_schema_and_the_limit(served: Served) -> None:
    schema = {
        "type": "object",
        "properties": {"yes": {"type": "boolean"}},
        "required": ["yes"],
        "additionalProperties": False,
    }
    form = {"format": {"type": "json_schema", "name": "x", "schema": schema, "strict": True}}
    assert type(json.loads(text_of(output(responses(served, text=form), "message")))["yes"]) is bool
    cut = responses(served, max_output_tokens=2).json()
    assert (cut["status"], cut["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_too_long(served: Served, stream: bool) -> None:
    reply = responses(served, "hello world " * 9000, stream=stream)
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == "context_length_exceeded"
