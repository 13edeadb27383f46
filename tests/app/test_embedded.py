"""What a stranger gets from `dragoman serve` with nothing configured: answers, without a key."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from app.cli.discover import EMBEDDED_MODEL, NEXT_STEPS, ONLY_EMBEDDED, discover
from tests.app.onnx_served import FLAT, calls, events, folded
from tests.backends.gateway import Gateway


def test_it_is_all_there_is(tmp_path: Path) -> None:
    found = discover({}, {}, tmp_path, (), embedded=True)
    assert [(each.name, each.kind) for each in found.config.providers] == [("embedded", "onnx")]
    assert found.config.classes == {}
    assert ONLY_EMBEDDED in found.lines
    assert found.lines[-1] == NEXT_STEPS[-1]
    (command,) = [line for line in found.lines if line.startswith("try it: ")]
    assert EMBEDDED_MODEL in command


def test_it_stands_in_for_no_real_model(tmp_path: Path) -> None:
    found = discover({"OPENAI_API_KEY": "sk"}, {}, tmp_path, (), embedded=True)
    assert [each.name for each in found.config.providers] == ["openai", "embedded"]
    assert found.config.classes == {"tiny chat": "never"}
    assert ONLY_EMBEDDED not in found.lines


@pytest.fixture
def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> httpx.Client:
    with Gateway(tmp_path, env={"OLLAMA_HOST": "127.0.0.1:9"}) as running, running.client() as client:
        yield client


def ask(gateway: httpx.Client, path: str, **body: object) -> httpx.Response:
    return gateway.post(path, json={"model": EMBEDDED_MODEL, "stream": True, **body})


def test_it_answers_streams_thinks_and_calls_a_tool(gateway: httpx.Client) -> None:
    turn = [{"role": "user", "content": "Say hello."}]
    told = folded(events(ask(gateway, "/v1/chat/completions", messages=turn)))
    assert told["content"] == "Hello! How can I help you today?"
    weather = events(
        ask(
            gateway, "/v1/responses", input="What is the weather in Paris?", tools=[FLAT],
            reasoning={"effort": "low", "summary": "auto"},
        )
    )  # fmt: skip
    items = {
        each["item"]["type"]: each["item"] for each in weather if each["type"] == "response.output_item.done"
    }
    assert items["reasoning"]["summary"]
    assert json.loads(items["function_call"]["arguments"]) == {"city": "Paris"}
    assert calls([{"function": items["function_call"]}]) == [("get_weather", {"city": "Paris"})]
