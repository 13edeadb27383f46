"""What the newest OpenAI SDK knows, read from its types: the list the inventory is held against."""

from __future__ import annotations

import typing
from typing import Any, get_args, get_origin

from openai.types import CompletionUsage, responses
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessage
from openai.types.chat.chat_completion import Choice
from openai.types.chat.chat_completion_chunk import ChoiceDelta
from openai.types.chat.chat_completion_content_part_param import ChatCompletionContentPartParam
from openai.types.chat.chat_completion_content_part_refusal_param import (
    ChatCompletionContentPartRefusalParam,
)
from openai.types.chat.chat_completion_message_param import ChatCompletionMessageParam
from openai.types.chat.chat_completion_tool_choice_option_param import ChatCompletionToolChoiceOptionParam
from openai.types.chat.chat_completion_tool_union_param import ChatCompletionToolUnionParam
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.completion_usage import CompletionTokensDetails, PromptTokensDetails
from openai.types.responses.response import IncompleteDetails
from openai.types.responses.response_content_part_added_event import Part
from openai.types.responses.response_create_params import ResponseCreateParamsBase, ToolChoice
from openai.types.responses.response_includable import ResponseIncludable
from openai.types.responses.response_input_item_param import ResponseInputItemParam
from openai.types.responses.tool_choice_types_param import ToolChoiceTypesParam
from pydantic import BaseModel


def members(union: Any) -> list[Any]:
    """The classes and literals of a nested `Annotated[Union[...]]`."""
    args = get_args(union)
    if get_origin(union) is typing.Literal or not args:
        return [union]
    if get_origin(union) is typing.Union:
        return [member for arg in args for member in members(arg)]
    return members(args[0])


def literals(annotation: Any) -> list[str]:
    """The strings of a `Literal`, however wrapped."""
    if get_origin(annotation) is typing.Literal:
        return [str(value) for value in get_args(annotation)]
    return [text for arg in get_args(annotation) for text in literals(arg)]


def types_of(union: Any, key: str = "type") -> set[str]:
    """Every value that `key` may have in the members of a union."""
    found: set[str] = set()
    for member in members(union):
        if isinstance(member, type) and issubclass(member, BaseModel):
            found |= set(literals(member.model_fields[key].annotation))
        elif isinstance(member, type):
            found |= set(literals(typing.get_type_hints(member).get(key)))
    return found


def fields(model: type[BaseModel]) -> set[str]:
    return set(model.model_fields)


def choice_forms(union: Any) -> set[str]:
    """Modes, and the types of the objects."""
    modes = {text for member in members(union) for text in literals(member)}
    return modes | types_of(union)


KNOWN: dict[str, set[str]] = {
    "chat request": {*CompletionCreateParamsBase.__annotations__, "stream"},
    "chat roles": types_of(ChatCompletionMessageParam, "role"),
    "chat parts": types_of(ChatCompletionContentPartParam) | types_of(ChatCompletionContentPartRefusalParam),
    "chat tools": types_of(ChatCompletionToolUnionParam),
    "chat tool_choice": choice_forms(ChatCompletionToolChoiceOptionParam),
    "chat delta": fields(ChoiceDelta),
    "chat message": fields(ChatCompletionMessage),
    "chat chunk": fields(ChatCompletionChunk),
    "chat completion": fields(ChatCompletion),
    "chat finish reasons": set(literals(Choice.model_fields["finish_reason"].annotation)),
    "chat usage": fields(CompletionUsage) | fields(PromptTokensDetails) | fields(CompletionTokensDetails),
    "responses request": {*ResponseCreateParamsBase.__annotations__, "stream"},
    "responses input": types_of(ResponseInputItemParam),
    "responses input parts": types_of(responses.ResponseInputContent),
    "responses output": types_of(responses.ResponseOutputItem),
    "responses output parts": types_of(Part),
    "responses tools": types_of(responses.Tool),
    "responses tool_choice": choice_forms(ToolChoice) | types_of(ToolChoiceTypesParam),
    "responses events": types_of(responses.ResponseStreamEvent),
    "responses include": set(literals(ResponseIncludable)),
    "responses statuses": set(literals(responses.ResponseStatus)),
    "responses incomplete": set(literals(IncompleteDetails.model_fields["reason"].annotation)),
    "responses usage": fields(responses.ResponseUsage)
    | fields(responses.response_usage.InputTokensDetails)
    | fields(responses.response_usage.OutputTokensDetails),
}
"""Group -> every name of it."""
