"""The rules of a Responses stream, as a check; see `conformance.py`.

Items come strictly one after another: Codex books a delta to the item that was added last, and
the OpenAI SDK's accumulator indexes its output by arrival.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..conformance import StreamCheck
from ..errors import ProxyError
from ..ir import (
    Closed,
    Delta,
    Event,
    Failed,
    Finished,
    Foreign,
    Grammar,
    ItemKind,
    Json,
    Opaque,
    Opened,
    Started,
)
from ..lenient import json_in

WHY = {
    "not_json": "SDKs raise on it and the stream is lost; Codex drops the frame",
    "unended_frame": "SSE readers drop a frame without its blank line",
    "after_done": "clients stop reading at `[DONE]`: what follows is lost",
    "after_end": "clients stop reading at the last event: what follows is lost",
    "no_beginning": "the OpenAI SDK's stream helper raises unless response.created comes first",
    "second_created": "the OpenAI SDK's accumulator begins anew, or raises",
    "no_in_progress": "clients that wait for the turn to begin never show it",
    "bad_field": "typed clients refuse the event (OpenAI SDK types, serde in Grok CLI and Codex)",
    "wrong_name": "EventSource clients dispatch by the `event:` line, others by `type`",
    "bad_number": "clients that resume or order by sequence_number lose or repeat events",
    "changed": "clients file what they get under the response's id",
    "items_overlap": "Codex books deltas to the item added last; the SDK's accumulator needs order",
    "wrong_place": "the OpenAI SDK's accumulator raises IndexError, or writes into another item",
    "id_taken": "clients that keep items by id overwrite the first",
    "not_added": "the OpenAI SDK raises IndexError; Codex drops the delta",
    "not_open": "a delta after its part's end is lost, or shown twice",
    "left_open": "clients keep showing the item as running",
    "sum_differs": "clients that show deltas and clients that show the whole show different texts",
    "item_differs": "Codex keeps the item that is done, SDK users the one that was streamed",
    "output_differs": "clients that read only the last event get another answer",
    "bad_item": "Codex drops the item silently; typed clients refuse it",
    "torn_arguments": "agents fail to parse the call's arguments",
    "usage_sum": "budgets and Codex' compaction count with the total",
    "bad_end": "clients decide by status, error and incomplete_details what became of the turn",
    "no_end": "Codex repeats the whole request up to five times; the SDK raises",
    "no_reply": "an empty stream is neither an answer nor an error",
}
_RESPONSE: Mapping[str, type | tuple[type, ...]] = {
    "id": str,
    "created_at": (int, float),
    "model": str,
    "output": list,
    "parallel_tool_calls": bool,
    "tool_choice": (str, dict),
    "tools": list,
}
_ITEMS: Mapping[str, Mapping[str, type]] = {
    "message": {"id": str, "role": str, "content": list},
    "function_call": {"call_id": str, "name": str, "arguments": str},
    "custom_tool_call": {"call_id": str, "name": str, "input": str},
    "reasoning": {"id": str, "summary": list},
}
_PARTS: Mapping[str, Mapping[str, type]] = {
    "output_text": {"text": str, "annotations": list},
    "refusal": {"refusal": str},
    "reasoning_text": {"text": str},
    "summary_text": {"text": str},
}
_KINDS: Mapping[str, ItemKind] = {
    "output_text": "text",
    "refusal": "refusal",
    "reasoning_text": "reasoning",
    "summary_text": "summary",
}
_TEXTS: Mapping[str, tuple[str, str, Mapping[str, type]]] = {
    "output_text": ("content_index", "text", {"logprobs": list}),
    "refusal": ("content_index", "refusal", {}),
    "reasoning_text": ("content_index", "text", {}),
    "reasoning_summary_text": ("summary_index", "text", {}),
    "function_call_arguments": ("", "arguments", {}),
    "custom_tool_call_input": ("", "input", {}),
}
"""What tells text: the index of its part, the key of the whole in `done`, and further required keys."""
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_LIFE = ("created", "queued", "in_progress")
_ENDS = ("completed", "incomplete", "failed")
_USAGE = ("input_tokens", "output_tokens", "total_tokens")
_DETAILS = {"input_tokens_details": "cached_tokens", "output_tokens_details": "reasoning_tokens"}
Place = tuple[str, int]


class _Part:
    """A part, or what a call is given: `index` of its piece in the events, and its text so far."""

    def __init__(self, index: int) -> None:
        self.index, self.text = index, ""
        self.whole: str | None = None
        self.done: Json | None = None


class ResponsesCheck(StreamCheck):
    """One Responses stream."""

    why = WHY

    def __init__(self) -> None:
        super().__init__()
        self._grammar = Grammar()
        self._number = 0
        self._head: Json = {}
        self._item: Json | None = None
        self._place = -1
        self._parts: dict[Place, _Part] = {}
        self._done: list[Json] = []
        self._ids: set[str] = set()
        self._pieces = 0
        self._seen: set[str] = set()

    def take(self, obj: Json, name: str | None) -> None:
        kind = obj.get("type")
        if not isinstance(kind, str):
            self.fault("bad_field", "type: str")
            return
        if name not in (None, kind):
            self.fault("wrong_name", f"`event: {kind}`")
        if obj.get("sequence_number") != self._number:
            self.fault("bad_number", f"sequence_number {self._number}: from 0, one more in each event")
        told = obj.get("sequence_number")
        self._number = (told if type(told) is int else self._number) + 1
        self._event(kind.removeprefix("response."), obj)
        self._seen.add(kind)

    def end(self) -> None:
        if self._grammar.state != "done":
            rule = "no_end" if self._seen else "no_reply"
            self.fault(rule, "one response.completed, .incomplete or .failed as the last event")

    def _see(self, event: Event, rule: str) -> bool:
        return self.see(self._grammar, event, rule)

    def _event(self, kind: str, obj: Json) -> None:
        stem, _, leaf = kind.rpartition(".")
        if kind == "created":
            self._see(Started(), "second_created")
        if kind in _LIFE:
            self._snapshot(obj)
        elif kind in _ENDS or kind == "error":
            self._last(kind, obj)
        elif kind == "output_item.added":
            self._add(obj)
        elif kind == "output_item.done":
            self._finish_item(obj)
        elif self._inside(obj):
            if stem in ("content_part", "reasoning_summary_part"):
                self._edge(leaf, obj)
            elif stem in _TEXTS:
                self._text(stem, leaf, obj)

    def _snapshot(self, obj: Json) -> Json:
        """The response in an event, with what typed clients need of it."""
        if not self.fields(obj, {"response": dict}, obj["type"]):
            return {}
        response: Json = obj["response"]
        self.fields(response, _RESPONSE, "response")
        for key in ("id", "created_at"):
            if self._head.setdefault(key, response.get(key)) != response.get(key):
                self.fault("changed", f"the {key} of the first snapshot")
        return response

    # --- items -------------------------------------------------------------------------

    def _add(self, obj: Json) -> None:
        if "response.in_progress" not in self._seen and not self._ids:
            self.fault("no_in_progress", "response.in_progress before the first item")
        if not self.fields(obj, {"output_index": int, "item": dict}, obj["type"]):
            return
        item: Json = obj["item"]
        if self._item is not None:
            self.fault("items_overlap", "the item before ends with its output_item.done first")
            self._settle()
        if obj["output_index"] != len(self._done):
            self.fault("wrong_place", f"output_index {len(self._done)}")
        if str(item.get("id")) in self._ids:
            self.fault("id_taken", "an id of its own for each item")
        self._ids.add(str(item.get("id")))
        self._item, self._place, self._parts = item, obj["output_index"], {}
        self._check_item(item)
        kind = str(item.get("type"))
        if kind in _CALLS:
            self._open(("", 0), "tool_call")
        elif kind not in _ITEMS:
            self._see(Foreign(self._pieces, Opaque("responses", item)), "after_end")
            self._pieces += 1

    def _check_item(self, item: Json) -> None:
        wanted = _ITEMS.get(str(item.get("type")), {"type": str})
        wrong = [key for key, kind in wanted.items() if not isinstance(item.get(key), kind)]
        if item.get("status") not in (None, "in_progress", "completed", "incomplete"):
            wrong += ["status"] if str(item.get("type")) in _ITEMS else []
        for key in ("content", "summary"):
            parts = item.get(key)
            for part in parts if isinstance(parts, list) else []:
                wrong += _wrong_in(part, key)
        for key in wrong:
            self.fault("bad_item", f"`{key}` of a {item.get('type')} item in its own type")

    def _open(self, place: Place, kind: ItemKind) -> None:
        self._see(Opened(self._pieces, kind), "after_end")
        self._parts[place] = _Part(self._pieces)
        self._pieces += 1

    def _inside(self, obj: Json) -> bool:
        """Whether an event about an item is about the open one."""
        if self._grammar.state == "done":
            self.fault("after_end", "nothing after the last event")
            return False
        if not ("item_id" in obj or "output_index" in obj):
            return False  # an event nobody knows
        self.fields(obj, {"item_id": str, "output_index": int}, obj["type"])
        if self._item is None:
            self.fault("not_added", "output_item.added before an item's events")
            return False
        if obj.get("output_index") != self._place or obj.get("item_id") != self._item.get("id"):
            self.fault("wrong_place", f"item_id {self._item.get('id')}, output_index {self._place}")
            return False
        return True

    def _finish_item(self, obj: Json) -> None:
        if not self.fields(obj, {"output_index": int, "item": dict}, obj["type"]):
            return
        item: Json = obj["item"]
        self._check_item(item)
        if self._item is None:
            self.fault("not_added", "output_item.added before output_item.done")
        else:
            self._compare(item, self._item)
            if obj["output_index"] != self._place:
                self.fault("wrong_place", f"output_index {self._place}")
        self._settle()
        self._done.append(item)

    def _compare(self, item: Json, added: Json) -> None:
        for key in ("id", "type", "call_id", "name", "role", "namespace"):
            if item.get(key) != added.get(key):
                self.fault("item_differs", f"the {key} that output_item.added told")
        field = _CALLS.get(str(item.get("type")))
        if field is not None:
            part = self._parts.get(("", 0))
            if part is not None and item.get(field) != part.text:
                self.fault("item_differs", f"the {field} that the deltas add up to")
            if field == "arguments" and item.get("status") != "incomplete" and _torn(item.get(field)):
                self.fault("torn_arguments", "arguments that are JSON")
            return
        if item.get("type") not in ("message", "reasoning"):
            return  # no part of another item is ever streamed
        for key, counter in (("content", "content_index"), ("summary", "summary_index")):
            told = [part.done for (where, _), part in self._parts.items() if where == counter]
            if None not in told and list(item.get(key) or []) != told:
                self.fault("item_differs", f"`{key}`: the parts that were told done")

    def _settle(self) -> None:
        """The item under way ends; parts that are still open were forgotten."""
        called = self._item is not None and str(self._item.get("type")) in _CALLS
        for part in self._parts.values():
            if part.done is None:
                if not called:
                    self.fault("left_open", "content_part.done before the item's end")
                self._see(Closed(part.index), "not_open")
        self._item, self._parts = None, {}

    # --- parts -------------------------------------------------------------------------

    def _edge(self, leaf: str, obj: Json) -> None:
        counter = "summary_index" if "summary" in obj["type"] else "content_index"
        if not self.fields(obj, {counter: int, "part": dict}, obj["type"]):
            return
        place, part = (counter, obj[counter]), obj["part"]
        for key in _wrong_in(part, "part"):
            self.fault("bad_item", f"`{key}` of the part in its own type")
        known = self._parts.get(place)
        if leaf == "added":
            expected = sum(where == counter for where, _ in self._parts)
            if obj[counter] != expected:
                self.fault("wrong_place", f"{counter} {expected}")
            self._open(place, _KINDS.get(str(part.get("type")), "text"))
        elif known is None or known.done is not None:
            self.fault("not_open", "content_part.added before content_part.done, which comes once")
        else:
            known.done = part
            if part.get("text", part.get("refusal")) != known.text:
                self.fault("sum_differs", "the text that the deltas add up to")
            self._see(Closed(known.index), "not_open")

    def _text(self, stem: str, leaf: str, obj: Json) -> None:
        counter, key, more = _TEXTS[stem]
        index = {counter: int} if counter else {}
        wanted = {"delta": str} if leaf == "delta" else {key: str}
        if not self.fields(obj, {**index, **wanted, **more}, obj["type"]):
            return
        part = self._parts.get((counter, obj[counter] if counter else 0))
        if part is None or part.done is not None or part.whole is not None:
            self.fault("not_open", f"an open part for {obj['type']}")
        elif leaf == "delta":
            self._see(Delta(part.index, obj["delta"]), "not_open")
            part.text += obj["delta"]
        else:
            part.whole = obj[key]
            if part.whole != part.text:
                self.fault("sum_differs", f"the {key} that the deltas add up to")

    # --- the end -----------------------------------------------------------------------

    def _last(self, kind: str, obj: Json) -> None:
        if kind in ("failed", "error"):
            self._see(Failed(ProxyError("upstream", "")), "after_end")
            self._failed(kind, obj)
            return
        if self._item is not None:
            self.fault("left_open", "output_item.done for every item before the end")
            self._settle()
        legal = self._see(Finished("stop"), "left_open")
        response = self._snapshot(obj)
        usage = response.get("usage")
        if isinstance(usage, dict):
            self.tokens(usage, _USAGE, _DETAILS)
        elif usage is not None:
            self.fault("bad_field", "response.usage: dict or null")
        if response.get("status") != kind:
            self.fault("bad_end", f"response.status {kind}")
        if (kind == "incomplete") != bool(response.get("incomplete_details")):
            self.fault("bad_end", "response.incomplete_details.reason exactly when it is incomplete")
        if legal and response.get("output", self._done) != self._done:
            self.fault("output_differs", "response.output: the items that were told done")

    def _failed(self, kind: str, obj: Json) -> None:
        error = obj if kind == "error" else self._snapshot(obj).get("error")
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            self.fault("bad_end", "an error with a string `message`")


def _wrong_in(part: Any, where: str) -> list[str]:
    if not isinstance(part, dict):
        return [where]
    wanted = _PARTS.get(str(part.get("type")), {})
    return [f"{where}.{key}" for key, kind in wanted.items() if not isinstance(part.get(key), kind)]


def _torn(arguments: Any) -> bool:
    return isinstance(arguments, str) and json_in(arguments) is None
