"""Puts the document together from its tables."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, get_args, get_type_hints

from app.layers import KEYS, STRICT, TABLE, TRUTHS
from translators.profile import ReasoningRules

from . import conversations, replies, requests
from .operations import OPERATIONS, Body, Operation, Parameter
from .schemas import Schema

_DESCRIPTION = """\
Chat Completions and Responses in front, any backend behind. Bodies are read generously: what is not said here
passes to the backend, or is named in `x-dragoman-dropped`.

`GET /v1/responses` with `Upgrade: websocket` opens a WebSocket where that is offered.\
"""

_SECURITY: list[dict[str, list[str]]] = [{"bearer": []}, {"apiKey": []}, {}]

_PLAIN = {400: "BadRequest", 401: "NoKey", 429: "RateLimit", 503: "Unavailable"}
_MODEL = {
    **_PLAIN,
    402: "RateLimit",
    403: "NoKey",
    404: "NotFound",
    408: "Upstream",
    413: "BadRequest",
    415: "BadRequest",
    500: "Upstream",
    502: "Upstream",
    504: "Upstream",
}
_MEANING = {
    304: "Not modified since the `if-none-match` that was sent.",
    400: "The request cannot be answered by anyone; `param` says where.",
    401: "No key, or none that is known.",
    402: "The backend's account is used up.",
    403: "The backend, or this key's scope, does not allow it.",
    404: "There is none of that name.",
    405: "Not with this method; `allow` names those that are.",
    408: "The backend waited too long.",
    413: "The body is larger than the gateway, or the backend, takes.",
    415: "A content-encoding that is not known.",
    426: "No WebSocket here: POST instead.",
    429: "Too much at a time; `retry-after` says when to come back.",
    500: "A failure of the gateway, or one that a backend told.",
    502: "The backend failed.",
    503: "Nothing that could answer is available now.",
    504: "The backend was silent for too long.",
}


def make() -> dict[str, Any]:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Dragoman",
            "version": version("dragoman"),
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": _SECURITY,
        "paths": _paths(),
        "components": {
            "schemas": {**requests.schemas(), **replies.schemas(), **conversations.schemas()},
            "responses": {_name(status): _failure(status) for status in _MEANING},
            "headers": _headers(),
            "parameters": _parameters(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "apiKey": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def _paths() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for operation in (*OPERATIONS, *conversations.CONVERSATIONS):
        for path, id in _places(operation):
            paths.setdefault(path, {})[operation.method] = _operation(operation, id)
    return paths


def _places(operation: Operation) -> Iterator[tuple[str, str]]:
    yield operation.path, operation.id
    if operation.bare:
        yield operation.path.removeprefix("/v1"), f"{operation.id}Bare"


def _operation(operation: Operation, id: str) -> dict[str, Any]:
    found: dict[str, Any] = {"operationId": id, "summary": operation.summary}
    if operation.description:
        found["description"] = operation.description
    if operation.door == "open":
        found["security"] = []
    parameters = [_parameter(each) for each in operation.parameters]
    shared = _LAYERS if operation.kind == "model" else ("RequestId",)
    found["parameters"] = parameters + [{"$ref": f"#/components/parameters/{name}"} for name in shared]
    if operation.request is not None:
        content = {"application/json": _media(operation.request)}
        found["requestBody"] = {"required": True, "content": content}
    found["responses"] = _responses(operation)
    return found


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.place == "path",
        "schema": parameter.schema,
        "description": parameter.description,
    }


def _media(body: Body) -> dict[str, Any]:
    found: dict[str, Any] = {"schema": {"$ref": f"#/components/schemas/{body.schema}"} if body.schema else {}}
    if body.examples:
        found["examples"] = {name: {"value": value} for name, value in body.examples.items()}
    return found


# --- answers -----------------------------------------------------------------------------


def _responses(operation: Operation) -> dict[str, Any]:
    model = operation.kind == "model"
    content = {operation.media: _media(operation.answer)} if operation.media else {}
    if operation.events is not None:
        content["text/event-stream"] = _media(operation.events)
    headers = ["x-request-id"]
    if model:
        headers += ["x-dragoman-model", "x-dragoman-dropped", "x-dragoman-repairs"]
        headers += ["x-dragoman-continuations"]
    found: dict[str, Any] = {
        str(operation.success): {"description": "The answer.", "headers": _header_refs(headers)}
    }
    if content:
        found[str(operation.success)]["content"] = content
    for status in _statuses(operation):
        found[str(status)] = {"$ref": f"#/components/responses/{_name(status)}"}
    return found


def _statuses(operation: Operation) -> list[int]:
    """A probe is told no failures but its own."""
    common = _MODEL if operation.kind == "model" else _PLAIN
    known = () if operation.door == "open" else common
    return sorted({*known, *operation.statuses})


def _name(status: int) -> str:
    return f"Status{status}"


def _failure(status: int) -> dict[str, Any]:
    headers = ["x-request-id", *(["retry-after"] if status in (429, 503) else [])]
    found: dict[str, Any] = {"description": _MEANING[status], "headers": _header_refs(headers)}
    if status == 304:
        return found
    name = {**_MODEL, 404: "NotFound"}.get(status, "BadRequest")
    body = Body("Error", {"failure": replies.FAILURES[name]})
    return {**found, "content": {"application/json": _media(body)}}


def _header_refs(names: list[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _headers() -> dict[str, Any]:
    said = {
        "x-request-id": "The client's own where it is short and plain, else a new one.",
        "x-dragoman-model": "The `provider/model` that answered.",
        "x-dragoman-dropped": "JSON pointers of what the backend did not get; absent when it got all.",
        "x-dragoman-repairs": "How many things were mended; absent when none.",
        "x-dragoman-continuations": "How often a cut answer was asked to go on; absent when never.",
        "retry-after": "Seconds until it may be tried again.",
    }
    always = "x-request-id"
    return {
        name: {"description": words, "schema": {"type": "string"}, "required": name == always}
        for name, words in said.items()
    }


# --- headers of requests -----------------------------------------------------------------

_LAYERS = ("RequestId", "Strict", "Effort", "ReasoningMode", "ReasoningScope", "Overrides")


def _parameters() -> dict[str, Any]:
    """The headers that a request may carry."""
    mode, scope = "Reasoning of earlier turns.", "Which of the earlier turns."
    effort, reasoning_mode, reasoning_scope = (name.decode() for name in KEYS)
    named: dict[str, tuple[str, str, Schema]] = {
        "RequestId": ("x-request-id", "Comes back in the answer and stands in the log.", {"type": "string"}),
        "Strict": (STRICT.decode(), "`true`: what would be left out is a 400.", _STRICT),
        "Effort": (effort, "Effort where the body names none.", _words("default_effort")),
        "ReasoningMode": (reasoning_mode, mode, _words("mode")),
        "ReasoningScope": (reasoning_scope, scope, _words("scope")),
    }
    found: dict[str, Any] = {
        key: {"name": name, "in": "header", "required": False, "schema": schema, "description": words}
        for key, (name, words, schema) in named.items()
    }
    table = {"application/json": {"schema": {"type": "object"}, "example": {"reasoning": {"scope": "all"}}}}
    told = "Keys of the profile, as a JSON object; they are checked as the configuration is."
    found["Overrides"] = {"name": TABLE.decode(), "in": "header", "description": told, "content": table}
    return found


def _words(key: str) -> Schema:
    """The words that a key of the reasoning rules takes."""
    told = get_args(get_type_hints(ReasoningRules)[key])
    words = [word for part in told for word in get_args(part) or (part,) if word is not type(None)]
    return {"type": "string", "enum": [*words, ""]}


_STRICT: Schema = {"type": "string", "enum": [word.decode() for word in TRUTHS]}
