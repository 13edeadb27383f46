"""The parameters of a call: neutral name, its name in each shape, and what losing it means.

One table for both directions; `docs/mapping.md` is generated from it. `kind` decides what
happens where a wire has no such parameter: *tuning* and *bookkeeping* are left out and
reported, *feature* is a 400 naming the parameter. A value in `idle` says what not sending
the parameter says, so leaving it out is no loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .dialect import LossKind
from .ir import Call, Json, Shape


@dataclass(frozen=True, slots=True)
class Param:
    """One neutral parameter; `chat` and `responses` are dotted paths in the body, None: no such."""

    name: str
    chat: str | None
    responses: str | None
    kind: LossKind = "tuning"
    idle: tuple[Any, ...] = ()

    def path(self, shape: Shape) -> str | None:
        return self.responses if shape == "responses" else self.chat

    def pointer(self, shape: Shape) -> str:
        """JSON pointer of the parameter in a body of `shape`."""
        return "/" + (self.path(shape) or self.name).replace(".", "/")


PARAMS: tuple[Param, ...] = (
    # `max_tokens` is decoded from either Chat name (max_completion_tokens wins) and written
    # under the profile's `request.max_tokens_key`.
    Param("max_tokens", "max_completion_tokens", "max_output_tokens"),
    Param("temperature", "temperature", "temperature"),
    Param("top_p", "top_p", "top_p"),
    Param("stop", "stop", None),
    Param("seed", "seed", None),
    Param("n", "n", None, "feature", (1,)),
    # Not in OpenAI's request type, but echoed by every Responses reply and taken by Open
    # Responses servers: read from Responses clients, never written to a Responses backend.
    Param("presence_penalty", "presence_penalty", None, idle=(0,)),
    Param("frequency_penalty", "frequency_penalty", None, idle=(0,)),
    Param("logit_bias", "logit_bias", None, idle=({},)),
    Param("logprobs", "logprobs", None, idle=(False,)),
    Param("top_logprobs", "top_logprobs", "top_logprobs", idle=(0,)),
    Param("effort", "reasoning_effort", "reasoning.effort"),
    # Summaries are made of whatever reasoning the backend shows, so the wish is always met.
    Param("summary", None, "reasoning.summary", idle=("auto", "concise", "detailed", "none")),
    Param("reasoning_context", None, "reasoning.context", idle=("auto",)),
    Param("reasoning_mode", None, "reasoning.mode", idle=("standard",)),
    Param("verbosity", "verbosity", "text.verbosity"),
    Param("format", "response_format", "text.format", "feature", ({"type": "text"},)),
    # Contract: `true` is every wire's default and is never sent; `false` is.
    Param("parallel_tool_calls", "parallel_tool_calls", "parallel_tool_calls", idle=(True,)),
    Param("max_tool_calls", None, "max_tool_calls"),
    Param("metadata", "metadata", "metadata", "bookkeeping", ({},)),
    Param("user", "user", "user", "bookkeeping"),
    Param("safety_identifier", "safety_identifier", "safety_identifier", "bookkeeping"),
    Param("service_tier", "service_tier", "service_tier", idle=("auto", "default")),
    # `false` keeps nothing, which a backend without storage does anyway.
    Param("store", "store", "store", "bookkeeping", (False,)),
    Param("prompt_cache_key", "prompt_cache_key", "prompt_cache_key", "bookkeeping"),
    Param("prompt_cache_options", "prompt_cache_options", "prompt_cache_options", "bookkeeping"),
    Param("prompt_cache_retention", "prompt_cache_retention", "prompt_cache_retention", "bookkeeping"),
    Param("moderation", "moderation", "moderation"),
    Param("prediction", "prediction", None),
    Param("modalities", "modalities", None, "feature", (["text"],)),
    Param("audio", "audio", None, "feature"),
    Param("web_search_options", "web_search_options", None, "feature"),
    Param("include", None, "include", "bookkeeping", ([],)),
    Param("truncation", None, "truncation", idle=("disabled",)),
    Param("context_management", None, "context_management", idle=([],)),
    Param("prompt", None, "prompt", "feature"),
    Param("client_metadata", None, "client_metadata", "bookkeeping"),
    Param("background", None, "background", "feature", (False,)),
)

BY_NAME = {param.name: param for param in PARAMS}


def read_params(body: Json, shape: Shape) -> dict[str, Any]:
    """The neutral parameters that a body of `shape` sets; `null` and `""` are the same as absent.

    `format` and `max_tokens` have more than one spelling; their shapes read them themselves.
    """
    found = {}
    for param in PARAMS:
        path = param.path(shape)
        value = _dig(body, path) if path else None
        if value is not None and value != "":
            found[param.name] = value
    return found


def idle(name: str, value: Any) -> bool:
    """Whether leaving `name` out says the same as sending `value`."""
    return any(value == known and _alike(value, known) for known in BY_NAME[name].idle)


def _alike(value: Any, known: Any) -> bool:
    """`0` and `0.0` are one number; `0` and `False` are two things."""
    return isinstance(value, bool) is isinstance(known, bool)


def place_of(param: Param, call: Call) -> str:
    """JSON pointer of the parameter in the client's body, by the name that the client used."""
    return call.places.get(param.name) or param.pointer(call.shape)


def known_keys(shape: Shape) -> Iterator[str]:
    """Top-level keys of the shape that some parameter uses."""
    return (path.split(".")[0] for param in PARAMS if (path := param.path(shape)))


def _dig(body: Json, path: str) -> Any:
    value: Any = body
    for step in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value
