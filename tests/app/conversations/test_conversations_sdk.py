"""The official SDK with conversations: its types are what is answered, to the letter of their schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.conversations import (
    Conversation,
    ConversationDeletedResource,
    ConversationItem,
    ConversationItemList,
)
from openai.types.responses import Response
from pydantic import TypeAdapter

from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

SAID = "Hello from the backend."
ITEMS: list[Any] = [
    {"role": "developer", "content": "be brief"},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AAAA"}]},
    {"role": "user", "content": [{"type": "input_file", "file_data": "AAAA", "filename": "a.pdf"}]},
    {"role": "assistant", "content": "let me see", "phase": "commentary"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "seen"}]},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
    {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "1"},
    {"type": "custom_tool_call", "call_id": "call_2", "name": "g", "input": "x"},
    {"type": "custom_tool_call_output", "call_id": "call_2", "output": "2"},
    {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "q"}},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"},
]


@pytest.fixture(params=["chat", "responses"])
def wire(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def sdk(wire: str, serve: Serve, scripted: ScriptedBackend) -> Iterator[openai.OpenAI]:
    served = serve(fresh=True, providers=[provider(scripted, wire)], store={"kind": "memory"})
    with openai.OpenAI(base_url=f"{served.base}/v1", api_key="k", max_retries=0) as client:
        yield client


def strictly(type: Any, found: Any) -> None:
    """The client builds its objects without looking; here they are looked at."""
    TypeAdapter(type).validate_python(found.model_dump(exclude_unset=True))


def test_a_conversation(sdk: openai.OpenAI, scripted: ScriptedBackend) -> None:
    first: Any = {"type": "message", "role": "user", "content": "zero"}
    made = sdk.conversations.create(metadata={"topic": "a"}, items=[first])
    strictly(Conversation, made)
    answer = sdk.responses.create(model="m", conversation=made.id, input="one")
    strictly(Response, answer)
    assert answer.conversation is not None
    assert (answer.conversation.id, answer.output_text) == (made.id, SAID)
    with sdk.responses.stream(model="m", conversation={"id": made.id}, input="two") as stream:
        streamed = stream.until_done().get_final_response()
    assert streamed.conversation is not None
    items: list[Any] = list(sdk.conversations.items.list(made.id, order="asc", limit=2))
    assert [each.content[0].text for each in items] == ["zero", "one", SAID, "two", SAID]
    for each in items:
        strictly(ConversationItem, each)
    body = scripted.bodies()[-1]
    assert len(body.get("messages") or body["input"]) == 4
    assert sdk.conversations.update(made.id, metadata={"topic": "b"}).metadata == {"topic": "b"}
    assert sdk.conversations.retrieve(made.id).metadata == {"topic": "b"}
    strictly(ConversationDeletedResource, sdk.conversations.delete(made.id))
    with pytest.raises(openai.NotFoundError, match=r"Conversation with id 'conv_.*' not found") as caught:
        sdk.conversations.retrieve(made.id)
    assert (caught.value.code, caught.value.type) == ("conversation_not_found", "invalid_request_error")
    with pytest.raises(openai.NotFoundError):
        sdk.responses.create(model="m", conversation=made.id, input="one")
    assert sdk.responses.retrieve(answer.id).output_text == SAID


@pytest.mark.parametrize("wire", ["chat"], indirect=True)
def test_items_of_all_kinds(sdk: openai.OpenAI) -> None:
    made = sdk.conversations.create()
    strictly(ConversationItemList, sdk.conversations.items.list(made.id))
    added = sdk.conversations.items.create(made.id, items=ITEMS)
    strictly(ConversationItemList, added)
    assert len({each.id for each in added.data}) == len(ITEMS)
    include: list[Any] = ["message.input_image.image_url", "reasoning.encrypted_content"]
    listed: list[Any] = list(sdk.conversations.items.list(made.id, order="asc", limit=5, include=include))
    assert [each.id for each in listed] == [each.id for each in added.data]
    assert listed[2].content[0].image_url == "data:image/png;base64,AAAA"
    for each in listed:
        found = sdk.conversations.items.retrieve(each.id, conversation_id=made.id, include=include)
        assert found == each
    for each in listed[:-1]:
        strictly(Conversation, sdk.conversations.items.delete(each.id, conversation_id=made.id))
    (left,) = sdk.conversations.items.list(made.id)
    assert left.id == listed[-1].id


@pytest.mark.parametrize("wire", ["chat"], indirect=True)
def test_what_is_wrong(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="too many properties") as caught:
        sdk.conversations.create(metadata={f"k{number}": "v" for number in range(17)})
    assert caught.value.param == "metadata"
    item: Any = {"role": "user", "content": "x"}
    with pytest.raises(openai.BadRequestError, match="array too long"):
        sdk.conversations.create(items=[item] * 21)


async def test_asynchronously(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(fresh=True, providers=[provider(scripted)], store={"kind": "memory"})
    async with openai.AsyncOpenAI(base_url=f"{served.base}/v1", api_key="k", max_retries=0) as client:
        made = await client.conversations.create()
        stream = await client.responses.create(model="m", conversation=made.id, input="one", stream=True)
        events = [event async for event in stream]
        assert events[-1].type == "response.completed"
        items: list[Any] = [each async for each in client.conversations.items.list(made.id)]
        assert [each.role for each in items] == ["assistant", "user"]
