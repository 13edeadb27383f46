"""What an Ollama refuses of a request, in its own words: its body is read into typed structs (from source).

An unknown key is ignored; a known one of another type is a 400. So is what the model has no capability for,
and a `think` that is no word of its list.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

_TEXT, _FLAG, _NUMBER, _WHOLE = (str,), (bool,), (int, float), (int,)
_BODY: Mapping[str, tuple[type, ...]] = {
    "model": _TEXT,
    "messages": (list,),
    "tools": (list,),
    "stream": _FLAG,
    "format": (str, dict),
    "options": (dict,),
    "keep_alive": (str, int, float),
    "think": (bool, str),
    "truncate": _FLAG,
    "shift": _FLAG,
    "logprobs": _FLAG,
    "top_logprobs": _WHOLE,
}
_MESSAGE: Mapping[str, tuple[type, ...]] = {
    "role": _TEXT,
    "content": _TEXT,
    "thinking": _TEXT,
    "images": (list,),
    "tool_calls": (list,),
    "tool_name": _TEXT,
    "tool_call_id": _TEXT,
}
_OPTIONS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("num_ctx", "num_predict", "num_keep", "seed", "top_k", "repeat_last_n"), _WHOLE),
    **dict.fromkeys(("temperature", "top_p", "min_p", "typical_p", "repeat_penalty"), _NUMBER),
    **dict.fromkeys(("presence_penalty", "frequency_penalty"), _NUMBER),
    "stop": (list,),
}
_LEVELS = ("low", "medium", "high", "max")


def chat_fault(body: Any, model: str, capabilities: Collection[str], family: str) -> str | None:
    """Why `/api/chat` answers 400; None: it does not."""
    return next(_chat_faults(body, model, capabilities, family), None)


def embed_fault(body: Any, model: str, capabilities: Collection[str]) -> str | None:
    if "embedding" not in capabilities:
        return f'"{model}" does not support embeddings'
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return "invalid input type"
    too_long = any(len(text) > 2000 for text in texts) and body.get("truncate") is False
    return "the input length exceeds the context length" if too_long else None


def _chat_faults(body: Any, model: str, capabilities: Collection[str], family: str) -> Iterator[str]:
    yield from _types(body, _BODY, "ChatRequest")
    for message in body.get("messages") or []:
        yield from _message(message)
    for tool in body.get("tools") or []:
        yield from _tool(tool)
    yield from _types(body.get("options") or {}, _OPTIONS, "Options")
    yield from _format(body.get("format"))
    think = body.get("think")
    if isinstance(think, str) and think not in _LEVELS:
        yield f'invalid think value: "{think}" (must be "max", "high", "medium", "low", true, or false)'
    if think and "thinking" not in capabilities:
        yield f'"{model}" does not support thinking'
    if isinstance(think, str) and family not in ("gptoss", "qwen3"):
        yield f'think value "{think}" is not supported for this model'
    if body.get("tools") and "tools" not in capabilities:
        yield f"registry.ollama.ai/library/{model} does not support tools"
    yield from _length(body)


def _length(body: Json) -> Iterator[str]:
    """Four letters are a token; without `truncate: false` the oldest messages are dropped instead."""
    window = (body.get("options") or {}).get("num_ctx", 4096)
    if sum(len(message["content"]) for message in body["messages"]) / 4 > window:
        assert body.get("truncate") is False, "the beginning of the prompt would be cut off in silence"
        yield "the input length exceeds the context length"


def _types(table: Json, known: Mapping[str, tuple[type, ...]], struct: str) -> Iterator[str]:
    for key, types in known.items():
        value = table.get(key)
        flag = isinstance(value, bool) and bool not in types
        if value is not None and (flag or not isinstance(value, types)):
            yield f"json: cannot unmarshal {type(value).__name__} into Go struct field {struct}.{key}"


def _message(message: Json) -> Iterator[str]:
    yield from _types(message, _MESSAGE, "ChatRequest.messages")
    for image in message.get("images") or []:
        try:
            base64.b64decode(image, validate=True)
        except (binascii.Error, ValueError):
            yield "illegal base64 data at input byte 5"
    for call in message.get("tool_calls") or []:
        if not isinstance(call["function"].get("arguments"), dict):
            yield "json: cannot unmarshal string into Go struct field .arguments of type map[string]interface"


def _tool(tool: Json) -> Iterator[str]:
    function = tool.get("function") or {}
    parameters = function.get("parameters")
    if tool.get("type") != "function" or not function.get("name") or not isinstance(parameters, dict):
        yield "json: cannot unmarshal tool"
        return
    yield from _schema(parameters)


def _schema(schema: Any) -> Iterator[str]:
    """The keywords that its structs have; everything else would be dropped in silence, so none may come."""
    if not isinstance(schema, dict):
        yield "json: cannot unmarshal into Go struct field .properties"
        return
    kind = schema.get("type", "object")
    if not isinstance(kind, str | list):
        yield "json: cannot unmarshal into Go struct field .type"
    known = {"type", "description", "enum", "properties", "required", "anyOf", "items"}
    assert schema.keys() <= known, f"lost without a word: {sorted(schema.keys() - known)}"
    for inner in (*(schema.get("properties") or {}).values(), *(schema.get("anyOf") or ())):
        yield from _schema(inner)


def _format(format: Any) -> Iterator[str]:
    if isinstance(format, str) and format not in ("json", ""):
        yield f'invalid format: "{format}"; expected "json" or a valid JSON Schema object'
