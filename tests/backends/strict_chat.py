"""What a strict Chat Completions backend refuses.

Tolerant servers hide a gateway's mistakes. This one knows only the plain shape and answers 400
to the rest: a key it does not know at any level, a null where a value belongs, an empty tools
list, the developer role, a second system message, an empty text block, a tool result that does
not follow its call. Every rule is one that a Databricks, Bedrock or vLLM deployment was seen to
enforce ("Extra inputs are not permitted", "System message must be at the beginning", ...).

Paths in refusals are the vendors' own dotted form: `messages.3.content.0`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]

BODY = frozenset(
    {
        "model",
        "messages",
        "max_tokens",
        "temperature",
        "top_p",
        "top_k",
        "stop",
        "n",
        "stream",
        "stream_options",
        "tools",
        "tool_choice",
        "response_format",
        "logprobs",
        "top_logprobs",
        "reasoning_effort",
    }
)
MESSAGE: Mapping[str, frozenset[str]] = {
    "system": frozenset({"role", "content"}),
    "user": frozenset({"role", "content"}),
    "assistant": frozenset({"role", "content", "tool_calls"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
}
FUNCTION = frozenset({"name", "description", "parameters", "strict"})
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
EXTRA = "Extra inputs are not permitted"
MISSING = "Field required"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a request is refused: a dotted path and the words for it."""

    path: str
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


def first_fault(body: Any, *, later_system: bool = False, prefill: bool = False) -> Fault | None:
    """The first thing about `body` that a strict backend refuses, None when it takes it.

    Some are less strict about order: system messages may come later, the last word may be the model's.
    """
    return next(_faults(body, later_system, prefill), None)


def _faults(body: Any, later_system: bool, prefill: bool) -> Iterator[Fault]:
    if not isinstance(body, dict):
        yield Fault("body", "Input should be an object")
        return
    yield from _extra(body, BODY, "")
    yield from (Fault(key, "Input should not be null") for key, value in body.items() if value is None)
    if body.get("stream_options") is not None and not body.get("stream"):
        yield Fault("stream_options", "only allowed when stream is true")
    yield from _tools(body)
    yield from _response_format(body.get("response_format"))
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield Fault("messages", MISSING)
        return
    for at, message in enumerate(messages):
        yield from _message(message, f"messages.{at}")
    yield from _sequence(messages, later_system)
    if not prefill and messages[-1]["role"] not in ("user", "tool"):
        yield Fault("messages", "The conversation must end with a user message.")


def _extra(given: Json, known: frozenset[str], at: str) -> Iterator[Fault]:
    yield from (Fault(f"{at}{key}", EXTRA) for key in sorted(given.keys() - known))


# --- tools ----------------------------------------------------------------------------


def _tools(body: Json) -> Iterator[Fault]:
    tools, choice = body.get("tools"), body.get("tool_choice")
    if tools is None:
        if choice is not None:
            yield Fault("tool_choice", "only allowed when tools are given")
        return
    if not isinstance(tools, list) or not tools:
        yield Fault("tools", "List should have at least 1 item")
        return
    for at, tool in enumerate(tools):
        yield from _tool(tool, f"tools.{at}.")
    names = [tool["function"].get("name") for tool in tools]
    if len(set(names)) != len(names):
        yield Fault("tools", "Tool names must be unique")
    yield from _choice(choice, names)


def _tool(tool: Any, at: str) -> Iterator[Fault]:
    if not isinstance(tool, dict) or tool.get("type") != "function":
        yield Fault(f"{at}type", "Input should be 'function'")
    yield from _extra(tool, frozenset({"type", "function"}), at)
    function = tool.get("function")
    if not isinstance(function, dict):
        yield Fault(f"{at}function", "Missing 'function' in the tool specification")
        return
    yield from _extra(function, FUNCTION, f"{at}function.")
    if not NAME.fullmatch(function.get("name") or ""):
        yield Fault(f"{at}function.name", f"String should match pattern '{NAME.pattern}'")
    if "parameters" in function and (function["parameters"] or {}).get("type") != "object":
        yield Fault(f"{at}function.parameters.type", "Input should be 'object'")
    if not isinstance(function.get("strict", False), bool):
        yield Fault(f"{at}function.strict", "Input should be a valid boolean")


def _choice(choice: Any, names: Sequence[str]) -> Iterator[Fault]:
    if isinstance(choice, dict):
        named = (choice.get("function") or {}).get("name")
        if choice.get("type") != "function" or named not in names:
            yield Fault("tool_choice", "names a function that is not offered")
    elif choice not in (None, "auto", "none", "required"):
        yield Fault("tool_choice", "Input should be 'auto', 'none' or 'required'")


def _response_format(given: Any) -> Iterator[Fault]:
    if given is None:
        return
    kind = given.get("type")
    if kind not in ("text", "json_object", "json_schema"):
        yield Fault("response_format.type", "Input should be 'text', 'json_object' or 'json_schema'")
    schema = (given.get("json_schema") or {}).get("schema")
    if kind == "json_schema" and not isinstance(schema, dict):
        yield Fault("response_format.json_schema.schema", MISSING)


# --- messages, one by one --------------------------------------------------------------


def _message(message: Any, at: str) -> Iterator[Fault]:
    role = message.get("role")
    if role not in MESSAGE:
        yield Fault(f"{at}.role", "Input should be 'system', 'user', 'assistant' or 'tool'")
        return
    yield from _extra(message, MESSAGE[role], f"{at}.")
    yield from _content(message, f"{at}.content")
    if "tool_calls" in message:
        yield from _calls(message["tool_calls"], f"{at}.tool_calls")


def _content(message: Json, at: str) -> Iterator[Fault]:
    content = message.get("content")
    if content is None:
        if not message.get("tool_calls"):
            yield Fault(at, MISSING)
    elif isinstance(content, list):
        for number, part in enumerate(content):
            yield from _part(part, str(message["role"]), f"{at}.{number}")
    elif not isinstance(content, str):
        yield Fault(at, "Input should be a string or a list")


def _part(part: Any, role: str, at: str) -> Iterator[Fault]:
    kind = part.get("type")
    if kind == "text":
        yield from _extra(part, frozenset({"type", "text"}), f"{at}.")
        if not part.get("text"):
            yield Fault(at, "text content blocks must be non-empty")
    elif kind == "image_url" and role == "user":
        yield from _extra(part, frozenset({"type", "image_url"}), f"{at}.")
        image = part.get("image_url")
        if not isinstance(image, dict) or not image.get("url") or image.keys() - {"url", "detail"}:
            yield Fault(f"{at}.image_url", "Input should be an object with url")
    else:
        yield Fault(f"{at}.type", f"{kind!r} is not a content type of role {role!r}")


def _calls(calls: Any, at: str) -> Iterator[Fault]:
    if not isinstance(calls, list) or not calls:
        yield Fault(at, "List should have at least 1 item")
        return
    for number, call in enumerate(calls):
        place = f"{at}.{number}"
        yield from _extra(call, frozenset({"id", "type", "function"}), f"{place}.")
        function = call.get("function") or {}
        if not call.get("id") or call.get("type") != "function":
            yield Fault(place, "a call has an id and type 'function'")
        yield from _extra(function, frozenset({"name", "arguments"}), f"{place}.function.")
        if not NAME.fullmatch(function.get("name") or ""):
            yield Fault(f"{place}.function.name", f"String should match pattern '{NAME.pattern}'")
        if not isinstance(function.get("arguments"), str):
            yield Fault(f"{place}.function.arguments", "Input should be a valid string")


# --- messages, in order ----------------------------------------------------------------


def _sequence(messages: Sequence[Json], later_system: bool) -> Iterator[Fault]:
    """One leading system message; every call answered at once."""
    owed: list[str] = []
    for at, message in enumerate(messages):
        role = message["role"]
        if role == "system" and at and not later_system:
            yield Fault(f"messages.{at}", "System message must be at the beginning")
        if role == "tool":
            if message.get("tool_call_id") not in owed:
                yield Fault(f"messages.{at}", "a tool message must follow the call that it answers")
                return
            owed.remove(message["tool_call_id"])
            continue
        if owed:
            yield Fault(f"messages.{at}", f"tool calls without a tool message: {', '.join(owed)}")
        owed = [call["id"] for call in message.get("tool_calls") or []]
        if len(set(owed)) != len(owed):
            yield Fault(f"messages.{at}.tool_calls", "call ids must be unique")
    if owed:
        yield Fault("messages", f"tool calls without a tool message: {', '.join(owed)}")
