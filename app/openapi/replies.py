"""Bodies of answers, with examples. A passed answer has the backend's own members besides."""

from __future__ import annotations

from typing import Any

from .schemas import Schema, an_object, array, const, either, filled, nullable, ref, text, whole

_NULLABLE_TEXT = nullable(text())
_LISTED = {"object": const("list"), "data": array(ref("Model"))}

ERROR = an_object(
    {
        "error": an_object(
            {
                "message": text("What went wrong, and what to send instead.", "`model` must name a model"),
                "type": text("", "invalid_request_error"),
                "param": nullable(text("Where in the request.", "messages[0].role")),
                "code": nullable(text("", "model_not_found")),
            },
            "message",
            "type",
            "param",
            "code",
        )
    },
    "error",
    description="The same for every failure.",
)

_USAGE = an_object(
    {
        "prompt_tokens": whole(),
        "completion_tokens": whole(),
        "total_tokens": whole(),
    },
    description="Absent when the backend tells none.",
)
_COMPLETION = an_object(
    {
        "id": text("", "chatcmpl-1f0c"),
        "object": const("chat.completion"),
        "created": whole("Seconds since 1970."),
        "model": text("The name that was asked for; of a passed answer the backend's."),
        "choices": array(
            an_object(
                {
                    "index": whole(),
                    "message": an_object(
                        {
                            "role": text("", "assistant"),
                            "content": _NULLABLE_TEXT,
                            "tool_calls": array(an_object({})),
                        },
                        "role",
                    ),
                    "finish_reason": nullable(text("", "stop", "length", "tool_calls", "content_filter")),
                },
                "index",
                "message",
                "finish_reason",
            )
        ),
        "usage": {**_USAGE, "type": ["object", "null"]},
    },
    "id",
    "object",
    "choices",
)
_RESPONSE_USAGE = {
    **an_object(
        {"input_tokens": whole(), "output_tokens": whole(), "total_tokens": whole()},
        description="Null when the backend tells none.",
    ),
    "type": ["object", "null"],
}
_RESPONSE = an_object(
    {
        "id": text("", "resp_5f0e2c7d9a1b3c4d5e6f7a8b"),
        "object": const("response"),
        "created_at": {"type": "number", "description": "Seconds since 1970."},
        "status": text("", "completed", "incomplete", "failed", "in_progress", "queued", "cancelled"),
        "model": text(),
        "output": array(ref("OutputItem")),
        "error": {"type": ["object", "null"]},
        "incomplete_details": {"type": ["object", "null"]},
        "previous_response_id": _NULLABLE_TEXT,
        "usage": _RESPONSE_USAGE,
    },
    "id",
    "object",
    "status",
    "output",
)
_CHUNK = an_object(
    {
        "id": text("", "chatcmpl-1f0c"),
        "object": const("chat.completion.chunk"),
        "choices": array(an_object({"index": whole(), "delta": an_object({})}, "index", "delta")),
        "error": an_object({}, description="The stream failed; nothing comes after it."),
    }
)
_RESPONSE_EVENT = an_object(
    {
        "type": text("", "response.created", "response.output_text.delta", "response.completed"),
        "sequence_number": whole("From 0."),
    },
    "type",
)


def _events(payload: str) -> Schema:
    """Server-sent events, of which each is one of these."""
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": ref(payload)}
    last = {"type": "string", "const": "[DONE]", "description": "The last."}
    event = an_object({"event": text(), "data": either(last, data)}, "data")
    return {**event, "description": "Each of the server-sent events."}


_EMBEDDINGS = an_object(
    {
        "object": const("list"),
        "data": array(
            an_object(
                {
                    "object": const("embedding"),
                    "index": whole(),
                    "embedding": {
                        "description": "Numbers, or base64 of 32 bit floats.",
                        "type": ["array", "string"],
                        "items": {"type": "number"},
                    },
                },
                "embedding",
            )
        ),
        "model": text(),
        "usage": an_object({"prompt_tokens": whole(), "total_tokens": whole()}),
    },
    "data",
)
_MODEL = an_object(
    {
        "id": filled("What to send as `model`.", "openai/gpt-5"),
        "object": const("model"),
        "created": whole(),
        "owned_by": text("The provider.", "openai"),
    },
    "id",
    "object",
    "created",
    "owned_by",
)
_CODEX = array(an_object({"slug": text()}, "slug"), "The same for Codex.")
_RANKED = an_object(
    {
        "rank": whole("From 1."),
        "class": nullable(text("", "chat-balanced")),
        "score": {"type": ["number", "null"]},
        "breakdown": an_object({}, description="What the score is made of."),
        "reasons": {"description": "The same in words."},
        "provider": text(),
        "model": text(),
        "tools": {"type": ["boolean", "null"]},
        "vision": {"type": ["boolean", "null"]},
        "reasoning": {"type": ["boolean", "null"]},
        "context_window": {"type": ["integer", "null"]},
    },
    "rank",
    description="What the ranking knows of an endpoint; null where nobody says.",
)


_BESIDE_RESPONSES: dict[str, Schema] = {
    "InputTokens": an_object(
        {"object": const("response.input_tokens"), "input_tokens": whole()}, "object", "input_tokens"
    ),
    "Compaction": an_object(
        {
            "id": text(),
            "object": const("response.compaction"),
            "created_at": {"type": "number", "description": "Seconds since 1970."},
            "output": array(ref("OutputItem"), "What stands for the conversation in a next `input`."),
            "usage": _RESPONSE_USAGE,
        },
        *("id", "object", "created_at", "output", "usage"),
    ),
    "InputItems": an_object(
        {
            "object": const("list"),
            "data": array(an_object({})),
            "first_id": _NULLABLE_TEXT,
            "last_id": _NULLABLE_TEXT,
            "has_more": {"type": "boolean"},
        },
        *("object", "data", "first_id", "last_id", "has_more"),
    ),
    "Deleted": an_object(
        {"id": text(), "object": text("", "response"), "deleted": {"type": "boolean", "const": True}},
        *("id", "object", "deleted"),
    ),
}
"""What is answered below `/responses`."""

_MODELS: dict[str, Schema] = {
    "Model": _MODEL,
    "ModelList": an_object({**_LISTED, "models": _CODEX}, *("object", "data", "models")),
    "RankedModel": {"allOf": [ref("Model"), _RANKED]},
    "RankedList": an_object(
        {**_LISTED, "data": array(ref("RankedModel")), "models": _CODEX}, *("object", "data", "models")
    ),
    "ExplainedModel": {
        "allOf": [
            ref("Model"),
            an_object(
                {
                    "source": text("How the name was read.", "exact", "alias", "class", "search"),
                    "order": text(),
                    "choices": array(an_object({"id": text()}, "id"), "Who may answer."),
                    "surfaces": an_object({}, description="By surface: every profile key and its layer."),
                },
                *("source", "order", "choices", "surfaces"),
            ),
        ]
    },
}
"""What is answered of models."""

_PROBES: dict[str, Schema] = {
    "Health": an_object({"status": const("ok")}, "status"),
    "Ready": an_object(
        {
            "status": text("", "ready", "degraded"),
            "not_ready": an_object(
                {}, description="What is amiss: providers, store, keys file, limits, telemetry."
            ),
            "models": an_object({}, description="States of local models."),
        },
        "status",
    ),
}
"""What is answered to whoever runs the gateway."""


def schemas() -> dict[str, Schema]:
    """The components that answers are made of."""
    return {
        "Error": ERROR,
        "ChatEvent": _events("ChatChunk"),
        "ChatChunk": _CHUNK,
        "ResponseEvent": _events("ResponseEventData"),
        "ResponseEventData": _RESPONSE_EVENT,
        "StateEvent": an_object({"event": const("state"), "data": text("JSON.")}, "event", "data"),
        "ChatCompletion": _COMPLETION,
        "Response": _RESPONSE,
        "OutputItem": an_object({"type": text("", "message", "reasoning", "function_call")}, "type"),
        **_BESIDE_RESPONSES,
        "Embeddings": _EMBEDDINGS,
        **_MODELS,
        **_PROBES,
    }


# --- examples ----------------------------------------------------------------------------

_TOKENS: dict[str, Any] = {"input_tokens": 11, "output_tokens": 2, "total_tokens": 13}
_SAID = {"type": "output_text", "text": "Hello!", "annotations": []}

COMPACTION: dict[str, Any] = {
    "id": "resp_5f0e2c7d9a1b3c4d5e6f7a8b",
    "object": "response.compaction",
    "created_at": 1764500000,
    "output": [{"type": "compaction", "id": "cmp_5f0e2c7d9a1b3c4d5e6f7a8c", "encrypted_content": "dgc1..."}],
    "usage": _TOKENS,
}
COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1f0c5b7e9d3a2846c0b1e2f3",
    "object": "chat.completion",
    "created": 1764500000,
    "model": "openai/gpt-5",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello!"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13},
}
COMPLETION_EVENT = {
    "data": '{"id":"chatcmpl-1f0c","object":"chat.completion.chunk","created":1764500000,"model":"m",'
    '"choices":[{"index":0,"delta":{"role":"assistant","content":"Hello!"},"finish_reason":null}]}'
}
RESPONSE: dict[str, Any] = {
    "id": "resp_5f0e2c7d9a1b3c4d5e6f7a8b",
    "object": "response",
    "created_at": 1764500000,
    "status": "completed",
    "model": "openai/gpt-5",
    "output": [
        {
            "id": "msg_5f0e2c7d9a1b3c4d5e6f7a8c",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [_SAID],
        }
    ],
    "error": None,
    "incomplete_details": None,
    "previous_response_id": None,
    "usage": _TOKENS,
}
RESPONSE_EVENT = {
    "event": "response.output_text.delta",
    "data": '{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_5f0e",'
    '"output_index":0,"content_index":0,"delta":"Hello!","logprobs":[]}',
}
STATE_EVENT = {"event": "state", "data": '{"model":"local/tiny","state":"loading","progress":0.5}'}
EMBEDDINGS: dict[str, Any] = {
    "object": "list",
    "model": "nomic-embed-text",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.25, -0.5, 0.75]}],
    "usage": {"prompt_tokens": 4, "total_tokens": 4},
}
MODEL: dict[str, Any] = {
    "id": "openai/gpt-5",
    "object": "model",
    "created": 1735689600,
    "owned_by": "openai",
}
MODELS: dict[str, Any] = {"object": "list", "data": [MODEL], "models": [{"slug": "openai/gpt-5"}]}
RANKED: dict[str, Any] = {
    "object": "list",
    "data": [
        {
            **MODEL,
            "rank": 1,
            "class": "chat-thinking",
            "score": 0.91,
            "breakdown": {"quality": 0.9},
            "reasons": ["quality 0.90"],
            "provider": "openai",
            "model": "gpt-5",
            "tools": True,
            "vision": True,
            "reasoning": True,
            "context_window": 400000,
        }
    ],
    "models": [{"slug": "openai/gpt-5"}],
}
EXPLAINED: dict[str, Any] = {
    **MODEL,
    "source": "exact",
    "order": "fixed",
    "choices": [{"id": "openai/gpt-5", "weight": 1, "fallback": False}],
    "surfaces": {"responses": {"profile": {}, "learned": []}},
}
ITEMS: dict[str, Any] = {
    "object": "list",
    "data": [{"id": "item_1", "type": "message", "role": "user", "content": "Say hello."}],
    "first_id": "item_1",
    "last_id": "item_1",
    "has_more": False,
}
FAILURES: dict[str, dict[str, Any]] = {
    name: {"error": {"message": message, "type": kind, "param": param, "code": code}}
    for name, message, kind, param, code in (
        ("BadRequest", "`messages` is required.", "invalid_request_error", "messages", None),
        ("NoKey", "invalid API key", "authentication_error", None, "invalid_api_key"),
        ("NotFound", "no model is called 'gpt-6'", "invalid_request_error", "model", "model_not_found"),
        ("RateLimit", "slow down", "rate_limit_error", None, "rate_limit_exceeded"),
        ("Upstream", "provider p: the connection was lost", "upstream_error", None, "upstream_error"),
        ("Unavailable", "not ready: no provider is configured", "upstream_error", None, "not_ready"),
    )
}
