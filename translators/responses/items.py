"""Output items while they are written: what each puts on the wire, and what it is in the end.

An item waits until its turn, is shown (`output_item.added`), grows piece by piece and is
finished (`output_item.done`). Its methods return the events this takes, without sequence
numbers; the encoder decides the turns. `Piece.head` is set while deltas may leave at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from ..ir import ItemKind, Json, ToolKind
from ..lenient import json_in
from .frames import head

Step: TypeAlias = tuple[str, Json]
"""Type and fields of one event."""
Status = Literal["completed", "incomplete"]


class _Family(NamedTuple):
    """How a kind of part is said: its text's events, its own events, its index, its fields."""

    stem: str
    edge: str
    counter: str
    type: str
    field: str


_FAMILIES: Mapping[ItemKind, _Family] = {
    "text": _Family("response.output_text", "response.content_part", "content_index", "output_text", "text"),
    "refusal": _Family("response.refusal", "response.content_part", "content_index", "refusal", "refusal"),
    "reasoning": _Family(
        "response.reasoning_text", "response.content_part", "content_index", "reasoning_text", "text"
    ),
    "summary": _Family(
        "response.reasoning_summary_text",
        "response.reasoning_summary_part",
        "summary_index",
        "summary_text",
        "text",
    ),
}

PLAIN_TAIL = b"}\n\n"
TEXT_TAIL = b',"logprobs":[]}\n\n'


@dataclass(slots=True)
class Piece:
    """A stretch of output between `Opened` and `Closed`.

    `shown`: it is on the wire, where the fields `where` address it and events named after `stem`
    tell its text.
    """

    kind: ItemKind
    open: bool = True
    shown: bool = False
    texts: list[str] = field(default_factory=list)
    annotations: list[Json] = field(default_factory=list)
    logprobs: list[Json] = field(default_factory=list)
    where: Json = field(default_factory=dict)
    stem: str = ""
    head: bytes = b""
    tail: bytes = PLAIN_TAIL

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def place(self, where: Json, stem: str) -> None:
        """Put the piece on the wire; an empty `stem`: nothing is told of its text."""
        self.shown, self.where, self.stem = True, where, stem
        if stem:
            self.head = head(f"{stem}.delta", where)
            self.tail = TEXT_TAIL if self.kind == "text" else PLAIN_TAIL

    def grow(self, text: str, logprobs: list[Json]) -> list[Step]:
        """More text, where the byte template will not do."""
        if not (text and self.stem):
            return []
        fields = {**self.where, "delta": text}
        if self.kind == "text":
            fields["logprobs"] = logprobs
        return [(f"{self.stem}.delta", fields)]


class OutputItem(ABC):
    """What all items share; `held` items are finished only when the reply is."""

    held = False
    lone = False
    """Finished as soon as it is shown: nothing of it comes later."""
    stem = ""

    def __init__(self, id: str) -> None:
        self.id = id
        self.pieces: list[Piece] = []
        self.sealed: str | None = None
        self.cut = False
        self.output_index = -1

    @property
    def settled(self) -> bool:
        return not any(piece.open for piece in reversed(self.pieces))  # the last one, if any

    def begin(self, output_index: int) -> list[Step]:
        """The item's turn has come: all that is known of it so far."""
        self.output_index = output_index
        steps = [("response.output_item.added", {"output_index": output_index, "item": self.added()})]
        for piece in self.pieces:
            steps += self.show(piece)
            if not piece.open:
                steps += self.close(piece)
        return steps

    def finish(self, status: Status) -> tuple[list[Step], Json]:
        """The last events of the item, and the item as it stays in the response."""
        steps: list[Step] = []
        for piece in self.pieces:
            if piece.open:
                piece.open = False
                steps += self.close(piece)
        steps += self.last(status)
        item = self.done(status)
        steps.append(("response.output_item.done", {"output_index": self.output_index, "item": item}))
        return steps, item

    @abstractmethod
    def added(self) -> Json:
        """The item as it is announced."""
        ...

    @abstractmethod
    def done(self, status: Status) -> Json:
        """The item as it stays in the response."""
        ...

    def show(self, piece: Piece) -> list[Step]:
        """Put a piece on the wire, with the text it has gathered."""
        piece.place(self._address(), self.stem)
        return piece.grow(piece.text, [])

    def close(self, piece: Piece) -> list[Step]:
        return []

    def last(self, status: Status) -> list[Step]:
        return []

    def _address(self) -> Json:
        return {"item_id": self.id, "output_index": self.output_index}


class PartsItem(OutputItem):
    """A message or a reasoning item: a list of parts.

    A part of a message is added when it is opened. One of reasoning waits for its first text,
    so that reasoning nobody may read (only sealed) has an empty summary, as OpenAI has it.
    """

    def __init__(self, id: str, thought: bool, phase: str | None = None) -> None:
        super().__init__(id)
        self._thought, self._phase = thought, phase
        self._shown: dict[str, int] = {}
        """How many parts are on the wire, by the name of their index."""

    def added(self) -> Json:
        if self._thought:
            return {"id": self.id, "type": "reasoning", "status": "in_progress", "summary": []}
        return self._message("in_progress", [])

    def done(self, status: Status) -> Json:
        if not self._thought:
            return self._message(status, [_part(piece) for piece in self.pieces])
        parts = [piece for piece in self.pieces if piece.texts]
        item: Json = {"id": self.id, "type": "reasoning", "status": status}
        item["summary"] = [_part(piece) for piece in parts if piece.kind == "summary"]
        if content := [_part(piece) for piece in parts if piece.kind == "reasoning"]:
            item["content"] = content
        if self.sealed is not None:
            item["encrypted_content"] = self.sealed
        return item

    def _message(self, status: str, content: list[Json]) -> Json:
        item = {
            "id": self.id,
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": content,
        }
        return item if self._phase is None else {**item, "phase": self._phase}

    def show(self, piece: Piece) -> list[Step]:
        if self._thought and not piece.texts:
            return []
        family = _FAMILIES[piece.kind]
        number = self._shown.get(family.counter, 0)
        self._shown[family.counter] = number + 1
        piece.place({**self._address(), family.counter: number}, family.stem)
        return [
            (f"{family.edge}.added", {**piece.where, "part": _part(Piece(piece.kind))}),
            *piece.grow(piece.text, piece.logprobs),
            *(annotation_step(piece, index) for index in range(len(piece.annotations))),
        ]

    def close(self, piece: Piece) -> list[Step]:
        if not piece.shown:
            return []
        family, part = _FAMILIES[piece.kind], _part(piece)
        said = {**piece.where, family.field: part[family.field]}
        if piece.kind == "text":
            said["logprobs"] = part["logprobs"]
        return [
            (f"{family.stem}.done", said),
            (f"{family.edge}.done", {**piece.where, "part": part}),
        ]


class _CallForm(NamedTuple):
    """How a call of one kind is said; `stem` empty: it has no events for what the model wrote."""

    type: str
    field: str
    stem: str


_CALLS: Mapping[ToolKind, _CallForm] = {
    "function": _CallForm("function_call", "arguments", "response.function_call_arguments"),
    "custom": _CallForm("custom_tool_call", "input", "response.custom_tool_call_input"),
    "tool_search": _CallForm("tool_search_call", "arguments", ""),
}


class CallItem(OutputItem):
    """A tool call. Clients run it on its `done`, which therefore waits for the end of the reply."""

    held = True

    def __init__(
        self, id: str, call_id: str, name: str, tool: ToolKind, namespace: str | None = None
    ) -> None:
        super().__init__(id)
        self._tool, self._form = tool, _CALLS[tool]
        self.stem = self._form.stem
        self.call_id = call_id
        self._names: Json = {"call_id": call_id}
        if tool == "tool_search":
            self._names["execution"] = "client"
        else:
            self._names["name"] = name
        if namespace is not None:
            self._names["namespace"] = namespace

    def added(self) -> Json:
        return self._item("in_progress", {} if self._tool == "tool_search" else "")

    def done(self, status: Status) -> Json:
        text = self.pieces[0].text
        return self._item(status, _object(text) if self._tool == "tool_search" else text)

    def _item(self, status: str, written: Any) -> Json:
        return {
            "id": self.id,
            "type": self._form.type,
            "status": status,
            **self._names,
            self._form.field: written,
        }

    def last(self, status: Status) -> list[Step]:
        piece, steps = self.pieces[0], []
        if status == "completed" and self._tool != "custom" and not piece.texts:
            # Codex cannot parse "" as arguments; a call without arguments is `{}`.
            piece.texts.append("{}")
            steps += piece.grow("{}", [])
        if self.stem:
            said = {**piece.where, self._form.field: piece.text}
            if self._tool == "function":
                said["name"] = self._names["name"]
            steps.append((f"{self.stem}.done", said))
        return steps


HOSTED: Mapping[str, tuple[str, ...]] = {
    "web_search_call": ("in_progress", "searching", "completed"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "image_generation_call": ("in_progress", "generating", "completed"),
    "mcp_call": ("in_progress", "completed"),
    "mcp_list_tools": ("in_progress", "completed"),
}
"""Calls of tools that the backend runs itself, and the events each goes through."""


class ForeignItem(OutputItem):
    """An item of the backend that is passed on whole."""

    lone = True

    def __init__(self, id: str, raw: Json) -> None:
        super().__init__(id)
        self._raw = {**raw, "id": id}

    def added(self) -> Json:
        return {**self._raw, "status": "in_progress"} if "status" in self._raw else self._raw

    def done(self, status: Status) -> Json:
        return self._raw

    def last(self, status: Status) -> list[Step]:
        kind = str(self._raw.get("type"))
        stages = HOSTED.get(kind, ())
        if self._raw.get("status") not in (None, "completed") or self._raw.get("error"):
            stages = stages[:1]
        return [(f"response.{kind}.{stage}", self._address()) for stage in stages]


def annotation_step(piece: Piece, index: int) -> Step:
    annotation = {"annotation_index": index, "annotation": piece.annotations[index]}
    return "response.output_text.annotation.added", {**piece.where, **annotation}


def _part(piece: Piece) -> Json:
    family = _FAMILIES[piece.kind]
    part: Json = {"type": family.type, family.field: piece.text}
    if piece.kind == "text":
        part |= {"annotations": piece.annotations, "logprobs": piece.logprobs}
    return part


def _object(text: str) -> Any:
    """Arguments as JSON; text that is no object stays text, for the client to complain about."""
    value = json_in(text)
    return value if isinstance(value, dict) else text


_CITATIONS: Mapping[str, Json] = {
    "url_citation": {"url": "", "title": "", "start_index": 0, "end_index": 0},
    "file_citation": {"file_id": "", "filename": "", "index": 0},
    "file_path": {"file_id": "", "index": 0},
}
"""Fields that typed clients require of a citation, and what stands in for a missing one."""


def whole_annotation(raw: Json) -> Json:
    told = {key: value for key, value in raw.items() if value is not None}
    return {**_CITATIONS.get(str(raw.get("type")), {}), **told}
