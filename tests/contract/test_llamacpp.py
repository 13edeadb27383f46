"""A real third-party backend: llama.cpp's server, spoken to on both of its wires, by the real SDK.

The tiny model's answers are known word for word, so what arrives can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from openai import OpenAI

from tests.backends.gateway import Gateway, config_text
from tests.backends.llamacpp import MODEL, LlamaServer

pytest.importorskip("xllamacpp", reason="no wheel of llama.cpp for this platform")

HELLO = "Hello! How can I help you today?"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION: dict[str, Any] = {
    "name": "get_weather",
    "description": "Weather of a city",
    "parameters": PARAMETERS,
}
CHAT_TOOLS: list[Any] = [{"type": "function", "function": FUNCTION}]
RESPONSES_TOOLS: list[Any] = [{"type": "function", "strict": False, **FUNCTION}]


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    with LlamaServer() as llama:
        base = f"{llama.origin}/v1"
        providers = [
            {"name": wire, "kind": "openai", "base_url": base, "wire": wire, "profile": "llamacpp"}
            for wire in ("chat", "responses")
        ]
        folder = tmp_path_factory.mktemp("llamacpp")
        with (
            Gateway(folder, config_text(providers)) as gateway,
            OpenAI(base_url=f"{gateway.base}/v1", api_key="none", max_retries=0) as client,
        ):
            yield client


@pytest.fixture(params=["chat", "responses"])
def model(request: pytest.FixtureRequest) -> str:
    """The same model, behind either wire."""
    return f"{request.param}/{MODEL}"


def ask(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def test_chat(sdk: OpenAI, model: str) -> None:
    reply = sdk.chat.completions.create(model=model, messages=ask("Say hello."), temperature=0)
    assert reply.choices[0].message.content == HELLO
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.total_tokens == 21


def test_chat_stream(sdk: OpenAI, model: str) -> None:
    with sdk.chat.completions.stream(
        model=model,
        messages=ask("What is 2 plus 3?"),
        temperature=0,
        stream_options={"include_usage": True},
    ) as stream:
        pieces = [event.delta for event in stream if event.type == "content.delta"]
        whole = stream.get_final_completion()
    assert "".join(pieces) == whole.choices[0].message.content == "2 plus 3 is 5."
    assert len(pieces) > 3
    assert whole.usage is not None
    assert whole.usage.completion_tokens == 7


def test_chat_tools(sdk: OpenAI, model: str) -> None:
    """A call, its result, and the answer made of it."""
    messages = ask("What is the weather in Paris?")
    with sdk.chat.completions.stream(
        model=model, messages=messages, tools=CHAT_TOOLS, temperature=0
    ) as stream:
        message = stream.get_final_completion().choices[0].message
    assert message.tool_calls
    assert [orjson.loads(call.function.arguments) for call in message.tool_calls] == [{"city": "Paris"}]
    messages += [
        message.to_dict(),
        {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"},
    ]
    reply = sdk.chat.completions.create(model=model, messages=messages, tools=CHAT_TOOLS, temperature=0)
    assert reply.choices[0].message.content == "The result for Paris is: sunny."


def test_responses(sdk: OpenAI, model: str) -> None:
    reply = sdk.responses.create(model=model, input="Say hello.", temperature=0)
    assert reply.output_text == HELLO
    assert reply.status == "completed"
    assert reply.usage is not None
    assert reply.usage.total_tokens == 21


def test_responses_stream(sdk: OpenAI, model: str) -> None:
    with sdk.responses.stream(model=model, input="What is 2 plus 3?", temperature=0) as stream:
        pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
        whole = stream.get_final_response()
    assert "".join(pieces) == whole.output_text == "2 plus 3 is 5."
    assert len(pieces) > 3


def test_responses_parallel_calls(sdk: OpenAI, model: str) -> None:
    items = ask("Use get_weather for Rome and Oslo.")
    with sdk.responses.stream(model=model, input=items, tools=RESPONSES_TOOLS, temperature=0) as stream:
        calls = [item for item in stream.get_final_response().output if item.type == "function_call"]
    assert [orjson.loads(call.arguments) for call in calls] == [{"city": "Rome"}, {"city": "Oslo"}]


def test_responses_tools(sdk: OpenAI, model: str) -> None:
    """A call, its result, and the answer made of it."""
    items = ask("What is the weather in Paris?")
    with sdk.responses.stream(model=model, input=items, tools=RESPONSES_TOOLS, temperature=0) as stream:
        (call,) = stream.get_final_response().output
    assert call.type == "function_call"
    items += [call.to_dict(), {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
    reply = sdk.responses.create(model=model, input=items, tools=RESPONSES_TOOLS, temperature=0)
    assert reply.output_text == "The result for Paris is: sunny."
