"""Probes of the Responses groups: see `probes`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.contract.probes_chat import FUNCTION, decode, is_known, keys_within, reads_field
from tests.laws.folds import sse_payloads
from tests.laws.pairs import BACKENDS, CLIENTS, context, plain_reply
from translators.errors import ProxyError
from translators.ir import (
    Annotated,
    Closed,
    Delta,
    Event,
    Failed,
    Finished,
    Foreign,
    Opaque,
    Opened,
    Started,
    ToolChoice,
)
from translators.profile import Profile
from translators.responses.decoder import ResponsesDecoder

Json = dict[str, Any]

RESPONSES_FIELDS: Json = {
    "input": "ho",
    "model": "n",
    "stream": True,
    "user": "u",
    "instructions": "i",
    "store": True,
    "access_programs": {"cyber": True},
    "background": True,
    "background_options": {},
    "image": {},
    "context_management": [{"type": "compaction"}],
    "conversation": "c",
    "previous_response_id": "r",
    "include": ["reasoning.encrypted_content"],
    "max_output_tokens": 16,
    "max_tool_calls": 2,
    "metadata": {"a": "b"},
    "moderation": {"model": "m"},
    "parallel_tool_calls": False,
    "prompt": {"id": "p"},
    "prompt_cache_key": "k",
    "prompt_cache_options": {"mode": "implicit"},
    "prompt_cache_retention": "24h",
    "reasoning": {"effort": "low"},
    "safety_identifier": "s",
    "service_tier": "flex",
    "stream_options": {"include_obfuscation": True},
    "temperature": 0.5,
    "text": {"verbosity": "low"},
    "tool_choice": "auto",
    "tools": [{"type": "function", **FUNCTION}],
    "top_logprobs": 2,
    "top_p": 0.5,
    "truncation": "auto",
}


_WORDS = {
    "name": "f",
    "namespace": "ns",
    "call_id": "c",
    "id": "i",
    "arguments": "{}",
    "input": "x",
    "output": "x",
}
INPUT_SAMPLES: dict[str, Json] = {
    "message": {"role": "user", "content": "a"},
    "reasoning": {"id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}]},
    "additional_tools": {"role": "developer", "tools": [{"type": "function", **FUNCTION}]},
    "tool_search_output": {"call_id": "c", "tools": [], "execution": "client"},
    "item_reference": {"id": "msg_1"},
}
OUTPUT_SAMPLES: dict[str, Json] = {
    "message": {"id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
    "reasoning": {"id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}]},
}
OUTPUT_PARTS: dict[str, Json] = {
    "output_text": {"text": "a"},
    "refusal": {"refusal": "a"},
    "reasoning_text": {"text": "a"},
}
INPUT_PARTS: dict[str, Json] = {
    "input_text": {"text": "a"},
    "input_image": {"image_url": "u", "detail": "auto"},
    "input_file": {"file_id": "f"},
}
TOOL_SAMPLES: dict[str, Json] = {
    "function": FUNCTION,
    "custom": {"name": "p"},
    "namespace": {"name": "ns", "description": "d", "tools": [{"type": "function", **FUNCTION}]},
    "tool_search": {"execution": "client"},
}


def reads_input_item(name: str) -> bool:
    try:
        call = decode("responses", input=[{"type": name, **INPUT_SAMPLES.get(name, _WORDS)}])
    except ProxyError as error:
        return error.param == "input[0]"  # a reference is refused by name: nothing is stored
    return is_known(call.items)


def reads_output_item(name: str) -> bool:
    item = {"type": name, **OUTPUT_SAMPLES.get(name, _WORDS)}
    decoder = ResponsesDecoder(Profile())
    events = list(decoder.feed({"type": "response.output_item.done", "output_index": 0, "item": item}))
    events += decoder.feed(
        {"type": "response.completed", "response": {"status": "completed", "output": [item]}}
    )
    assert isinstance(events[-1], Finished)
    return not any(isinstance(event, Foreign) for event in events)


def reads_output_part(name: str) -> bool:
    part = {"type": name, **OUTPUT_PARTS[name]}
    reasoning = name == "reasoning_text"
    item: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [part]}
    if not reasoning:
        item = {"type": "message", "id": "m", "role": "assistant", "content": [part]}
    body = plain_reply("chat", "responses", {"status": "completed", "output": [item]})
    message = body["choices"][0]["message"]
    keys = {"output_text": "content", "refusal": "refusal", "reasoning_text": "reasoning_content"}
    return bool(message[keys[name]] == "a")


def reads_responses_choice(name: str) -> bool:
    modes = ("auto", "none", "required")
    hosted = {"type": "computer_use_preview" if name == "computer_use" else name}
    tools = [{"type": "function", **FUNCTION}, {"type": "custom", "name": "p"}, hosted]
    tools = tools[:2] if name in (*modes, "function", "custom", "allowed_tools") else tools
    named: dict[str, Any] = {
        **{mode: mode for mode in modes},
        "function": {"type": "function", "name": "f"},
        "custom": {"type": "custom", "name": "p"},
        "allowed_tools": {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "f"}],
        },
    }
    call = decode("responses", tools=tools, tool_choice=named.get(name, {"type": name}))
    return isinstance(call.tool_choice, ToolChoice)


def reads_include(name: str) -> bool:
    call = decode("responses", include=[name])
    return name in call.params.get("include", ()) or call.params.get("logprobs") is True


def reads_status(name: str) -> bool:
    """A whole answer in this status has one meaning: it ended well, was cut, or failed."""
    body = {
        "status": name,
        "output": [],
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"},
    }
    events = list(BACKENDS["responses"].decode_reply(body, Profile()))
    wanted = Finished if name in ("completed", "incomplete") else Failed
    return isinstance(events[-1], wanted) and name not in ("queued", "in_progress")


INCOMPLETE = {
    **dict.fromkeys(("max_output_tokens", "max_messages", "steered"), "length"),
    "content_filter": "content_filter",
}
"""Reason of an incomplete response -> the finish reason that a Chat client is told."""


def reads_incomplete(name: str) -> bool:
    body = {"status": "incomplete", "output": [], "incomplete_details": {"reason": name}}
    finish = plain_reply("chat", "responses", body)["choices"][0]["finish_reason"]
    return bool(finish == INCOMPLETE[name])


RESPONSES_USAGE = {
    "input_tokens": 10,
    "output_tokens": 9,
    "total_tokens": 19,
    "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 2},
    "output_tokens_details": {"reasoning_tokens": 4},
}


def responses_usage_keys() -> set[str]:
    body = {"status": "completed", "output": [], "usage": RESPONSES_USAGE}
    return keys_within(plain_reply("responses", "responses", body)["usage"])


_SHOWN = (
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
    *("mcp_call", "mcp_list_tools"),
)


def _hosted(kind: str) -> Opaque:
    return Opaque("responses", {"type": kind, "id": f"{kind}_1", "status": "completed"})


def event_types_written() -> set[str]:
    """Every type of event that our streams can have."""
    call = {"call_id": "c", "name": "f"}
    pieces: list[Event] = [
        *(Started(), Opened(0, "reasoning"), Delta(0, "a"), Closed(0), Opened(1, "summary"), Delta(1, "a")),
        *(Closed(1), Opened(2, "text"), Delta(2, "a"), Annotated(2, {"type": "url_citation", "url": "u"})),
        *(Closed(2), Opened(3, "refusal"), Delta(3, "a"), Closed(3)),
        *(Opened(4, "tool_call", **call), Delta(4, "{}"), Closed(4)),
        *(Opened(5, "tool_call", "d", "p", "custom"), Delta(5, "x"), Closed(5)),
        *(Foreign(6 + i, _hosted(kind)) for i, kind in enumerate(_SHOWN)),
    ]
    ends: list[Event] = [
        *(Finished("stop"), Finished("length"), Failed(ProxyError("upstream", "x"))),
    ]
    found: set[str] = set()
    for end in ends:
        encoder = CLIENTS["responses"].encoder(decode("responses"), context())
        out = b"".join(encoder.feed(event) for event in [*pieces, end])
        found |= {json.loads(payload)["type"] for payload in sse_payloads(out)[:-1]}
    return found


def reads_error_event() -> bool:
    events = list(ResponsesDecoder(Profile()).feed({"type": "error", "message": "boom", "code": None}))
    return isinstance(events[-1], Failed)


def handles_event(name: str) -> bool:
    return name in event_types_written() or (name == "error" and reads_error_event())


RESPONSES_PROBES: Mapping[str, Callable[[str], bool]] = {
    "responses request": lambda name: reads_field("responses", name, RESPONSES_FIELDS[name]),
    "responses input": reads_input_item,
    "responses input parts": lambda name: is_known(
        decode("responses", input=[{"role": "user", "content": [{"type": name, **INPUT_PARTS[name]}]}])
        .items[0]
        .parts
    ),
    "responses output": reads_output_item,
    "responses output parts": reads_output_part,
    "responses tools": lambda name: is_known(
        decode("responses", tools=[{"type": name, **TOOL_SAMPLES.get(name, {})}]).tools
    ),
    "responses tool_choice": reads_responses_choice,
    "responses events": handles_event,
    "responses include": reads_include,
    "responses statuses": reads_status,
    "responses incomplete": reads_incomplete,
    "responses usage": lambda name: name in responses_usage_keys(),
}
