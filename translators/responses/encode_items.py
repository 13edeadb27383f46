"""Neutral items as `input` items of a Responses request.

Ids are never made up at random: an id that the same history gives every time keeps a
backend's prompt cache. Item ids that are not this wire's own (OpenAI: 400 invalid_id_prefix)
are left out where they may be, and derived where they must be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from ..dialect import Loss
from ..ir import (
    AdditionalTools,
    Audio,
    Call,
    File,
    Image,
    Item,
    Json,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from ..lenient import json_in
from ..media import MediaPolicy
from ..profile import MediaRules
from ..turns import message_of
from .encode_tools import write_tool
from .ids import made_id

_CALL_TYPES = {
    "function": ("function_call", "fc"),
    "custom": ("custom_tool_call", "ctc"),
    "tool_search": ("tool_search_call", "tsc"),
}
_NOTHING: Json = {"type": "input_text", "text": ""}
"""What a message without content says: an empty list is refused."""
_RESULT_TYPES = {"function": "function_call_output", "custom": "custom_tool_call_output"}


class ItemWriter:
    """Writes the items of one call; `losses` point into the client's body."""

    def __init__(self, call: Call, rules: MediaRules, losses: list[Loss]) -> None:
        self._same = call.shape == "responses"
        self._losses = losses
        self._media = MediaPolicy(rules, losses)
        self._count = 0
        thoughts = () if self._same else (item for item in call.items if isinstance(item, Reasoning))
        self._sealed = {message_of(item.at) for item in thoughts if item.sealed and item.id}
        """Pointers of a Chat client's messages whose reasoning goes back sealed."""

    def write(self, item: Item) -> Iterator[Json]:
        """The input item for `item`; none when it means nothing to this wire. Raises 400."""
        self._count += 1
        if isinstance(item, Message):
            yield self._message(item)
        elif isinstance(item, ToolCall):
            yield self._extended(_call(item), item)
        elif isinstance(item, ToolResult):
            yield self._extended(self._result(item), item)
        elif isinstance(item, Reasoning):
            yield from self._reasoning(item)
        elif isinstance(item, AdditionalTools):
            tools = [write_tool(tool, self._same) for tool in item.tools]
            yield {**_own(item.id), "type": "additional_tools", "role": item.role, "tools": tools}
        elif item.shape == "responses":
            yield item.raw
        else:
            self._losses.append(Loss(item.at, f"no place for {item.type} on this wire", "content"))

    def _extended(self, written: Json, item: Message | ToolCall | ToolResult | Reasoning) -> Json:
        """With the keys of the client's shape that have no neutral name, if it is this shape."""
        return {**written, **item.extra} if self._same else written

    def _message(self, item: Message) -> Json:
        if item.name:
            self._losses.append(Loss(f"{item.at}/name", "messages have no name on this wire"))
        if not self._same and "audio" in item.extra:
            self._losses.append(Loss(f"{item.at}/audio", "old sound has no place on this wire", "content"))
        if item.role == "assistant":
            return self._extended(self._answer(item), item)
        content = self._input_parts(item.parts, f"{item.at}/content") or [_NOTHING]
        written: Json = {"type": "message", "role": item.role, "content": content}
        return self._extended({**written, **_own(item.id, "msg"), **_phase(item)}, item)

    def _answer(self, item: Message) -> Json:
        """An old answer as a full output message, the one form that all backends take.

        OpenAI takes several; llama-server wants `type`, vLLM `id` and `status`.
        """
        parts = self._media.lowered(item.parts, f"{item.at}/content", in_result=False)
        content = [self._output_part(part, f"{item.at}/content/{i}") for i, part in enumerate(parts)]
        id = _own(item.id, "msg") or {"id": made_id("msg_", str(self._count), orjson.dumps(content).decode())}
        written: Json = {"type": "message", "role": "assistant", "status": "completed", "content": content}
        return {**id, **written, **_phase(item)}

    def _reasoning(self, item: Reasoning) -> Iterator[Json]:
        """Reasoning goes back to the shape it came from: text alone is no item OpenAI could find.

        A Chat client has it from such a backend where it is sealed and named by its id; the words beside
        it repeat it.
        """
        if not self._same and not (item.sealed and item.id):
            if message_of(item.at) not in self._sealed:
                self._losses.append(
                    Loss(item.at, "its reasoning cannot be given back to this backend", "bookkeeping")
                )
            return
        written: Json = {
            "type": "reasoning",
            **_own(item.id),
            "summary": [{"type": "summary_text", "text": text} for text in item.summary],
        }
        if item.content:
            written["content"] = [{"type": "reasoning_text", "text": text} for text in item.content]
        if item.sealed is not None:
            written["encrypted_content"] = item.sealed
        yield self._extended(written, item)

    def _result(self, item: ToolResult) -> Json:
        if item.kind == "tool_search":
            tools = [write_tool(tool, self._same) for tool in item.tools]
            head = {"type": "tool_search_output", "call_id": item.call_id, "execution": "client"}
            return {**head, "status": "completed", "tools": tools}
        written: Json = {"type": _RESULT_TYPES[item.kind], "call_id": item.call_id}
        if item.name and self._same:
            written["name"] = item.name
        return {**written, "output": self._output(item)}

    def _output(self, item: ToolResult) -> Any:
        """A string for words; a list of `input_*` parts for more (never `output_text`: OpenAI refuses it)."""
        if len(item.parts) == 1 and isinstance(item.parts[0], Text):
            return item.parts[0].text
        return self._input_parts(item.parts, f"{item.at}/output") or ""

    def _input_parts(self, parts: Sequence[Part], at: str) -> list[Json]:
        # What a Chat client leaves open is `auto` there; here it is left as open as it was.
        detail = None if self._same else "auto"
        lowered = self._media.lowered(parts, at, in_result=False)
        return [self._input_part(part, f"{at}/{index}", detail) for index, part in enumerate(lowered)]

    # --- parts ---------------------------------------------------------------------

    def _input_part(self, part: Part, at: str, detail: str | None) -> Json:
        match part:
            case Text() | Refusal():
                return {"type": "input_text", "text": part.text}
            case Image():
                detail = part.detail or detail
                return _set(type="input_image", image_url=part.url, file_id=part.file_id, detail=detail)
            case File():
                return _file(part)
            case Audio() if self._same:  # OpenAI has none here; servers of open models do
                return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}
            case Opaque(shape="responses"):
                return part.raw
            case _:
                return {"type": "input_text", "text": self._unsaid(part, at)}

    def _output_part(self, part: Part, at: str) -> Json:
        match part:
            case Text():
                return {"type": "output_text", "text": part.text, "annotations": list(part.annotations)}
            case Refusal():
                return {"type": "refusal", "refusal": part.text}
            case Opaque(shape="responses"):
                return part.raw
            case _:
                return {"type": "output_text", "text": self._unsaid(part, at), "annotations": []}

    def _unsaid(self, part: Part, at: str) -> str:
        kind = part.type if isinstance(part, Opaque) else type(part).__name__.lower()
        return self._media.unsaid(part, at, f"{kind} part here; remove it").text


def _own(id: str | None, prefix: str = "") -> Json:
    """The item's id if it is one of this wire."""
    return {"id": id} if id and id.startswith(prefix) else {}


def _phase(item: Message) -> Json:
    return {"phase": item.phase} if item.phase else {}


# --- calls and results -----------------------------------------------------------------


def _call(item: ToolCall) -> Json:
    type, prefix = _CALL_TYPES[item.kind]
    written: Json = {"type": type, **_own(item.id, prefix), "call_id": item.call_id}
    if item.kind == "tool_search":
        return {**written, "execution": "client", "status": "completed", "arguments": _loads(item.arguments)}
    written["name"] = item.name
    if item.namespace is not None:
        written["namespace"] = item.namespace
    if item.kind == "custom":
        return {**written, "input": item.arguments}
    return {**written, "arguments": (item.arguments.strip() and item.arguments) or "{}"}


def _loads(arguments: str) -> Any:
    """The arguments of a search: this wire has them as an object, not as text."""
    value = json_in(arguments)
    return arguments if value is None else value


# --- parts -----------------------------------------------------------------------------


def _file(part: File) -> Json:
    data = part.data
    if data is not None and not data.startswith("data:"):
        data = f"data:{_mime(part.filename)};base64,{data}"
    return _set(
        type="input_file",
        filename=part.filename,
        file_data=data,
        file_id=part.file_id,
        file_url=part.url,
        detail=part.detail,
    )


def _mime(filename: str | None) -> str:
    """Bare base64 tells no type; this wire wants a data URL."""
    ending = (filename or "").rpartition(".")[2].lower()
    return {"txt": "text/plain", "csv": "text/csv", "json": "application/json"}.get(ending, "application/pdf")


def _set(**values: Any) -> Json:
    return {key: value for key, value in values.items() if value is not None}
