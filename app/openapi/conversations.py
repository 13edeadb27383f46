"""What the document says of conversations."""

from __future__ import annotations

from typing import Any

from app.state.conversation_items import INCLUDABLE, MOST_ITEMS

from .operations import Body, Operation, Parameter
from .schemas import Schema, an_object, array, const, text, whole

_PATH: Schema = {"type": "string", "minLength": 1}
_ID = Parameter("id", _PATH, "Id of a conversation.", "path")
_ITEM = Parameter("item", _PATH, "Id of an item in it.", "path")
_INCLUDE = Parameter(
    "include",
    array({"type": "string", "enum": [*sorted(INCLUDABLE), ""]}),
    "What is left out of items unless it is asked for.",
)
_PAGE = (
    Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}, "Most items."),
    Parameter(
        "order", {"type": "string", "enum": ["asc", "desc"], "default": "desc"}, "Newest first: `desc`."
    ),
    Parameter("after", {"type": "string"}, "The last item of the page before."),
    _INCLUDE,
)
_METADATA: Schema = {
    "type": ["object", "null"],
    "maxProperties": 16,
    "propertyNames": {"maxLength": 64},
    "additionalProperties": {"type": "string", "maxLength": 512},
}
_ITEMS: Schema = {
    "type": "array",
    "items": an_object({}),
    "maxItems": MOST_ITEMS,
    "description": "Items as in the `input` of a request.",
}

_CONVERSATION: dict[str, Any] = {
    "id": "conv_5f0e2c7d9a1b3c4d5e6f7a8b",
    "object": "conversation",
    "created_at": 1764460800,
    "metadata": {"topic": "weather"},
}
_MESSAGE: dict[str, Any] = {
    "id": "msg_5f0e2c7d9a1b3c4d5e6f7a8b",
    "type": "message",
    "status": "completed",
    "role": "user",
    "content": [{"type": "input_text", "text": "How warm is it in Paris?"}],
}
_LIST: dict[str, Any] = {
    "object": "list",
    "data": [_MESSAGE],
    "first_id": _MESSAGE["id"],
    "last_id": _MESSAGE["id"],
    "has_more": False,
}
_GIVEN = [{"role": "user", "content": "How warm is it in Paris?"}]
_SHOWN = Body("Conversation", {"conversation": _CONVERSATION})
_SHOWN_ITEM = Body("ConversationItem", {"message": _MESSAGE})
_SHOWN_LIST = Body("ConversationItems", {"page": _LIST})
_DELETED = {"id": _CONVERSATION["id"], "object": "conversation.deleted", "deleted": True}
_AT, _ITEMS_AT = "/v1/conversations/{id}", "/v1/conversations/{id}/items"
_MISSING: Any = {"bare": True, "statuses": (404,)}
_SENT: Any = {"bare": True, "statuses": (404, 413, 415)}

CONVERSATIONS: tuple[Operation, ...] = (
    Operation(
        "post",
        "/v1/conversations",
        "createConversation",
        "A new conversation",
        _SHOWN,
        Body(
            "NewConversation", {"nothing": {}, "items": {"items": _GIVEN, "metadata": {"topic": "weather"}}}
        ),
        bare=True,
        statuses=(413, 415),
    ),
    Operation("get", _AT, "getConversation", "A conversation", _SHOWN, parameters=(_ID,), **_MISSING),
    Operation(
        "post",
        _AT,
        "updateConversation",
        "Replace the metadata of a conversation",
        _SHOWN,
        Body("ConversationMetadata", {"metadata": {"metadata": {"topic": "climate"}}}),
        parameters=(_ID,),
        **_SENT,
    ),
    Operation(
        "delete",
        _AT,
        "deleteConversation",
        "Take out a conversation with its items",
        Body("ConversationDeleted", {"deleted": _DELETED}),
        parameters=(_ID,),
        **_MISSING,
    ),
    Operation(
        "get",
        _ITEMS_AT,
        "listConversationItems",
        "What was said in a conversation",
        _SHOWN_LIST,
        parameters=(_ID, *_PAGE),
        **_MISSING,
    ),
    Operation(
        "post",
        _ITEMS_AT,
        "createConversationItems",
        "Append to a conversation",
        _SHOWN_LIST,
        Body("NewConversationItems", {"items": {"items": _GIVEN}}),
        parameters=(_ID, _INCLUDE),
        **_SENT,
    ),
    Operation(
        "get",
        _ITEMS_AT + "/{item}",
        "getConversationItem",
        "One item of a conversation",
        _SHOWN_ITEM,
        parameters=(_ID, _ITEM, _INCLUDE),
        **_MISSING,
    ),
    Operation(
        "delete",
        _ITEMS_AT + "/{item}",
        "deleteConversationItem",
        "Take an item out of a conversation",
        _SHOWN,
        parameters=(_ID, _ITEM),
        **_MISSING,
    ),
)


def schemas() -> dict[str, Schema]:
    """The components that these are made of."""
    item = an_object({"id": text(), "type": text("", "message", "function_call")}, "id", "type")
    return {
        "Conversation": an_object(
            {
                "id": text(),
                "object": const("conversation"),
                "created_at": whole("Seconds since 1970."),
                "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            *("id", "object", "created_at", "metadata"),
        ),
        "ConversationItem": item,
        "ConversationItems": an_object(
            {
                "object": const("list"),
                "data": array(item),
                "first_id": text("Empty when the list is."),
                "last_id": text("Empty when the list is."),
                "has_more": {"type": "boolean"},
            },
            *("object", "data", "first_id", "last_id", "has_more"),
        ),
        "ConversationDeleted": an_object(
            {
                "id": text(),
                "object": const("conversation.deleted"),
                "deleted": {"type": "boolean", "const": True},
            },
            *("id", "object", "deleted"),
        ),
        "NewConversation": an_object({"metadata": _METADATA, "items": {**_ITEMS, "type": ["array", "null"]}}),
        "ConversationMetadata": an_object({"metadata": _METADATA}, "metadata"),
        "NewConversationItems": an_object({"items": _ITEMS}, "items"),
    }
