"""A client's Responses request, read into a `Call`.

Tolerant where clients are known to differ (string or list input, messages without a type,
null for absent, Chat spellings of tools and parts, ids left out), exact where a guess would
change the meaning: then it is a 400 whose `param` is the path of the fault. Nothing of a
request is dropped here but nulls: what has no neutral name travels in `extra` or as `Opaque`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..ir import Call, Item, Json, Message, Text
from ..params import BY_NAME, known_keys, read_params
from .check import RULES, check_request
from .decode_items import decode_input
from .decode_parts import missing, string, wrong
from .decode_tools import decode_choice, decode_tools, offered

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
        stream=bool(body.get("stream")),
        places=_places(body),
    )


def _items(body: Json, new_id: Callable[[str], str]) -> tuple[Item, ...]:
    """`instructions` as a leading system message, then `input`."""
    given, text = body.get("input"), body.get("instructions")
    items = decode_input([] if given is None else given, new_id)
    if text:
        return (Message("system", (Text(text),), at="/instructions"), *items)
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
    rule = RULES.get(name)
    if rule is not None and not rule.fits(value):
        raise wrong(BY_NAME[name].pointer("responses"), rule.words)


def _read_format(found: Json) -> None:
    """`text.format` is the neutral form as it stands; `{type: text}` asks for nothing."""
    if found.get("format", {}).get("type") == "text":
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
    if options and options.get("include_obfuscation"):
        extra["stream_options"] = options
    return extra
