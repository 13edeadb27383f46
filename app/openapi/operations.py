"""Which path takes what and answers what: one entry each.

A route that is missing here fails a test, and so does one that no longer exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from providers.ranking import CLASSES

from . import replies, requests
from .schemas import Schema

Door = Literal["key", "open"]


@dataclass(frozen=True, slots=True)
class Body:
    """A body by its schema's name."""

    schema: str
    examples: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query, or of the path."""

    name: str
    schema: Schema
    description: str
    place: Literal["query", "path"] = "query"


@dataclass(frozen=True, slots=True)
class Operation:
    """`kind`: `model` requests are asked of a backend, and its failures told; `plain` ones are not."""

    method: Literal["get", "post", "delete"]
    path: str
    id: str
    summary: str
    answer: Body
    request: Body | None = None
    parameters: Sequence[Parameter] = ()
    events: Body | None = None
    """What comes in the answer's place where a stream is asked for: each event."""
    kind: Literal["model", "plain"] = "plain"
    door: Door = "key"
    bare: bool = False
    """Whether it is there without `/v1` too."""
    statuses: Sequence[int] = ()
    """What else it may answer."""
    media: str = "application/json"
    """Empty: no body."""
    success: int = 200
    description: str = ""


_ID = Parameter("id", {"type": "string", "minLength": 1}, "Id of a stored response.", "path")
_NAME = Parameter("id", {"type": "string", "minLength": 1}, "A model's name; it may hold slashes.", "path")
_TRUTH: Schema = {"type": "string", "enum": ["true", "false", "1", "0", ""]}
"""Set to nothing is not set: forms send what was not filled in."""


def _text(name: str, description: str) -> Parameter:
    return Parameter(name, {"type": "string"}, description)


def _or_nothing(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "string", "const": ""}]}


_ITEMS_PAGE = (
    _ID,
    Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}, "Most items."),
    Parameter(
        "order", {"type": "string", "enum": ["asc", "desc"], "default": "desc"}, "Newest first: `desc`."
    ),
    _text("after", "The last item of the page before."),
)
_RANKING = (
    _text("search", "Words of a model's name."),
    Parameter("class", {"type": "string", "enum": [*CLASSES, ""]}, "Only models of this class."),
    Parameter("limit", _or_nothing({"type": "integer", "minimum": 1, "maximum": 50}), "Most endpoints."),
    Parameter(
        "threshold", _or_nothing({"type": "number", "minimum": 0, "maximum": 1}), "0: exact, 1: anything."
    ),
    Parameter("tools", _TRUTH, "Only those that can, or cannot, call tools."),
    Parameter("vision", _TRUTH, "Only those that can, or cannot, see images."),
    Parameter("reasoning", _TRUTH, "Only those that do, or do not, reason."),
)
_RESPONSE_EXAMPLES = {
    "text": requests.RESPONSE,
    "tools": requests.RESPONSE_TOOLS,
    "continued": requests.RESPONSE_CONTINUED,
}

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "post",
        "/v1/responses",
        "createResponse",
        "Answer a request in the Responses shape",
        Body("Response", {"text": replies.RESPONSE}),
        Body("ResponseRequest", _RESPONSE_EXAMPLES),
        events=Body("ResponseEvent", {"delta": replies.RESPONSE_EVENT}),
        kind="model",
        bare=True,
        description="With `stream: true` the answer is an event stream.",
    ),
    Operation(
        "post",
        "/v1/responses/input_tokens",
        "countInputTokens",
        "How many tokens the input of a request would be",
        Body("InputTokens", {"count": {"object": "response.input_tokens", "input_tokens": 11}}),
        Body("ResponseRequest", _RESPONSE_EXAMPLES),
        kind="model",
        bare=True,
        description="`x-dragoman-estimated: true` says that the backend does not count.",
    ),
    Operation(
        "post",
        "/v1/responses/compact",
        "compactResponse",
        "A shorter conversation that stands for that of a request",
        Body("Compaction", {"summary": replies.COMPACTION}),
        Body("ResponseRequest", _RESPONSE_EXAMPLES),
        kind="model",
        bare=True,
    ),
    Operation(
        "get",
        "/v1/responses",
        "openWebSocket",
        "Open a WebSocket: each message `response.create` is a request, each event of its answer a message",
        Body("", {}),
        bare=True,
        media="",
        success=101,
        statuses=(405, 426),
    ),
    Operation(
        "get",
        "/v1/responses/{id}",
        "getResponse",
        "A stored response, whole or as the events that it was told in",
        Body("Response", {"text": replies.RESPONSE}),
        events=Body("ResponseEvent", {"delta": replies.RESPONSE_EVENT}),
        parameters=(
            _ID,
            _text("stream", "`true`: its events, as far as they have come, and then as they come."),
            Parameter(
                "starting_after", {"type": "integer", "minimum": 0}, "With `stream`: later events only."
            ),
        ),
        bare=True,
        statuses=(404,),
    ),
    Operation(
        "delete",
        "/v1/responses/{id}",
        "deleteResponse",
        "Take out a stored response",
        Body("Deleted", {"deleted": {"id": "resp_1", "object": "response", "deleted": True}}),
        parameters=(_ID,),
        bare=True,
        statuses=(404,),
    ),
    Operation(
        "post",
        "/v1/responses/{id}/cancel",
        "cancelResponse",
        "End a response that is made in the background",
        Body("Response", {"cancelled": {**replies.RESPONSE, "status": "cancelled", "output": []}}),
        parameters=(_ID,),
        bare=True,
        statuses=(404,),
    ),
    Operation(
        "get",
        "/v1/responses/{id}/input_items",
        "listInputItems",
        "What the model was given for a stored response",
        Body("InputItems", {"page": replies.ITEMS}),
        parameters=_ITEMS_PAGE,
        bare=True,
        statuses=(404,),
    ),
    Operation(
        "post",
        "/v1/chat/completions",
        "createChatCompletion",
        "Answer a request in the Chat Completions shape",
        Body("ChatCompletion", {"text": replies.COMPLETION}),
        Body("ChatRequest", {"text": requests.CHAT, "tools": requests.CHAT_TOOLS}),
        events=Body("ChatEvent", {"delta": replies.COMPLETION_EVENT}),
        kind="model",
        bare=True,
        description="With `stream: true` the answer is an event stream.",
    ),
    Operation(
        "post",
        "/v1/embeddings",
        "createEmbeddings",
        "Vectors of texts",
        Body("Embeddings", {"texts": replies.EMBEDDINGS}),
        Body("EmbeddingsRequest", {"texts": requests.EMBEDDINGS}),
        kind="model",
        bare=True,
    ),
    Operation(
        "get",
        "/v1/models",
        "listModels",
        "Every name that resolves, for OpenAI's clients and for Codex",
        Body("ModelList", {"list": replies.MODELS}),
        parameters=(_text("refresh", "`1`: ask the backends again first."),),
        statuses=(304,),
    ),
    Operation(
        "get",
        "/v1/models/{id}",
        "getModel",
        "One model",
        Body("Model", {"model": replies.MODEL}),
        parameters=(_NAME,),
        statuses=(404,),
    ),
    Operation(
        "get",
        "/models",
        "rankModels",
        "Endpoints in the order in which they would be asked, and why",
        Body("RankedList", {"ranked": replies.RANKED}),
        parameters=_RANKING,
    ),
    Operation(
        "get",
        "/models/{id}",
        "explainModel",
        "How a name resolves, and every profile key of what answers",
        Body("ExplainedModel", {"explained": replies.EXPLAINED}),
        parameters=(_NAME,),
        statuses=(404,),
    ),
    Operation(
        "get",
        "/",
        "root",
        "Whether the process is alive",
        Body("Health", {"ok": {"status": "ok"}}),
        door="open",
    ),
    Operation(
        "get",
        "/health",
        "health",
        "Whether the process is alive",
        Body("Health", {"ok": {"status": "ok"}}),
        door="open",
    ),
    Operation(
        "get",
        "/ready",
        "ready",
        "Whether a request can be answered",
        Body("Ready", {"ready": {"status": "ready"}}),
        door="open",
        statuses=(503,),
    ),
    Operation(
        "get",
        "/metrics",
        "metrics",
        "Counters in Prometheus' text form",
        Body("", {"text": 'dragoman_requests_total{route="/responses",lane="pass",status="200"} 1.0\n'}),
        media="text/plain",
    ),
    Operation(
        "get",
        "/events",
        "events",
        "What happens to the models that run here, as it happens",
        Body("StateEvent", {"loading": replies.STATE_EVENT}),
        media="text/event-stream",
    ),
    Operation(
        "get",
        "/openapi.json",
        "openapi",
        "This document",
        Body("", {}),
        door="open",
    ),
)
"""The routes, in the order of the document."""
