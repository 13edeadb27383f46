"""A real model through the whole gateway: SmolLM2-135M, which `make real-model` makes; skipped without it.

It is as small as models get that follow anything, so what is asked here is what it cannot get wrong: a fact
that every model knows, and what a grammar holds it to.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import BadRequestError, OpenAI

from providers.onnx.extra import EMBEDDED
from tests.app.onnx_served import FLAT, WEATHER
from tests.backends.gateway import Gateway, config_text
from translators.local.call_grammars import MOST_CALLS

PLACE = Path(
    os.environ.get("DRAGOMAN_REAL_MODEL")
    or Path(__file__).parents[2] / ".cache" / "real-model" / "smollm2-135m"
)
PLAIN, CALLING = "local/plain", "local/calling"
QUESTION: Any = [{"role": "user", "content": "What is the capital of France? Answer in one short sentence."}]
WEATHER_ASKED: Any = [{"role": "user", "content": "What is the weather in Paris?"}]
PERSON: Any = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}

pytestmark = pytest.mark.skipif(
    not (PLACE / "genai_config.json").is_file(), reason="no real model here: `make real-model` makes one"
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The model as it is, and under a template that tells it of tools: its own has no word for them."""
    root = tmp_path_factory.mktemp("real")
    for name in ("plain", "calling"):
        folder = root / "models" / name
        folder.mkdir(parents=True)
        for file in PLACE.iterdir():
            (folder / file.name).symlink_to(file)
    template = root / "models" / "calling" / "chat_template.jinja"
    template.unlink()
    template.symlink_to(EMBEDDED / "tiny-chat" / "chat_template.jinja")
    provider = {"name": "local", "kind": "onnx", "path": str(root / "models")}
    with Gateway(root, config_text([provider])) as found:
        yield found


@pytest.fixture(scope="module")
def sdk(gateway: Gateway) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{gateway.base}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_it_answers(sdk: OpenAI) -> None:
    reply = sdk.chat.completions.create(model=PLAIN, messages=QUESTION, temperature=0, max_tokens=60)
    assert "Paris" in (reply.choices[0].message.content or "")
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.completion_tokens > 5


def test_a_stream_is_the_same_text_in_pieces(sdk: OpenAI) -> None:
    whole = sdk.chat.completions.create(model=PLAIN, messages=QUESTION, temperature=0, max_tokens=60)
    stream = sdk.chat.completions.create(
        model=PLAIN, messages=QUESTION, temperature=0, max_tokens=60, stream=True
    )
    pieces = [chunk.choices[0].delta.content or "" for chunk in stream]
    assert "".join(pieces) == whole.choices[0].message.content
    assert sum(bool(piece) for piece in pieces) >= 2


def test_responses(sdk: OpenAI) -> None:
    with sdk.responses.stream(model=PLAIN, input=QUESTION, temperature=0, max_output_tokens=60) as stream:
        kinds = [event.type for event in stream]
        reply = stream.get_final_response()
    assert "Paris" in reply.output_text
    assert reply.status == "completed"
    assert kinds.count("response.output_text.delta") >= 2


def test_a_seed_repeats_and_others_differ(sdk: OpenAI) -> None:
    def told(seed: int) -> str | None:
        question: Any = [{"role": "user", "content": "Tell me a short story."}]
        reply = sdk.chat.completions.create(
            model=PLAIN, messages=question, temperature=1, top_p=0.95, seed=seed, max_tokens=40
        )
        return reply.choices[0].message.content

    first = told(1)
    assert told(1) == first
    assert any(told(seed) != first for seed in (2, 3))


def test_a_conversation_goes_on_from_what_is_in_memory(sdk: OpenAI) -> None:
    first = sdk.chat.completions.create(model=PLAIN, messages=QUESTION, temperature=0, max_tokens=60)
    said: Any = {"role": "assistant", "content": first.choices[0].message.content}
    more: Any = [*QUESTION, said, {"role": "user", "content": "And of Italy?"}]
    usage = sdk.chat.completions.create(model=PLAIN, messages=more, temperature=0, max_tokens=30).usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert first.usage is not None
    assert (usage.prompt_tokens_details.cached_tokens or 0) > first.usage.prompt_tokens


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_a_grammar_has_it_call(sdk: OpenAI, choice: Any) -> None:
    tools: Any = [WEATHER]
    reply = sdk.chat.completions.create(
        model=CALLING,
        messages=WEATHER_ASKED,
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=False,
        temperature=0,
    )
    (call,) = reply.choices[0].message.tool_calls or ()
    assert call.type == "function"
    assert call.function.name == "get_weather"
    assert set(json.loads(call.function.arguments)) == {"city"}
    assert reply.choices[0].finish_reason == "tool_calls"


def test_responses_of_a_call(sdk: OpenAI) -> None:
    tools: Any = [FLAT]
    reply = sdk.responses.create(
        model=CALLING, input=WEATHER_ASKED, tools=tools, tool_choice="required", temperature=0
    )
    calls = [item for item in reply.output if item.type == "function_call"]
    assert 1 <= len(calls) <= MOST_CALLS  # it begins another one whenever it may
    assert all(set(json.loads(call.arguments)) == {"city"} for call in calls)
    assert reply.status == "completed"


def test_a_schema_is_kept(sdk: OpenAI) -> None:
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
    asked: Any = [{"role": "user", "content": "Make up a person."}]
    reply = sdk.chat.completions.create(
        model=PLAIN, messages=asked, response_format=wanted, temperature=0, max_tokens=100
    )
    found = json.loads(reply.choices[0].message.content or "")
    assert set(found) == {"name", "age"}
    assert 0 <= found["age"] <= 150


def test_what_does_not_fit_is_refused(sdk: OpenAI) -> None:
    long: Any = [{"role": "user", "content": "word " * 9_000}]
    with pytest.raises(BadRequestError) as refused:
        sdk.chat.completions.create(model=PLAIN, messages=long)
    assert refused.value.code == "context_length_exceeded"


def test_it_is_told_what_it_is(gateway: Gateway) -> None:
    found = httpx.get(f"{gateway.base}/models/{PLAIN}").json()["choices"][0]
    assert found["context_window"] == 8192
    assert found["parameter_count"] == pytest.approx(135e6, rel=0.05)
