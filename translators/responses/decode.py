"""A client's Responses request, read into a `Call`.

Tolerant where clients are known to differ (string or list input, messages without a type,
null for absent, Chat spellings of tools and parts, ids left out), exact where a guess would
change the meaning: then it is a 400 whose `param` is the path of the fault. Nothing of a
request is dropped here but nulls: what has no neutral name travels in `extra` or as `Opaque`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import bad_request
from ..ir import Call, Item, Json, Message, Text
from ..params import BY_NAME, known_keys, read_params
from ..request_rules import check_cache_options
from .decode_items import decode_input
from .decode_parts import missing, string, wrong
from .decode_tools import decode_choice, decode_tools, offered
from .forms import check_forms

_LOGPROBS = "message.output_text.logprobs"
"""The `include` value that asks for log probabilities; neutral `logprobs` says the same."""

_UNLISTED = ("presence_penalty", "frequency_penalty", "stop", "seed", "logit_bias", "logprobs")
"""Not in OpenAI's request type, but sent by clients and known to backends of the other shape."""

_READ = frozenset(
    {
        *("model", "input", "instructions", "tools", "tool_choice", "stream", "stream_options"),
        *("previous_response_id", "conversation", "background"),
        *("reasoning_effort", *_UNLISTED, *known_keys("responses")),
    }
)
"""Top-level keys that have a place in `Call`; every other one travels in `Call.extra`."""

_NESTED: Mapping[str, tuple[str, ...]] = {
    "reasoning": ("effort", "summary", "generate_summary", "context", "mode"),
    "text": ("format", "verbosity"),
}


class _Rule(NamedTuple):
    """The JSON types a parameter may have, in code and in words, and its range."""

    types: tuple[type, ...]
    words: str
    low: float | None = None
    high: float | None = None


def _number(low: int, high: int) -> _Rule:
    return _Rule((int, float), f"a number between {low} and {high}", low, high)


_STRING, _OBJECT = _Rule((str,), "a string"), _Rule((dict,), "an object")
_FLAG, _LIST = _Rule((bool,), "true or false"), _Rule((list,), "a list")
_COUNT = _Rule((int,), "an integer of at least 1", 1)

_RULES: Mapping[str, _Rule] = {
    "temperature": _number(0, 2),
    "top_p": _number(0, 1),
    "presence_penalty": _number(-2, 2),
    "frequency_penalty": _number(-2, 2),
    "top_logprobs": _Rule((int,), "an integer between 0 and 20", 0, 20),
    "max_tokens": _COUNT,
    "max_tool_calls": _COUNT,
    "seed": _Rule((int,), "an integer"),
    "stop": _Rule((str, list), "a string or a list of strings"),
    **dict.fromkeys(("parallel_tool_calls", "store", "logprobs"), _FLAG),
    **dict.fromkeys(("effort", "summary", "verbosity", "reasoning_context", "reasoning_mode"), _STRING),
    **dict.fromkeys(("user", "safety_identifier", "service_tier", "prompt_cache_key"), _STRING),
    **dict.fromkeys(("prompt_cache_retention", "truncation"), _STRING),
    **dict.fromkeys(("metadata", "format", "logit_bias", "prompt", "moderation"), _OBJECT),
    **dict.fromkeys(("prompt_cache_options", "client_metadata"), _OBJECT),
    **dict.fromkeys(("include", "context_management"), _LIST),
}
"""Neutral parameter -> what it may be. Ranges are those outside of which no backend answers."""


def decode_request(body: Json, new_id: Callable[[str], str]) -> Call:
    """Read a Responses request; raises `ProxyError` (bad_request, with `param`)."""
    model = string(body, "model", "")
    if not model:
        raise missing("/model", "the model to ask")
    check_request(body)
    items = _items(body, new_id)
    tools = decode_tools(body.get("tools"), "/tools")
    return Call(
        shape="responses",
        model=model,
        items=items,
        tools=tools,
        tool_choice=decode_choice(body.get("tool_choice"), offered(tools, items)),
        params=_params(body),
        extra=_extra(body),
        stream=_flag(body, "stream"),
        places=_places(body),
    )


def check_request(body: Json) -> None:
    """What is refused in every lane: the need for stored state, nothing to answer, and things unnamed."""
    _refuse_state(body)
    if body.get("input") is None and body.get("prompt") is None:
        raise missing("/input", "a string or a list of items")
    check_cache_options(body)
    check_forms(body)


def _refuse_state(body: Json) -> None:
    """Fields that need stored responses are refused, never ignored."""
    previous = body.get("previous_response_id")
    if previous is not None:
        raise bad_request(
            f"Previous response {str(previous)[:80]!r} not found: responses are not stored here. "
            "Send the whole conversation in `input`.",
            "previous_response_id",
            "previous_response_not_found",
        )
    if body.get("conversation") is not None:
        raise bad_request(
            "`conversation` is not supported: send the whole conversation in `input`.", "conversation"
        )
    if _flag(body, "background"):
        raise bad_request(
            "`background` is not supported: leave it out and stream the response instead.", "background"
        )


def _items(body: Json, new_id: Callable[[str], str]) -> tuple[Item, ...]:
    """`instructions` as a leading system message, then `input`."""
    given, text = body.get("input"), string(body, "instructions", "")
    items = decode_input([] if given is None else given, new_id)
    if text:
        items = (Message("system", (Text(text),), at="/instructions"), *items)
    if not items and body.get("prompt") is None:
        raise missing("/input", "at least one item")
    return items


def _places(body: Json) -> dict[str, str]:
    """Where parameters are that the body says in other words than the table's."""
    places = {}
    own = body.get("reasoning")
    is_said = isinstance(own, dict) and own.get("effort") not in (None, "")
    if not is_said and body.get("reasoning_effort") is not None:
        places["effort"] = "/reasoning_effort"  # Chat's name of it
    if body.get("logprobs") is None:  # the wish is said by `include` or by their number
        places["logprobs"] = "/top_logprobs" if body.get("top_logprobs") else "/include"
    return places


def _params(body: Json) -> Json:
    for key in _NESTED:
        if body.get(key) is not None and not isinstance(body[key], dict):
            raise wrong(f"/{key}", "an object")
    found = read_params(body, "responses")
    found |= {name: body[name] for name in _UNLISTED if body.get(name) is not None}
    older = (body.get("reasoning") or {}).get("generate_summary")  # the name before `summary`
    if older is not None:
        found.setdefault("summary", older)
    if body.get("reasoning_effort") is not None:  # Chat's name of it
        found.setdefault("effort", body["reasoning_effort"])
    for name, value in found.items():
        _check(name, value)
    _read_format(found)
    _read_include(found)
    found.pop("background", None)
    return found


def _check(name: str, value: Any) -> None:
    rule = _RULES.get(name)
    if rule is None:
        return
    fits = isinstance(value, rule.types) and (bool in rule.types or not isinstance(value, bool))
    if fits and rule.low is not None:
        fits = rule.low <= value <= (value if rule.high is None else rule.high)
    if fits and name in ("stop", "include") and isinstance(value, list):
        fits = all(isinstance(entry, str) for entry in value)
    if not fits:
        words = "a list of strings" if name == "include" else rule.words
        raise wrong(BY_NAME[name].pointer("responses"), words)


def _read_format(found: Json) -> None:
    """`text.format` is the neutral form as it stands; `{type: text}` asks for nothing."""
    form = found.get("format")
    if form is None:
        return
    kind = string(form, "type", "/text/format")
    if not kind:
        raise missing("/text/format/type", "text, json_object or json_schema")
    if kind == "json_schema":
        if not string(form, "name", "/text/format"):
            raise missing("/text/format/name", "a name for the schema")
        if not isinstance(form.get("schema"), dict):
            raise missing("/text/format/schema", "a JSON Schema object")
    if kind == "text":
        del found["format"]


def _read_include(found: Json) -> None:
    """Log probabilities are one wish, said by `include` here and by `logprobs` elsewhere."""
    include = found.get("include", [])
    if _LOGPROBS in include or found.get("top_logprobs"):
        found["logprobs"] = True
    rest = [entry for entry in include if entry != _LOGPROBS]
    if rest:
        found["include"] = rest
    else:
        found.pop("include", None)


def _extra(body: Json) -> Json:
    extra = {key: value for key, value in body.items() if key not in _READ and value is not None}
    for key, known in _NESTED.items():
        rest = {k: v for k, v in (body.get(key) or {}).items() if k not in known and v is not None}
        if rest:
            extra[key] = rest
    # Obfuscation pads the frames we write ourselves; only a wish for it is worth keeping.
    options = body.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise wrong("/stream_options", "an object")
    if options and options.get("include_obfuscation"):
        extra["stream_options"] = options
    return extra


def _flag(body: Json, key: str) -> bool:
    value = body.get(key)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise wrong(f"/{key}", "true or false")
