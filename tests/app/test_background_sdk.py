"""The official SDK with background responses: create, poll, cancel, stream, resume."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.backends.scripted import ScriptedBackend

from .background_asked import events_of, slow_reply, until
from .conftest import Serve, provider

EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


@pytest.fixture
def sdk(serve: Serve, scripted: ScriptedBackend) -> Iterator[openai.OpenAI]:
    served = serve(fresh=True, providers=[provider(scripted)], store={"kind": "memory"})
    with openai.OpenAI(base_url=f"{served.base}/v1", api_key="k", max_retries=0) as client:
        yield client


def test_polling(sdk: openai.OpenAI, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply(0.4))
    made = sdk.responses.create(model="m", input="hi", background=True)
    assert (made.status, made.background) == ("queued", True)
    now: Response = until(
        lambda: (found := sdk.responses.retrieve(made.id)).status == "in_progress" and found
    )
    assert now.output == []
    done: Response = until(lambda: (found := sdk.responses.retrieve(made.id)).status == "completed" and found)
    assert done.output_text == "some words that come slowly"
    second = sdk.responses.create(model="m", input="and?", previous_response_id=made.id, background=True)
    assert second.previous_response_id == made.id


def test_cancelling(sdk: openai.OpenAI, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply())
    made = sdk.responses.create(model="m", input="hi", background=True)
    assert sdk.responses.cancel(made.id).status == "cancelled"
    assert sdk.responses.cancel(made.id).status == "cancelled"
    assert sdk.responses.retrieve(made.id).status == "cancelled"
    scripted.clear()
    plain = sdk.responses.create(model="m", input="hi")
    with pytest.raises(openai.BadRequestError, match="synchronous"):
        sdk.responses.cancel(plain.id)
    with pytest.raises(openai.NotFoundError):
        sdk.responses.cancel("resp_nowhere")


def test_a_stream_that_is_left_and_resumed(sdk: openai.OpenAI, scripted: ScriptedBackend) -> None:
    scripted.play(slow_reply(0.5))
    seen = []
    stream = sdk.responses.create(model="m", input="hi", background=True, stream=True)
    for event in stream:
        seen.append(event)
        if event.type == "response.output_text.delta":
            break
    stream.close()
    id = seen[0].response.id  # type: ignore[union-attr]
    rest = list(sdk.responses.retrieve(id, stream=True, starting_after=seen[-1].sequence_number))
    numbers = [event.sequence_number for event in (*seen, *rest)]
    assert numbers == list(range(len(numbers)))
    assert rest[-1].type == "response.completed"
    with sdk.responses.stream(response_id=id) as again:
        assert again.get_final_response().output_text == "some words that come slowly"


def test_every_event_is_one_that_the_sdk_knows(sdk: openai.OpenAI, scripted: ScriptedBackend) -> None:
    for end in ("completed", "cancelled"):
        scripted.play(slow_reply(0.1 if end == "completed" else 20.0))
        made = sdk.responses.create(model="m", input="hi", background=True)
        until(lambda id=made.id: sdk.responses.retrieve(id).status != "queued")
        if end == "cancelled":
            sdk.responses.cancel(made.id)
        text = sdk.get(f"/responses/{made.id}?stream=true", cast_to=str)
        events = events_of(text)
        assert events[-1]["response"]["status"] == end
        for event in events:
            EVENT.validate_python(event, strict=True)
