"""Chat Completions messages as chat templates expect them.

The convention of transformers: `content` is a string, the arguments of a call are an object,
a tool message knows the name of its tool. Roles are checked words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from translators.errors import bad_request
from translators.ir import Json

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_REASONING = ("reasoning_content", "reasoning", "thinking")
"""One thing under three names, by family: Qwen and GLM, Gemma 4, gpt-oss."""


def template_messages(messages: Sequence[Json], *, developer: bool) -> list[Json]:
    """The messages for a template; `developer` tells whether it knows that role.

    Raises 400 for a role nobody knows and for parts that are no text.
    """
    names: dict[str, str] = {}
    return [
        _message(message, f"messages[{index}]", names, developer) for index, message in enumerate(messages)
    ]


def template_tools(tools: Sequence[Json]) -> list[Json]:
    """The functions among the tools, without what only an API reads (`strict`)."""
    return [
        {
            "type": "function",
            "function": {key: value for key, value in tool["function"].items() if key != "strict"},
        }
        for tool in tools
        if isinstance(tool.get("function"), dict)
    ]


def _message(message: Json, at: str, names: dict[str, str], developer: bool) -> Json:
    role = message.get("role")
    if role not in _ROLES:
        raise bad_request(f"'{role}' is no role: use one of {', '.join(sorted(_ROLES))}.", f"{at}.role")
    if role == "developer" and not developer:
        role = "system"
    told: Json = {"role": role, "content": _text(message.get("content"), f"{at}.content")}
    if role == "assistant":
        told.update(_turn(message, told["content"], names))
    elif role in ("tool", "function"):
        told.update(_result(message, names))
    elif isinstance(message.get("name"), str):
        told["name"] = message["name"]
    return told


def _text(content: Any, at: str) -> str:
    """No content is the empty string: templates add strings to it."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise bad_request("The content must be a string or a list of parts.", at)
    return "".join(_part(part, f"{at}[{index}]") for index, part in enumerate(content))


def _part(part: Any, at: str) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, dict) else None
    text = part.get("refusal" if kind == "refusal" else "text") if isinstance(part, dict) else None
    if isinstance(text, str) and kind in ("text", "refusal", "input_text", "output_text"):
        return text
    raise bad_request(f"This model reads text only: leave out the part of type '{kind}'.", at)


def _turn(message: Json, content: str, names: dict[str, str]) -> Json:
    """Calls and thoughts of an assistant message; `names` learns which call asked which tool."""
    told: Json = {}
    calls = [_call(call) for call in message.get("tool_calls") or () if isinstance(call, dict)]
    if calls:
        told["tool_calls"] = calls
        names.update({call["id"]: call["function"]["name"] for call in calls if call.get("id")})
    thought = next((message[key] for key in _REASONING if isinstance(message.get(key), str)), "")
    if thought:
        told.update(dict.fromkeys(_REASONING, thought))
        if calls and content:  # gpt-oss's template refuses all three together
            del told["thinking"]
    return told


def _call(call: Mapping[str, Any]) -> Json:
    function = call.get("function")
    asked = function if isinstance(function, dict) else {}
    told: Json = {
        "type": "function",
        "function": {"name": str(asked.get("name", "")), "arguments": _arguments(asked.get("arguments"))},
    }
    if isinstance(call.get("id"), str):
        told["id"] = call["id"]
    return told


def _arguments(arguments: Any) -> Any:
    """An object; text that is none (a call cut by the token limit) stays text."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        read = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        return arguments
    return read if isinstance(read, dict) else arguments


def _result(message: Json, names: Mapping[str, str]) -> Json:
    told: Json = {}
    asked = message.get("tool_call_id")
    if isinstance(asked, str):
        told["tool_call_id"] = asked
    name = message.get("name") or (names.get(asked) if isinstance(asked, str) else None)
    if isinstance(name, str):
        told["name"] = name
    return told
