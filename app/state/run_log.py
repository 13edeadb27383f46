"""What a background run tells: its events under the run's own name, numbered on. Pure, nothing waits here.

The stream of an answer goes in as it comes, from whichever lane and backend. Out come the events that the
run's followers get: the response in them is the run's (its id, `background`, the time it was asked for), they
are numbered on from those that the run began with, and the last says how it ended, whatever happened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from translators.errors import ProxyError, responses_error
from translators.framing import SseFramer
from translators.ir import Json
from translators.lenient import read_json
from translators.responses.frames import frame

from ..store.runs import Batch

ACTIVE = frozenset({"queued", "in_progress"})
_ENDS = {f"response.{status}": status for status in ("completed", "incomplete", "failed", "cancelled")}
_OPENINGS = frozenset({"response.created", "response.queued", "response.in_progress"})
"""A run has told these by itself."""
_NAME = re.compile(r"[!-~]+")
"""What the type of an event may be: it goes into a line of its own, and a blank line would end the event."""
_OWN = ("id", "created_at", "background", "store", "previous_response_id", "conversation")
"""Fields of a response that are the run's, whatever a backend says."""


class RunLog:
    """The events that are not written yet, and the response as it is by now."""

    def __init__(self, queued: Json) -> None:
        self.response = queued
        self.ended = False
        self.size = 0
        """Bytes that are not written yet."""
        self._own = {key: queued[key] for key in _OWN if key in queued}
        self._framer = SseFramer()
        self._frames: list[bytes] = []
        self._number = 0
        self._items: dict[int, Json] = {}

    def queued(self) -> None:
        """The events that a run begins with."""
        self._say("response.created", {"response": self.response})
        self._say("response.queued", {"response": self.response})

    def start(self) -> None:
        self.response = {**self.response, "status": "in_progress"}
        self._say("response.in_progress", {"response": self.response})

    def feed(self, data: bytes) -> None:
        """A part of the answer's stream."""
        for payload in self._framer.feed(data):
            event = read_json(payload)[0] if not self.ended else None
            if isinstance(event, dict):
                self._take(event)

    def end(self, status: str, error: ProxyError | None = None) -> None:
        """The run's end by another cause than its stream; without effect when it has ended."""
        if not self.ended:
            told = None if error is None else responses_error(error)
            self._end({**self.response, "output": outputs(self._items), **ending(status, told)})

    def pending(self) -> Batch | None:
        """What is to be written next; it stays until `written`."""
        if not self._frames:
            return None
        first = self._number - len(self._frames)
        return Batch(first, self._number - 1, b"".join(self._frames))

    def written(self, batch: Batch) -> None:
        del self._frames[: batch.last - batch.first + 1]
        self.size = sum(map(len, self._frames))

    def _take(self, event: Json) -> None:
        kind = event.pop("type", None)
        if not isinstance(kind, str) or not _NAME.fullmatch(kind) or kind in _OPENINGS:
            return
        if kind in _ENDS:
            told = event.get("response")
            self._end({**self.response, **(told if isinstance(told, dict) else {}), "status": _ENDS[kind]})
        elif kind == "error":
            self.end("failed", _error(event))
        else:
            event.pop("sequence_number", None)
            note_item(kind, event, self._items)
            self._say(kind, event)

    def _end(self, response: Json) -> None:
        self.response = {**response, **self._own}
        self.ended = True
        self._say(*last_event(self.response))

    def _say(self, kind: str, fields: Json) -> None:
        self._frames.append(frame(kind, self._number, fields))
        self.size += len(self._frames[-1])
        self._number += 1


def _error(event: Json) -> ProxyError:
    """Of an `error` event, flat as OpenAI has it or in an object as others do."""
    told = event.get("error")
    fields: Mapping[str, Any] = told if isinstance(told, dict) else event
    code = fields.get("code")
    message = str(fields.get("message") or "The backend failed.")
    return ProxyError("upstream", message, code=code if isinstance(code, str) else None)


def note_item(kind: str, event: Json, items: dict[int, Json]) -> None:
    """Keep an item that an event says is finished, under its place in the output."""
    item, index = event.get("item"), event.get("output_index")
    if kind == "response.output_item.done" and isinstance(item, dict) and isinstance(index, int):
        items[index] = item


def outputs(items: Mapping[int, Json]) -> list[Json]:
    return [items[index] for index in sorted(items)]


def ending(status: str, error: Mapping[str, str] | None) -> Json:
    """The fields of a response that was ended before it was whole."""
    return {"status": status, "error": error, "completed_at": None, "incomplete_details": None, "usage": None}


def last_event(response: Json) -> tuple[str, Json]:
    """The event that ends a stream; there is none for a cancelled response, which did fail its followers."""
    status = response["status"]
    kind = "failed" if status == "cancelled" else status
    return f"response.{kind}", {"response": response}


def is_active(response: bytes) -> bool:
    """Whether it is a response that is still being made here: read only where its text may say so."""
    if b'"in_progress"' not in response and b'"queued"' not in response:
        return False
    told = orjson.loads(response)
    return told.get("background") is True and told.get("status") in ACTIVE
