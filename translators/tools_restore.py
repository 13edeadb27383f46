"""Events about lowered tools, turned back into events about the client's own tools.

One `RestoreTools` per reply. A name nobody lowered passes untouched. The input of a free-form
tool arrives wrapped in JSON: it is held until the call is closed and leaves as one `Delta`,
because half a JSON string may not be shown as if it were the input. A reply that breaks off
in such a call therefore shows nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .format_tool import AnswerOnly, unwrap_answer
from .ir import Closed, Delta, Event, Finished, Opened
from .lenient import json_in
from .tool_names import Original

_FENCED = re.compile(r"\s*```[^\n`]*\n(.*?)\n?```\s*", re.DOTALL)
_ESCAPED = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
_PATCH = "*** Begin Patch"
"""Codex refuses a patch whose first line is anything else (a fence, or JSON still around it)."""


class RestoreTools:
    """Feed the backend's events, get the client's; `names` maps wire names to the client's tools."""

    def __init__(self, names: Mapping[str, Original]) -> None:
        self._names = names
        self._held: dict[int, tuple[Original, list[str]]] = {}
        self._answers: set[int] = set()
        self._calls = False
        formats = any(original.kind == "format" for original in names.values())
        self._prose = AnswerOnly() if formats else None

    def feed(self, event: Event) -> Iterable[Event]:
        restored = self._restore(event)
        if self._prose is None:
            return restored
        return [each for one in restored for each in self._prose.feed(one, self._is_answer(one))]

    def _restore(self, event: Event) -> Sequence[Event]:
        if isinstance(event, Delta):
            held = self._held.get(event.index)
            if held is None:
                return (event,)
            held[1].append(event.text)
            return ()
        if isinstance(event, Opened):
            return (self._open(event),)
        if isinstance(event, Closed):
            return self._close(event)
        if isinstance(event, Finished) and event.reason == "tool_calls" and self._answers and not self._calls:
            return (Finished("stop", event.usage),)
        return (event,)

    def _open(self, event: Opened) -> Opened:
        if event.kind != "tool_call":
            return event
        original = self._names.get(event.name) if event.namespace is None else None
        if original is None or original.kind != "format":
            self._calls = True
        if original is None:
            return event
        if original.kind == "custom" or original.wrapped:
            self._held[event.index] = (original, [])
        if original.kind == "format":
            self._answers.add(event.index)
            return Opened(event.index, "text")
        return Opened(
            event.index,
            "tool_call",
            event.call_id,
            original.name,
            original.kind,
            original.namespace,
            native=event.native,
        )

    def _close(self, event: Closed) -> Sequence[Event]:
        original, held = self._held.pop(event.index, (None, ()))
        if original is None:
            return (event,)
        if event.cut:
            return (Closed(event.index, cut=True, native=event.native),)
        arguments = "".join(held) if event.text is None else event.text
        text = (
            unwrap_answer(arguments)
            if original.kind == "format"
            else unwrap_input(arguments, original.verbatim)
        )
        closed = Closed(event.index, native=None if original.kind == "format" else event.native)
        return (Delta(event.index, text), closed) if text else (closed,)

    def _is_answer(self, event: Event) -> bool:
        return isinstance(event, Opened) and event.index in self._answers


def unwrap_input(arguments: str, verbatim: bool = False) -> str:
    """The free text in the arguments of a function that stands for a free-form tool.

    Right is `{"input": "..."}`. Also taken: another single string key, a bare JSON string,
    text that is no JSON at all, and the right form wrapped once more. A Markdown fence around
    the whole is removed from a patch, and for `verbatim` tools, whose grammar has none.
    """
    text = _unwrapped(arguments)
    if text is not arguments:
        text = _rewrapped(text)
    fenced = _FENCED.fullmatch(text)
    if fenced and (verbatim or fenced[1].lstrip().startswith(_PATCH)):
        return fenced[1]
    return text


def _unwrapped(arguments: str) -> str:
    value = _parsed(arguments)
    while isinstance(value, dict):
        if not value:
            return ""
        value = value["input"] if "input" in value else _only(value)
    return value if isinstance(value, str) else arguments


def _rewrapped(text: str) -> str:
    """`text` without a second wrapping; JSON that is the tool's own input stays as it is."""
    value = _parsed(text)
    if isinstance(value, dict) and list(value) == ["input"] and isinstance(value["input"], str):
        return str(value["input"])
    return value if isinstance(value, str) else text


def _only(value: dict[str, Any]) -> Any:
    return next(iter(value.values())) if len(value) == 1 else None


def _parsed(text: str) -> Any:
    """The JSON value, also with raw line ends in its strings (small models forget to escape)."""
    value = json_in(text)
    return json_in(text.strip().translate(_ESCAPED)) if value is None else value
