"""The official SDK with stored responses: create, continue, stream, retrieve, list, delete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.backends.scripted import ScriptedBackend

from .conftest import Serve, provider


@pytest.fixture(params=["chat", "responses"])
def sdk(request: pytest.FixtureRequest, serve: Serve, scripted: ScriptedBackend) -> Iterator[openai.OpenAI]:
    # One for each test: the scripted backend gives every response the same id.
    store = {"kind": "memory"}
    served = serve(fresh=True, providers=[provider(scripted, request.param)], store=store)
    with openai.OpenAI(base_url=f"{served.base}/v1", api_key="k", max_retries=0) as client:
        yield client


def test_a_conversation(sdk: openai.OpenAI, scripted: ScriptedBackend) -> None:
    first = sdk.responses.create(model="m", input="one")
    with sdk.responses.stream(model="m", input="two", previous_response_id=first.id) as stream:
        second = stream.until_done().get_final_response()
    assert second.previous_response_id == first.id
    found = sdk.responses.retrieve(second.id)
    assert (found.id, found.output_text, found.status) == (second.id, second.output_text, "completed")
    items: list[Any] = list(sdk.responses.input_items.list(second.id, order="asc", limit=1))
    assert [each.role for each in items] == ["user", "assistant", "user"]
    assert all(each.id for each in items)
    body = scripted.bodies()[-1]
    assert len(body.get("messages") or body["input"]) == 3


def test_deleting(sdk: openai.OpenAI) -> None:
    made = sdk.responses.create(model="m", input="one")
    sdk.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(made.id)
    with pytest.raises(openai.BadRequestError, match="not found") as caught:
        sdk.responses.create(model="m", input="two", previous_response_id=made.id)
    assert caught.value.code == "previous_response_not_found"


def test_storing_nothing(sdk: openai.OpenAI) -> None:
    made = sdk.responses.create(model="m", input="one", store=False)
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve(made.id)
