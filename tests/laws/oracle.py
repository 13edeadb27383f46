"""Strict readers of our streams: the official SDK's types and accumulators, and the Open Responses types.

The SDK parses leniently; here its models are used in pydantic's strict mode, and a key that a
model does not know is a fault too, but for those named in `OURS`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from enum import Enum
from typing import Any, get_args

import openresponses_types.types as open_responses
from openai import omit
from openai._models import construct_type
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel

Json = dict[str, Any]

OURS = {
    "ChoiceDelta.reasoning_content": "the field that clients of open models read",
    "ChoiceDelta.annotations": "the SDK has it on the message only",
    "ChatCompletionMessage.reasoning_content": "the field that clients of open models read",
    "Response.presence_penalty": "Open Responses echoes it",
    "Response.frequency_penalty": "Open Responses echoes it",
    "Response.store": "Open Responses echoes it",
    "ResponseFunctionCallArgumentsDoneEvent.name": "older SDKs (2.x) require it",
    "ResponseCustomToolCall.status": "every item of ours has one, as in OpenAI's own streams",
    "Logprob.bytes": "Open Responses requires it",
    "AnnotationURLCitation.*": "a backend's own keys",
}


def _sdk_events() -> Iterator[tuple[str, type[BaseModel]]]:
    for model in get_args(get_args(ResponseStreamEvent)[0]):
        for kind in get_args(model.model_fields["type"].annotation):
            yield kind, model


def _open_events() -> Iterator[tuple[str, type[BaseModel]]]:
    for name, model in vars(open_responses).items():
        if name.endswith("StreamingEvent"):
            annotation = model.model_fields["type"].annotation
            is_enum = isinstance(annotation, type) and issubclass(annotation, Enum)
            for kind in [member.value for member in annotation] if is_enum else get_args(annotation):
                yield kind, model


SDK_EVENTS = dict(_sdk_events())
OPEN_EVENTS = dict(_open_events())
OUR_ITEMS = frozenset({"message", "reasoning", "function_call", "custom_tool_call", "tool_search_call"})
"""Items we write; a hosted tool's passes as the backend wrote it, whatever it wrote."""


def unknown_keys(value: Any) -> Iterator[str]:
    """Keys that the models of a validated value did not know, as `Model.key`."""
    if isinstance(value, BaseModel):
        for key in value.model_extra or {}:
            names = {f"{type(value).__name__}.{key}", f"{type(value).__name__}.*"}
            if not names & set(OURS):
                yield f"{type(value).__name__}.{key}"
        for key in type(value).model_fields:
            yield from unknown_keys(getattr(value, key))
    elif isinstance(value, list):
        for entry in value:
            yield from unknown_keys(entry)


def _refuse_unknown(found: BaseModel) -> None:
    unknown = sorted(set(unknown_keys(found)))
    assert unknown == [], unknown


_OPEN_ITEMS = frozenset({"message", "function_call", "reasoning"})
"""Items that Open Responses has; the others are OpenAI's own."""


def _of_ours(event: Json, types: Collection[str]) -> Json:
    """The event without items of other types in its response."""
    if "response" not in event:
        return event
    output = [item for item in event["response"]["output"] if item["type"] in types]
    return {**event, "response": {**event["response"], "output": output}}


def check_response(body: Json) -> None:
    ours, known = (_of_ours({"response": body}, types)["response"] for types in (OUR_ITEMS, _OPEN_ITEMS))
    _refuse_unknown(Response.model_validate_json(json.dumps(ours), strict=True))
    open_responses.ResponseResource.model_validate_json(json.dumps(known), strict=True)


def check_completion(body: Json) -> None:
    found = ChatCompletion.model_validate_json(json.dumps(body), strict=True)
    _refuse_unknown(found)


def check_events(events: list[Json]) -> Json | None:
    """Validate and accumulate; the response that the SDK makes of the stream, if it completed."""
    state: ResponseStreamState[Any] = ResponseStreamState(text_format=omit, input_tools=omit)
    for event in events:
        model = SDK_EVENTS[event["type"]]
        if event.get("item", {"type": "message"})["type"] in OUR_ITEMS:
            _refuse_unknown(model.model_validate_json(json.dumps(_of_ours(event, OUR_ITEMS)), strict=True))
        if event["type"] in OPEN_EVENTS and event.get("item", {"type": "message"})["type"] in _OPEN_ITEMS:
            told = json.dumps(_of_ours(event, _OPEN_ITEMS))
            OPEN_EVENTS[event["type"]].model_validate_json(told, strict=True)
        state.handle_event(construct_type(type_=ResponseStreamEvent, value=event))
    final = state._completed_response
    return None if final is None else final.to_dict(mode="json", warnings=False)


def check_chunks(chunks: list[Json]) -> Json:
    """Validate and accumulate; the completion that the SDK makes of the stream."""
    state = ChatCompletionStreamState()
    for chunk in chunks:
        found = ChatCompletionChunk.model_validate_json(json.dumps(chunk), strict=True)
        _refuse_unknown(found)
        state.handle_chunk(found)
    return state.current_completion_snapshot.to_dict(mode="json")
