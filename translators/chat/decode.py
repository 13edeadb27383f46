"""A client's Chat Completions request, read into a `Call`.

Tolerant where clients are known to differ (string or list content, null for absent, flat or
nested tools, the old `functions`), exact where a guess would change the meaning: then it is a
400 that names the place. Nothing is dropped here but `null`s and empty strings.

Reasoning that a client sends back with an assistant message becomes a `Reasoning` item before
it, because that is what the other shape has; the message's calls become items after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import bad_request, param_at
from ..ir import Call, Json
from ..params import BY_NAME, known_keys, read_params
from ..request_rules import check_cache_options
from .decode_messages import decode_messages
from .decode_tools import check_offered, decode_choice, decode_tools

_READ = frozenset(
    {
        *("model", "messages", "tools", "functions", "tool_choice", "function_call"),
        *("stream", "stream_options", "max_tokens", "max_output_tokens", *known_keys("chat")),
    }
)
"""Top-level keys that have a place in `Call`; every other one travels in `Call.extra`."""


_LIMITS = ("max_output_tokens", "max_completion_tokens", "max_tokens")
"""Names of the one limit on tokens, in order of what they mean where several are said."""


def decode_request(body: Json, new_id: Callable[[str], str]) -> Call:
    """Read a Chat request; raises `ProxyError` (bad_request, with `param`) for what has no meaning."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise bad_request("`model` is required and must be a string.", "model")
    check_cache_options(body)
    tools = decode_tools(body)
    choice = decode_choice(body)
    check_offered(choice, tools)
    places = _places(body)
    return Call(
        shape="chat",
        model=model,
        items=decode_messages(body.get("messages"), new_id),
        tools=tools,
        tool_choice=choice,
        params=_params(body, places),
        extra=_extra(body),
        stream=_flag(body, "stream", "stream"),
        include_usage=_include_usage(body),
        places=places,
    )


def _params(body: Json, places: Mapping[str, str]) -> Json:
    found = read_params(body, "chat")
    if "max_tokens" in places:
        found["max_tokens"] = body[places["max_tokens"].removeprefix("/")]
    effort = _object_effort(body)
    if effort is not None:
        found["effort"] = effort
    if "format" in found:
        found["format"] = _format(found["format"])
    if body.get("functions"):
        found["parallel_tool_calls"] = False  # the old reply has room for one call
    for name, value in found.items():
        _check(name, value, places.get(name) or BY_NAME[name].pointer("chat"))
    return found


def _places(body: Json) -> dict[str, str]:
    """Parameters that the body says under another of their names.

    OpenAI renamed the limit; a client that sends both means the new one. The Responses name is
    none of this shape, so whoever sends it means it.
    """
    places = {}
    told = next((key for key in _LIMITS if body.get(key) is not None), "max_completion_tokens")
    if told != "max_completion_tokens":
        places["max_tokens"] = f"/{told}"
    if _object_effort(body) is not None:
        places["effort"] = "/reasoning/effort"
    if body.get("logprobs") is None:
        places["logprobs"] = "/top_logprobs"
    return places


def _object_effort(body: Json) -> str | None:
    """OpenRouter's `reasoning: {effort}`, which many clients send to any server; it wins."""
    reasoning = body.get("reasoning")
    effort = reasoning.get("effort") if isinstance(reasoning, dict) else None
    return effort if isinstance(effort, str) else None


def _extra(body: Json) -> Json:
    extra = {key: value for key, value in body.items() if key not in _READ and value is not None}
    if _object_effort(body) is not None:
        rest = {key: value for key, value in body["reasoning"].items() if key != "effort"}
        extra |= {"reasoning": rest} if rest else {}
        if not rest:
            del extra["reasoning"]
    return extra


def _format(raw: Any) -> Json:
    """`response_format` in the neutral form, which is the Responses one: `{type, name, schema, ...}`."""
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise bad_request("`response_format` must be an object with a `type`.", "response_format")
    if raw["type"] != "json_schema":
        return raw
    nested = raw.get("json_schema", raw)
    if not isinstance(nested, dict):
        raise bad_request("`response_format.json_schema` must be an object.", "response_format.json_schema")
    if not isinstance(nested.get("name"), str) or not nested["name"]:
        raise bad_request(
            "`response_format.json_schema.name` is required.", "response_format.json_schema.name"
        )
    if not isinstance(nested.get("schema", {}), dict):
        param = "response_format.json_schema.schema"
        raise bad_request(f"`{param}` must be a JSON Schema object.", param)
    return {"type": "json_schema", **{key: value for key, value in nested.items() if key != "type"}}


def _include_usage(body: Json) -> bool:
    options = body.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        raise bad_request("`stream_options` must be an object.", "stream_options")
    return _flag(options, "include_usage", "stream_options.include_usage")


def _flag(holder: Json, key: str, param: str) -> bool:
    value = holder.get(key)
    if value is not None and not isinstance(value, bool):
        raise bad_request(f"`{param}` must be true or false.", param)
    return bool(value)


# --- types of parameters ---------------------------------------------------------------


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and value % 1 == 0


def _is_count(value: Any) -> bool:
    return _is_integer(value) and value >= 1


def _within(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: _is_number(value) and low <= value <= high


def _is_stop(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(s, str) for s in value))


_TYPES: tuple[tuple[str, Callable[[Any], bool], tuple[str, ...]], ...] = (
    ("a number between 0 and 2", _within(0, 2), ("temperature",)),
    ("a number between 0 and 1", _within(0, 1), ("top_p",)),
    ("a number between -2 and 2", _within(-2, 2), ("presence_penalty", "frequency_penalty")),
    ("an integer", _is_integer, ("seed",)),
    ("an integer of at least 1", _is_count, ("max_tokens", "n")),
    ("an integer of at least 0", lambda value: _is_integer(value) and value >= 0, ("top_logprobs",)),
    ("true or false", lambda value: isinstance(value, bool), ("logprobs", "parallel_tool_calls", "store")),
    (
        "a string",
        lambda value: isinstance(value, str),
        (
            *("effort", "verbosity", "user", "safety_identifier", "service_tier"),
            *("prompt_cache_key", "prompt_cache_retention"),
        ),
    ),
    (
        "an object",
        lambda value: isinstance(value, dict),
        (
            *("logit_bias", "metadata", "prompt_cache_options", "moderation"),
            *("prediction", "audio", "web_search_options"),
        ),
    ),
    ("a list", lambda value: isinstance(value, list), ("modalities",)),
    ("a string or a list of strings", _is_stop, ("stop",)),
)
_TYPE_OF = {name: (words, test) for words, test, names in _TYPES for name in names}


def _check(name: str, value: Any, at: str) -> None:
    """`at`: the parameter's pointer in the body, which a wrong type is told by."""
    if name not in _TYPE_OF:
        return
    words, test = _TYPE_OF[name]
    if not test(value):
        raise bad_request(f"`{param_at(at)}` must be {words}.", param_at(at))
