"""`response_format` of a Chat body: `output_format.*` of the profile.

Where a backend has no such format (or not with tools, or not in a stream) the model is told
in words: the schema goes to the end of the system message.
"""

from __future__ import annotations

from typing import Any

import orjson

from ..dialect import Repair
from ..ir import Json
from .content import as_text, joined
from .edit_draft import Draft

_TELL_OBJECT = "Answer with one JSON object and nothing else: no prose, no code fence."
_TELL_SCHEMA = (
    "Answer with one JSON value that is valid under the JSON Schema below, and nothing else: "
    "no prose, no code fence.\n\n"
)
_NUDGE = "Respond with a JSON object."
_SYSTEM = ("system", "developer")


def edit_format(draft: Draft) -> None:
    """The format as this backend takes it, or told in words. Needs tools and messages in the draft."""
    format: Any = draft.body.get("response_format")
    kind = format.get("type") if isinstance(format, dict) else None
    if kind not in ("json_object", "json_schema"):
        return
    rules = draft.profile.output_format
    if not rules.with_tools and "tools" in draft.body:
        _tell(draft, format, "this backend takes no output format beside tools")
    elif not rules.with_stream and draft.body.get("stream") is True:
        _tell(draft, format, "this backend takes no output format in a stream")
    elif kind == "json_object":
        if rules.json_object == "drop":
            _drop(draft)
    elif rules.json_schema == "drop":
        _drop(draft)
    elif rules.json_schema == "prompt":
        _say(draft, _words(format))
        del draft.body["response_format"]
        if rules.json_object == "keep":
            draft.body["response_format"] = {"type": "json_object"}


def _drop(draft: Draft) -> None:
    del draft.body["response_format"]
    draft.lose("/response_format", "this backend cannot be held to an output format", "feature")


def _tell(draft: Draft, format: Any, reason: str) -> None:
    _say(draft, _words(format))
    del draft.body["response_format"]
    draft.lose("/response_format", f"{reason}: the model is told in words", "feature")


def _words(format: Json) -> str:
    spec = format.get("json_schema")
    schema = spec.get("schema") if isinstance(spec, dict) else None
    if schema is None:
        return _TELL_OBJECT
    return _TELL_SCHEMA + orjson.dumps(schema).decode()


def _say(draft: Draft, words: str) -> None:
    """Add to the first system message, or put one at the start."""
    messages = draft.body["messages"]
    for i, message in enumerate(messages):
        if message.get("role") in _SYSTEM:
            told = {**message, "content": joined(message.get("content"), words)}
            draft.body["messages"] = [*messages[:i], told, *messages[i + 1 :]]
            return
    draft.body["messages"] = [{"role": "system", "content": words}, *messages]


# --- the word JSON ---------------------------------------------------------------------


def say_json(draft: Draft) -> None:
    """Backends with `json_object` refuse it unless the conversation speaks of JSON.

    OpenAI reads every Chat message; others (seen on Databricks) leave the system message out,
    where callers usually say it.
    """
    format = draft.body.get("response_format")
    asked = isinstance(format, dict) and format.get("type") == "json_object"
    if not asked or not draft.profile.output_format.needs_json_word:
        return
    messages = draft.body["messages"]
    system_counts = draft.profile.answer.exact
    read = [message for message in messages if system_counts or message.get("role") not in _SYSTEM]
    if any("json" in _spoken(message).lower() for message in read):
        return
    draft.repairs.append(Repair("request", "json_word"))
    for i in reversed(range(len(messages))):
        if messages[i].get("role") == "user":
            told = {**messages[i], "content": joined(messages[i].get("content"), _NUDGE, " ")}
            draft.body["messages"] = [*messages[:i], told, *messages[i + 1 :]]
            return
    draft.body["messages"] = [*messages, {"role": "user", "content": _NUDGE}]


def _spoken(message: Json) -> str:
    content = message.get("content")
    if not isinstance(content, list):
        return as_text(content) or ""
    parts = (part.get("text") for part in content if isinstance(part, dict))
    return " ".join(text for text in parts if isinstance(text, str))
