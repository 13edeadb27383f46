"""What is refused of a Chat body in every lane: what cannot be right for any backend.

That is: a value of the wrong JSON type, a required member that is missing, a combination that
says nothing (a choice among no tools). Unknown keys, types and words pass, and so do numbers out
of OpenAI's range: a backend may know them.

The body is walked once, and nothing is built: what is plainly well written is told by type tests
alone. Anything else is given to the function that reads it for a translation, so that its fault
is told in the same words there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ProxyError, bad_request
from ..ir import Json
from ..params import BY_NAME
from ..request_rules import check_cache_options
from ..values import FLAG, LIST, NULL, OBJECT, STOP, STRING, Rule, integer, number
from .decode_content import decode_part
from .decode_messages import ROLES, read_call
from .decode_tools import MODES, check_offered, decode_choice, decode_tools, read_function, read_tool

RULES: Mapping[str, Rule] = {
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    **dict.fromkeys(("presence_penalty", "frequency_penalty"), number(-2, 2)),
    "seed": integer("an integer"),
    **dict.fromkeys(("max_tokens", "n"), integer("an integer of at least 1", 1)),
    "top_logprobs": integer("an integer of at least 0", 0),
    **dict.fromkeys(("logprobs", "parallel_tool_calls", "store"), FLAG),
    **dict.fromkeys(("effort", "verbosity", "user", "safety_identifier", "service_tier"), STRING),
    **dict.fromkeys(("prompt_cache_key", "prompt_cache_retention"), STRING),
    **dict.fromkeys(("logit_bias", "metadata", "prompt_cache_options", "moderation"), OBJECT),
    **dict.fromkeys(("prediction", "audio", "web_search_options"), OBJECT),
    "modalities": LIST,
    "stop": STOP,
}
"""Neutral parameter -> what it may be."""

_CHOICE = Rule(frozenset({str, dict}), "none, auto, required, or an object naming a tool")
KEYS: Mapping[str, Rule] = {
    **{str(BY_NAME[name].chat): rule for name, rule in RULES.items()},
    **dict.fromkeys(("max_tokens", "max_output_tokens"), RULES["max_tokens"]),
    # Together and Fireworks: a number of alternatives, as for `top_logprobs`.
    "logprobs": Rule(frozenset({bool, int}), "true or false"),
    "messages": Rule(LIST.types, "a list of at least one message"),
    **dict.fromkeys(("tools", "functions"), LIST),
    **dict.fromkeys(("tool_choice", "function_call"), _CHOICE),
    "response_format": Rule(OBJECT.types, "an object with a `type`"),
    "stream": FLAG,
    "stream_options": OBJECT,
}
UNSET = frozenset({*(BY_NAME[name].chat for name in RULES), "response_format"})
"""Keys that are as good as absent when they are an empty string."""


def check_request(body: Json) -> None:
    """Raise 400 (`ProxyError`, with `param`) for what no backend of this shape can answer."""
    for key, value in body.items():
        known = _KNOWN.get(key)
        if known is not None:
            types, check = known
            if type(value) not in types:
                _check_value(key, value)
            elif check is not None and value is not None:
                check(value)
    if not body.get("messages"):
        raise bad_request("`messages` is required: a list with at least one message.", "messages")
    choice = body.get("tool_choice")
    if choice not in (None, "auto", "none") or body.get("function_call") is not None:
        _check_choice(body, choice)


def _check_value(key: str, value: Any) -> None:
    rule = KEYS[key]
    if not rule.is_typed(value) and not (value == "" and key in UNSET):
        raise _wrong(key, rule.words)


def _wrong(param: str, words: str) -> ProxyError:
    return bad_request(f"`{param}` must be {words}.", param)


# --- messages --------------------------------------------------------------------------


def _check_messages(messages: list[Any]) -> None:
    for index, message in enumerate(messages):
        try:
            role = message["role"]
        except (KeyError, TypeError):
            role = None
        if type(role) is not str or not role:
            raise _unsaid(message, index)
        content = message.get("content")
        if type(content) is not str and content is not None and not _is_text(content):
            _check_parts(content, index)
        if role == "assistant" and ("tool_calls" in message or "function_call" in message):
            _check_calls(message, index)


def _unsaid(message: Any, index: int) -> ProxyError:
    if type(message) is not dict:
        return _wrong(f"messages[{index}]", "an object")
    return _wrong(f"messages[{index}].role", ROLES)


def _is_text(content: Any) -> bool:
    """Whether it is a list of text parts, as most are."""
    try:
        for part in content:
            if part["type"] != "text" or type(part["text"]) is not str:
                return False
    except (KeyError, TypeError):
        return False
    return type(content) is list


def _check_parts(content: Any, index: int) -> None:
    if type(content) is not list:
        raise _wrong(f"messages[{index}].content", "a string, a list of parts, or null")
    for i, part in enumerate(content):
        if not _is_own(part):
            decode_part(part, f"/messages/{index}/content/{i}")


def _is_own(part: Any) -> bool:
    """Whether it is a form of some backend's own, which has no translation."""
    if type(part) is not dict:
        return False
    kind = part.get("type")
    if kind is None:
        # vLLM: {"image_url": "https://..."} is a whole part.
        return not _MEDIA.isdisjoint(part)
    if kind == "image_url":
        return "uuid" in part  # vLLM: a picture that it has seen before
    # DashScope takes sound without a format.
    return kind == "input_audio" and type(part.get("input_audio")) is dict


_MEDIA = frozenset({"image_url", "audio_url", "video_url", "input_audio"})


def _check_calls(message: Json, index: int) -> None:
    calls = message.get("tool_calls")
    if calls:
        if type(calls) is not list:
            raise _wrong(f"messages[{index}].tool_calls", "a list")
        for i, call in enumerate(calls):
            try:
                name = call["function"]["name"]
            except (KeyError, TypeError):
                name = None
            if type(name) is not str or not name:
                read_call(call, f"/messages/{index}/tool_calls/{i}")
    if message.get("function_call") is not None:
        read_call({"function": message["function_call"]}, f"/messages/{index}/function_call")


# --- tools -----------------------------------------------------------------------------


def _check_tools(tools: list[Any]) -> None:
    for index, tool in enumerate(tools):
        if not _is_function(tool):
            read_tool(tool, index)


def _is_function(tool: Any) -> bool:
    """Whether it is a function with all that one has."""
    try:
        spec = tool["function"]
        name = spec["name"]
        is_whole = type(name) is str and type(spec["description"]) is str and type(spec["parameters"]) is dict
        return is_whole and name != "" and tool["type"] == "function"
    except (KeyError, TypeError):
        return False


def _check_functions(functions: list[Any]) -> None:
    for index, spec in enumerate(functions):
        read_function(spec, f"functions[{index}]", f"/functions/{index}")


def _check_choice(body: Json, choice: Any) -> None:
    """A choice in words that are all known here must choose among what is offered."""
    chosen = body["function_call"] if choice is None else choice
    if type(chosen) is str:
        if chosen not in MODES or (body.get("tools") or body.get("functions")):
            return
    else:
        kind = chosen.get("type", "function")
        if type(kind) is str and kind not in ("function", "custom", "allowed_tools"):
            return
    check_offered(decode_choice(body), decode_tools(body))


# --- other members ---------------------------------------------------------------------


def _check_n(n: Any) -> None:
    if n < 1:
        raise _wrong("n", RULES["n"].words)


def _check_stop(stop: Any) -> None:
    if not STOP.is_typed(stop):
        raise _wrong("stop", STOP.words)


def _check_options(options: Json) -> None:
    if not isinstance(options.get("include_usage"), bool | None):
        raise _wrong("stream_options.include_usage", FLAG.words)


def _check_format(form: Json) -> None:
    """A name and a schema are not asked for: llama.cpp and Together do without the name."""
    if type(form.get("type")) is not str:
        raise _wrong("response_format", "an object with a `type`")
    if form["type"] != "json_schema":
        return
    nested = form.get("json_schema", form)
    if type(nested) is not dict:
        raise _wrong("response_format.json_schema", "an object")
    for key, rule in (("name", STRING), ("schema", _JSON_SCHEMA)):
        if nested.get(key) is not None and not rule.is_typed(nested[key]):
            raise _wrong(f"response_format.json_schema.{key}", rule.words)


_JSON_SCHEMA = Rule(OBJECT.types, "a JSON Schema object")

_INSIDE: Mapping[str, Callable[[Any], None]] = {
    "messages": _check_messages,
    "tools": _check_tools,
    "functions": _check_functions,
    "n": _check_n,
    "stop": _check_stop,
    "stream_options": _check_options,
    "response_format": _check_format,
    "prompt_cache_options": check_cache_options,
}
"""Keys of whose value more is asked than its type."""
_KNOWN = {key: (rule.types | {NULL}, _INSIDE.get(key)) for key, rule in KEYS.items()}
