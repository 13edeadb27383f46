"""A `Call` as the body of `/api/chat`: Chat's canonical body, the profile applied, in Ollama's words.

What only Ollama loses is found on the `Call`, whose parts know their places in the client's body:
keywords of schemas, arguments in the history that are no object. Everything else is what Chat loses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..chat.encode import encode_request as encode_chat
from ..dialect import Encoded, Loss
from ..errors import ProxyError, bad_request, param_at
from ..ir import AnyTool, Call, Json, Shape, Tool, ToolCall
from ..ollama_keys import OPTIONS, OWN
from ..profile import Profile, RequestRules
from .messages import add_system, arguments_object, to_messages
from .schema import fit_schema

OPTION_OF: Mapping[str, str] = {
    "max_tokens": "num_predict",
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "stop": "stop",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
"""Chat's parameters that Ollama has among its options."""

_KEPT = ("think", "keep_alive", "truncate", "shift", "logprobs", "top_logprobs")
_MUST_CALL = (
    "You must answer by calling {which}. Do not answer in words: your answer is valid only as a tool call."
)


def encode_request(call: Call, profile: Profile) -> Encoded:
    """The body for `/api/chat`, `model` and `stream` included.

    Raises 400 (`ProxyError`) for what cannot be carried.
    """
    losses: list[Loss] = []
    tools = tuple(_tool(tool, call.shape, losses) for tool in call.tools)
    losses += _bad_arguments(call)
    extra, own = _own_keys(call, profile.request)
    chat = encode_chat(replace(call, tools=tools, extra=extra), profile)
    body = _body({**chat.body, **own}, profile)
    if call.tool_choice is not None and call.tool_choice.mode == "required" and "tools" in body:
        _ask_for_a_call(body)
    one_call = call.params.get("parallel_tool_calls") is False
    return Encoded(body, [*losses, *chat.losses], chat.repairs, one_call=one_call)


# --- what only Ollama loses ------------------------------------------------------------


def _tool(tool: AnyTool, client: Shape, losses: list[Loss]) -> AnyTool:
    if not isinstance(tool, Tool) or tool.kind != "function":
        return tool
    at = f"{tool.at}/{'function/' if client == 'chat' else ''}parameters"
    try:
        schema, lost = fit_schema(tool.schema)
    except ProxyError as error:
        error.param = param_at(at)
        raise
    if lost:
        losses.append(Loss(at, f"Ollama keeps no {', '.join(lost)} of a tool's schema"))
    return replace(tool, schema=schema)


def _bad_arguments(call: Call) -> list[Loss]:
    """Calls of the history whose arguments are no object: they are given as `{}`."""
    bad = (
        item for item in call.items if isinstance(item, ToolCall) and arguments_object(item.arguments) is None
    )
    return [Loss(item.at, "Ollama takes arguments as an object only: sent as {}", "content") for item in bad]


def _own_keys(call: Call, rules: RequestRules) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Keys without a neutral name: those for the Chat body, and Ollama's own of another client than Chat's.

    A Chat body carries a Chat client's; those of others it would not take.
    """
    if call.shape == "chat":
        return call.extra, {}
    fixed = (*rules.drop, *rules.force)
    own = {key: value for key, value in call.extra.items() if key in OWN | OPTIONS and key not in fixed}
    return {key: value for key, value in call.extra.items() if key not in own}, own


# --- the body --------------------------------------------------------------------------


def _body(chat: Json, profile: Profile) -> Json:
    messages = to_messages(chat["messages"], profile)
    body: Json = {"model": chat["model"], "messages": messages}
    tools = [_function(tool) for tool in chat.get("tools") or () if tool.get("type") == "function"]
    if tools and chat.get("tool_choice") != "none":
        body["tools"] = tools
    format = _format(chat.get("response_format"))
    if format is not None:
        body["format"] = format
    think = _think(chat)
    if think is not None:
        body["think"] = think
    # Without these two the oldest messages of a long prompt are dropped and nobody is told.
    body |= {"truncate": False, "shift": False}
    body |= {key: chat[key] for key in _KEPT if chat.get(key) is not None}
    body["options"] = _options(chat)
    # A stream is what Ollama gives to whoever does not say.
    body["stream"] = chat.get("stream") is True
    return body


def _function(tool: Json) -> Json:
    given = tool["function"]
    spec = {key: given[key] for key in ("name", "description", "parameters") if key in given}
    return {"type": "function", "function": spec}


def _options(chat: Json) -> Json:
    """What the client set in `options` itself wins over the same thing said otherwise."""
    given = chat.get("options")
    if given is not None and not isinstance(given, dict):
        raise bad_request("`options` must be an object.", "options")
    found = {option: chat[key] for key, option in OPTION_OF.items() if chat.get(key) is not None}
    found |= {key: chat[key] for key in OPTIONS if chat.get(key) is not None}
    found |= given or {}
    if isinstance(found.get("stop"), str):
        found["stop"] = [found["stop"]]
    return found


def _format(given: Any) -> Any:
    """`json`, or the schema alone; None: none is asked for."""
    kind = given.get("type") if isinstance(given, dict) else None
    if kind == "json_object":
        return "json"
    if kind != "json_schema":
        return None
    spec = given.get("json_schema")
    schema = spec.get("schema") if isinstance(spec, dict) else None
    return schema if isinstance(schema, dict) and schema else "json"


def _think(chat: Json) -> bool | str | None:
    """By the client's own word, by a level, or by a switch; None: the model does as it is used to."""
    if chat.get("think") is not None:
        own: bool | str = chat["think"]
        return own
    effort = chat.get("reasoning_effort")
    if isinstance(effort, str):
        return False if effort == "none" else effort
    switch = chat.get("enable_thinking")
    return switch if isinstance(switch, bool) else None


def _ask_for_a_call(body: Json) -> None:
    """In words: no key of `/api/chat` makes a model call a tool."""
    names = [tool["function"]["name"] for tool in body["tools"]]
    which = f"the tool `{names[0]}`" if len(names) == 1 else "one of the tools you have"
    add_system(body["messages"], _MUST_CALL.format(which=which))
