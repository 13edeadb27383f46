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
from .check import RULES, check_request
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
_NO_LIMIT = -1
"""llama.cpp and LM Studio: as many tokens as the model likes, which no limit says everywhere."""


def decode_request(body: Json, new_id: Callable[[str], str]) -> Call:
    """Read a Chat request; raises `ProxyError` (bad_request, with `param`) for what has no meaning."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise bad_request("`model` is required and must be a string.", "model")
    check_request(body)
    tools = decode_tools(body)
    choice = decode_choice(body)
    check_offered(choice, tools)
    places = _places(body)
    return Call(
        shape="chat",
        model=model,
        items=decode_messages(body["messages"], new_id),
        tools=tools,
        tool_choice=choice,
        params=_params(body, places),
        extra=_extra(body),
        stream=bool(body.get("stream")),
        include_usage=bool((body.get("stream_options") or {}).get("include_usage")),
        places=places,
    )


def _params(body: Json, places: Mapping[str, str]) -> Json:
    found = read_params(body, "chat")
    if "max_tokens" in places:
        found["max_tokens"] = body[places["max_tokens"].removeprefix("/")]
    if found.get("max_tokens") == _NO_LIMIT:
        del found["max_tokens"]
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


def _format(raw: Json) -> Json:
    """`response_format` in the neutral form, which is the Responses one: `{type, name, schema, ...}`."""
    if raw["type"] != "json_schema":
        return raw
    nested = raw.get("json_schema", raw)
    if not nested.get("name"):
        raise bad_request(
            "`response_format.json_schema.name` is required.", "response_format.json_schema.name"
        )
    return {"type": "json_schema", **{key: value for key, value in nested.items() if key != "type"}}


def _check(name: str, value: Any, at: str) -> None:
    """`at`: the parameter's pointer in the body, which a value out of range is told by."""
    rule = RULES.get(name)
    if rule is not None and not rule.fits(value):
        raise bad_request(f"`{param_at(at)}` must be {rule.words}.", param_at(at))
