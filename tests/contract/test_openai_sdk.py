"""A tour with the newest OpenAI SDK through a real process: every call a client makes, both wires behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI
from pydantic import BaseModel

from tests.backends.gateway import Gateway, config_text
from tests.backends.replies import (
    ToolUse,
    chat_completion,
    chat_stream,
    json_reply,
    response_items,
    response_object,
    response_stream,
    sse_reply,
)
from tests.backends.scripted import ScriptedBackend

GREETING = "Hello from the backend."
SCHEMA = {
    "type": "object",
    "properties": {"q": {"type": "string"}},
    "required": ["q"],
    "additionalProperties": False,
}
CHAT_TOOL: Any = {"type": "function", "function": {"name": "find", "strict": True, "parameters": SCHEMA}}
RESPONSES_TOOL: Any = {"type": "function", "name": "find", "strict": True, "parameters": SCHEMA}
CALL = ToolUse("call_7", "find", '{"q":"tea"}')


class Answer(BaseModel):
    value: int


class Tour:
    def __init__(self, backend: ScriptedBackend, sdk: OpenAI) -> None:
        self.backend, self.sdk = backend, sdk


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tour]:
    with ScriptedBackend(models=("m", "other")) as backend:
        place = {"kind": "openai", "base_url": f"{backend.origin}/v1", "api_key": "k", "models": ["m"]}
        providers = [{"name": wire, "wire": wire, **place} for wire in ("chat", "responses")]
        folder = tmp_path_factory.mktemp("sdk")
        with (
            Gateway(folder, config_text(providers, aliases={"house": "chat/m"})) as gateway,
            OpenAI(base_url=f"{gateway.base}/v1", api_key="none", max_retries=0) as client,
        ):
            yield Tour(backend, client)


@pytest.fixture
def tour(running: Tour) -> Tour:
    running.backend.clear()
    return running


@pytest.fixture(params=["chat", "responses"])
def model(request: pytest.FixtureRequest) -> str:
    return f"{request.param}/m"


def play(tour: Tour, model: str, text: str, calls: tuple[ToolUse, ...] = ()) -> None:
    """The same answer on whichever wire is asked, streamed if the request is."""
    if model.startswith("chat"):
        whole, stream = json_reply(chat_completion(text, calls)), sse_reply(chat_stream(text, calls))
    else:
        whole = json_reply(response_object(response_items(text, calls)))
        stream = sse_reply(response_stream(text, calls))
    tour.backend.play(lambda request: stream if request.json.get("stream") else whole)


# --- Chat Completions ------------------------------------------------------------------


def test_chat(tour: Tour, model: str) -> None:
    reply = tour.sdk.chat.completions.create(model=model, messages=[{"role": "user", "content": "hi"}])
    assert reply.choices[0].message.content == GREETING
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.total_tokens) == (11, 18)


def test_chat_stream(tour: Tour, model: str) -> None:
    with tour.sdk.chat.completions.stream(
        model=model, messages=[{"role": "user", "content": "hi"}]
    ) as stream:
        pieces = [event.delta for event in stream if event.type == "content.delta"]
    assert "".join(pieces) == GREETING


def test_chat_tool_call(tour: Tour, model: str) -> None:
    play(tour, model, "", (CALL,))
    with tour.sdk.chat.completions.stream(
        model=model, messages=[{"role": "user", "content": "hi"}], tools=[CHAT_TOOL]
    ) as stream:
        choice = stream.get_final_completion().choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls
    called = choice.message.tool_calls[0]
    assert (called.id, called.function.name, called.function.arguments) == ("call_7", "find", '{"q":"tea"}')


def test_chat_parsed_answer(tour: Tour, model: str) -> None:
    play(tour, model, '{"value": 5}')
    reply = tour.sdk.chat.completions.parse(
        model=model, messages=[{"role": "user", "content": "2 plus 3"}], response_format=Answer
    )
    assert reply.choices[0].message.parsed == Answer(value=5)


# --- Responses -------------------------------------------------------------------------


def test_responses(tour: Tour, model: str) -> None:
    reply = tour.sdk.responses.create(model=model, input="hi", instructions="be brief")
    assert reply.output_text == GREETING
    assert reply.id.startswith("resp_")
    assert reply.usage is not None
    assert (reply.usage.input_tokens, reply.usage.total_tokens) == (11, 18)


def test_responses_stream(tour: Tour, model: str) -> None:
    with tour.sdk.responses.stream(model=model, input="hi") as stream:
        pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
        whole = stream.get_final_response()
    assert "".join(pieces) == whole.output_text == GREETING


def test_responses_tool_call(tour: Tour, model: str) -> None:
    play(tour, model, "Looking.", (CALL, ToolUse("call_8", "find", '{"q":"milk"}')))
    with tour.sdk.responses.stream(model=model, input="hi", tools=[RESPONSES_TOOL]) as stream:
        whole = stream.get_final_response()
    calls = [item for item in whole.output if item.type == "function_call"]
    assert [(call.call_id, call.arguments) for call in calls] == [
        ("call_7", '{"q":"tea"}'),
        ("call_8", '{"q":"milk"}'),
    ]
    assert whole.output_text == "Looking."


def test_responses_parsed_answer(tour: Tour, model: str) -> None:
    play(tour, model, '{"value": 5}')
    reply = tour.sdk.responses.parse(model=model, input="2 plus 3", text_format=Answer)
    assert reply.output_parsed == Answer(value=5)


# --- models, embeddings, errors --------------------------------------------------------


def test_models(tour: Tour) -> None:
    ids = {model.id for model in tour.sdk.models.list()}
    assert {"chat/m", "responses/m"} <= ids
    assert tour.sdk.models.retrieve("chat/m").id == "chat/m"


def test_an_alias_is_a_model(tour: Tour) -> None:
    reply = tour.sdk.chat.completions.with_raw_response.create(
        model="house", messages=[{"role": "user", "content": "hi"}]
    )
    assert reply.headers["x-dragoman-model"] == "chat/m"
    assert tour.backend.bodies()[-1]["model"] == "m"


def test_embeddings(tour: Tour) -> None:
    reply = tour.sdk.embeddings.create(model="chat/m", input=["a", "b"], encoding_format="float")
    assert [entry.embedding for entry in reply.data] == [[0.25, -0.5, 0.75]] * 2


def test_an_unknown_model_is_not_found(tour: Tour) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        tour.sdk.responses.create(model="nobody/knows", input="hi")
    assert caught.value.code == "model_not_found"


def test_a_rate_limit_says_when_to_come_back(tour: Tour, model: str) -> None:
    tour.backend.play(json_reply({"error": {"message": "slow down"}}, 429, {"retry-after": "7"}))
    with pytest.raises(openai.RateLimitError) as caught:
        tour.sdk.responses.create(model=model, input="hi")
    assert caught.value.response.headers["retry-after"] == "7"


def test_a_request_fault_names_its_field(tour: Tour, model: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        tour.sdk.responses.create(
            model=model, input="hi", tool_choice={"type": "function", "name": "nothing"}
        )
    assert caught.value.param == "tool_choice"


def test_a_cut_stream_raises(tour: Tour) -> None:
    frames = chat_stream(GREETING)
    tour.backend.play(sse_reply(frames[:4], end="cut"))
    stream = tour.sdk.chat.completions.create(
        model="chat/m", messages=[{"role": "user", "content": "hi"}], stream=True
    )
    with pytest.raises(openai.APIError):
        list(stream)
    stream.close()
