"""One piece of a Chat reply while it is written: where its text goes, and what it is so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..ir import Json, Opened
from ..tool_names import NameTable, ToolKey

Place = Literal["content", "refusal", "reasoning_content", "reasoning", "tool_calls", "function_call"]


@dataclass(slots=True)
class Piece:
    """Text for the message's key `place`, or a call.

    `lead` stands before the text; `whole` is the text by the backend's last word. `before` and
    `after` are the constant bytes of a chunk around a delta, empty for a plain reply. `call`:
    `{id, type, name}`, and `number` its place among the calls.
    """

    place: Place
    lead: str = ""
    call: Json | None = None
    signed: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the call that its backend wants back."""
    id: str = ""
    """The backend's own id of reasoning: what is sealed in it is bound to that id."""
    number: int = 0
    before: bytes = b""
    after: bytes = b""
    texts: list[str] = field(default_factory=list)
    whole: str | None = None
    annotations: list[Json] = field(default_factory=list)
    logprobs: list[Json] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.lead + ("".join(self.texts) if self.whole is None else self.whole)

    def delta(self, text: str) -> Json:
        """The delta object that adds `text`."""
        if self.call is None:
            return {self.place: text}
        if self.place == "function_call":
            return {"function_call": {"arguments": text}}
        return {"tool_calls": [{"index": self.number, **_filled(self.call, {}, text)}]}

    def opening(self) -> Json:
        """The delta object that announces a call."""
        call = self.whole_call("")
        return {self.place: [{"index": self.number, **call}] if self.place == "tool_calls" else call}

    def whole_call(self, text: str) -> Json:
        """The call as an entry of `message.tool_calls`, or as `message.function_call`."""
        call = self.call or {}
        if self.place == "function_call":
            return {"name": call["name"], "arguments": text}
        head = {"id": call["id"], "type": call["type"]}
        return {**head, **_filled(call, {"name": call["name"]}, text), **self.signed}


def call_piece(event: Opened, number: int, place: Place, new_id: Callable[[str], str]) -> Piece:
    """The piece of a call. Chat has no namespaces: the joined legal name stands for both."""
    name = event.name or event.tool
    if event.namespace:
        name = NameTable().give(ToolKey(name, event.namespace))
    kind = "custom" if event.tool == "custom" else "function"
    call = {"id": event.call_id or new_id("call_"), "type": kind, "name": name}
    return Piece(place, call=call, signed=event.native or {}, number=number)


def _filled(call: Json, head: Json, text: str) -> Json:
    kind = call["type"]
    return {kind: {**head, "input" if kind == "custom" else "arguments": text}}
