"""Bodies of requests: what a client may send, as far as the gateway looks.

Unknown members pass, and so do unknown words and numbers out of OpenAI's range: a backend may know them.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from translators.chat.check import KEYS as CHAT_KEYS
from translators.chat.check import UNSET as CHAT_UNSET
from translators.responses.check import KEYS as RESPONSES_KEYS
from translators.responses.check import PATHS as RESPONSES_PATHS
from translators.values import Rule

from .schemas import Schema, an_object, array, by_rule, either, filled, nullable, ref, text

MODEL: Schema = {
    **filled("`provider/model`, a bare model, an alias, a group or a class; `GET /v1/models` lists them."),
    "pattern": r"\S",
    "examples": ["openai/gpt-5", "chat-balanced"],
}
_JSON_SCHEMA = nullable(an_object({}, description="A JSON Schema object."))

_FUNCTION = an_object(
    {
        "name": filled("The name that the model calls it by."),
        "description": nullable(text()),
        "parameters": _JSON_SCHEMA,
        "strict": {"description": "Whether arguments are held to the schema."},
    },
    "name",
)


def _parameters(
    rules: Mapping[str, Rule], unset: Container[str | None], special: Mapping[str, Schema]
) -> Schema:
    """The members that are checked by a rule; `special` ones are said better here."""
    told = {key: by_rule(rule, key in unset) for key, rule in rules.items()}
    return {"model": MODEL, **{key: special.get(key, schema) for key, schema in told.items()}}


# --- Chat Completions --------------------------------------------------------------------

_CHAT_PART = an_object(
    {
        "type": text("`text`, `image_url`, `input_audio`, `file`, or a type of the backend's own.", "text"),
        "text": text(),
        "image_url": {"description": "`{url, detail}`, or the URL itself."},
        "input_audio": {"description": "`{data, format}`."},
        "file": {"description": "`{file_data, file_id, filename}`."},
    }
)
_CHAT_MESSAGE = an_object(
    {
        "role": filled("`system`, `developer`, `user`, `assistant`, `tool` or `function`.", "user"),
        "content": {
            "description": "A string, a list of parts, or null.",
            "type": ["string", "array", "null"],
            "items": either(ref("ChatPart"), {"type": "string"}),
            "examples": ["Say hello."],
        },
        "tool_calls": {"description": "Of an assistant: `[{id, type, function: {name, arguments}}]`."},
        "tool_call_id": {"description": "Of a tool's result: the call that it answers."},
    },
    "role",
)
_CHAT_TOOL = an_object(
    {
        "type": text("`function`, `custom`, or a tool that the backend runs itself.", "function"),
        "function": _FUNCTION,
    },
    description="A tool that the model may call.",
)

CHAT: dict[str, Any] = {
    "messages": [{"role": "user", "content": "Say hello."}],
    "model": "openai/gpt-5",
}
CHAT_TOOLS: dict[str, Any] = {
    "model": "chat-balanced",
    "stream": True,
    "stream_options": {"include_usage": True},
    "messages": [
        {"role": "system", "content": "Answer in one sentence."},
        {"role": "user", "content": [{"type": "text", "text": "How warm is it in Paris?"}]},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": "The weather in a city.",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
            },
        }
    ],
    "tool_choice": "auto",
}

# --- Responses ---------------------------------------------------------------------------

_PART = an_object(
    {
        "type": text("`input_text`, `input_image`, `input_file`, `output_text`, ...", "input_text"),
        "text": {"description": "Of a text part."},
        "image_url": {"description": "Of `input_image`: an http or data URL."},
        "file_data": {"description": "Of `input_file`: a data URL."},
    }
)
_CONTENT: Schema = {"type": ["string", "array", "null"], "items": ref("ResponsePart")}
_INPUT_ITEMS: Mapping[str, Schema] = {
    "InputMessage": an_object(
        {
            "type": {"enum": ["message", None, ""]},
            "role": text("`user`, `assistant`, `system` or `developer`.", "user"),
            "content": _CONTENT,
        },
        "role",
        "content",
        description="A message; its `type` may be left out.",
    ),
    "FunctionCall": an_object(
        {
            "type": {"enum": ["function_call", "custom_tool_call"]},
            "call_id": nullable(text("What the result names.")),
            "name": filled("The tool that was called."),
            "arguments": {"description": "JSON text; of a custom tool the text is in `input`."},
        },
        "type",
        "name",
    ),
    "FunctionCallOutput": an_object(
        {
            "type": {"enum": ["function_call_output", "custom_tool_call_output"]},
            "call_id": nullable(text("The call that it answers.")),
            "output": {"description": "Text, parts, or any JSON value."},
        },
        "type",
    ),
    "OtherItem": an_object(
        {"type": filled("Any other item: reasoning, compaction, item_reference, calls of hosted tools, ...")},
        "type",
        description="What only some backends know is passed to them, and reported where it is not.",
    ),
}
_RESPONSE_TOOL = an_object(
    {
        "type": filled("`function`, `custom`, `namespace`, `mcp`, or a hosted tool.", "function"),
        "name": nullable(text("Of a function and a custom tool.")),
        "description": {"description": "What the model is told of it."},
        "parameters": {"description": "Of a function: a JSON Schema object."},
    },
    "type",
)

RESPONSE: dict[str, Any] = {"model": "openai/gpt-5", "input": "Say hello."}
RESPONSE_TOOLS: dict[str, Any] = {
    "model": "chat-balanced",
    "stream": True,
    "instructions": "Answer in one sentence.",
    "input": [
        {"role": "user", "content": "How warm is it in Paris?"},
        {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Paris"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "21 C"},
    ],
    "tools": [
        {
            "type": "function",
            "name": "weather",
            "description": "The weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        }
    ],
    "reasoning": {"effort": "low"},
}
RESPONSE_CONTINUED: dict[str, Any] = {
    "model": "chat-balanced",
    "previous_response_id": "resp_5f0e2c7d9a1b3c4d5e6f7a8b",
    "input": "And tomorrow?",
}

# --- embeddings --------------------------------------------------------------------------

_EMBEDDINGS = an_object(
    {
        "model": MODEL,
        "input": either(
            text("One text.", "The sky is blue."),
            array({"type": ["string", "integer", "array"]}, at_least=1),
            description="A text, a list of texts, or tokens.",
        ),
        "encoding_format": {"description": "`float` or `base64`."},
        "dimensions": {"description": "Length of the vectors, where the model can choose."},
    },
    "model",
    "input",
)
EMBEDDINGS: dict[str, Any] = {"model": "embedding", "input": ["The sky is blue.", "Grass is green."]}


_STORED: dict[str, Schema] = {
    "previous_response_id": nullable(text("The stored response that this one continues.")),
    "conversation": {
        "type": ["string", "object", "null"],
        "properties": {"id": text()},
        "required": ["id"],
        "description": "The conversation that this is a turn of.",
    },
    "store": {
        "type": ["boolean", "null", "string"],
        "maxLength": 0,
        "description": "False: do not keep it.",
    },
}
"""What of a request for a response the store is for."""


def schemas() -> dict[str, Schema]:
    """The components that requests are made of."""
    chat = {
        "messages": array(ref("ChatMessage"), "The conversation.", at_least=1),
        "tools": {"type": ["array", "null"], "items": ref("ChatTool")},
        "functions": {"type": ["array", "null"], "items": _FUNCTION, "deprecated": True},
    }
    items = either(*map(ref, _INPUT_ITEMS))
    responses = {
        "input": {
            "description": "A text, or a list of items. Required unless there is a `prompt`.",
            "type": ["string", "array", "null"],
            "items": items,
        },
        "tools": {"type": ["array", "null"], "items": ref("ResponseTool")},
    }
    created = _parameters(RESPONSES_KEYS, RESPONSES_PATHS, responses)
    return {
        "ChatRequest": an_object(_parameters(CHAT_KEYS, CHAT_UNSET, chat), "model", "messages"),
        "ChatMessage": _CHAT_MESSAGE,
        "ChatPart": _CHAT_PART,
        "ChatTool": _CHAT_TOOL,
        "ResponseRequest": an_object({**created, **_STORED}, "model"),
        "ResponsePart": _PART,
        "ResponseTool": _RESPONSE_TOOL,
        **_INPUT_ITEMS,
        "EmbeddingsRequest": _EMBEDDINGS,
    }
