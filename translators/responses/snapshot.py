"""The response object around the output: what a reply says about its own request.

Open Responses requires most of these fields and forbids null in many, OpenAI's types allow
more; what is built here satisfies both. `usage` and the rest that is known only at the end is
filled in by the encoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..dialect import ReplyContext
from ..ir import Json
from .flat import flat_choice, flat_tool

_DEFAULTS: Mapping[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "temperature": 1.0,
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}
"""Fields that repeat the request, and what they are when the request left them out."""

_ONLY_WHEN_SENT = ("user", "prompt_cache_retention")

_TIERS = ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast")
"""Typed clients know these service tiers; other names of backends stay unsaid."""

_SECRET = ("authorization", "headers")
"""Credentials of an MCP tool: never given back."""


def snapshot(context: ReplyContext, response_id: str) -> Json:
    """The response in progress, with nothing in it yet."""
    echo = context.echo
    sent = {key: echo[key] for key in _ONLY_WHEN_SENT if echo.get(key) is not None}
    if context.conversation is not None:
        sent["conversation"] = {"id": context.conversation}
    return {
        "id": response_id,
        "object": "response",
        "created_at": context.created,
        "status": "in_progress",
        "background": False,
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "model": context.model,
        "output": [],
        "previous_response_id": context.previous,
        **{key: _or(echo.get(key), default) for key, default in _DEFAULTS.items()},
        **sent,
        "metadata": _or(echo.get("metadata"), {}),
        "reasoning": _reasoning(echo.get("reasoning")),
        "service_tier": "default",
        "store": context.stored,
        "text": _text(echo.get("text")),
        "tool_choice": _choice(echo.get("tool_choice")),
        "tools": _tools(echo.get("tools")),
        "usage": None,
    }


def service_tier(told: str | None) -> str:
    """The tier that served the request by the backend's word, in the published names."""
    return told if told in _TIERS else "default"


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _reasoning(value: Any) -> Json:
    asked = value if isinstance(value, dict) else {}
    summary = _or(asked.get("summary"), asked.get("generate_summary"))
    return {"effort": asked.get("effort"), "summary": summary}


def _text(value: Any) -> Json:
    """`verbosity` may be absent but not null; a schema's echo has all its fields."""
    asked = value if isinstance(value, dict) else {}
    form = asked.get("format")
    if not isinstance(form, dict):
        form = {"type": "text"}
    elif form.get("type") == "json_schema":
        form = {**form, "description": form.get("description"), "strict": bool(form.get("strict"))}
    verbosity = asked.get("verbosity")
    return {"format": form} if verbosity is None else {"format": form, "verbosity": verbosity}


def _choice(value: Any) -> Any:
    return flat_choice(value) if isinstance(value, dict) else _or(value, "auto")


def _tools(value: Any) -> list[Json]:
    given = value if isinstance(value, list) else []
    return [_tool(flat_tool(tool)) for tool in given if isinstance(tool, dict)]


def _tool(tool: Json) -> Json:
    """A tool as the client sent it, with the fields that typed clients require of its kind."""
    kind = tool.get("type")
    if kind == "function":
        return {"description": None, "parameters": None, "strict": None, **tool}
    if kind == "namespace":
        return {**tool, "description": _or(tool.get("description"), ""), "tools": _tools(tool.get("tools"))}
    if kind == "mcp":
        return {key: value for key, value in tool.items() if key not in _SECRET}
    return tool
