"""A structured answer asked for as a call of a tool, for backends without a JSON Schema format.

The schema becomes the parameters of one more function. Alone, it is forced. Beside the
client's own tools some call is required, so that the model may use those first and can end
the turn with this one only. Where the client forces a call of its own tools the answer is not
due yet, and no such function is added. A model that is thinking takes no forced choice
(profile `tools.choice.with_thinking`): there the choice is left to it.

On return the arguments are the text of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import orjson

from .errors import bad_request, param_at
from .ir import (
    Annotated,
    Closed,
    Delta,
    Event,
    Failed,
    Finished,
    Foreign,
    Json,
    Opened,
    Started,
    Tool,
    ToolChoice,
    ToolRef,
)
from .lenient import json_in
from .profile import Profile

_TELL = "Give the final answer by calling this function: its arguments are the answer."
_WRAP = "value"
"""Parameters must be an object: any other schema becomes its one property of this name."""
_UNIONS = frozenset({"anyOf", "oneOf", "allOf"})
"""Refused at the root of parameters by some backends (Claude: "input_schema does not support ...")."""


def wants_format_tool(format: Json | None, profile: Profile) -> bool:
    return (
        format is not None
        and format.get("type") == "json_schema"
        and profile.output_format.json_schema == "tool"
    )


def format_tool(format: Json, name: str, at: str) -> tuple[Tool, bool]:
    """The function whose parameters are the answer, and whether the schema had to be wrapped.

    `at` is the format's place in the client's body: what the tool loses, the format loses.
    """
    schema = format.get("schema") or {"type": "object"}
    if not isinstance(schema, dict):
        raise bad_request("The schema of a structured answer must be an object.", param_at(at))
    wrapped = schema.get("type", "object") != "object" or not _UNIONS.isdisjoint(schema)
    if wrapped:
        schema = _wrapped(schema)
    told = format.get("description")
    description = f"{told}\n\n{_TELL}" if told else _TELL
    return Tool(name, description, schema, format.get("strict"), at=at), wrapped


def _wrapped(schema: Json) -> Json:
    """An object with `schema` as its one property; definitions stay at the root, where refs look."""
    definitions: Json = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    inner = {key: value for key, value in schema.items() if key not in definitions}
    return {"type": "object", "properties": {_WRAP: inner}, "required": [_WRAP], **definitions}


def format_choice(choice: ToolChoice | None, alone: bool, name: str) -> ToolChoice:
    """The choice that makes the model answer by the format tool, see the module's words."""
    if alone or (choice is not None and choice.mode == "none"):
        return ToolChoice("required", (ToolRef("function", name),), named=True)
    allowed = choice.only if choice is not None else None
    if allowed is not None:
        return ToolChoice("required", (*allowed, ToolRef("function", name)))
    return ToolChoice("required")


def unwrap_answer(arguments: str) -> str:
    """The answer in the arguments of a wrapped format tool; what is not of that form stays."""
    value = json_in(arguments)
    if isinstance(value, dict) and list(value) == [_WRAP]:
        return orjson.dumps(value[_WRAP]).decode()
    return arguments


_Indexed: TypeAlias = Opened | Delta | Annotated | Closed | Foreign


class AnswerOnly:
    """Keeps prose out of a structured answer: `Here you are: {...}` would not parse.

    Text is held until the reply shows what it is: followed by the answer it was a preamble
    and is left out; before a call of the client's own or at the end it is the model's words.
    Pieces are counted anew, because what is left out takes no index.
    """

    def __init__(self) -> None:
        self._index: dict[int, int] = {}
        self._held: dict[int, list[_Indexed]] = {}
        self._answered = False

    def feed(self, event: Event, is_answer: bool = False) -> Iterable[Event]:
        if isinstance(event, Started):
            return (event,)
        if isinstance(event, Finished | Failed):
            return [*self._release(), event]
        if isinstance(event, Opened):
            return self._open(event, is_answer)
        if event.index in self._held:
            self._held[event.index].append(event)
            return ()
        return (self._renumbered(event),)

    def _open(self, event: Opened, is_answer: bool) -> Iterable[Event]:
        if is_answer:
            self._answered = True
        elif event.kind == "text":
            self._held[event.index] = [event]
            return ()
        if self._held:
            event.joins = event.joins and not self._answered
        thought = event.kind in ("reasoning", "summary")
        before = [] if is_answer or thought else self._release()
        return [*before, self._renumbered(event)]

    def _release(self) -> list[Event]:
        """The held text in order; after the answer it is left out for good."""
        if self._answered:
            return []
        held, self._held = self._held, {}
        return [self._renumbered(event) for events in held.values() for event in events]

    def _renumbered(self, event: _Indexed) -> Event:
        event.index = self._index.setdefault(event.index, len(self._index))
        return event
