"""Chat messages, read into items.

One assistant message gives up to three kinds of items, in this order: its reasoning, its text,
its calls. The answers to the old `function_call` have no id; they are paired by name with the
last unanswered call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import orjson

from ..capsule import FORMAT, RESPONSES_FORMAT, is_capsule
from ..errors import bad_request, param_at
from ..ir import Item, Json, Message, Part, Reasoning, Refusal, Text, ToolCall, ToolKind, ToolResult
from .annotations import from_chat
from .content import string
from .decode_content import decode_content

_REASONING_PARTS = frozenset({"reasoning", "thinking", "redacted_thinking"})
"""Parts that Databricks, Mistral and Anthropic layers put into assistant content."""

_ASSISTANT_KEYS = frozenset(
    {
        *("role", "content", "name", "refusal", "annotations", "tool_calls", "function_call"),
        *("reasoning", "reasoning_content", "reasoning_text", "reasoning_details"),
    }
)


ROLES = "developer, system, user, assistant, tool or function"


def decode_messages(messages: list[Json], new_id: Callable[[str], str]) -> tuple[Item, ...]:
    """Items of the conversation, which `check` has seen; raises `ProxyError` for what has no neutral form."""
    reader = _Reader(new_id)
    return tuple(item for i, raw in enumerate(messages) for item in reader.read(raw, f"/messages/{i}"))


class _Reader:
    """Remembers the calls seen so far, because results name them by id or only by name."""

    def __init__(self, new_id: Callable[[str], str]) -> None:
        self._new_id = new_id
        self._kinds: dict[str, ToolKind] = {}
        self._unanswered: dict[str, str] = {}
        """Name of an old-style function call -> the id minted for it."""
        self._nameless: list[str] = []
        """The ids minted for calls without one, until a result without one comes."""

    def read(self, raw: Json, at: str) -> list[Item]:
        match raw["role"]:
            case "system" | "developer" | "user":
                return [_plain(raw, at)]
            case "assistant":
                return self._assistant(raw, at)
            case "tool" | "function":
                return [self._result(raw, at)]
            case _:
                param = param_at(f"{at}/role")
                raise bad_request(f"`{param}` must be {ROLES}.", param)

    def _assistant(self, raw: Json, at: str) -> list[Item]:
        thoughts, content = _take_thoughts(raw, at)
        calls = self._calls(raw, at)
        message = _assistant_message(raw, content, at)
        if calls and not (message.parts or message.extra or message.name):
            return [*thoughts, *calls]
        return [*thoughts, message, *calls]

    def _calls(self, raw: Json, at: str) -> list[ToolCall]:
        listed = raw.get("tool_calls") or []
        calls = [self._call(entry, f"{at}/tool_calls/{i}") for i, entry in enumerate(listed)]
        if raw.get("function_call") is not None:
            call = self._call(
                {"id": self._new_id("call_"), "function": raw["function_call"]}, f"{at}/function_call"
            )
            self._unanswered[call.name] = call.call_id
            calls.append(call)
        return calls

    def _call(self, raw: Json, at: str) -> ToolCall:
        kind, spec = read_call(raw, at)
        call_id = raw.get("id")
        if not (isinstance(call_id, str) and call_id):
            call_id = self._new_id("call_")
            self._nameless.append(call_id)
        self._kinds[call_id] = kind
        known = ("id", "type", "index", kind, *(("name", "arguments", "input") if spec is raw else ()))
        return ToolCall(
            call_id=call_id,
            name=spec["name"],
            arguments=_arguments(spec.get("input" if kind == "custom" else "arguments")),
            kind=kind,
            at=at,
            extra=_rest(raw, known),
        )

    def _result(self, raw: Json, at: str) -> ToolResult:
        name = raw.get("name")
        name = name if isinstance(name, str) and name else None
        call_id = raw.get("tool_call_id")
        if raw["role"] == "function" and name is not None:
            call_id = self._unanswered.pop(name, "")
        if not (isinstance(call_id, str) and call_id):
            call_id = self._nameless.pop(0) if self._nameless and raw["role"] == "tool" else ""
        return ToolResult(
            call_id=call_id,
            parts=decode_content(raw.get("content"), f"{at}/content"),
            kind=self._kinds.get(call_id, "function"),
            name=name,
            at=at,
            extra=_rest(raw, ("role", "content", "name", "tool_call_id")),
        )


def read_call(raw: Any, at: str) -> tuple[ToolKind, Json]:
    """The kind of a call and where its name is; raises 400 (`ProxyError`) for what is no call."""
    param = param_at(at)
    if not isinstance(raw, dict):
        raise bad_request(f"`{param}` must be an object.", param)
    kind: ToolKind = "custom" if raw.get("type") == "custom" or "custom" in raw else "function"
    spec = raw.get(kind, raw)
    if not isinstance(spec, dict) or not isinstance(spec.get("name"), str) or not spec["name"]:
        inner = "name" if at.endswith("/function_call") else f"{kind}.name"
        raise bad_request(f"`{param}.{inner}` is required.", f"{param}.{inner}")
    return kind, spec


def _plain(raw: Json, at: str) -> Message:
    return Message(
        role=raw["role"],
        parts=decode_content(raw.get("content"), f"{at}/content"),
        name=_name(raw),
        at=at,
        extra=_rest(raw, ("role", "content", "name")),
    )


def _assistant_message(raw: Json, content: Any, at: str) -> Message:
    parts = decode_content(content, f"{at}/content")
    if isinstance(raw.get("refusal"), str) and raw["refusal"]:
        parts = (*parts, Refusal(raw["refusal"]))
    return Message(
        role="assistant",
        parts=_cited(parts, raw.get("annotations")),
        name=_name(raw),
        at=at,
        extra=_rest(raw, _ASSISTANT_KEYS),
    )


def _cited(parts: tuple[Part, ...], annotations: Any) -> tuple[Part, ...]:
    """A message's citations belong to its text; their offsets count from its first character."""
    known = [from_chat(raw) for raw in annotations] if isinstance(annotations, list) else []
    cited = tuple(annotation for annotation in known if annotation is not None)
    for i, part in enumerate(parts):
        if cited and isinstance(part, Text):
            return (*parts[:i], replace(part, annotations=cited), *parts[i + 1 :])
    return parts


def _take_thoughts(raw: Json, at: str) -> tuple[list[Reasoning], Any]:
    """The reasoning of an assistant message, and its content without reasoning parts.

    Vendors differ in the field's name; the same text under two names is one thought, different ones are two
    that know where they belong.
    """
    thoughts, content = _part_thoughts(raw.get("content"), f"{at}/content")
    texts: dict[str, str] = {}
    for key in ("reasoning_content", "reasoning", "reasoning_text"):
        text = raw.get(key)
        if isinstance(text, str) and text.strip():
            texts.setdefault(text, key)
    details = raw.get("reasoning_details")
    kept = [entry for entry in details if not _is_ours(entry)] if isinstance(details, list) else []
    extra = {"reasoning_details": kept} if kept else {}
    several = len(texts) > 1
    fields = [
        Reasoning(summary=(text,), at=f"{at}/{key}", native={"field": key} if several else {})
        for text, key in texts.items()
    ]
    if extra:
        first = fields[0] if fields else Reasoning(at=f"{at}/reasoning_details")
        fields = [replace(first, extra=extra), *fields[1:]]
    return [*thoughts, *fields, *_sealed_thoughts(details, at)], content


def _sealed_thoughts(details: Any, at: str) -> Iterator[Reasoning]:
    """Entries that the Chat encoder wrote for what only its maker can read."""
    for i, entry in enumerate(details if isinstance(details, list) else ()):
        if not _is_ours(entry):
            continue
        id = entry.get("id")
        own = id if isinstance(id, str) and id else None
        yield Reasoning(sealed=entry["data"], id=own, at=f"{at}/reasoning_details/{i}")


def _is_ours(entry: Any) -> bool:
    """Also a capsule whose `format` a client has not kept."""
    data = entry.get("data") if isinstance(entry, dict) else None
    ours = bool(data) and isinstance(data, str) and entry.get("format") in (FORMAT, RESPONSES_FORMAT)
    return ours or is_capsule(data)


def _part_thoughts(content: Any, at: str) -> tuple[list[Reasoning], Any]:
    if not isinstance(content, list):
        return [], content
    thoughts, rest = [], []
    for i, part in enumerate(content):
        if isinstance(part, dict) and string(part.get("type")) in _REASONING_PARTS:
            thoughts.append(_part_thought(part, f"{at}/{i}"))
        else:
            rest.append(part)
    return thoughts, rest


def _part_thought(part: Json, at: str) -> Reasoning:
    """`{summary: [{text, signature}]}`, `{thinking: text or [{text}], signature}` or `{data}`."""
    found = part.get("summary") or part.get("thinking") or part.get("text") or []
    pieces = [{"text": found}] if isinstance(found, str) else found
    pieces = [piece for piece in pieces if isinstance(piece, dict)] if isinstance(pieces, list) else []
    texts = tuple(piece["text"] for piece in pieces if isinstance(piece.get("text"), str))
    seals = (holder.get(key) for holder in (part, *pieces) for key in ("signature", "data"))
    return Reasoning(
        summary=texts,
        sealed=next((seal for seal in seals if isinstance(seal, str) and seal), None),
        at=at,
    )


def _arguments(value: Any) -> str:
    """Some servers and clients keep arguments as an object: its compact JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _name(raw: Json) -> str | None:
    name = raw.get("name")
    return name if isinstance(name, str) and name else None


def _rest(raw: Json, known: Any) -> Json:
    return {key: value for key, value in raw.items() if key not in known and value is not None}
