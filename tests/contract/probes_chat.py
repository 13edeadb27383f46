"""Probes of the Chat groups: see `probes`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.laws.folds import sse_payloads
from tests.laws.pairs import CLIENTS, context, new_ids, plain_reply, sse_bytes, translate
from translators.chat.decoder import ChatDecoder
from translators.errors import ProxyError
from translators.ir import (
    Call,
    Event,
    Opaque,
    Opened,
    Shape,
    ToolChoice,
)
from translators.profile import Profile

Json = dict[str, Any]

FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {}}}
CHAT_TOOL = {"type": "function", "function": FUNCTION}
CHAT_CUSTOM = {"type": "custom", "custom": {"name": "p"}}
USER = {"role": "user", "content": "hi"}


def decode(shape: Shape, **keys: Any) -> Call:
    hi: Json = {"messages": [USER]} if shape == "chat" else {"input": "hi"}
    return CLIENTS[shape].decode_request({"model": "m", **hi, **keys}, new_ids())


CHAT_FIELDS: Json = {
    "messages": [USER, USER],
    "model": "n",
    "stream": True,
    "n": 2,
    "seed": 7,
    "stop": "x",
    "user": "u",
    "audio": {"voice": "v", "format": "wav"},
    "modalities": ["text", "audio"],
    "logit_bias": {"1": 1},
    "frequency_penalty": 0.5,
    "presence_penalty": 0.5,
    "temperature": 0.5,
    "top_p": 0.5,
    "function_call": "none",
    "functions": [FUNCTION],
    "logprobs": True,
    "top_logprobs": 2,
    "max_completion_tokens": 5,
    "max_tokens": 5,
    "metadata": {"a": "b"},
    "moderation": {"model": "m"},
    "parallel_tool_calls": False,
    "prediction": {"type": "content", "content": "x"},
    "store": True,
    "prompt_cache_key": "k",
    "prompt_cache_options": {"mode": "implicit"},
    "prompt_cache_retention": "24h",
    "reasoning_effort": "low",
    "response_format": {"type": "json_object"},
    "safety_identifier": "s",
    "service_tier": "flex",
    "stream_options": {"include_usage": True},
    "tool_choice": "auto",
    "tools": [CHAT_TOOL],
    "verbosity": "low",
    "web_search_options": {"search_context_size": "low"},
}


def reads_field(shape: Shape, name: str, value: Any) -> bool:
    """Read into the call, or refused by name because it needs what is not built."""
    try:
        call = decode(shape, **{name: value})
    except ProxyError as error:
        return error.param == name
    return name not in call.extra and call != decode(shape)


def is_known(parts: Any) -> bool:
    return bool(parts) and not any(isinstance(part, Opaque) for part in parts)


CHAT_PARTS: dict[str, Json] = {
    "text": {"text": "a"},
    "refusal": {"refusal": "a"},
    "image_url": {"image_url": {"url": "u"}},
    "input_audio": {"input_audio": {"data": "A", "format": "wav"}},
    "file": {"file": {"file_id": "f"}},
}
CHAT_CHOICES: dict[str, Any] = {
    **{mode: mode for mode in ("auto", "none", "required")},
    "function": {"type": "function", "function": {"name": "f"}},
    "custom": {"type": "custom", "custom": {"name": "p"}},
    "allowed_tools": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [CHAT_TOOL]}},
}
CHAT_MESSAGES: dict[str, Json] = {
    "role": {"role": "assistant", "content": "a"},
    "content": {"content": "a"},
    "refusal": {"refusal": "a"},
    "annotations": {"content": "a", "annotations": [{"type": "url_citation", "url_citation": {"url": "u"}}]},
    "tool_calls": {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": FUNCTION}]},
    "function_call": {"function_call": {"name": "f", "arguments": "{}"}},
    "audio": {"audio": {"id": "a", "transcript": "t"}},
}


def chat_reply(delta: Json, **keys: Any) -> list[Event]:
    decoder = ChatDecoder(Profile())
    chunk = {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": delta, **keys}]}
    return [*decoder.feed(chunk), *decoder.done()]


def says_something(message: Json) -> bool:
    return any(isinstance(event, Opened) for event in chat_reply(message))


def finish_reason(name: str) -> bool:
    """Read from a backend, and written to a client."""
    if name == "function_call":
        old = decode("chat", functions=[FUNCTION])
        encoder = CLIENTS["chat"].encoder(old, context(stream=False))
        for event in chat_reply(CHAT_MESSAGES["function_call"], finish_reason=name):
            encoder.feed(event)
        return encoder.body()["choices"][0]["finish_reason"] == name
    message = CHAT_MESSAGES["tool_calls" if name == "tool_calls" else "content"]
    body = plain_reply("chat", "chat", {"choices": [{"message": message, "finish_reason": name}]})
    return body["choices"][0]["finish_reason"] == name


CHAT_USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 9,
    "total_tokens": 19,
    "prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 2, "audio_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 4},
}


def chat_written() -> Json:
    """A whole reply of ours, from a backend that tells all it can."""
    meta = {
        "id": "chatcmpl-1",
        "created": 1,
        "model": "up",
        "service_tier": "flex",
        "system_fingerprint": "f",
    }
    choice = {"message": CHAT_MESSAGES["content"], "finish_reason": "stop"}
    return plain_reply("chat", "chat", {**meta, "choices": [choice], "usage": CHAT_USAGE})


def chat_chunk_keys() -> set[str]:
    chunk = {"id": "chatcmpl-1", "service_tier": "flex", "system_fingerprint": "f", "obfuscation": "x"}
    choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
    stream = sse_bytes([{**chunk, "choices": [choice], "usage": CHAT_USAGE}])
    payloads = sse_payloads(translate("chat", "chat", [stream]))[:-1]
    return {key for payload in payloads for key in json.loads(payload)}


def keys_within(value: Any) -> set[str]:
    return set(value) | {key for inner in value.values() if isinstance(inner, dict) for key in inner}


CHAT_PROBES: Mapping[str, Callable[[str], bool]] = {
    "chat request": lambda name: reads_field("chat", name, CHAT_FIELDS[name]),
    "chat roles": lambda name: is_known(decode("chat", messages=[{"role": name, "content": "a"}]).items),
    "chat parts": lambda name: is_known(
        decode("chat", messages=[{"role": "user", "content": [{"type": name, **CHAT_PARTS[name]}]}])
        .items[0]
        .parts
    ),
    "chat tools": lambda name: is_known(
        decode("chat", tools=[{"function": CHAT_TOOL, "custom": CHAT_CUSTOM}[name]]).tools
    ),
    "chat tool_choice": lambda name: isinstance(
        decode("chat", tools=[CHAT_TOOL, CHAT_CUSTOM], tool_choice=CHAT_CHOICES[name]).tool_choice, ToolChoice
    ),
    "chat delta": lambda name: (
        says_something({"content": "a", **CHAT_MESSAGES[name]})
        if name == "role"
        else says_something(CHAT_MESSAGES[name])
    ),
    "chat message": lambda name: says_something(CHAT_MESSAGES[name]),
    "chat chunk": lambda name: name in chat_chunk_keys(),
    "chat completion": lambda name: name in chat_written(),
    "chat finish reasons": finish_reason,
    "chat usage": lambda name: name in keys_within(chat_written()["usage"]),
}
