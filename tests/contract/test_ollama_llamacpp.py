"""A real model behind the wire of Ollama, asked by the real SDK through a real gateway.

The tiny model's answers are known word for word (`test_llamacpp.py`), so what arrives can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
from openai import OpenAI

from tests.backends.gateway import Gateway, config_text
from tests.backends.llamacpp import LlamaServer
from tests.backends.ollama_front import NAME, OllamaFront
from tests.contract.test_llamacpp import CHAT_TOOLS, HELLO, RESPONSES_TOOLS, ask

pytest.importorskip("xllamacpp", reason="no wheel of llama.cpp for this platform")

MODEL = f"o/{NAME}"


@pytest.fixture(scope="module")
def front() -> Iterator[OllamaFront]:
    with LlamaServer() as llama, OllamaFront(llama) as front:
        yield front


@pytest.fixture(scope="module")
def sdk(front: OllamaFront, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAI]:
    folder = tmp_path_factory.mktemp("ollama")
    provider = {"name": "o", "kind": "ollama", "base_url": front.origin}
    with (
        Gateway(folder, config_text([provider])) as gateway,
        OpenAI(base_url=f"{gateway.base}/v1", api_key="none", max_retries=0) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def _nothing_is_refused(front: OllamaFront) -> Iterator[None]:
    yield
    assert front.refused == []


def test_both_shapes_whole(sdk: OpenAI) -> None:
    chat = sdk.chat.completions.create(model=MODEL, messages=ask("Say hello."), temperature=0)
    assert (chat.choices[0].message.content, chat.choices[0].finish_reason) == (HELLO, "stop")
    reply = sdk.responses.create(model=MODEL, input="Say hello.", temperature=0)
    assert (reply.output_text, reply.status) == (HELLO, "completed")
    assert chat.usage is not None
    assert reply.usage is not None
    assert chat.usage.total_tokens == reply.usage.total_tokens == 21


def test_both_shapes_streamed(sdk: OpenAI) -> None:
    with sdk.chat.completions.stream(model=MODEL, messages=ask("What is 2 plus 3?"), temperature=0) as chat:
        pieces = [event.delta for event in chat if event.type == "content.delta"]
    with sdk.responses.stream(model=MODEL, input="What is 2 plus 3?", temperature=0) as stream:
        told = [event.delta for event in stream if event.type == "response.output_text.delta"]
    assert "".join(pieces) == "".join(told) == "2 plus 3 is 5."
    assert min(len(pieces), len(told)) > 3


def test_a_reply_that_is_cut(sdk: OpenAI) -> None:
    reply = sdk.responses.create(model=MODEL, input="Say hello.", temperature=0, max_output_tokens=2)
    assert reply.status == "incomplete"
    assert reply.incomplete_details is not None
    assert reply.incomplete_details.reason == "max_output_tokens"


def test_a_call_and_what_comes_of_it_in_chat(sdk: OpenAI) -> None:
    messages = ask("What is the weather in Paris?")
    with sdk.chat.completions.stream(
        model=MODEL, messages=messages, tools=CHAT_TOOLS, temperature=0
    ) as stream:
        choice = stream.get_final_completion().choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls
    (call,) = choice.message.tool_calls
    assert call.function.arguments == '{"city":"Paris"}'
    messages += [choice.message.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    reply = sdk.chat.completions.create(model=MODEL, messages=messages, tools=CHAT_TOOLS, temperature=0)
    assert reply.choices[0].message.content == "The result for Paris is: sunny."


def test_calls_and_what_comes_of_one_in_responses(sdk: OpenAI) -> None:
    items = ask("Use get_weather for Rome and Oslo.")
    with sdk.responses.stream(model=MODEL, input=items, tools=RESPONSES_TOOLS, temperature=0) as stream:
        calls = [item for item in stream.get_final_response().output if item.type == "function_call"]
    assert [orjson.loads(call.arguments) for call in calls] == [{"city": "Rome"}, {"city": "Oslo"}]
    one = sdk.responses.create(
        model=MODEL, input=items, tools=RESPONSES_TOOLS, temperature=0, parallel_tool_calls=False
    )
    assert len([item for item in one.output if item.type == "function_call"]) == 1


def test_a_schema_holds_the_answer(sdk: OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    reply = sdk.chat.completions.create(
        model=MODEL,
        messages=ask("What is 2 plus 3?"),
        temperature=0,
        max_tokens=30,
        response_format={"type": "json_schema", "json_schema": {"name": "r", "schema": schema}},
    )
    assert (reply.choices[0].message.content or "").lstrip().startswith("{")
